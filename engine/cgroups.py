"""A memory cgroup of our own: real limits for benches, and what a process needed under them.

`memory.peak` counts clean file pages too, which the kernel drops on demand; `needed_bytes` is what
could not have been dropped. Version 2 and version 1; making a group needs root.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from .errors import RequestError
from .units import gib_to_bytes

FOLDER = Path("/sys/fs/cgroup")
SAMPLE_SECONDS = 0.1


class MemoryGroup:
    """One group without swap. `limit_gib` of None only counts. Raises RequestError where none can
    be made. Close it when its processes have ended.
    """

    def __init__(self, name: str, limit_gib: float | None, folder: Path | None = None) -> None:
        folder = folder or FOLDER
        self.path = group_folder(name, folder)
        self.version = "v2" if self.path.parent == folder else "v1"
        limit, swap = {
            "v1": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
            "v2": ("memory.max", "memory.swap.max"),
        }[self.version]
        try:
            self.path.mkdir()
            if limit_gib is not None:
                size = str(gib_to_bytes(limit_gib))
                (self.path / limit).write_text(size)
                if (self.path / swap).exists():
                    (self.path / swap).write_text(size if self.version == "v1" else "0")
        except OSError as refused:
            self.close()
            raise self._refusal(refused) from refused

    def __enter__(self) -> MemoryGroup:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def add(self, pid: int) -> None:
        """Move a process in; what it has allocated before stays charged elsewhere. Raises
        RequestError."""
        try:
            (self.path / "cgroup.procs").write_text(str(pid))
        except OSError as refused:
            raise self._refusal(refused) from refused

    @property
    def peak_bytes(self) -> int | None:
        """The kernel's own high-water mark, clean file pages included; None where it keeps none."""
        return group_peak_bytes(self.path)

    def needed_bytes(self) -> int:
        """Charged now, less clean file pages; 0 when it cannot be read."""
        name = "memory.usage_in_bytes" if self.version == "v1" else "memory.current"
        with contextlib.suppress(OSError, ValueError):
            used = int((self.path / name).read_text())
            return max(0, used - clean_file_bytes((self.path / "memory.stat").read_text()))
        return 0

    def close(self) -> None:
        """Remove the group. Processes that are still in it keep it alive."""
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def _refusal(self, refused: OSError) -> RequestError:
        return RequestError(
            f"RAM cannot be capped here: {refused.strerror} ({self.path}); run as root with "
            "memory cgroups",
            field="ram_gib",
        )


def group_folder(name: str, folder: Path | None = None) -> Path:
    """Where the memory group of a name lies, whether it is there or not; either version."""
    folder = folder or FOLDER
    first = folder / "memory"
    return (first if (first / "memory.limit_in_bytes").exists() else folder) / name


def group_peak_bytes(group: Path) -> int | None:
    """A group's high-water mark, clean file pages included; None where the kernel keeps none."""
    for name in ("memory.peak", "memory.max_usage_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            return int((group / name).read_text())
    return None


def clean_file_bytes(text: str) -> int:
    """Clean file pages of a memory.stat, either version; 0 when a counter is missing."""
    rows = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
    names = ("file", "shmem", "file_dirty", "file_writeback")
    if "file" not in rows:
        names = ("cache", "shmem", "dirty", "writeback")
    if not all(rows.get(name, "").isdigit() for name in names):
        return 0
    whole, *rest = (int(rows[name]) for name in names)
    return max(0, whole - sum(rest))


class PeakWatch:
    """Samples what a group or a process needs, from another process, until left.

    source: gives bytes now. `peak_bytes` is the most seen, the last moment included.
    """

    def __init__(self, source: Callable[[], int | None], seconds: float = SAMPLE_SECONDS) -> None:
        self._source, self._seconds = source, seconds
        self._done = threading.Event()
        self.peak_bytes = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakWatch:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._done.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._done.wait(self._seconds):
            self._look()

    def _look(self) -> None:
        self.peak_bytes = max(self.peak_bytes, int(self._source() or 0))


def own_group_name(label: str) -> str:
    """A name that no other run of this machine takes."""
    return f"lowpeak-{label}-{os.getpid()}"
