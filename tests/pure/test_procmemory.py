"""Host memory of processes and groups: what the kernel could drop is told apart."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from lowpeak.engine import cgroups
from lowpeak.engine.cgroups import MemoryGroup, PeakWatch, clean_file_bytes, own_group_name
from lowpeak.engine.errors import RequestError
from lowpeak.engine.hostmemory import read_cgroup_peak
from lowpeak.engine.meter import Meter
from lowpeak.engine.procmemory import descendants, read_process_memory, read_tree_memory

ROLLUP = "55-7f ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss: {} kB\nPss_File: {} kB\n"


def fake_process(proc: Path, pid: int, parent: int, pss: int, file: int) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} (a (b) c) S {parent} 1 1")
    (folder / "smaps_rollup").write_text(ROLLUP.format(pss, file))


def test_a_tree_is_summed_and_clean_file_pages_are_apart(tmp_path: Path) -> None:
    fake_process(tmp_path, 10, 1, 100, 30)
    fake_process(tmp_path, 11, 10, 50, 5)
    fake_process(tmp_path, 12, 11, 7, 7)
    fake_process(tmp_path, 13, 1, 999, 1)
    (tmp_path / "meminfo").write_text("")
    assert sorted(descendants(10, tmp_path)) == [11, 12]
    found = read_tree_memory(10, proc=tmp_path)
    assert found is not None
    assert (found.total_bytes, found.clean_bytes) == (157 * 1024, 42 * 1024)
    assert found.needed_bytes == 115 * 1024


def test_an_older_kernel_gives_resident_sets(tmp_path: Path) -> None:
    (tmp_path / "10").mkdir()
    (tmp_path / "10" / "status").write_text(
        "Name: x\nRssAnon: 40 kB\nRssFile: 8 kB\nRssShmem: 2 kB\n"
    )
    found = read_process_memory(10, proc=tmp_path)
    assert found is not None and (found.total_bytes, found.clean_bytes) == (50 * 1024, 8 * 1024)
    assert read_process_memory(11, proc=tmp_path) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_real_process_that_takes_memory_needs_it() -> None:
    before = read_process_memory()
    held = bytearray(os.urandom(1 << 20) * 64)
    after = read_process_memory()
    assert before is not None and after is not None
    assert after.needed_bytes - before.needed_bytes > 48 << 20
    del held


def test_a_phase_counts_the_processes_below_this_one() -> None:
    code = "held = bytearray(64 << 20); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with Meter(torch.device("cpu")).phase("encode") as measured:
            pass
        alone = read_process_memory()
        child.kill()
    if alone is None:
        pytest.skip("this system does not tell what a process holds")
    found = measured.as_json()
    assert found["ram_tree_bytes"] - alone.total_bytes > 48 << 20
    assert (found["cgroup_peak_bytes"] is None) == (read_cgroup_peak() is None)
    assert found["vram_card_bytes"] is None and found["vram_process_bytes"] is None


def test_clean_pages_of_both_versions() -> None:
    v2 = "anon 5\nfile 1000\nshmem 300\nfile_dirty 40\nfile_writeback 10\n"
    v1 = "cache 1000\nrss 5\nshmem 300\ndirty 40\nwriteback 10\n"
    assert clean_file_bytes(v2) == clean_file_bytes(v1) == 650
    assert clean_file_bytes("file 1000\nshmem 300\n") == 0, "a missing counter earns no credit"


def test_a_group_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot be capped"):
        MemoryGroup("a/b", 1.0, tmp_path / "nothing")


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_bench_caps_itself_with_either_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    from lowpeak.engine import bench

    parent, limit, peak = tmp_path, "memory.max", "memory.peak"
    if version == "v1":
        parent, limit = tmp_path / "memory", "memory.limit_in_bytes"
        parent.mkdir()
        (parent / limit).write_text("0")
        peak = "memory.max_usage_in_bytes"
    monkeypatch.setattr(cgroups, "FOLDER", tmp_path)
    assert bench.ram_peak_bytes() > 1 << 20, "without a group what is resident counts"
    bench.limit_ram(2.0)
    (group,) = (path for path in parent.iterdir() if path.is_dir())
    assert (group / limit).read_text() == str(2 << 30)
    assert (group / "cgroup.procs").read_text() == str(os.getpid())
    (group / peak).write_text("12345\n")
    assert bench.ram_peak_bytes() == 12345
    with pytest.raises(RequestError, match="cannot be capped"):
        bench.limit_ram(2.0)  # there is one already


def test_a_group_limits_and_counts_a_process() -> None:
    try:
        group = MemoryGroup(own_group_name("test"), 0.25)
    except RequestError as refused:
        pytest.skip(f"needs root and memory cgroups: {refused}")
    code = "import time; input(); held = bytearray(64 << 20); print(flush=True); time.sleep(60)"
    with group, subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:  # fmt: skip
        group.add(child.pid)
        assert child.stdin is not None and child.stdout is not None
        with PeakWatch(group.needed_bytes, 0.01) as watch:
            child.stdin.write(b"\n")
            child.stdin.flush()
            child.stdout.readline()
        child.kill()
        child.wait()
        assert watch.peak_bytes >= 64 << 20
        assert (group.peak_bytes or 0) >= 64 << 20
        deadline = time.monotonic() + 5
        while (group.path / "cgroup.procs").read_text().strip() and time.monotonic() < deadline:
            time.sleep(0.02)
    assert not group.path.exists()
