"""A worker that stays with its blocks: when it is used again, what it counts as, when it leaves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from holding_worker import HoldingWorker

from lowpeak.engine.errors import Cancelled
from lowpeak.engine.events import Event, QuietHost
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.request import Request
from lowpeak.engine.toy import write_toy
from lowpeak.engine.worker.child import WorkerContext
from lowpeak.engine.worker.supervisor import Patience
from lowpeak.nodes import worker_engine, worker_tasks
from lowpeak.nodes.engine_seam import Pictures
from lowpeak.nodes.handles import LoraHandle, ModelHandle
from lowpeak.nodes.warm import Warm, warm_key, with_held
from lowpeak.nodes.worker_engine import WorkerEngine

REQUEST = Request(Geometry(256, 256, 22), prompt="a fox", base_steps=1, two_pass=False, seed=7)


class GraphHost(QuietHost):
    """What ComfyHost is to the engine, without ComfyUI."""

    stop = False

    def is_cancelled(self) -> bool:
        return self.stop

    def describe(self, request: Any, plan: Any) -> None:
        self.plan = plan

    def keep(self, report: Any) -> None:
        pass

    def release_memory(self, need_bytes: int) -> None:
        pass

    def preview(self, make_latents: Any) -> None:
        pass


class Here:
    """A Worker whose task runs in this process."""

    def __init__(self) -> None:
        self.context, self.alive = WorkerContext(lambda message: None), True

    def run(self, task: str, arguments: Any, *, on_event: Any, is_cancelled: Any) -> Any:
        self.context.is_cancelled = is_cancelled  # type: ignore[method-assign]
        self.context.emit = on_event  # type: ignore[method-assign]
        return worker_tasks.run_stage(arguments, self.context)

    def close(self) -> None:
        self.context.release()
        self.alive = False

    def abandon(self) -> threading.Thread:
        thread = threading.Thread(target=self.close)
        thread.start()
        return thread


class Counted(WorkerEngine):
    """Remembers the workers it starts."""

    def __init__(self, scratch: Path, make: Callable[[], Any]) -> None:
        self.workers: list[Any] = []

        def start() -> Any:
            self.workers.append(make())
            return self.workers[-1]

        super().__init__(lambda: "cpu", start=start, scratch=lambda: scratch)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ModelHandle:
    folder = tmp_path_factory.mktemp("toy") / "toy"
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    return ModelHandle(folder, "x", keep_warm=True)


@pytest.fixture(scope="module")
def conditions(model: ModelHandle) -> Any:
    from lowpeak.nodes.local_engine import LocalEngine

    return LocalEngine(lambda: "cpu").encode(model, REQUEST, Pictures(), GraphHost())


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    made = Counted(tmp_path, Here)
    yield made
    made.release()
    assert not any(worker.alive for worker in made.workers)


@pytest.fixture
def real(tmp_path: Path) -> Any:
    patience = Patience(cancel=0.4, sees_end=False)
    made = Counted(tmp_path, lambda: HoldingWorker(patience=patience))
    yield made
    made.release()
    assert not any(worker.alive for worker in made.workers)


def sample(engine: WorkerEngine, model: ModelHandle, conditions: Any, host: Any = None) -> Any:
    return engine.sample(model, REQUEST, conditions, host or GraphHost(), lambda latents: None)


def test_the_next_run_of_the_same_model_uses_the_process_and_its_blocks(
    engine: Any, model: ModelHandle, conditions: Any
) -> None:
    first = sample(engine, model, conditions)
    device, host = engine.held_bytes()
    blocks = sum(path.stat().st_size for path in (model.checkpoint).rglob("blocks/*.safetensors"))
    assert device == 0 and blocks <= host <= blocks + 3 * 4096
    again = sample(engine, model, conditions)
    assert len(engine.workers) == 1 and engine.workers[0].alive
    assert torch.equal(first.latents.video, again.latents.video)
    cold = sample(engine, replace(model, keep_warm=False), conditions)  # used, then let go
    assert len(engine.workers) == 1 and engine.held_bytes() == (0, 0)
    assert torch.equal(first.latents.video, cold.latents.video) and not engine.workers[0].alive


def test_another_model_and_the_memory_manager_make_it_leave(
    engine: Any, model: ModelHandle, conditions: Any
) -> None:
    sample(engine, model, conditions)
    other = replace(model, identity="changed on the disk")
    sample(engine, other, conditions)
    assert len(engine.workers) == 2 and not engine.workers[0].alive
    assert engine.held_bytes()[1] > 0
    assert engine.release() == 0, "no device memory on a CPU"
    assert engine.held_bytes() == (0, 0) and not engine.workers[1].alive
    assert engine.release() == 0


def test_real_processes_are_used_again_and_a_stop_ends_them_at_once(
    real: Any, model: ModelHandle, conditions: Any
) -> None:
    engine = real
    first = sample(engine, model, conditions)
    took = []
    while not took or (took[-1] >= 1.0 and len(took) < 3):  # others may hold the processor
        again = sample(engine, model, conditions)
        assert torch.equal(first.latents.video, again.latents.video)
        assert len(engine.workers) == 1 + len(took) and engine.workers[-1].alive
        took.append(seconds_to_stop(engine, model, conditions))
        assert engine.held_bytes() == (0, 0)
    print("stopped after", took, "s")
    assert took[-1] < 1.0
    before, host = len(engine.workers), GraphHost()
    host.stop = True
    with pytest.raises(Cancelled, match="the plan"):
        sample(engine, model, conditions, host)  # stopped before it began: no process
    assert len(engine.workers) == before
    engine._make_room(GraphHost())  # as the next stage does: it waits until the process is gone
    assert not any(worker.alive for worker in engine.workers)


def seconds_to_stop(engine: Any, model: ModelHandle, conditions: Any) -> float:
    """From asking a real worker to stop, while it samples, to the error that says so."""
    host, asked = GraphHost(), []
    engine.workers[-1].at = ("progress", None, None)  # it cannot be done before the stop

    def emit(event: Event) -> None:
        if event.kind == "progress" and not asked:
            host.stop = True
            asked.append(time.monotonic())

    host.emit = emit  # type: ignore[method-assign]
    with pytest.raises(Cancelled):
        sample(engine, model, conditions, host)
    return time.monotonic() - asked[0]


def test_what_it_holds_counts_as_free_and_it_leaves_when_a_stage_needs_it(
    engine: Any, model: ModelHandle, conditions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample(engine, model, conditions)
    bare = engine._snapshot().ram_available_bytes
    monkeypatch.setattr(engine, "_warm", replace(engine._warm, held=(0, 1 << 30)))
    engine._machine = None
    assert engine._snapshot().ram_available_bytes > bare + (1 << 29)
    engine.encode(model, REQUEST, Pictures(), GraphHost())
    assert engine.held_bytes() == (0, 1 << 30), "there is room for both"
    little = replace(model, ram_bytes=None)
    real = worker_engine.LocalEngine._snapshot
    monkeypatch.setattr(
        worker_engine.LocalEngine,
        "_snapshot",
        lambda self: replace(real(self), ram_available_bytes=1 << 27),
    )
    engine._machine = None
    engine.encode(little, REQUEST, Pictures(), GraphHost())
    assert engine.held_bytes() == (0, 0) and not engine.workers[0].alive


def test_an_idle_worker_leaves_by_itself(
    engine: Any, model: ModelHandle, conditions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_engine, "WARM_SECONDS", 0.2)
    sample(engine, model, conditions)
    limit = time.monotonic() + 10
    while engine.workers[0].alive and time.monotonic() < limit:
        time.sleep(0.05)
    assert engine.held_bytes() == (0, 0) and not engine.workers[0].alive


def test_a_key_tells_runs_over_other_blocks_apart() -> None:
    model = ModelHandle(Path("/m"), "i")
    lora = LoraHandle(Path("/l"), 0.5, False, "j")
    keys = {
        warm_key(item, device)
        for item in (
            model,
            replace(model, identity="k"),
            model.with_lora(lora),
            model.with_lora(replace(lora, strength=0.6)),
        )
        for device in ("cpu", "cuda")
    }
    assert len(keys) == 8
    assert warm_key(replace(model, vram_bytes=5, keep_warm=True), "cpu") in keys


class Store:
    """A BlockStore as far as Warm sees it."""

    def __init__(self) -> None:
        self.sources = [type("Source", (), {"buffer_bytes": 10})() for _ in range(3)]
        self.pinned, self.closed = frozenset({0, 2}), 0

    def close(self) -> None:
        self.closed += 1


def test_warm_gives_a_store_once_and_closes_what_nobody_takes() -> None:
    held, one, two = Warm(), Store(), Store()
    assert held.take("a") is None and held.held == (0, 0)
    held.keep("a", one, 7)
    assert held.held == (7, 20)
    assert held.take("a") is one and held.take("a") is None and one.closed == 0
    held.keep("a", one, 0)
    assert held.take("b") is None and one.closed == 1 and held.held == (0, 0)
    held.keep("a", two, 0)
    held.keep("a", None, 0)
    assert two.closed == 1 and held.held == (0, 0)
    held.close()


def test_memory_held_never_counts_beyond_what_there_is(engine: Any) -> None:
    machine = replace(engine._snapshot(), vram_total_bytes=10, vram_free_bytes=4)
    found = with_held(machine, (100, 1 << 60))
    assert found.vram_free_bytes == 10
    assert found.ram_available_bytes == machine.ram_total_bytes
