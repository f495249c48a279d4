"""The machine snapshot: recorded machines, cgroup trees of both versions, options, GPU answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lowpeak.engine.errors import RequestError
from lowpeak.engine.gpu import parse_gpu
from lowpeak.engine.hostmemory import (
    HostMemory,
    read_cgroup_peak,
    read_cgroup_room,
    read_linux_memory,
    read_windows_memory,
)
from lowpeak.engine.snapshot import read_snapshot
from lowpeak.engine.units import GIB, MIB

RECORDED = sorted((Path(__file__).parents[1] / "data" / "machines").glob("*.json"))
V2_MOUNT = "35 24 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw\n"
V1_MOUNT = "36 25 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"


def write_tree(root: Path, files: dict[str, str]) -> Path:
    """A fake / with these files."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def meminfo(total_gib: float, available_gib: float) -> str:
    """/proc/meminfo with the two lines that matter and one that must not."""
    total, available = int(total_gib * GIB) // 1024, int(available_gib * GIB) // 1024
    return (
        f"MemTotal: {total} kB\nMemFree: 1024 kB\nMemAvailable: {available} kB\n"
        f"SwapFree: {64 * GIB // 1024} kB\n"
    )


def stat_v2(file: int, shmem: int = 0, dirty: int = 0) -> str:
    """memory.stat of cgroup v2."""
    return (
        f"anon 1\nfile {file}\nshmem {shmem}\nfile_dirty {dirty}\nfile_writeback 0\nunevictable 0\n"
    )


def test_without_a_cgroup_limit_available_memory_counts(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "proc/meminfo": meminfo(32, 20),
            "proc/self/cgroup": "0::/user.slice/app\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/user.slice/app/memory.max": "max\n",
            "sys/fs/cgroup/user.slice/app/memory.current": "5\n",
        },
    )
    memory = read_linux_memory(root)
    assert (memory.total_bytes, memory.available_bytes) == (32 * GIB, 20 * GIB)
    assert memory.notes == ()


def test_v2_room_credits_clean_file_cache_only(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "proc/meminfo": meminfo(64, 60),
            "proc/self/cgroup": "0::/job\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/job/memory.max": str(8 * GIB),
            "sys/fs/cgroup/job/memory.current": str(7 * GIB),
            "sys/fs/cgroup/job/memory.stat": stat_v2(5 * GIB, shmem=GIB, dirty=512 * MIB),
        },
    )
    memory = read_linux_memory(root)
    assert memory.total_bytes == 8 * GIB
    assert memory.available_bytes == int((8 - 7 + 5 - 1 - 0.5) * GIB)
    assert "cgroup job" in memory.notes[0]


def test_a_missing_counter_earns_no_credit(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "proc/meminfo": meminfo(64, 60),
            "proc/self/cgroup": "0::/job\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/job/memory.max": str(8 * GIB),
            "sys/fs/cgroup/job/memory.current": str(7 * GIB),
            "sys/fs/cgroup/job/memory.stat": f"file {5 * GIB}\n",
        },
    )
    assert read_linux_memory(root).available_bytes == GIB


def test_the_tightest_ancestor_decides(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup"
    root = write_tree(
        tmp_path,
        {
            "proc/meminfo": meminfo(64, 60),
            "proc/self/cgroup": "0::/pod/box/app\n",
            "proc/self/mountinfo": V2_MOUNT,
            f"{folder}/pod/memory.max": str(12 * GIB),
            f"{folder}/pod/memory.current": str(11 * GIB),
            f"{folder}/pod/memory.stat": stat_v2(0),
            f"{folder}/pod/box/memory.max": "max",
            f"{folder}/pod/box/memory.current": str(GIB),
            f"{folder}/pod/box/app/memory.max": str(10 * GIB),
            f"{folder}/pod/box/app/memory.current": str(2 * GIB),
            f"{folder}/pod/box/app/memory.stat": stat_v2(0),
        },
    )
    room, notes = read_cgroup_room(root)
    assert room is not None and notes == []
    assert (room.path, room.room_bytes, room.limit_bytes) == ("pod", GIB, 12 * GIB)


def test_the_soft_ceiling_of_v2_counts(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/job\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/job/memory.max": str(8 * GIB),
            "sys/fs/cgroup/job/memory.high": str(6 * GIB),
            "sys/fs/cgroup/job/memory.current": str(GIB),
        },
    )
    room, _ = read_cgroup_room(root)
    assert room is not None and room.room_bytes == 5 * GIB


def test_v1_reads_its_own_files_and_its_no_limit(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup/memory"
    stat = (
        f"cache 1\ntotal_cache {3 * GIB}\ntotal_shmem {GIB}\ntotal_dirty 0\ntotal_writeback 0\n"
        "total_unevictable 0\n"
    )
    root = write_tree(
        tmp_path,
        {
            "proc/meminfo": meminfo(64, 60),
            "proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/abc\n",
            "proc/self/mountinfo": V1_MOUNT,
            f"{folder}/memory.limit_in_bytes": str(2**63 - 4096),
            f"{folder}/docker/abc/memory.limit_in_bytes": str(8 * GIB),
            f"{folder}/docker/abc/memory.usage_in_bytes": str(6 * GIB),
            f"{folder}/docker/abc/memory.stat": stat,
        },
    )
    assert read_linux_memory(root).available_bytes == 4 * GIB


def test_a_container_that_sees_its_own_cgroup_as_the_root(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n",
            "proc/self/mountinfo": (
                "36 25 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
            ),
            "sys/fs/cgroup/memory/memory.limit_in_bytes": str(4 * GIB),
            "sys/fs/cgroup/memory/memory.usage_in_bytes": str(GIB),
        },
    )
    room, _ = read_cgroup_room(root)
    assert room is not None and room.room_bytes == 3 * GIB


def test_the_peak_of_a_cgroup_is_read_where_the_kernel_keeps_one(tmp_path: Path) -> None:
    second = {
        "proc/self/cgroup": "0::/job\n",
        "proc/self/mountinfo": V2_MOUNT,
        "sys/fs/cgroup/job/memory.peak": f"{3 * GIB}\n",
    }
    assert read_cgroup_peak(write_tree(tmp_path / "v2", second)) == 3 * GIB
    first = {
        "proc/self/cgroup": "4:memory:/docker/abc\n",
        "proc/self/mountinfo": (
            "36 25 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
        ),
        "sys/fs/cgroup/memory/memory.max_usage_in_bytes": f"{2 * GIB}\n",
    }
    assert read_cgroup_peak(write_tree(tmp_path / "v1", first)) == 2 * GIB
    del second["sys/fs/cgroup/job/memory.peak"]
    assert read_cgroup_peak(write_tree(tmp_path / "older kernel", second)) is None


def test_an_unreadable_use_leaves_the_limit_and_a_note(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/job\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/job/memory.max": str(8 * GIB),
        },
    )
    room, notes = read_cgroup_room(root)
    assert room is not None and room.room_bytes == 8 * GIB
    assert "unreadable" in notes[0]


def test_an_unmounted_hierarchy_is_a_note(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"proc/self/cgroup": "0::/job\n", "proc/self/mountinfo": ""})
    room, notes = read_cgroup_room(root)
    assert room is None and "not mounted" in notes[0]


def test_unreadable_memory_is_an_error_that_names_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="--ram-gib"):
        read_linux_memory(tmp_path)


def test_wsl_gets_a_hint(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        {
            "proc/meminfo": meminfo(16, 14),
            "proc/version": "Linux version 6.6.87.2-microsoft-standard-WSL2\n",
        },
    )
    assert ".wslconfig" in " ".join(read_linux_memory(root).notes)


def test_windows_takes_the_smaller_of_memory_and_commit() -> None:
    counters = {
        "physical_total": 32 * GIB,
        "physical_available": 20 * GIB,
        "commit_available": 9 * GIB,
    }
    memory = read_windows_memory(lambda: counters)
    assert memory.available_bytes == 9 * GIB
    assert memory.pin_limit_bytes == 16 * GIB
    assert "page file" in memory.notes[0]
    roomy = read_windows_memory(lambda: {**counters, "commit_available": 40 * GIB})
    assert roomy.available_bytes == 20 * GIB and roomy.notes == ()


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_machines_read_as_recorded(path: Path, tmp_path: Path) -> None:
    record: dict[str, Any] = json.loads(path.read_text())
    expected = record["expected"]

    def memory(system: str) -> HostMemory:
        if system == "windows":
            return read_windows_memory(lambda: record["windows"])
        if system == "macos":
            return HostMemory(**record["macos"])
        return read_linux_memory(write_tree(tmp_path, record["files"]))

    snapshot = read_snapshot(
        gpu=lambda index: parse_gpu(record["gpu"], index), memory=memory, system=record["system"]
    )
    found = snapshot.as_json()
    for name, value in expected.items():
        if name == "note":
            assert value in " ".join(found["notes"])
        else:
            assert found[name] == value, name


def test_a_dozen_machines_are_recorded() -> None:
    assert len(RECORDED) >= 12
