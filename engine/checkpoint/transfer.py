"""One file from the hub: fetched into staging, compared with what the server announced.

The library forgets what an ended process had fetched; so the partial file is ours, named by the
hash it must get, and the library's own ranged transfer goes on from there.
"""

from __future__ import annotations

import errno
import hashlib
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..errors import CheckpointError, DoesNotFit, LowpeakError, Shortage
from .pull_record import hash_file

STAGING = ".lowpeak-staging"


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


def fetch(
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
    except failures() as failure:
        raise translated(failure, file.repo, file.path, file) from failure
    return partial


def checked_hash(file: RemoteFile, fetched: Path) -> str:
    """SHA-256 of a fetched file. Raises CheckpointError for another one, which is thrown away."""
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


def failures() -> tuple[type[Exception], ...]:
    """What the library raises: its own errors are OSErrors, those of its HTTP client may not be."""
    from huggingface_hub import errors

    client = getattr(errors, "HTTPError", OSError)  # not exported before version 1
    return OSError, ValueError, RuntimeError, client


def translated(
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
