"""The machine snapshot: recorded machines, cgroup trees of both versions, options, GPU answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lowpeak.engine.errors import RequestError
from lowpeak.engine.hostmemory import (
    HostMemory,
    read_cgroup_room,
    read_linux_memory,
    read_windows_memory,
)
from lowpeak.engine.planner.types import HardwareSnapshot
from lowpeak.engine.snapshot import (
    Gpu,
    cap_snapshot,
    parse_gpu,
    read_snapshot,
    snapshot_from_options,
)
from lowpeak.engine.units import GIB, MIB
from lowpeak.engine.wddm import WddmBudget, parse_wddm

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


def windows_snapshot(wddm: WddmBudget | str) -> HardwareSnapshot:
    counters = {
        "physical_total": 16 * GIB, "physical_available": 12 * GIB, "commit_limit": 30 * GIB,
        "commit_available": 20 * GIB,
    }  # fmt: skip
    return read_snapshot(
        gpu=lambda index: parse_gpu(answer()),
        memory=lambda system: read_windows_memory(lambda: counters),
        wddm=lambda: wddm,
        system="windows",
    )


def test_display_budgets_bound_what_is_free_and_what_may_be_pinned() -> None:
    found = windows_snapshot(WddmBudget(6 * GIB, 5 * GIB))
    assert (found.vram_free_bytes, found.pin_limit_bytes) == (6 * GIB, 5 * GIB)
    assert (found.wddm_local_bytes, found.commit_available_bytes) == (6 * GIB, 20 * GIB)
    assert any("lets one process use 6.00 GiB" in note for note in found.notes)
    roomy = windows_snapshot(WddmBudget(20 * GIB, 20 * GIB))
    assert (roomy.vram_free_bytes, roomy.pin_limit_bytes) == (7 * GIB, 8 * GIB)
    assert not any("lets one process" in note for note in roomy.notes)
    unknown = windows_snapshot("no display budgets: no DXGI factory")
    assert unknown.vram_free_bytes == 7 * GIB and "no display budgets" in " ".join(unknown.notes)


@pytest.mark.parametrize(
    ("output", "found"),
    [
        (
            '{"adapters": [{"vendor": 32902, "local": {"budget": 9, "used": 0}}, '
            '{"vendor": 4318, "local": {"budget": 100, "used": 30}, "nonlocal": null}]}',
            WddmBudget(70, None),
        ),
        ('{"adapters": []}', "no NVIDIA adapter"),
        ('{"error": "OSError: x"}', "OSError: x"),
        ("Traceback", "not told"),
    ],
)
def test_what_the_budget_child_prints_is_read(output: str, found: WddmBudget | str) -> None:
    read = parse_wddm(output)
    assert found in read if isinstance(found, str) else read == found  # type: ignore[operator]


def test_a_dozen_machines_are_recorded() -> None:
    assert len(RECORDED) >= 12


def answer(**changes: Any) -> str:
    card = {
        "name": "NVIDIA GeForce RTX 4060",
        "uuid": "GPU-0",
        "capability": [8, 9],
        "total": 8 * GIB,
        "free": 7 * GIB,
        "processes": 0,
        "temperature": 50,
        "throttle": 0,
    }
    return json.dumps({"driver": "580.1", "cards": [card | changes]})


def test_the_gpu_answer_is_read() -> None:
    gpu = parse_gpu(answer())
    assert isinstance(gpu, Gpu)
    assert (gpu.name, gpu.capability, gpu.free_bytes) == (
        "NVIDIA GeForce RTX 4060",
        (8, 9),
        7 * GIB,
    )
    assert not gpu.thermal


@pytest.mark.parametrize(
    ("output", "word"),
    [
        ("", "no JSON"),
        ('{"error": "NVMLError: not found"}', "no NVIDIA GPU"),
        ('{"driver": "1", "cards": []}', "0 found"),
    ],
)
def test_no_gpu_is_a_reason_not_a_crash(output: str, word: str) -> None:
    assert word in str(parse_gpu(output))
    snapshot = read_snapshot(
        gpu=lambda index: parse_gpu(output, index),
        memory=lambda system: HostMemory(GIB, GIB),
        system="linux",
    )
    assert snapshot.vram_total_bytes == 0 and word in " ".join(snapshot.notes)


def test_a_busy_hot_second_card_is_noted() -> None:
    data = json.loads(answer(processes=2, throttle=0x40))
    data["cards"] *= 2
    snapshot = read_snapshot(
        gpu=lambda index: parse_gpu(json.dumps(data), index),
        memory=lambda system: HostMemory(GIB, GIB),
        system="linux",
        device_index=1,
    )
    notes = " ".join(snapshot.notes)
    assert "2 other process" in notes and "hot" in notes and "2 GPUs" in notes


def test_reading_this_machine_works_and_makes_no_cuda_context() -> None:
    snapshot = read_snapshot()
    assert snapshot.ram_total_bytes >= snapshot.ram_available_bytes > 0


def nowhere() -> HardwareSnapshot:
    raise AssertionError("this machine was asked although the options say everything")


def test_options_describe_a_machine_without_asking_this_one() -> None:
    snapshot = snapshot_from_options(8, 16, link_gbps=12, disk_gbps=2.5, here=nowhere)
    assert (snapshot.vram_free_bytes, snapshot.ram_available_bytes) == (8 * GIB, 16 * GIB)
    assert (snapshot.link_bytes_per_second, snapshot.disk_bytes_per_second) == (12e9, 2.5e9)


def test_a_card_brings_its_memory_and_capability() -> None:
    snapshot = snapshot_from_options(ram_gib=32, card="RTX 4060 Laptop GPU", here=nowhere)
    assert snapshot.card == "rtx-4060-laptop"
    assert (snapshot.vram_total_bytes, snapshot.capability) == (8 * GIB, (8, 9))
    assert snapshot_from_options(12, 32, card="h200", here=nowhere).card == "h200"


def test_open_options_are_filled_from_this_machine() -> None:
    here = HardwareSnapshot("linux", "Card", (8, 9), 8 * GIB, 7 * GIB, 32 * GIB, 20 * GIB)
    less_ram = snapshot_from_options(ram_gib=16, here=lambda: here)
    assert (less_ram.vram_free_bytes, less_ram.ram_available_bytes) == (7 * GIB, 16 * GIB)
    assert less_ram.device_name == "Card"
    other = snapshot_from_options(vram_gib=12, here=lambda: here)
    assert (other.vram_free_bytes, other.device_name, other.capability) == (12 * GIB, "", None)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"vram_gib": 0}, "vram_gib"),
        ({"vram_gib": -4}, "vram_gib"),
        ({"vram_gib": float("nan")}, "vram_gib"),
        ({"vram_gib": 99_999}, "vram_gib"),
        ({"vram_gib": 0.001}, "vram_gib"),
        ({"ram_gib": 0}, "ram_gib"),
        ({"ram_gib": float("inf")}, "ram_gib"),
        ({"system": "beos"}, "system"),
        ({"capability": "eight"}, "capability"),
        ({"capability": "7.5"}, "capability"),
        ({"capability": "99.0"}, "capability"),
        ({"link_gbps": 0}, "link_gbps"),
        ({"disk_gbps": -1}, "disk_gbps"),
        ({"disk_gbps": 1e9}, "disk_gbps"),
        ({"card": "voodoo"}, "card"),
        ({"card": "rtx-4060", "vram_gib": 24}, "vram_gib"),
        ({"card": "rtx-4060", "capability": "8.6"}, "capability"),
    ],
)
def test_impossible_options_are_request_errors(options: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        snapshot_from_options(**{"vram_gib": 8, "ram_gib": 16, **options}, here=nowhere)
    assert caught.value.field == field


def test_a_capacity_outside_its_range_is_told_the_range() -> None:
    with pytest.raises(RequestError, match=r"vram_gib 0 is outside 0\.25\.\.1024 GiB"):
        snapshot_from_options(0, 16, here=nowhere)


def test_caps_only_ever_take_away() -> None:
    here = HardwareSnapshot("linux", "Card", (8, 9), 8 * GIB, 7 * GIB, 32 * GIB, 20 * GIB)
    capped = cap_snapshot(here, vram_gib=4, ram_gib=64)
    assert (capped.vram_total_bytes, capped.vram_free_bytes) == (4 * GIB, 4 * GIB)
    assert capped.ram_available_bytes == 20 * GIB
    with pytest.raises(RequestError):
        cap_snapshot(here, vram_gib=0)
