"""`models pull`: fetch what is missing, once its licence was accepted.

Before a byte is fetched the server is asked for the commit, sizes and hashes, so that the plan can
be shown and the disk checked. A file is fetched by huggingface_hub into a staging folder beside its
place, hashed, and then renamed into place. The library forgets what an ended process had fetched;
so the partial file is ours, named by the hash it must get, and its own ranged transfer goes on from
there. The record `.lowpeak-models.json` keeps commit and hash of everything that was fetched.
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import inspect
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..errors import CheckpointError, DoesNotFit, LowpeakError, RequestError, Shortage
from ..units import format_gib
from .catalogue import LICENCES, Licence, Part

RECORD_FILE = ".lowpeak-models.json"
STAGING = ".lowpeak-staging"
SPARE_BYTES = 512 << 20
HASH_BYTES = 16 << 20
Progress = Callable[[int, int, str], None]  # bytes done, bytes in all, file


@dataclass(frozen=True)
class RemoteFile:
    """One file of a part as the server announces it. sha256 of None: not a large file; git_oid is
    the hash that git knows such a one by, None where the server does not say."""

    part: str
    repo: str
    revision: str
    path: str
    size_bytes: int
    sha256: str | None
    target: Path
    git_oid: str | None = None

    @property
    def staged_name(self) -> str:
        """Name of its partial transfer. The commit stands for the content where no hash does."""
        key = self.sha256
        if key is None:
            words = f"{self.repo} {self.revision} {self.path}"
            key = hashlib.sha256(words.encode()).hexdigest()
        return f"{key}.incomplete"


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
        _write_record(plan.models, record)
    done_bytes = 0
    for file in plan.files:
        if progress is not None:
            progress(done_bytes, plan.download_bytes, file.path)

        def advance(count: int, start: int = done_bytes, name: str = file.path) -> None:
            if progress is not None:
                progress(start + count, plan.download_bytes, name)

        fetched = _fetch(file, plan.models, endpoint, token, advance)
        digest = _check_hash(file, fetched)
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
        _write_record(plan.models, record)
        done_bytes += file.size_bytes


def read_record(models: Path) -> dict[str, Any]:
    """What was fetched into a models folder and which licences were accepted."""
    empty: dict[str, Any] = {"revisions": {}, "files": {}, "licences": {}}
    path = models / RECORD_FILE
    if not path.is_file():
        return empty
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        return empty  # the record is a memo: without it everything is hashed again
    return {**empty, **found} if isinstance(found, dict) else empty


def hash_file(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """SHA-256 of a file."""
    digest, done = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while chunk := file.read(HASH_BYTES):
            digest.update(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done)
    return digest.hexdigest()


def _files_of(
    part: Part, models: Path, revision: str | None, endpoint: str | None, token: str | None
) -> Iterable[RemoteFile]:
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint, token=token)
    try:
        info = api.model_info(part.repo, revision=revision, files_metadata=True)
    except _failures() as failure:
        raise _translated(failure, part.repo, "") from failure
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
        _write_record(plan.models, record)


def _check_disk(plan: PullPlan) -> None:
    existing = next(f for f in (plan.models, *plan.models.parents) if f.exists())
    staged = [plan.models / STAGING / file.staged_name for file in plan.files]
    there = sum(path.stat().st_size for path in staged if path.is_file())
    free = shutil.disk_usage(existing).free
    need = plan.download_bytes - there
    if plan.files and need + SPARE_BYTES > free:
        raise DoesNotFit([Shortage("disk", "pull", need + SPARE_BYTES, free)])


def _fetch(
    file: RemoteFile,
    models: Path,
    endpoint: str | None,
    token: str | None,
    advance: Callable[[int], None],
) -> Path:
    """Fetch into staging, going on from a partial transfer."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    partial = models / STAGING / file.staged_name
    partial.parent.mkdir(parents=True, exist_ok=True)
    url = hf_hub_url(file.repo, file.path, revision=file.revision, endpoint=endpoint)
    headers = build_hf_headers(token=token)
    try:
        place = get_hf_file_metadata(url, token=token).location
        if urlsplit(place).netloc != urlsplit(url).netloc:
            headers.pop("authorization", None)  # the token is for the hub, not for its storage
        with open(partial, "ab") as sink:
            have = sink.tell()
            if have > file.size_bytes:
                have = sink.truncate(0)
            advance(have)
            if have < file.size_bytes or not file.size_bytes:
                options: dict[str, Any] = {"expected_size": file.size_bytes}
                if "tqdm_class" in inspect.signature(http_get).parameters:  # since version 1
                    options["tqdm_class"] = _progress_class(advance)
                http_get(place, sink, resume_size=have, headers=headers, **options)
            sink.flush()
            os.fsync(sink.fileno())  # what gets its name is on the disk
    except _failures() as failure:
        raise _translated(failure, file.repo, file.path, file) from failure
    return partial


def _check_hash(file: RemoteFile, fetched: Path) -> str:
    size = fetched.stat().st_size
    digest = hash_file(fetched)
    expected, found = f"{file.size_bytes} bytes", f"{size} bytes"
    if size == file.size_bytes and file.sha256 is not None:
        expected, found = f"sha256 {file.sha256}", f"sha256 {digest}"
    elif size == file.size_bytes and file.git_oid is not None:
        expected, found = f"git {file.git_oid}", f"git {_git_oid(fetched, len(file.git_oid))}"
    if expected == found:
        return digest
    fetched.unlink()
    raise CheckpointError(
        "the fetched file is not what the server announced; it was thrown away",
        file=f"{file.repo}/{file.path}",
        expected=expected,
        found=found,
        remedy="Run the command again; if it repeats, the mirror or proxy is damaged.",
    )


def _git_oid(path: Path, digits: int) -> str:
    """The hash that git knows a small file by: SHA-1, or SHA-256 in repositories of that kind."""
    content = path.read_bytes()
    named = b"blob %d\0" % len(content) + content
    if digits == 64:
        return hashlib.sha256(named).hexdigest()
    return hashlib.sha1(named, usedforsecurity=False).hexdigest()


def _progress_class(advance: Callable[[int], None]) -> type:
    """A tqdm that draws nothing and reports the bytes of one file."""
    from tqdm.auto import tqdm

    class Quiet(tqdm):  # type: ignore[misc,type-arg]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs["disable"] = False
            kwargs["file"] = open(os.devnull, "w")  # noqa: SIM115 (closed with the bar)
            kwargs.pop("name", None)
            super().__init__(*args, **kwargs)

        def update(self, n: float | None = 1) -> bool | None:
            shown = super().update(n)
            advance(int(self.n))
            return shown

        def close(self) -> None:
            super().close()
            sink = getattr(self, "fp", None)
            if sink is not None and not sink.closed:
                sink.close()

    return Quiet


def _failures() -> tuple[type[Exception], ...]:
    """What the library raises: its own errors are OSErrors, those of its HTTP client may not be."""
    from huggingface_hub import errors

    client = getattr(errors, "HTTPError", OSError)  # not exported before version 1
    return OSError, ValueError, RuntimeError, client


def _translated(
    failure: Exception, repo: str, path: str, file: RemoteFile | None = None
) -> LowpeakError:
    """The library's exception as one of ours. Anything unknown stays what it is."""
    from huggingface_hub import errors

    where = f"{repo}/{path}" if path else repo
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            need = file.size_bytes if file is not None else 0
            return DoesNotFit([Shortage("disk", "pull", need, 0)])
        cause = cause.__cause__ or cause.__context__
    response = getattr(failure, "response", None)
    status = getattr(response, "status_code", None)
    if isinstance(failure, errors.GatedRepoError) or status in (401, 403):
        return CheckpointError(
            "the server refuses this file",
            file=where,
            expected="an open repository, or a token that was given access",
            found=f"HTTP {status}",
            remedy="Accept the terms on the repository's page and set HF_TOKEN.",
        )
    offline = isinstance(failure, errors.LocalEntryNotFoundError)  # no answer, and no copy here
    absent = (errors.EntryNotFoundError, errors.RevisionNotFoundError)
    if isinstance(failure, absent) and not offline:
        return CheckpointError("the server has no such file or revision", file=where)
    if isinstance(failure, errors.RepositoryNotFoundError):
        return CheckpointError("the server has no such repository", file=where)
    return CheckpointError(
        f"transfer failed ({type(failure).__name__}: {failure})",
        file=where,
        remedy="Run the command again: it goes on where it stopped.",
    )


def _key(file: RemoteFile, models: Path) -> str:
    return file.target.relative_to(models).as_posix()


def _write_record(models: Path, record: Mapping[str, Any]) -> None:
    models.mkdir(parents=True, exist_ok=True)
    path = models / RECORD_FILE
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    temporary.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(temporary, path)
