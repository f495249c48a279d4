"""`models verify`: what is wrong with the files of a folder, and what to do about each.

Three depths. Headers: every file, always. Samples: a few rows of a few tensors of every block,
which finds zeros, NaN, and scales that no quantiser makes, in seconds. Hashes: whole files against
the record of `models pull`, when asked for. Nothing is changed, and nobody is told to fetch a file
again without a reason that names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from . import edge, openvdn
from .findings import Finding, Verification, from_error
from .header import TensorFile, read_header
from .pull_record import RECORD_FILE, hash_file, read_record
from .recognise import MAX_FILES, files_in, recognise_header
from .transfer import STAGING
from .verify_checkpoint import adapter_findings, checkpoint_findings
from .walk import MAX_FOLDERS, Walk, stores_nothing, walk

LEFTOVERS = ("*.incomplete", "*.part", "*.partial", "*.tmp", "*.crdownload", "*.aria2")
FOREIGN = (  # lower case
    (b"<!doctype", "a web page (a download that wanted a login)"),
    (b"<html", "a web page (a download that wanted a login)"),
    (b"gguf", "a GGUF file"),
    (b"pk\x03\x04", "a zip or PyTorch archive"),
    (b"\x80\x02", "a Python pickle"),
)
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def verify(
    folder: Path,
    *,
    hashes: bool = False,
    samples: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> Verification:
    """Examine a folder of model files. Raises CheckpointError only when it is not there."""
    folder = Path(folder)
    if not folder.exists():
        raise CheckpointError("folder is not there", file=folder)
    nothing = stores_nothing(folder)
    if nothing:
        raise CheckpointError(f"a {nothing} file system holds no model files", file=folder)
    findings: list[Finding] = []
    headers: list[TensorFile] = []
    seen = walk(folder, progress) if folder.is_dir() else Walk()
    paths = list(files_in(seen)) if folder.is_dir() else [folder]
    findings += _not_seen(folder, seen, len(paths))
    record, own = _record(folder)[1], _own_folders(folder)
    for done, path in enumerate(paths):
        if progress is not None:
            progress(done, len(paths), path.name)
        try:
            headers.append(read_header(path))
        except CheckpointError as damage:
            known = path in record or any(path.is_relative_to(item) for item in own)
            findings.append(_damaged(path, damage, known=known))
    findings += _leftovers(seen)
    findings += _duplicates(headers)
    findings += adapter_findings(seen)
    if folder.is_dir():
        findings += checkpoint_findings(folder, samples=samples, progress=progress)
    if hashes:
        findings += _hashes(folder, progress)
    unique = tuple(dict.fromkeys(findings))
    kinds = Counter(_kind(header, own) for header in headers)
    return Verification(folder, len(paths), unique, tuple(sorted(kinds.items())))


def _own_folders(folder: Path) -> list[Path]:
    """Folders whose files are parts of one checkpoint of this model."""
    if not folder.is_dir():
        return []
    found = [openvdn.base_folder(folder), openvdn.stage_folder(folder)]
    return [*edge.find_caches(folder), *(path for path in found if path is not None)]


def _kind(header: TensorFile, own: Sequence[Path]) -> str:
    """What a file is: a model of this family, a part of one, or another model's file."""
    if any(header.path.is_relative_to(path) for path in own):
        return "part_of_a_checkpoint"
    found = recognise_header(header)
    return "of_another_model" if found is None else found.kind


def _not_seen(folder: Path, seen: Walk, files: int) -> Iterator[Finding]:
    """What was not looked at, and a folder without any file to look at."""
    for path in seen.unreadable:
        yield Finding("note", "a folder that may not be read", str(path),
                      remedy="Nothing in it was looked at.")  # fmt: skip
    if seen.cut or files == MAX_FILES:
        yield Finding(
            "note", "more than is looked at in one go", str(folder),
            expected=f"at most {MAX_FOLDERS} folders and {MAX_FILES} weight files", found="more",
            remedy="Name the folder of the models.",
        )  # fmt: skip
    if not files:
        yield Finding(
            "error", "no weight file is here", str(folder), expected="*.safetensors",
            found=f"none in {len(seen.folders)} folders",
            remedy="`lowpeak models list` says what a request needs.",
        )  # fmt: skip


def _damaged(path: Path, damage: CheckpointError, *, known: bool) -> Finding:
    """known: `models pull` fetches such a file; any other has come from somewhere else."""
    try:
        with open(path, "rb") as file:
            start = file.read(len(LFS_POINTER))
    except OSError as refused:
        return Finding("error", f"the file cannot be read ({refused.strerror})", str(path))
    if start == LFS_POINTER:
        return Finding(
            "error", "a pointer to a large file, not the file itself", str(path),
            remedy="The repository was cloned without large files: run `git lfs pull` there.",
        )  # fmt: skip
    found = from_error(damage, path)
    what = next((what for sign, what in FOREIGN if start.lower().startswith(sign)), "")
    if what:
        found = replace(found, message=f"{what}, not a safetensors file", expected="", found="")
    if known:
        return found
    return replace(found, remedy=(
        "`lowpeak models pull` did not fetch this file: take it again from where it came, or move "
        "it away if it is not for Lowpeak."
    ))  # fmt: skip


def _leftovers(seen: Walk) -> Iterator[Finding]:
    for pattern in LEFTOVERS:
        for path in (path for here in seen.folders for path in sorted(here.glob(pattern))):
            ours = STAGING in path.parts
            yield Finding(
                "note" if ours else "error",
                "an unfinished transfer",
                str(path),
                found=f"{path.stat().st_size} bytes",
                remedy="`lowpeak models pull` goes on from it." if ours else
                "Finish it with the program that began it, or delete it: it is never read.",
            )  # fmt: skip


def _duplicates(headers: Sequence[TensorFile]) -> Iterator[Finding]:
    """Files with one header, size and sampled content. Blocks of a model differ in their names."""
    groups: dict[tuple[str, int], list[TensorFile]] = {}
    for file in headers:
        groups.setdefault((file.header_sha256, file.identity.size_bytes), []).append(file)
    for group in groups.values():
        first, others = group[0], group[1:]
        for other in others:
            if other.path.resolve() == first.path.resolve() or not _same_samples(first, other):
                continue
            if other.identity.inode == first.identity.inode:
                continue  # a hard link takes no space
            yield Finding(
                "note",
                "the same file twice",
                str(other.path),
                expected=f"once, as {first.path}",
                found=f"{other.identity.size_bytes} bytes more",
                remedy="One of the two can be deleted or replaced by a link.",
            )


def _same_samples(first: TensorFile, other: TensorFile, count: int = 16) -> bool:
    size, width = first.identity.size_bytes, 4096
    places = [max(0, (size - width) * i // (count - 1)) for i in range(count)]
    with open(first.path, "rb") as a, open(other.path, "rb") as b:
        for place in places:
            a.seek(place)
            b.seek(place)
            if a.read(width) != b.read(width):
                return False
    return True


def _record(folder: Path) -> tuple[Path | None, dict[Path, dict[str, Any]]]:
    """Where `models pull` kept its record, and what it fetched into `folder`, by path."""
    root = next(
        (item for item in (folder, *folder.parents) if (item / RECORD_FILE).is_file()), None
    )
    if root is None:
        return None, {}
    entries = {root / name: entry for name, entry in read_record(root)["files"].items()}
    return root, {path: entry for path, entry in entries.items() if path.is_relative_to(folder)}


def _hashes(folder: Path, progress: Callable[[int, int, str], None] | None) -> Iterator[Finding]:
    """Whole files against the record of `models pull`, here or in a folder above."""
    root, wanted = _record(folder)
    if root is None:
        yield Finding(
            "note", "no record of hashes", str(folder), expected=RECORD_FILE, found="nothing",
            remedy="Files that `lowpeak models pull` fetches are recorded.",
        )  # fmt: skip
        return
    for i, (path, entry) in enumerate(wanted.items()):
        if progress is not None:
            progress(i, len(wanted), path.name)
        if not path.is_file():
            yield Finding(
                "error", "a fetched file is gone", str(path), expected=f"{entry['bytes']} bytes",
                found="nothing", remedy="Fetch it again: `lowpeak models pull`.",
            )  # fmt: skip
            continue
        digest = hash_file(path)
        if digest != entry["sha256"]:
            yield Finding(
                "error", "bytes differ from what was fetched", str(path),
                expected=f"sha256 {entry['sha256']}", found=f"sha256 {digest}",
                remedy="Delete this file and run `lowpeak models pull`.",
            )  # fmt: skip
