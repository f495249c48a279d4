"""Worker processes: protocol, heartbeat, cancel, every way to end, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lowpeak.engine.errors import Cancelled, DoesNotFit, MeasuredOverrun, RequestError
from lowpeak.engine.events import Event
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.request import LoraChoice, Request
from lowpeak.engine.worker.exits import Ending, classify_error, classify_exit, kernel_kill_count
from lowpeak.engine.worker.protocol import (
    Message,
    decode,
    error_from_json,
    event_from,
    request_from_json,
    request_to_json,
)
from lowpeak.engine.worker.supervisor import Patience, TaskFailed, Worker

TASKS = str(Path(__file__).resolve().parents[1])
QUICK = Patience(start=60, silence=60, cancel=1.5, terminate=2)


def new_worker(patience: Patience = QUICK) -> Worker:
    return Worker(environment={"PYTHONPATH": TASKS}, patience=patience)


@pytest.fixture
def worker() -> Iterator[Worker]:
    with new_worker() as running:
        yield running
    assert not running.alive
    assert not running.log.exists()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_a_task_answers_and_prints_do_not_disturb_it(worker: Worker) -> None:
    answer = worker.run("worker_tasks:echo", {"text": "öß", "number": 3})
    assert answer["arguments"] == {"text": "öß", "number": 3}
    assert answer["pid"] == worker.process.pid != os.getpid()
    assert answer["torch"] is False, "a worker imports torch only when its task does"
    assert "noise on standard output" in worker.log.read_text()


def test_a_worker_takes_one_task_after_another(worker: Worker) -> None:
    pids = {worker.run("worker_tasks:echo", {})["pid"] for _ in range(3)}
    assert len(pids) == 1


def test_events_arrive_in_order_before_the_result(worker: Worker) -> None:
    seen: list[Event] = []
    assert worker.run("worker_tasks:talk", {}, on_event=seen.append) == "done"
    assert [event.step for event in seen] == [0, 1, 2]
    assert seen[0] == Event("progress", "sample_high", step=0, steps=3, terms=({"a": 1},))


def test_cancel_is_cooperative_first(worker: Worker, tmp_path: Path) -> None:
    started = tmp_path / "started"
    with pytest.raises(Cancelled) as caught:
        worker.run(
            "worker_tasks:until_cancelled", {"started": str(started)}, is_cancelled=started.exists
        )
    assert caught.value.where == "sample_high"
    assert worker.alive, "a task that stops by itself leaves its worker"
    assert worker.run("worker_tasks:echo", {"again": 1})["arguments"] == {"again": 1}


def test_a_task_that_does_not_listen_is_ended(tmp_path: Path) -> None:
    started = tmp_path / "started"
    with new_worker() as worker:
        began = time.monotonic()
        with pytest.raises(Cancelled):
            worker.run("worker_tasks:deaf", {"started": str(started)}, is_cancelled=started.exists)
        assert time.monotonic() - began < 30
        assert not is_running(worker.process.pid)


def test_silence_is_an_end_of_its_own() -> None:
    with new_worker(Patience(start=60, silence=2.5, cancel=1, terminate=1)) as worker:
        worker.run("worker_tasks:echo", {})
        with pytest.raises(TaskFailed) as caught:
            worker.run("worker_tasks:stuck", {})
    assert caught.value.kind == "hung" and "no sign of life" in caught.value.detail


def test_typed_errors_keep_their_fields(worker: Worker) -> None:
    with pytest.raises(DoesNotFit) as caught:
        worker.run("worker_tasks:fail", {"way": "refused"})
    assert caught.value.short[0].shortfall_bytes == 5
    assert caught.value.fits_instead[0]["frames"] == 22
    with pytest.raises(TaskFailed) as overrun:
        worker.run("worker_tasks:fail", {"way": "overrun"})
    assert overrun.value.kind == "out_of_host_memory"
    cause = overrun.value.__cause__
    assert isinstance(cause, MeasuredOverrun) and cause.measured_bytes == 7


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("device", "out_of_device_memory"),
        ("host", "out_of_host_memory"),
        ("cuda", "cuda_error"),
        ("bug", "code_error"),
        ("exit", "unexplained_exit"),
        ("SIGSEGV", "crash"),
        ("SIGKILL", "killed"),
        ("bad_alloc", "out_of_host_memory"),
    ],
)
def test_every_end_has_its_class(way: str, kind: str) -> None:
    with new_worker() as worker, pytest.raises(TaskFailed) as caught:
        worker.run("worker_tasks:fail", {"way": way})
    assert caught.value.kind == kind
    assert caught.value.exit_code == 5
    if way == "bug":
        assert "KeyError" in caught.value.trace


def test_a_kernel_kill_is_told_from_another_kill() -> None:
    counts = iter([3, 4])
    with (
        Worker(
            environment={"PYTHONPATH": TASKS}, patience=QUICK, kill_count=lambda: next(counts)
        ) as worker,
        pytest.raises(TaskFailed) as caught,
    ):
        worker.run("worker_tasks:fail", {"way": "SIGKILL"})
    assert caught.value.kind == "killed_by_kernel" and caught.value.ending.retryable


def test_memory_that_runs_out_is_host_memory() -> None:
    resource = pytest.importorskip("resource", reason="no address-space limits on this system")
    with new_worker() as worker:
        limit = 1 << 30
        resource.prlimit(worker.process.pid, resource.RLIMIT_AS, (limit, limit))
        with pytest.raises(TaskFailed) as caught:
            worker.run("worker_tasks:eat", {})
    assert caught.value.kind == "out_of_host_memory"


def test_a_warm_worker_gives_up_what_it_keeps(worker: Worker, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    first = worker.run("worker_tasks:keep", {"name": "blocks", "closed": str(closed)})
    assert first["before"] == []
    assert worker.run("worker_tasks:keep", {})["before"] == ["blocks"]
    assert not closed.exists()
    worker.release()
    assert worker.run("worker_tasks:keep", {})["before"] == []
    assert closed.exists()


def test_what_is_kept_is_closed_at_the_end(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    with new_worker() as worker:
        worker.run("worker_tasks:keep", {"name": "blocks", "closed": str(closed)})
    assert closed.exists() and worker.process.returncode == 0


def test_a_worker_does_not_outlive_its_supervisor(tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = (
        "import sys; from lowpeak.engine.worker.supervisor import Worker;"
        f"w = Worker(environment={{'PYTHONPATH': {TASKS!r}}});"
        "print(w.process.pid, flush=True);"
        f"w.run('worker_tasks:until_cancelled', {{'started': {str(started)!r}}})"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    deadline = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    with new_worker() as worker:
        worker.run("worker_tasks:echo", {})
    assert threading.active_count() == before


def test_an_unknown_task_is_a_code_error(worker: Worker) -> None:
    with pytest.raises(TaskFailed) as caught:
        worker.run("worker_tasks:nothing", {})
    assert caught.value.kind == "code_error"


def test_lines_that_are_no_messages_are_ignored() -> None:
    for line in ("", "hello", "{}", "[1]", '{"kind": "boom", "body": {}}', "null"):
        assert decode(line) is None
    message = Message("result", {"value": [1, "ü"]})
    assert decode(message.encode()) == message
    with pytest.raises(ValueError, match="unknown"):
        Message("boom")


def test_requests_and_events_survive_the_trip() -> None:
    request = Request(
        Geometry(1344, 768, 243),
        prompt="two\nlines",
        quality="high",
        seed=9,
        references=("a.png",),
        loras=(LoraChoice("b.safetensors", 0.5),),
    )
    assert request_from_json(request_to_json(request)) == request
    event = Event("measured", "decode", seconds=1.5, terms=({"name": "x"},))
    assert event_from(event.as_json()) == event


def test_errors_survive_the_trip() -> None:
    error = error_from_json(RequestError("no", field="width").as_json())
    assert isinstance(error, RequestError) and error.field == "width" and str(error) == "no"
    assert error_from_json({"error": "KeyError", "message": "x"}) is None
    assert error_from_json({"error": "annotations", "message": "x"}) is None


@pytest.mark.parametrize(
    ("code", "log", "kind"),
    [
        (-9, "", "killed"),
        (137, "", "killed"),
        (-11, "", "crash"),
        (-6, "CUDA error: device-side assert triggered", "cuda_error"),
        (1, "torch.OutOfMemoryError: CUDA out of memory. Tried", "out_of_device_memory"),
        (1, "RuntimeError: DefaultCPUAllocator: can't allocate", "out_of_host_memory"),
        (0xC0000005, "", "crash"),
        (-1073741819, "", "crash"),
        (0xC000012D, "", "out_of_host_memory"),
        (0, "", "unexplained_exit"),
    ],
)
def test_exit_codes_and_logs_are_classified(code: int, log: str, kind: str) -> None:
    assert classify_exit(code, log).kind == kind


def test_being_asked_to_stop_comes_before_every_other_class() -> None:
    ending = classify_exit(-9, "CUDA out of memory", asked_to_stop=True, kernel_kills=1)
    assert ending.kind == "cancelled" and not ending.retryable
    assert classify_error(KeyboardInterrupt()) == "cancelled"


def test_kernel_kills_are_read_from_both_cgroup_versions(tmp_path: Path) -> None:
    for name, text in {
        "proc/self/cgroup": "0::/job\n4:memory:/old\n",
        "sys/fs/cgroup/job/memory.events": "low 0\noom 2\noom_kill 2\n",
        "sys/fs/cgroup/memory/old/memory.oom_control": "oom_kill_disable 0\noom_kill 5\n",
        "proc/vmstat": "nr_free 1\noom_kill 40\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert kernel_kill_count(tmp_path) == 47
    assert kernel_kill_count(tmp_path / "nowhere") == 0


def test_only_memory_is_retryable() -> None:
    kinds = {"cuda_error", "crash", "killed", "hung", "cancelled", "refused", "code_error",
             "unexplained_exit"}  # fmt: skip
    assert not any(Ending(kind, "").retryable for kind in kinds)
