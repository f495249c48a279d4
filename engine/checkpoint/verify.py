"""`models verify`: what is wrong with the files of a folder, and what to do about each.

Three depths. Headers: every file, always. Samples: a few rows of a few tensors of every block,
which finds zeros, NaN, and scales that no quantiser makes, in seconds. Hashes: whole files against
the record of `models pull`, when asked for. Nothing is changed, and nobody is told to fetch a file
again without a reason that names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...kernels.weights import Weight
from ..errors import CheckpointError
from . import comfy, edge, openvdn
from .adapters import SPEC_FILES
from .header import TensorFile, read_header
from .hub import RECORD_FILE, STAGING, hash_file, read_record
from .index import Checkpoint, open_checkpoint
from .recognise import MAX_FILES, files_in, recognise_header
from .walk import MAX_FOLDERS, Walk, stores_nothing, walk

if TYPE_CHECKING:
    from torch import Tensor

SAMPLED_ROWS = 32
# Scales of trained weights lie between 1e-6 and 1e-1; these limits leave two decades to each side.
SCALE_RANGE = (1e-8, 10.0)
LEFTOVERS = ("*.incomplete", "*.part", "*.partial", "*.tmp", "*.crdownload", "*.aria2")
FOREIGN = (  # lower case
    (b"<!doctype", "a web page (a download that wanted a login)"),
    (b"<html", "a web page (a download that wanted a login)"),
    (b"gguf", "a GGUF file"),
    (b"pk\x03\x04", "a zip or PyTorch archive"),
    (b"\x80\x02", "a Python pickle"),
)
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong ("error") or odd ("note"), and what to do."""

    severity: str
    message: str
    file: str
    tensor: str = ""
    expected: str = ""
    found: str = ""
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        """The finding, JSON-ready."""
        return dict(vars(self))

    def __str__(self) -> str:
        parts = [f"{self.severity}: {self.message}", self.file]
        if self.tensor:
            parts.append(self.tensor)
        if self.expected or self.found:
            parts.append(f"expected {self.expected}, found {self.found}")
        return "; ".join(parts) + (f". {self.remedy}" if self.remedy else "")


@dataclass(frozen=True)
class Verification:
    """The answer of `models verify`."""

    folder: Path
    files: int
    findings: tuple[Finding, ...]
    kinds: tuple[tuple[str, int], ...] = ()  # what the readable files are, by their headers

    @property
    def sound(self) -> bool:
        """No errors; notes are allowed."""
        return not any(item.severity == "error" for item in self.findings)

    def as_json(self) -> dict[str, Any]:
        """The document of `models verify --json`."""
        return {
            "folder": str(self.folder),
            "files": self.files,
            "sound": self.sound,
            "kinds": dict(self.kinds),
            "findings": [item.as_json() for item in self.findings],
        }

    def text(self) -> str:
        """The same in words."""
        lines = [str(item) for item in self.findings]
        verdict = "sound" if self.sound else "not usable as it is"
        what = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in self.kinds)
        among = f" ({what})" if what else ""
        return "\n".join([*lines, f"{self.files} weight files in {self.folder}{among}: {verdict}."])


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
    findings += _adapters(seen)
    if folder.is_dir():
        findings += _checkpoints(folder, samples=samples, progress=progress)
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
    found = _from_error(damage, path)
    what = next((what for sign, what in FOREIGN if start.lower().startswith(sign)), "")
    if what:
        found = replace(found, message=f"{what}, not a safetensors file", expected="", found="")
    if known:
        return found
    return replace(found, remedy=(
        "`lowpeak models pull` did not fetch this file: take it again from where it came, or move "
        "it away if it is not for Lowpeak."
    ))  # fmt: skip


def _from_error(damage: CheckpointError, fallback: Path) -> Finding:
    message = str(damage).split(";")[0]
    remedy = damage.remedy or "Delete this file; `lowpeak models pull` then fetches it alone."
    return Finding(
        "error",
        message,
        damage.file or str(fallback),
        damage.tensor,
        "" if damage.expected is None else str(damage.expected),
        "" if damage.found is None else str(damage.found),
        remedy,
    )


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


def _adapters(seen: Walk) -> Iterator[Finding]:
    for path in sorted(here for here in seen.folders if here.parent.name == "adapters"):
        specs = [name for name in SPEC_FILES if (path / name).is_file()]
        weights = list(path.glob("*.safetensors"))
        if specs == [SPEC_FILES[1]]:
            yield Finding(
                "note", f"the adapter's spec is named {SPEC_FILES[1]}", str(path / SPEC_FILES[1]),
                remedy=f"It is read as {SPEC_FILES[0]}; nothing to do.",
            )  # fmt: skip
        if not specs:
            yield Finding(
                "error", "an adapter without its spec", str(path),
                expected=" or ".join(SPEC_FILES), found="neither",
                remedy="Fetch that file alone; the weights are not affected.",
            )  # fmt: skip
        if len(weights) != 1:
            yield Finding(
                "error", "an adapter folder must hold one weight file", str(path),
                expected="1 .safetensors", found=str(len(weights)),
                remedy="Fetch the adapter's weights." if not weights else "Move the others away.",
            )  # fmt: skip


def _checkpoints(
    folder: Path, *, samples: bool, progress: Callable[[int, int, str], None] | None
) -> Iterator[Finding]:
    caches = edge.find_caches(folder)
    targets: list[Path] = list(caches)
    stage = openvdn.stage_folder(folder)
    if not caches and (openvdn.base_folder(folder) or (stage and _has_comfy(folder))):
        targets.append(folder)
    elif not caches and stage is not None:
        yield Finding(
            "note", "a VDN stage without its base model", str(stage),
            expected="h3-base/transformer or a ComfyUI single file", found="neither",
            remedy="It serves a base model that lies in another folder.",
        )  # fmt: skip
    for target in targets:
        yield from _nesting(target, folder)
        try:
            checkpoint = edge.open_edge(target, folder) if caches else open_checkpoint(target)
        except CheckpointError as damage:
            yield _from_error(damage, target)
            continue
        yield from _tables(checkpoint)
        if samples:
            yield from _samples(checkpoint, progress)


def _has_comfy(folder: Path) -> bool:
    try:
        return comfy.find_comfy(folder) is not None
    except CheckpointError:
        return False  # damaged headers are reported file by file


def _nesting(cache: Path, folder: Path) -> Iterator[Finding]:
    names = cache.relative_to(folder).parts
    for outer, inner in pairwise(names):
        if outer == inner:
            yield Finding(
                "note",
                "a folder inside a folder of the same name",
                str(cache),
                expected=str(Path(*names[: names.index(outer) + 1])),
                found=str(Path(*names)),
                remedy="It is found where it is; move it up to keep paths short.",
            )


def _tables(checkpoint: Checkpoint) -> Iterator[Finding]:
    for item in checkpoint.table_sets:
        if not item.times:
            yield Finding(
                "note", "AdaLN tables of an unknown schedule", str(item.folder),
                expected="a schedule named in the manifest, or one of the published ones",
                found=item.name,
                remedy="They are not used. Fetch the manifest that belongs to them.",
            )  # fmt: skip
            continue
        try:
            item.check()
        except CheckpointError as damage:
            yield _from_error(damage, item.folder)
    if not checkpoint.table_sets and not checkpoint.has_projections:
        yield Finding(
            "error", "neither AdaLN tables nor projections", str(checkpoint.path),
            expected="adaln-tables-v2-* or adaln/NN.safetensors", found="neither",
            remedy="Fetch the tables: `lowpeak models pull`.",
        )  # fmt: skip


def _samples(
    checkpoint: Checkpoint, progress: Callable[[int, int, str], None] | None
) -> Iterator[Finding]:
    """Statistics of a few rows of every big tensor, and of all small ones."""
    for block, file in enumerate(checkpoint.block_files):
        if progress is not None:
            progress(block, len(checkpoint.block_files), file.path.name)
        for name in file.tensors:
            yield from _examine(str(file.path), name, sample_rows(file, name))
    if checkpoint.root_file is not None:
        for name in checkpoint.root_file.tensors:
            rows = sample_rows(checkpoint.root_file, name)
            yield from _examine(str(checkpoint.root_file.path), name, rows)
    if not checkpoint.block_files:
        for name, value in checkpoint.load_block(0).items():
            tensor = value.codes if isinstance(value, Weight) else value
            yield from _examine(str(checkpoint.path), f"transformer_blocks.0.{name}", tensor)


def sample_rows(file: TensorFile, name: str, rows: int = SAMPLED_ROWS) -> Tensor:
    """Up to `rows` rows of a tensor, spread evenly, first and last among them."""
    span = file.tensors[name]
    if len(span.shape) < 2 or span.shape[0] <= rows or name.endswith("_scale"):
        return file.read(name)
    import torch

    row_bytes = span.nbytes // span.shape[0]
    places = [(span.shape[0] - 1) * i // (rows - 1) for i in range(rows)]
    data = bytearray()
    with open(file.path, "rb") as source:
        for place in places:
            source.seek(span.start_byte + place * row_bytes)
            data += source.read(row_bytes)
    flat = torch.frombuffer(data, dtype=torch.uint8).view(span.torch_dtype)
    return flat.reshape(rows, *span.shape[1:])


def _examine(file: str, name: str, tensor: Tensor) -> Iterator[Finding]:
    remedy = "The bytes are wrong although the size is right: delete this file and fetch it again."
    import torch

    values = tensor.float()
    if not torch.isfinite(values).all():
        bad = int((~torch.isfinite(values)).sum())
        yield Finding("error", "values that are no numbers", file, name, "finite values",
                      f"{bad} of {values.numel()} sampled", remedy)  # fmt: skip
        return
    if name.endswith("_scale"):
        low, high = float(values.min()), float(values.max())
        if low < SCALE_RANGE[0] or high > SCALE_RANGE[1]:
            yield Finding(
                "error", "scale out of range", file, name,
                f"{SCALE_RANGE[0]:g}..{SCALE_RANGE[1]:g}", f"{low:g}..{high:g}", remedy,
            )  # fmt: skip
        return
    if tensor.dim() >= 2 and tensor.shape[0] > 1:
        rows = values.reshape(values.shape[0], -1)
        empty = int((rows.abs().amax(dim=1) == 0).sum())
        if empty == rows.shape[0]:
            yield Finding("error", "all zero", file, name, "weights",
                          f"{empty} sampled rows of zeros", remedy)  # fmt: skip
        elif empty * 4 > rows.shape[0]:
            yield Finding("error", "many rows are zero", file, name, "few or none",
                          f"{empty} of {rows.shape[0]} sampled rows", remedy)  # fmt: skip
    elif values.numel() > 1 and name.endswith("norm.weight") and float(values.abs().max()) == 0:
        yield Finding("error", "all zero", file, name, "a norm's weights", "zeros", remedy)


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
