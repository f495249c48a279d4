"""The folders below a folder: each once, bounded, and only where files can be stored.

Links may go round, a wrong folder may be the whole disk, and /proc, /sys and the like hold no
files at all: they are left out by the kind of their mount, wherever they are mounted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

MAX_FOLDERS = 20_000
MOUNTS = Path("/proc/self/mountinfo")
NO_STORAGE = frozenset(
    (
        *("proc", "sysfs", "cgroup", "cgroup2", "devpts", "debugfs", "tracefs", "securityfs"),
        *("pstore", "bpf", "configfs", "mqueue", "binfmt_misc", "efivarfs", "fusectl", "nsfs"),
        *("selinuxfs", "rpc_pipefs"),
    )
)
SKIPPED = frozenset({".git", ".cache", "__pycache__", ".venv", "node_modules"})
REFERENCE_FOLDER = "transformer_ref"  # in a checkpoint: the one for references


@dataclass
class Walk:
    """What was found. `cut`: there are more than MAX_FOLDERS. `unreadable`: not looked into."""

    folders: list[Path] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)
    cut: bool = False


def walk(top: Path, progress: Callable[[int, int, str], None] | None = None) -> Walk:
    """`top` and every folder below it, without caches and repositories.

    progress: takes (folders so far, 0 for "nobody knows how many", the folder's name).
    """
    found, left, seen = Walk(), [top], set[tuple[int, int]]()
    while left:
        here = left.pop()
        try:
            status = here.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            below = _folders_in(here)
        except (PermissionError, FileNotFoundError, NotADirectoryError):
            found.unreadable.append(here)
            continue
        if len(found.folders) == MAX_FOLDERS:
            found.cut = True
            break
        found.folders.append(here)
        if progress is not None:
            progress(len(found.folders), 0, here.name)
        left += [path for path in below if path.name not in SKIPPED]
    return found


def subfolders(folder: Path) -> list[Path]:
    """Folders in `folder`, sorted; none where it may not be read.

    The reference transformer is another model: what lies in it belongs to nobody above it.
    """
    try:
        return _folders_in(folder)
    except (PermissionError, FileNotFoundError, NotADirectoryError):
        return []


def stores_nothing(folder: Path) -> str:
    """The kind of file system that `folder` is in if it stores no files, else ""."""
    try:
        device = folder.stat().st_dev
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""  # another system, or nothing there
    for line in lines:
        place, _, rest = line.partition(" - ")
        major, _, minor = place.split()[2].partition(":")
        if os.makedev(int(major), int(minor)) == device:
            kind = rest.split()[0]
            return kind if kind in NO_STORAGE else ""
    return ""


def _folders_in(folder: Path) -> list[Path]:
    device = folder.stat().st_dev
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if entry.name == REFERENCE_FOLDER or not entry.is_dir():
                    continue
                elsewhere = entry.stat().st_dev != device
            except OSError:  # a link to nowhere, or one that goes round
                continue
            path = folder / entry.name
            if not (elsewhere and stores_nothing(path)):
                found.append(path)
    return sorted(found)
