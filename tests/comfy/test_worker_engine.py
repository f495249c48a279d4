"""Stages in worker processes: the same results, retries, and what is left when a worker dies."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from holding_worker import HoldingWorker

from lowpeak.engine.errors import Cancelled, DoesNotFit, WorkerDied
from lowpeak.engine.events import Event, QuietHost
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.request import Request
from lowpeak.engine.toy import write_toy
from lowpeak.engine.worker.child import WorkerContext
from lowpeak.engine.worker.exits import Ending
from lowpeak.engine.worker.supervisor import TaskFailed, Worker
from lowpeak.nodes import worker_tasks
from lowpeak.nodes.engine_seam import Latents, Pictures
from lowpeak.nodes.handles import LoraHandle, ModelHandle, model_from_json, model_to_json
from lowpeak.nodes.local_engine import LocalEngine
from lowpeak.nodes.parcel import read_parcel, write_parcel
from lowpeak.nodes.worker_engine import WorkerEngine

SIZE = Geometry(256, 256, 22)


class GraphHost(QuietHost):
    """What ComfyHost is to the engine, without ComfyUI."""

    def __init__(self) -> None:
        super().__init__()
        self.described: list[Any] = []
        self.previews: list[Any] = []
        self.asked_room = 0
        self.kept: dict[str, Any] = {}
        self.stop_at: tuple[str, str] | None = None

    def is_cancelled(self) -> bool:
        return self.stop_at in [(event.kind, event.phase) for event in self.events]

    def release_memory(self, need_bytes: int) -> None:
        self.asked_room += 1

    def describe(self, request: Any, plan: Any) -> None:
        self.described.append(plan)

    def keep(self, report: Any) -> None:
        self.kept.update(report)

    def wants_previews(self) -> bool:
        return True

    def preview(self, make_latents: Any) -> None:
        self.previews.append(make_latents())


class Here:
    """A Worker that runs its task in this process. `failures` are raised first, one a start."""

    failures: list[Exception] = []  # noqa: RUF012
    arguments: list[dict[str, Any]] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.context, self.closed = WorkerContext(lambda message: None), False

    def close(self) -> None:
        self.closed = True
        self.context.release()

    def abandon(self) -> threading.Thread:
        thread = threading.Thread(target=self.close)
        thread.start()
        return thread

    def run(self, task: str, arguments: Any, *, on_event: Any, is_cancelled: Any) -> Any:
        assert task == ".nodes.worker_tasks:run_stage"
        type(self).arguments.append(dict(arguments))
        context = self.context
        context.is_cancelled = is_cancelled  # type: ignore[method-assign]
        context.emit = on_event  # type: ignore[method-assign]
        if self.failures and arguments["stage"] in ("sample", "decode"):
            raise self.failures.pop(0)
        return worker_tasks.run_stage(arguments, context)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ModelHandle:
    folder = tmp_path_factory.mktemp("toy") / "toy"
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    return ModelHandle(folder, "x")


@pytest.fixture
def engine(tmp_path: Path) -> WorkerEngine:
    Here.failures, Here.arguments = [], []
    return WorkerEngine(lambda: "cpu", start=Here, scratch=lambda: tmp_path)  # type: ignore[arg-type]


REQUEST = Request(SIZE, prompt="a fox", base_steps=2, refine_steps=1, seed=7)
QUICK = Request(SIZE, prompt="a fox", base_steps=1, two_pass=False, seed=7)


def test_workers_give_what_the_engine_gives_and_leave_no_files(
    model: ModelHandle, engine: WorkerEngine, tmp_path: Path
) -> None:
    host, local, first = GraphHost(), LocalEngine(lambda: "cpu"), []
    with torch.inference_mode():
        given = engine.encode(model, REQUEST, Pictures(), host)
        made = engine.sample(model, REQUEST, given, host, first.append)
        again = engine.refine(model, REQUEST, given, first[0], host)
    own = local.encode(model, REQUEST, Pictures(), GraphHost())
    assert torch.equal(given.hidden, own.hidden) and torch.equal(given.tags, own.tags)
    expected = local.sample(model, REQUEST, own, GraphHost(), lambda latents: None)
    for latents in (made.latents, again.latents):
        assert torch.equal(latents.video, expected.latents.video)
        assert torch.equal(latents.audio, expected.latents.audio)
    assert made.report["latents_sha256"] == expected.report["latents_sha256"]
    assert host.asked_room == 3 and host.described[0]["fits"]
    assert host.previews and host.previews[0].shape == (24, 1, 16, 16)
    assert list(tmp_path.iterdir()) == []


def test_an_out_of_memory_is_tried_again_with_less(
    model: ModelHandle, engine: WorkerEngine
) -> None:
    Here.failures = [TaskFailed(Ending("out_of_host_memory", "short")) for _ in range(2)]
    host = GraphHost()
    given = engine.encode(model, QUICK, Pictures(), host)
    engine.sample(model, QUICK, given, host, lambda latents: None)
    budgets = [item["model"]["ram_bytes"] for item in Here.arguments if item["stage"] == "sample"]
    assert len(budgets) == 3 and budgets[0] is None and budgets[1] > budgets[2] > 0
    notices = [event.message for event in host.events if event.kind == "notice"]
    assert len(notices) == 2 and all("out_of_host_memory" in text for text in notices)
    first, second, third = host.kept["attempts"]
    for tried in (first, second):
        assert (tried["stage"], tried["outcome"]) == ("sample", "out_of_host_memory")
        assert tried["message"] == "short" and tried["next"]["kind"] == "placement-only"
    assert "lighter placement" in first["next"]["reason"]
    assert third == {"stage": "sample", "outcome": "done"}


class ShortInSecondPass(GraphHost):
    """The worker runs out of memory as the second pass begins, the first `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    def emit(self, event: Event) -> None:
        super().emit(event)
        if self.left and (event.kind, event.phase, event.step) == ("progress", "sample_high", 0):
            self.left -= 1
            raise TaskFailed(Ending("out_of_host_memory", "short"))


@pytest.mark.parametrize("times", [1, 2])
def test_after_an_out_of_memory_in_the_second_pass_the_first_is_not_sampled_again(
    model: ModelHandle, engine: WorkerEngine, tmp_path: Path, times: int
) -> None:
    first: list[Latents] = []
    given = engine.encode(model, REQUEST, Pictures(), GraphHost())
    whole = engine.sample(model, REQUEST, given, GraphHost(), lambda latents: None)
    Here.arguments, host = [], ShortInSecondPass(times)
    made = engine.sample(model, REQUEST, given, host, first.append)
    assert [item["stage"] for item in Here.arguments] == ["sample", *["refine"] * times]
    passes = [event for event in host.events if event.kind == "measured"]
    assert [event.phase for event in passes].count("sample_low") == 1
    tried = [(item["stage"], item["outcome"]) for item in host.kept["attempts"]]
    assert tried[0] == ("sample", "out_of_host_memory") and tried[-1] == ("refine", "done")
    notices = [event.message for event in host.events if event.kind == "notice"]
    assert len(notices) == times and "first pass is kept" in notices[0]
    assert made.first_pass is first[0] and len(first) == 1 and whole.first_pass is not None
    for ours, expected in ((made.latents, whole.latents), (first[0], whole.first_pass)):
        assert torch.equal(ours.video, expected.video)
        assert torch.equal(ours.audio, expected.audio)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["cuda_error", "crash"])
def test_other_endings_are_not_tried_again(
    model: ModelHandle, engine: WorkerEngine, kind: str
) -> None:
    Here.failures = [TaskFailed(Ending(kind, "gone"))]
    given = engine.encode(model, QUICK, Pictures(), GraphHost())
    with pytest.raises(WorkerDied, match=kind):
        engine.sample(model, QUICK, given, GraphHost(), lambda latents: None)
    assert len(Here.arguments) == 2


def test_a_third_out_of_memory_is_the_last(model: ModelHandle, engine: WorkerEngine) -> None:
    Here.failures = [TaskFailed(Ending("out_of_host_memory", "short")) for _ in range(9)]
    given = engine.encode(model, QUICK, Pictures(), GraphHost())
    host = GraphHost()
    with pytest.raises(WorkerDied, match="out_of_host_memory"):
        engine.sample(model, QUICK, given, host, lambda latents: None)
    assert len(Here.failures) == 6
    outcomes = [item["outcome"] for item in host.kept["attempts"]]
    assert outcomes == ["out_of_host_memory"] * 3 and "next" not in host.kept["attempts"][2]


def test_what_does_not_fit_starts_no_worker(model: ModelHandle, engine: WorkerEngine) -> None:
    small = ModelHandle(model.checkpoint, "x", ram_bytes=1 << 28)
    given = engine.encode(model, QUICK, Pictures(), GraphHost())
    Here.arguments, host = [], GraphHost()
    with pytest.raises(DoesNotFit):
        engine.sample(small, QUICK, given, host, lambda latents: None)
    assert Here.arguments == [] and not host.described[0]["fits"]


class Killer(GraphHost):
    """Kills the real worker when the second pass begins; remembers it."""

    def __init__(self) -> None:
        super().__init__()
        self.worker: Worker | None = None

    def start(self) -> Worker:
        self.worker = HoldingWorker(("progress", "sample_high", 0))
        return self.worker

    def emit(self, event: Event) -> None:
        super().emit(event)
        if (event.kind, event.phase, event.step) == ("progress", "sample_high", 0):
            assert self.worker is not None
            os.kill(self.worker.process.pid, signal.SIGKILL)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_worker_leaves_the_first_pass_and_a_reason(
    model: ModelHandle, engine: WorkerEngine, tmp_path: Path
) -> None:
    killer, kept = Killer(), []
    given = engine.encode(model, REQUEST, Pictures(), GraphHost())
    real = WorkerEngine(lambda: "cpu", start=killer.start, scratch=lambda: tmp_path)
    with pytest.raises(WorkerDied, match="kill"):
        real.sample(model, REQUEST, given, killer, kept.append)
    assert len(kept) == 1 and kept[0].video.shape == (1, 24, 7, 16, 16)
    assert list(tmp_path.iterdir()) == []


def test_stop_reaches_a_real_worker(
    model: ModelHandle, engine: WorkerEngine, tmp_path: Path
) -> None:
    host = GraphHost()
    host.stop_at = ("progress", "sample_low")
    given = engine.encode(model, REQUEST, Pictures(), GraphHost())
    start = partial(HoldingWorker, ("progress", "sample_low", None))
    real = WorkerEngine(lambda: "cpu", start=start, scratch=lambda: tmp_path)
    with pytest.raises(Cancelled):
        real.sample(model, REQUEST, given, host, lambda latents: None)
    assert not [event for event in host.events if event.phase == "sample_high"]


def test_a_parcel_keeps_shared_tensors_texts_and_nothings(tmp_path: Path) -> None:
    shared = torch.arange(6.0).view(2, 3)
    tree = {"a": shared, "b": [shared.T, None, 1.5], "c": {"file": Path("/x/y"), "t": "words"}}
    assert read_parcel(tmp_path, "p") is None
    write_parcel(tmp_path, "p", tree)
    back = read_parcel(tmp_path, "p")
    assert torch.equal(back["a"], shared) and torch.equal(back["b"][0], shared.T)
    assert back["b"][1:] == [None, 1.5] and back["c"] == {"file": "/x/y", "t": "words"}
    assert {path.name for path in tmp_path.iterdir()} == {"p.json", "p.safetensors"}


def test_a_model_handle_travels() -> None:
    lora = LoraHandle(Path("/l/a.safetensors"), 0.5, True, "i")
    model = ModelHandle(Path("/m/toy"), "id", 5, None, (lora,), True, {"blocks": 2})
    back = model_from_json(model_to_json(model))
    assert back == ModelHandle(Path("/m/toy"), "id", 5, None, (lora,), True, {})
