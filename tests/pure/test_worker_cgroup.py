"""A worker in a real cgroup: the snapshot sees its limit, the kernel's kill has its own class."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lowpeak.engine.units import MIB
from lowpeak.engine.worker.supervisor import Patience, TaskFailed, Worker

TASKS = str(Path(__file__).resolve().parents[1])
V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
LIMIT_BYTES = 384 * MIB


@pytest.fixture
def enter() -> Iterator[Callable[[int], None]]:
    """Puts a process of ours into a new cgroup of 384 MiB without swap."""
    version = "v1" if (V1 / "memory.limit_in_bytes").exists() else "v2"
    group = (V1 if version == "v1" else V2) / f"lowpeak-test-{os.getpid()}"
    try:
        group.mkdir()
        if version == "v1":
            (group / "memory.limit_in_bytes").write_text(str(LIMIT_BYTES))
            swap = group / "memory.memsw.limit_in_bytes"
        else:
            (group / "memory.max").write_text(str(LIMIT_BYTES))
            swap = group / "memory.swap.max"
        if swap.exists():
            swap.write_text(str(LIMIT_BYTES) if version == "v1" else "0")
    except OSError as refused:
        if group.is_dir():
            group.rmdir()
        pytest.skip(f"no cgroup can be made here ({group}): {refused.strerror}; needs root")
    yield lambda pid: (group / "cgroup.procs").write_text(str(pid))  # type: ignore[func-returns-value]
    deadline = time.monotonic() + 10
    while (group / "cgroup.procs").read_text().strip() and time.monotonic() < deadline:
        time.sleep(0.05)
    group.rmdir()


def new_worker() -> Worker:
    return Worker(environment={"PYTHONPATH": TASKS}, patience=Patience(60, 60, 5, 2))


def test_the_snapshot_sees_a_real_limit(enter: Callable[[int], None]) -> None:
    with new_worker() as worker:
        before = worker.run("worker_tasks:memory", {})
        enter(worker.process.pid)
        inside = worker.run("worker_tasks:memory", {})
    assert before["total"] > LIMIT_BYTES
    assert inside["total"] == LIMIT_BYTES
    assert 0 < inside["available"] <= LIMIT_BYTES


def test_a_kernel_kill_is_recognised_and_the_next_worker_works(
    enter: Callable[[int], None],
) -> None:
    with new_worker() as worker:
        worker.run("worker_tasks:echo", {})
        enter(worker.process.pid)
        with pytest.raises(TaskFailed) as caught:
            worker.run("worker_tasks:eat", {})
    assert caught.value.kind == "killed_by_kernel"
    assert caught.value.ending.retryable
    with new_worker() as again:
        assert again.run("worker_tasks:echo", {"fine": 1})["arguments"] == {"fine": 1}
