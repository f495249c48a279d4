"""Host memory of processes, with the pages that cost nothing told apart.

Pages of files that are mapped and unchanged (libraries, weights read through a mapping) are dropped
by the kernel when somebody wants the memory: they are part of a resident set and no need. Shared
pages count by share (PSS), so the sum over a tree of processes is right.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessMemory:
    """Bytes. clean_bytes: the part of total_bytes that the kernel could drop at once."""

    total_bytes: int
    clean_bytes: int

    @property
    def needed_bytes(self) -> int:
        """What could not be dropped."""
        return self.total_bytes - self.clean_bytes

    def __add__(self, other: ProcessMemory) -> ProcessMemory:
        return ProcessMemory(
            self.total_bytes + other.total_bytes, self.clean_bytes + other.clean_bytes
        )


def read_process_memory(
    pid: int | None = None, *, quick: bool = False, proc: Path = PROC
) -> ProcessMemory | None:
    """One process, this one by default; None where the system does not tell.

    quick: resident sets instead of shares, without a walk over the process's pages.
    """
    folder = proc / str(pid or os.getpid())
    if not quick:
        found = _counters(folder / "smaps_rollup")
        if {"Pss", "Pss_File"} <= set(found):
            return ProcessMemory(found["Pss"], found["Pss_File"])
    found = _counters(folder / "status")
    names = ("RssAnon", "RssFile", "RssShmem")
    if not set(names) <= set(found):
        return None
    return ProcessMemory(sum(found[name] for name in names), found["RssFile"])


def read_tree_memory(
    pid: int | None = None, *, quick: bool = False, proc: Path = PROC
) -> ProcessMemory | None:
    """A process and all its descendants; None when the process itself cannot be read."""
    root = pid or os.getpid()
    total = read_process_memory(root, quick=quick, proc=proc)
    return None if total is None else with_children(total, root, quick=quick, proc=proc)


def with_children(
    total: ProcessMemory, pid: int | None = None, *, quick: bool = False, proc: Path = PROC
) -> ProcessMemory:
    """What was read of a process, and all its descendants."""
    root = pid or os.getpid()
    for child in descendants(root, proc):
        found = read_process_memory(child, quick=quick, proc=proc)
        if found is not None:  # it may have ended in between
            total += found
    return total


def descendants(pid: int, proc: Path = PROC) -> list[int]:
    """Children, their children, and so on."""
    parents: dict[int, list[int]] = {}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text()
        except OSError:
            continue
        parent = int(text.rpartition(")")[2].split()[1])  # a name may hold spaces and brackets
        parents.setdefault(parent, []).append(int(folder.name))
    found, todo = [], [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def _counters(path: Path) -> dict[str, int]:
    """'Name:   123 kB' lines as bytes."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, _, rest = line.partition(":")
        parts = rest.split()
        if len(parts) == 2 and parts[1] == "kB" and parts[0].isdigit():
            found[name] = int(parts[0]) * 1024
    return found
