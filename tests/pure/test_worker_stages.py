"""Stages in workers: which ones run, what a retry changes, what is kept and told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lowpeak.engine.errors import Cancelled, DoesNotFit, MeasuredOverrun, RequestError, Shortage
from lowpeak.engine.events import Event, QuietHost
from lowpeak.engine.files import RunFiles
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.types import HardwareSnapshot
from lowpeak.engine.request import Request
from lowpeak.engine.units import GIB
from lowpeak.engine.worker.exits import Ending
from lowpeak.engine.worker.ladder import Attempted, NextTry, next_try
from lowpeak.engine.worker.protocol import request_from_json
from lowpeak.engine.worker.stages import Launch, choose_stages, run_in_workers
from lowpeak.engine.worker.supervisor import TaskFailed

REQUEST = Request(Geometry(256, 256, 22), prompt="a prompt")
MACHINE = HardwareSnapshot("linux", "Card", (8, 9), 8 * GIB, 8 * GIB, 32 * GIB, 24 * GIB)
DEVICE = Ending("out_of_device_memory", "CUDA out of memory")
HOST = Ending("out_of_host_memory", "no memory")


@dataclass(frozen=True)
class Options:
    """The fields of RunOptions, without importing the engine's torch side."""

    checkpoint: Path
    out: Path
    vram_gib: float | None = None
    ram_gib: float | None = None
    device: str = "cpu"
    stop_after: str | None = None
    resume: Path | None = None
    keep_prompt: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)


class FakeWorker:
    """A worker whose tasks are a function; counts how many are open at once."""

    open_now = 0

    def __init__(self, body: Callable[[Request, dict[str, Any]], dict[str, Any]]) -> None:
        self.body = body

    def __enter__(self) -> FakeWorker:
        FakeWorker.open_now += 1
        return self

    def __exit__(self, *failure: object) -> None:
        FakeWorker.open_now -= 1

    def run(self, task: str, arguments: Mapping[str, Any], **hooks: Any) -> dict[str, Any]:
        assert FakeWorker.open_now == 1, "a stage began while another's process was alive"
        assert task.endswith("tasks:generate")
        json.dumps(arguments)
        return self.body(request_from_json(arguments["request"]), dict(arguments["options"]))


class Engine:
    """Writes the files that the real stages leave, and fails where it is told to."""

    def __init__(self, out: Path, failures: Mapping[str, list[Exception]] | None = None) -> None:
        self.files = RunFiles(out)
        self.failures = {name: list(items) for name, items in (failures or {}).items()}
        self.seen: list[dict[str, Any]] = []

    def __call__(self, request: Request, options: dict[str, Any]) -> dict[str, Any]:
        assert request == REQUEST
        self.seen.append(options)
        stage = options["stop_after"] or "decode"
        if stage in ("first", "sample"):
            assert self.files.conditioning.exists()
        if stage == "decode":
            assert self.files.latents.exists()
        if self.failures.get(stage):
            if stage == "sample":
                self.files.first_pass.write_text("x")
            raise self.failures[stage].pop(0)
        made = {
            "encode": self.files.conditioning,
            "first": self.files.first_pass,
            "sample": self.files.latents,
            "decode": self.files.video,
        }
        made[stage].write_text("x")
        return {
            "phases": [{"phase": stage}],
            "notices": ["same", stage],
            "lora": [],
            "plan": {"of": stage},
            "snapshot": {},
            "attempts": [{"outcome": "done"}],
        }

    def launch(self, **changes: Any) -> Launch:
        """A Launch with this engine behind its workers."""
        keys = {"snapshot": lambda: MACHINE, "start": lambda: FakeWorker(self), **changes}
        return Launch(QuietHost(), **keys)


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(tmp_path / "model", tmp_path / "v.mp4")


def test_stages_run_one_after_another_and_leave_one_report(options: Options) -> None:
    engine = Engine(options.out)
    report = run_in_workers(REQUEST, options, engine.launch())  # type: ignore[arg-type]
    assert [phase["phase"] for phase in report["phases"]] == ["encode", "sample", "decode"]
    assert report["notices"] == ["same", "encode", "sample", "decode"]
    assert [attempt["outcome"] for attempt in report["attempts"]] == ["done"] * 3
    assert report["plan"] == {"of": "encode"}
    assert json.loads(engine.files.report.read_text()) == report
    assert [item["stop_after"] for item in engine.seen] == ["encode", "sample", None]
    assert [item["resume"] for item in engine.seen] == [None, str(options.out), str(options.out)]


@pytest.mark.parametrize(
    ("held", "stop", "stages"),
    [
        ((), None, ("encode", "sample", "decode")),
        ((), "encode", ("encode",)),
        ((), "first", ("encode", "first")),
        ((), "sample", ("encode", "sample")),
        (("conditioning",), None, ("sample", "decode")),
        (("conditioning", "first_pass"), None, ("sample", "decode")),
        (("latents", "conditioning"), None, ("decode",)),
        (("latents",), "sample", ()),
    ],
)
def test_what_is_held_decides_which_stages_are_left(
    options: Options, held: tuple[str, ...], stop: str | None, stages: tuple[str, ...]
) -> None:
    files = RunFiles(options.out)
    for name in held:
        getattr(files, name).write_text("x")
    asked = replace(options, stop_after=stop, resume=options.out if held else None)
    assert choose_stages(asked) == stages  # type: ignore[arg-type]


@pytest.mark.parametrize("stop", ["encode", "first", "sample"])
def test_where_no_stage_is_left_one_still_looks_and_tells(options: Options, stop: str) -> None:
    engine = Engine(options.out)
    engine.files.conditioning.write_text("x")  # the fake engine wants it for sampling
    engine.files.latents.write_text("x")
    asked = replace(options, stop_after=stop, resume=options.out)
    report = run_in_workers(REQUEST, asked, engine.launch())  # type: ignore[arg-type]
    assert [item["stop_after"] for item in engine.seen] == [stop]
    assert report["files"]["latents"] == engine.files.latents.name


def test_out_of_device_memory_is_retried_with_a_lighter_plan_and_what_is_saved(
    options: Options,
) -> None:
    first = TaskFailed(DEVICE)
    first.__cause__ = MeasuredOverrun("sample_high", "vram", 6 * GIB, 8 * GIB)
    engine = Engine(options.out, {"sample": [first, TaskFailed(DEVICE)]})
    launch = engine.launch(least_needs=lambda machine: {"sample_high": {"vram": 3 * GIB}})
    report = run_in_workers(REQUEST, options, launch)  # type: ignore[arg-type]
    tries = [item for item in engine.seen if item["stop_after"] == "sample"]
    assert [item["vram_gib"] for item in tries] == [None, 6.0, 3.0], "2 GiB beyond, then lightest"
    assert all(item["ram_gib"] is None for item in tries)
    assert tries[1]["resume"] == str(options.out)
    outcomes = [(item["stage"], item["outcome"]) for item in report["attempts"]]
    assert outcomes == [
        ("encode", "done"),
        ("sample", "out_of_device_memory"),
        ("sample", "out_of_device_memory"),
        ("sample", "done"),
        ("decode", "done"),
    ]
    notices = [event.message for event in launch.host.events if event.kind == "notice"]  # type: ignore[attr-defined]
    assert len(notices) == 2 and "lighter placement" in notices[0] and "lightest" in notices[1]


def test_the_last_retry_is_lightest_on_the_axis_that_ran_out(options: Options) -> None:
    engine = Engine(options.out, {"decode": [TaskFailed(HOST), TaskFailed(HOST)]})
    needs = {"decode": {"vram": 3 * GIB, "ram": 2 * GIB}}
    launch = engine.launch(least_needs=lambda machine: needs)
    run_in_workers(REQUEST, options, launch)  # type: ignore[arg-type]
    tries = [item for item in engine.seen if item["stop_after"] is None]
    assert [item["ram_gib"] for item in tries] == [None, pytest.approx(24 * 0.9), 2.0]
    assert all(item["vram_gib"] is None for item in tries)


def test_two_retries_at_most_and_then_what_was_saved_is_named(options: Options) -> None:
    engine = Engine(options.out, {"sample": [TaskFailed(DEVICE) for _ in range(9)]})
    with pytest.raises(TaskFailed) as caught:
        run_in_workers(REQUEST, options, engine.launch())  # type: ignore[arg-type]
    assert sum(item["stop_after"] == "sample" for item in engine.seen) == 3
    assert caught.value.kind == "out_of_device_memory"
    assert set(caught.value.saved) == {"v.conditioning.safetensors", "v.first.safetensors"}
    assert engine.files.report.exists(), "the report of the finished stages stays"
    attempts = json.loads(engine.files.report.read_text())["attempts"]
    assert [item["outcome"] for item in attempts] == ["done"] + ["out_of_device_memory"] * 3


@pytest.mark.parametrize("kind", ["cuda_error", "crash", "unexplained_exit", "code_error", "hung"])
def test_unexplained_ends_are_never_retried(options: Options, kind: str) -> None:
    engine = Engine(options.out, {"decode": [TaskFailed(Ending(kind, "x"))]})
    with pytest.raises(TaskFailed) as caught:
        run_in_workers(REQUEST, options, engine.launch())  # type: ignore[arg-type]
    assert caught.value.kind == kind and "never retried" in str(caught.value)
    assert "v.latents.safetensors" in caught.value.saved
    assert sum(item["stop_after"] is None for item in engine.seen) == 1


def test_host_memory_lowers_the_host_budget(options: Options) -> None:
    engine = Engine(options.out, {"encode": [TaskFailed(Ending("killed_by_kernel", "x"))]})
    run_in_workers(REQUEST, options, engine.launch())  # type: ignore[arg-type]
    second = engine.seen[1]
    assert second["stop_after"] == "encode" and second["vram_gib"] is None
    assert second["ram_gib"] == pytest.approx(24 * 0.9)


def test_a_lighter_plan_that_does_not_fit_ends_the_ladder(options: Options) -> None:
    refusal = DoesNotFit([Shortage("vram", "sample_high", 9, 4)])
    engine = Engine(options.out, {"sample": [TaskFailed(DEVICE), refusal]})
    with pytest.raises(TaskFailed, match="no lighter placement fits"):
        run_in_workers(REQUEST, options, engine.launch())  # type: ignore[arg-type]


def test_a_refusal_at_once_stays_a_refusal(options: Options) -> None:
    refusal = DoesNotFit([Shortage("vram", "encode", 9, 4)])
    engine = Engine(options.out, {"encode": [refusal]})
    with pytest.raises(DoesNotFit):
        run_in_workers(REQUEST, options, engine.launch())  # type: ignore[arg-type]
    assert not engine.files.report.exists()


def test_cancel_and_typed_errors_pass_through(options: Options) -> None:
    engine = Engine(options.out, {"decode": [Cancelled("decode")]})
    with pytest.raises(Cancelled) as caught:
        run_in_workers(REQUEST, options, engine.launch())  # type: ignore[arg-type]
    assert caught.value.saved and caught.value.exit_code == 130
    engine = Engine(options.out, {"encode": [RequestError("bad", field="prompt")]})
    with pytest.raises(RequestError, match="bad"):
        run_in_workers(REQUEST, options, engine.launch())  # type: ignore[arg-type]


def test_the_ladder_in_full() -> None:
    tries = [Attempted(8 * GIB, 16 * GIB)]
    first = next_try(DEVICE, tries)
    assert isinstance(first, NextTry)
    assert first.attempt.vram_cap_bytes == 8 * GIB - int(0.8 * GIB)
    assert not first.changes_arithmetic
    tries.append(first.attempt)
    second = next_try(DEVICE, tries)
    assert isinstance(second, NextTry) and second.attempt.lightest
    assert not second.changes_arithmetic
    tries.append(second.attempt)
    assert next_try(DEVICE, tries) == "2 retries did not help"
    small = next_try(DEVICE, [Attempted(2 * GIB, 16 * GIB)])
    assert isinstance(small, NextTry)
    assert small.attempt.vram_cap_bytes == 2 * GIB - GIB // 2


def test_compute_partitions_come_last_and_are_announced() -> None:
    lightest = Attempted(4 * GIB, 16 * GIB, lightest=True)
    step = next_try(DEVICE, [lightest], partitions=1)
    assert isinstance(step, NextTry)
    assert step.changes_arithmetic and "last digits" in step.reason
    assert next_try(DEVICE, [lightest]) == "no lighter placement is left"
    assert next_try(HOST, [lightest], partitions=1) == "no lighter placement is left"
    used = replace(lightest, partition=1)
    assert next_try(DEVICE, [lightest, used], partitions=1) == "no lighter placement is left"


def test_events_of_a_stage_reach_the_host(options: Options) -> None:
    engine = Engine(options.out)
    launch = engine.launch()
    seen: list[Any] = []

    class Talking(FakeWorker):
        def run(self, task: str, arguments: Mapping[str, Any], **hooks: Any) -> dict[str, Any]:
            hooks["on_event"](Event("progress", "encode", step=1))
            seen.append(hooks["is_cancelled"]())
            return super().run(task, arguments)

    launch = replace(launch, start=lambda: Talking(engine))
    run_in_workers(REQUEST, options, launch)  # type: ignore[arg-type]
    assert [event.step for event in launch.host.events] == [1, 1, 1]  # type: ignore[attr-defined]
    assert seen == [False] * 3
