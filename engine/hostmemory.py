"""Host memory that a run may use, on Linux, Windows and macOS.

The least of what the system calls available and the room below every cgroup limit above this
process, version 1 and 2. Inside a cgroup clean file cache counts as room, because the kernel drops
it on demand; a missing counter earns no credit. Swap and page files never count. `root` moves /proc
and /sys, so that a recorded machine can be read like a real one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .cgroups import group_peak_bytes
from .errors import RequestError
from .units import format_gib

NO_LIMIT_BYTES = 1 << 60  # cgroup v1 writes a page-rounded 2^63 for "no limit"


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None


def _read_counters(path: Path) -> dict[str, int]:
    """'name value [kB]' lines of meminfo and memory.stat, as bytes."""
    found = {}
    for line in (_read_text(path) or "").splitlines():
        parts = line.replace(":", " ").split()
        if len(parts) >= 2 and parts[1].isdigit():
            found[parts[0]] = int(parts[1]) * (1024 if parts[-1] == "kB" else 1)
    return found


def _read_limit(path: Path) -> int | None:
    """A limit in bytes; None for 'max', for none, and for what cannot be read."""
    text = (_read_text(path) or "").strip()
    if not text.isdigit():
        return None
    value = int(text)
    return None if value >= NO_LIMIT_BYTES else value


def _clean_file_bytes(counters: Mapping[str, int], prefix: str = "") -> int:
    """File cache that the kernel drops on demand; zero when a counter is missing."""
    names = {"cache" if prefix else "file": 1, "shmem": -1, "unevictable": -1}
    names |= {"dirty": -1, "writeback": -1} if prefix else {"file_dirty": -1, "file_writeback": -1}
    if any(prefix + name not in counters for name in names):
        return 0
    return max(0, sum(sign * counters[prefix + name] for name, sign in names.items()))


@dataclass(frozen=True)
class CgroupRoom:
    """The tightest cgroup above this process. Bytes."""

    limit_bytes: int
    room_bytes: int
    path: str


def read_cgroup_room(root: Path = Path("/")) -> tuple[CgroupRoom | None, list[str]]:
    """The smallest room of any cgroup ancestor, and notes about what could not be read."""
    rooms: list[CgroupRoom] = []
    notes: list[str] = []
    for folder, mount, kind in _own_groups(root, notes):
        while True:
            rooms += _room(folder, kind, notes)
            if folder == mount or mount not in folder.parents:
                break
            folder = folder.parent
    return min(rooms, key=lambda item: item.room_bytes, default=None), notes


def read_cgroup_peak(root: Path = Path("/")) -> int | None:
    """High-water mark of this process's memory cgroup, clean file pages included; None where the
    kernel keeps none. Bytes since the group was made, whoever was in it."""
    peaks = (group_peak_bytes(folder) for folder, _, _ in _own_groups(root, []))
    return next((peak for peak in peaks if peak), None)


def _own_groups(root: Path, notes: list[str]) -> Iterator[tuple[Path, Path, str]]:
    """(folder of this process's memory cgroup, the hierarchy's mount, "v1" or "v2")."""
    lines = (_read_text(root / "proc/self/cgroup") or "").splitlines()
    mounts = _cgroup_mounts(root)
    for line in lines:
        parts = line.split(":", 2)
        if len(parts) != 3:
            continue
        number, controllers, inner = parts
        if number == "0" and not controllers:
            kind = "v2"
        elif "memory" in controllers.split(","):
            kind = "v1"
        else:
            continue
        if kind not in mounts:
            notes.append(f"cgroup {kind} is not mounted: its limit is unknown")
            continue
        mount, mounted = mounts[kind]
        # A container sees its own cgroup as the mount's root; the path may then be from outside.
        relative = inner.strip("/")
        if mounted != "/" and f"/{relative}".startswith(mounted):
            relative = f"/{relative}"[len(mounted) :].strip("/")
        folder = mount / relative
        if not folder.is_dir():
            folder = mount
        yield folder, mount, kind


def _cgroup_mounts(root: Path) -> dict[str, tuple[Path, str]]:
    """'v1' and 'v2' -> (where the memory hierarchy is mounted, which cgroup is its root)."""
    found: dict[str, tuple[Path, str]] = {}
    for line in (_read_text(root / "proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or not kind:
            continue
        place = root / fields[4].strip("/")
        if kind[0] == "cgroup2":
            found.setdefault("v2", (place, fields[3]))
        elif kind[0] == "cgroup" and "memory" in kind[-1].split(","):
            found.setdefault("v1", (place, fields[3]))
    return found


_LIMIT_FILES = {"v2": ("memory.max", "memory.high"), "v1": ("memory.limit_in_bytes",)}
_USAGE_FILE = {"v2": "memory.current", "v1": "memory.usage_in_bytes"}


def _room(folder: Path, kind: str, notes: list[str]) -> list[CgroupRoom]:
    """The room below the limits of one cgroup; empty when it has none."""
    limits = [_read_limit(folder / name) for name in _LIMIT_FILES[kind]]
    limit = min((value for value in limits if value is not None), default=None)
    if limit is None:
        return []
    name = folder.name or "/"
    used = _read_limit(folder / _USAGE_FILE[kind])
    if used is None:
        notes.append(f"cgroup {name}: use is unreadable, only its limit {format_gib(limit)} counts")
        return [CgroupRoom(limit, limit, name)]
    prefix = "total_" if kind == "v1" else ""
    credit = _clean_file_bytes(_read_counters(folder / "memory.stat"), prefix)
    return [CgroupRoom(limit, max(0, min(limit, limit - used + credit)), name)]


@dataclass(frozen=True)
class HostMemory:
    """Host memory that a run may use. Bytes."""

    total_bytes: int
    available_bytes: int
    pin_limit_bytes: int | None = None
    notes: tuple[str, ...] = ()
    commit_available_bytes: int | None = None  # Windows: what may still be promised


def read_linux_memory(root: Path = Path("/")) -> HostMemory:
    """MemAvailable or the tightest cgroup's room, the smaller. RequestError if unreadable."""
    counters = _read_counters(root / "proc/meminfo")
    if "MemTotal" not in counters or "MemAvailable" not in counters:
        raise RequestError(
            "host memory is unreadable (/proc/meminfo); give --ram-gib", field="ram_gib"
        )
    total, available = counters["MemTotal"], counters["MemAvailable"]
    room, notes = read_cgroup_room(root)
    if room is not None and room.limit_bytes < total:
        notes.append(
            f"RAM is limited to {format_gib(room.limit_bytes)} by cgroup {room.path} "
            f"({format_gib(room.room_bytes)} of it free)"
        )
        total = room.limit_bytes
    if room is not None:
        available = min(available, room.room_bytes)
    version = (_read_text(root / "proc/version") or "").lower()
    if "microsoft" in version:
        notes.append(
            "WSL gives Linux half of the PC's memory: raise `memory=` in .wslconfig for more, "
            "then `wsl --shutdown`"
        )
    return HostMemory(total, min(total, available), None, tuple(notes))


def read_windows_counters() -> dict[str, int]:
    """Physical and commit figures of GlobalMemoryStatusEx. Bytes."""
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in _WINDOWS_NAMES),
        )

    status = Status()
    status.length = ctypes.sizeof(Status)
    library = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
    if not library.GlobalMemoryStatusEx(ctypes.byref(status)):
        raise RequestError("host memory is unreadable; give --ram-gib", field="ram_gib")
    return {name: int(getattr(status, name)) for name in _WINDOWS_NAMES}


_WINDOWS_NAMES = (
    "physical_total",
    "physical_available",
    "commit_limit",
    "commit_available",
    "virtual_total",
    "virtual_available",
    "extended",
)


def read_windows_memory(
    counters: Callable[[], Mapping[str, int]] = read_windows_counters,
) -> HostMemory:
    """The smaller of free physical memory and commit headroom; half may be page-locked."""
    found = counters()
    total, physical = found["physical_total"], found["physical_available"]
    commit = found["commit_available"]
    notes = []
    if commit < physical:
        notes.append(
            f"Windows can commit only {format_gib(commit)} although {format_gib(physical)} of RAM "
            "is free: a larger page file would lift that"
        )
    return HostMemory(total, min(physical, commit), total // 2, tuple(notes), commit)


def read_macos_memory() -> HostMemory:
    """Unified memory, recorded and not planned."""
    import psutil

    memory = psutil.virtual_memory()
    note = "macOS: unified memory is recorded, not planned"
    return HostMemory(memory.total, memory.available, None, (note,))


def current_system() -> str:
    """'linux', 'windows' or 'macos'."""
    return {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")


def read_memory(system: str, root: Path = Path("/")) -> HostMemory:
    """Host memory of this machine by its system's rule."""
    if system == "windows":
        return read_windows_memory()
    if system == "macos":
        return read_macos_memory()
    return read_linux_memory(root)
