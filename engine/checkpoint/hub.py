"""`models pull`: fetch what is missing, once its licence was accepted.

Before a byte is fetched the server is asked for the commit, sizes and hashes, so that the plan can
be shown and the disk checked. A file is fetched by huggingface_hub into a staging folder beside its
place, hashed (transfer.py), and then renamed into place. The record `.lowpeak-models.json` keeps
commit and hash of everything that was fetched.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CheckpointError, DoesNotFit, RequestError, Shortage
from ..units import format_gib
from .catalogue import LICENCES, Licence, Part
from .pull_record import hash_file, read_record, write_record
from .transfer import STAGING, RemoteFile, checked_hash, failures, fetch, translated

SPARE_BYTES = 512 << 20
Progress = Callable[[int, int, str], None]  # bytes done, bytes in all, file


@dataclass(frozen=True)
class PullPlan:
    """What `pull` will do. `present` are files that are already right by size and record."""

    models: Path
    files: tuple[RemoteFile, ...]
    present: tuple[RemoteFile, ...]
    licences: tuple[Licence, ...]

    @property
    def download_bytes(self) -> int:
        """Bytes to fetch, what lies in staging included."""
        return sum(file.size_bytes for file in self.files)

    def as_json(self) -> dict[str, Any]:
        """The plan, JSON-ready."""
        return {
            "download_bytes": self.download_bytes,
            "files": [
                {"repo": f.repo, "revision": f.revision, "path": f.path, "bytes": f.size_bytes,
                 "sha256": f.sha256, "target": str(f.target)}
                for f in self.files
            ],
            "present": [str(f.target) for f in self.present],
            "licences": [{"title": item.title, "url": item.url, "note": item.note}
                         for item in self.licences],
        }  # fmt: skip

    def text(self) -> str:
        """The plan in words, ASCII."""
        lines = [f"{len(self.files)} files, {format_gib(self.download_bytes)}, to {self.models}"]
        lines += [f"  {format_gib(f.size_bytes):>12}  {f.repo}  {f.path}" for f in self.files]
        lines += [f"Licence: {item.title}, {item.url} {item.note}" for item in self.licences]
        return "\n".join(lines)


def plan_pull(
    parts: Sequence[Part],
    models: Path,
    *,
    endpoint: str | None = None,
    token: str | None = None,
) -> PullPlan:
    """Ask the server what the parts are made of. Fetches no weight.

    endpoint, token: None honours HF_ENDPOINT and the stored token. Raises CheckpointError for a
    repository, revision or file that is not there or not open to this user.
    """
    record = read_record(models)
    wanted: list[RemoteFile] = []
    for part in parts:
        revision = record["revisions"].get(part.repo) or part.revision
        wanted += _files_of(part, models, revision, endpoint, token)
    files, present = [], []
    for file in wanted:
        (present if _is_present(file, record, models) else files).append(file)
    # The manifest says that a checkpoint is whole: it comes last.
    files.sort(key=lambda file: (file.path.endswith("manifest.json"), file.repo, file.path))
    keys = dict.fromkeys(part.licence for part in parts)
    return PullPlan(models, tuple(files), tuple(present), tuple(LICENCES[key] for key in keys))


def pull(
    plan: PullPlan,
    *,
    accept_licence: bool = False,
    endpoint: str | None = None,
    token: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Fetch the files of a plan; gives what was done, JSON-ready.

    accept_licence: the user has read and accepts the licences of the plan; kept in the record, so
    it is asked once. Raises RequestError without it, DoesNotFit for a full disk, CheckpointError
    for a refused, interrupted or wrong transfer. What was fetched stays and the next call goes on.
    """
    _accept(plan, read_record(plan.models), accept_licence)
    _check_disk(plan)
    with _alone(plan.models):
        _fetch_all(plan, endpoint, token, progress)
    return {
        "fetched": [str(file.target) for file in plan.files],
        "bytes": plan.download_bytes,
        "present": [str(file.target) for file in plan.present],
    }


def _fetch_all(
    plan: PullPlan, endpoint: str | None, token: str | None, progress: Progress | None
) -> None:
    """Fetch, check and record file by file. What was hashed and found right is noted first."""
    record = read_record(plan.models)
    for file in plan.present:
        known = record["files"].get(_key(file, plan.models))
        if known is not None:
            known["mtime_ns"] = file.target.stat().st_mtime_ns
    if plan.present:
        write_record(plan.models, record)
    done_bytes = 0
    for file in plan.files:
        if progress is not None:
            progress(done_bytes, plan.download_bytes, file.path)

        def advance(count: int, start: int = done_bytes, name: str = file.path) -> None:
            if progress is not None:
                progress(start + count, plan.download_bytes, name)

        fetched = fetch(file, plan.models, endpoint, token, advance)
        digest = checked_hash(file, fetched)
        file.target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(fetched, file.target)
        record["revisions"][file.repo] = file.revision
        record["files"][_key(file, plan.models)] = {
            "repo": file.repo,
            "revision": file.revision,
            "bytes": file.size_bytes,
            "sha256": digest,
            "mtime_ns": file.target.stat().st_mtime_ns,
        }
        write_record(plan.models, record)
        done_bytes += file.size_bytes


def _files_of(
    part: Part, models: Path, revision: str | None, endpoint: str | None, token: str | None
) -> Iterable[RemoteFile]:
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint, token=token)
    try:
        info = api.model_info(part.repo, revision=revision, files_metadata=True)
    except failures() as failure:
        raise translated(failure, part.repo, "") from failure
    found = [
        item
        for item in info.siblings or []
        if any(fnmatch.fnmatch(item.rfilename, pattern) for pattern in part.files)
        and (not part.by_size or item.size == part.size_bytes)
    ]
    if not found:
        raise CheckpointError(
            "the repository has no such files",
            file=f"{part.repo}@{revision or info.sha}",
            expected=", ".join(part.files)
            + (f" of {part.size_bytes} bytes" if part.by_size else ""),
            found=f"{len(info.siblings or [])} other files",
        )
    for item in found:
        target = models / part.target / item.rfilename.removeprefix(part.strip)
        if not target.resolve().is_relative_to((models / part.target).resolve()):
            raise CheckpointError("the server names a file outside its folder", file=item.rfilename)
        sha256 = item.lfs.sha256 if item.lfs is not None else None
        oid = item.blob_id if isinstance(item.blob_id, str) and sha256 is None else None
        yield RemoteFile(
            part.key, part.repo, str(info.sha), item.rfilename, item.size or 0, sha256, target, oid
        )


def _is_present(file: RemoteFile, record: Mapping[str, Any], models: Path) -> bool:
    """Right size, and either the recorded hash, if nobody wrote to it since, or a fresh one."""
    if not file.target.is_file() or file.target.stat().st_size != file.size_bytes:
        return False
    known = record["files"].get(_key(file, models))
    if known is not None:
        touched = known.get("mtime_ns") not in (None, file.target.stat().st_mtime_ns)
        if touched and known.get("sha256") != hash_file(file.target):
            return False
        if file.sha256 is not None:
            return bool(known.get("sha256") == file.sha256)
        return bool(known.get("revision") == file.revision)
    return file.sha256 is not None and hash_file(file.target) == file.sha256


@contextmanager
def _alone(models: Path) -> Iterator[None]:
    """Keep a second pull out: two would write into one partial file. Staging goes when empty."""
    from filelock import FileLock, Timeout

    staged = models / STAGING
    staged.mkdir(parents=True, exist_ok=True)
    lock = FileLock(staged / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise CheckpointError(
            "another pull into this folder is running", file=models, remedy="Let it end first."
        ) from None
    try:
        yield
    finally:
        if not any(staged.glob("*.incomplete")):
            shutil.rmtree(staged, ignore_errors=True)
        lock.release()


def _accept(plan: PullPlan, record: dict[str, Any], accept_licence: bool) -> None:
    open_terms = [item for item in plan.licences if item.key not in record["licences"]]
    if open_terms and not accept_licence:
        named = "; ".join(f"{item.title} ({item.url}) {item.note}".strip() for item in open_terms)
        raise RequestError(
            f"these licences were not accepted yet: {named}. Read them and say --accept-license.",
            field="accept_license",
        )
    for item in open_terms:
        record["licences"][item.key] = {"title": item.title, "url": item.url}
    if open_terms:
        write_record(plan.models, record)


def _check_disk(plan: PullPlan) -> None:
    existing = next(f for f in (plan.models, *plan.models.parents) if f.exists())
    staged = [plan.models / STAGING / file.staged_name for file in plan.files]
    there = sum(path.stat().st_size for path in staged if path.is_file())
    free = shutil.disk_usage(existing).free
    need = plan.download_bytes - there
    if plan.files and need + SPARE_BYTES > free:
        raise DoesNotFit([Shortage("disk", "pull", need + SPARE_BYTES, free)])


def _key(file: RemoteFile, models: Path) -> str:
    return file.target.relative_to(models).as_posix()
