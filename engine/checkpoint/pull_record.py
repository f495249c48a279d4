"""What `models pull` remembers in a models folder: commits, hashes, accepted licences."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RECORD_FILE = ".lowpeak-models.json"
HASH_BYTES = 16 << 20


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


def write_record(models: Path, record: Mapping[str, Any]) -> None:
    """The whole record or the one before."""
    models.mkdir(parents=True, exist_ok=True)
    path = models / RECORD_FILE
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    temporary.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(temporary, path)
