"""Reports are for sharing: every path in them is cut to its last part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# An absolute path inside a sentence, POSIX or Windows; a slash within a word ("s/step") is none.
_PATH = re.compile(r"(?<![\w.:/\\])(?:/|[A-Za-z]:[\\/]|\\\\)[^\s;,'\"()<>|*?]+")


def without_paths(value: Any) -> Any:
    """The value, JSON-like, with every absolute path in it cut to its last part."""
    if isinstance(value, Mapping):
        return {str(key): without_paths(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_paths(item) for item in value]
    if isinstance(value, Path):
        return value.name
    if isinstance(value, str):
        if Path(value).is_absolute() and "\n" not in value:
            return Path(value).name
        return _PATH.sub(lambda match: re.split(r"[\\/]", match[0].rstrip("\\/"))[-1], value)
    return value
