"""Faults on whole runs: each ends in its class, names what was saved, and the next run works."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from holding_worker import HoldingWorker

from lowpeak.engine import session
from lowpeak.engine.errors import CheckpointError, LowpeakError, SaveFailed
from lowpeak.engine.events import QuietHost
from lowpeak.engine.files import RunFiles, load_latents
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.model import streamed
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.least import least_needs
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.types import HardwareSnapshot, ModelFacts
from lowpeak.engine.request import Request
from lowpeak.engine.run import RunOptions, run_request
from lowpeak.engine.toy import write_toy
from lowpeak.engine.units import GIB
from lowpeak.engine.worker import tasks
from lowpeak.engine.worker.child import WorkerContext
from lowpeak.engine.worker.exits import Ending, classify_error
from lowpeak.engine.worker.stages import Launch, run_in_workers
from lowpeak.engine.worker.supervisor import TaskFailed, Worker

REQUEST = Request(
    Geometry(320, 320, 22), prompt="a fox", seed=1, base_steps=2, refine_steps=1, two_pass=True
)

SMALL = replace(REQUEST, geometry=Geometry(256, 256, 22))  # its first pass is as large: no upscaler


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    return folder


def options(checkpoint: Path, out: Path, **more: Any) -> RunOptions:
    return RunOptions(checkpoint=checkpoint, out=out, device="cpu", **more)


class InlineWorker:
    """A worker without a process: what a task raises becomes what a supervisor would raise."""

    def __enter__(self) -> InlineWorker:
        return self

    def __exit__(self, *failure: object) -> None:
        """Nothing to end."""

    def run(self, task: str, arguments: Mapping[str, Any], **hooks: Any) -> Any:
        try:
            return tasks.generate(arguments, WorkerContext(lambda message: None))
        except Exception as error:
            kind = classify_error(error)
            if kind == "refused":
                raise
            failed = TaskFailed(Ending(kind, str(error)))
            failed.__cause__ = error if isinstance(error, LowpeakError) else None
            raise failed from error


def inline() -> Launch:
    return Launch(QuietHost(), start=InlineWorker)  # type: ignore[arg-type]


@pytest.fixture
def out_of_memory_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Makes a phase run out of device memory the first time it has done its work."""

    def inject(*names: str) -> list[str]:
        left, honest = list(names), session.Session.phase

        @contextlib.contextmanager
        def phase(self: session.Session, name: str) -> Iterator[Any]:
            with honest(self, name) as measured:
                yield measured
                if name in left:
                    left.remove(name)
                    raise torch.OutOfMemoryError("CUDA out of memory (injected)")

        monkeypatch.setattr(session.Session, "phase", phase)
        return left

    return inject


def test_a_run_survives_one_out_of_memory_in_every_phase(
    checkpoint: Path, tmp_path: Path, out_of_memory_in: Callable[..., list[str]]
) -> None:
    left = out_of_memory_in("encode", "sample_low", "upscale")
    launch, out = inline(), tmp_path / "v.mp4"
    report = run_in_workers(REQUEST, options(checkpoint, out, stop_after="sample"), launch)
    assert left == []
    ends = [(item["stage"], item["outcome"]) for item in report["attempts"]]
    memory = "out_of_device_memory"
    assert ends == [
        ("encode", memory), ("encode", "done"),
        ("sample", memory), ("sample", memory), ("sample", "done"),
    ]  # fmt: skip
    assert RunFiles(out).latents.exists()
    notices = [event.message for event in launch.host.events if event.kind == "notice"]  # type: ignore[attr-defined]
    assert sum("lighter placement" in text or "lightest" in text for text in notices) == 3


def test_a_failure_inside_a_pass_keeps_the_last_whole_step(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, calls = streamed.BoundPass.velocity, []

    def velocity(self: Any, *args: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise CheckpointError("short read", file=Path("block-7.safetensors"))
        return honest(self, *args)

    monkeypatch.setattr(streamed.BoundPass, "velocity", velocity)
    out = tmp_path / "v.mp4"
    with pytest.raises(CheckpointError, match="block-7"):
        run_request(SMALL, options(checkpoint, out, stop_after="sample"), QuietHost())
    latents, about = load_latents(RunFiles(out).unfinished)
    assert about["steps"] == 1 and torch.isfinite(latents.video).all()
    report = json.loads(RunFiles(out).report.read_text())
    assert report["files"]["unfinished"] == RunFiles(out).unfinished.name
    monkeypatch.setattr(streamed.BoundPass, "velocity", honest)
    run_request(SMALL, options(checkpoint, out, stop_after="sample"), QuietHost())
    assert not RunFiles(out).unfinished.exists()


def test_a_decode_out_of_memory_is_tried_again_from_the_latents(
    checkpoint: Path, tmp_path: Path, out_of_memory_in: Callable[..., list[str]]
) -> None:
    out = tmp_path / "v.mp4"
    run_in_workers(SMALL, options(checkpoint, out, stop_after="sample"), inline())
    out_of_memory_in("decode")
    report = run_in_workers(SMALL, options(checkpoint, out, resume=out), inline())
    assert [item["outcome"] for item in report["attempts"]] == ["out_of_device_memory", "done"]
    assert [phase["phase"] for phase in report["phases"]] == ["decode"]
    assert out.stat().st_size > 1000


def test_a_second_pass_out_of_memory_keeps_the_first(
    checkpoint: Path, tmp_path: Path, out_of_memory_in: Callable[..., list[str]]
) -> None:
    out = tmp_path / "v.mp4"
    out_of_memory_in(*["sample_high"] * 3)
    with pytest.raises(TaskFailed) as caught:
        run_in_workers(REQUEST, options(checkpoint, out), inline())
    assert caught.value.kind == "out_of_device_memory" and caught.value.exit_code == 5
    assert "v.first.safetensors" in caught.value.saved
    # The next run goes on from the first pass: sample_low is not run again.
    seen: list[str] = []
    honest = session.Session.phase

    def watched(self: session.Session, name: str) -> Any:
        seen.append(name)
        return honest(self, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session.Session, "phase", watched)
        again = options(checkpoint, out, resume=out, stop_after="sample", prompt_given=True)
        run_in_workers(REQUEST, again, inline())
    assert seen == ["upscale", "sample_high"]


def test_a_killed_worker_is_named_and_the_next_run_works(checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.mp4"
    run_in_workers(SMALL, options(checkpoint, out, stop_after="encode"), inline())
    killed: list[Worker] = []

    class Doomed(HoldingWorker):
        def __init__(self) -> None:
            super().__init__((None, "sample_low", None))

        def run(self, task: str, arguments: Mapping[str, Any], **hooks: Any) -> Any:
            honest = hooks["on_event"]

            def on_event(event: Any) -> None:
                honest(event)
                if event.phase == "sample_low" and not killed:
                    killed.append(self)
                    os.kill(self.process.pid, signal.SIGKILL)

            return super().run(task, arguments, **{**hooks, "on_event": on_event})

    launch = Launch(QuietHost(), start=Doomed)
    again = options(checkpoint, out, resume=out, stop_after="sample")
    with pytest.raises(TaskFailed) as caught:
        run_in_workers(SMALL, again, launch)
    assert caught.value.kind == "killed" and "never retried" in str(caught.value)
    assert caught.value.saved == ("v.conditioning.safetensors",)
    assert killed and not killed[0].alive
    run_in_workers(SMALL, again, inline())
    assert RunFiles(out).latents.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.decode()[:80]}; needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk_ends_the_run_in_its_class_and_room_lets_it_go_on(
    checkpoint: Path, tmp_path: Path, small_disk: Path
) -> None:
    out = small_disk / "v.mp4"
    request = replace(REQUEST, geometry=Geometry(512, 512, 22))
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(150 << 10))
    with pytest.raises(SaveFailed) as caught:
        run_in_workers(request, options(checkpoint, out), inline())
    assert "No space" in str(caught.value)
    assert not list(small_disk.glob("*.part*")), "no half-written file stays"
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    left = out if RunFiles(out).present() else None
    run_in_workers(request, options(checkpoint, out, resume=left, stop_after="sample"), inline())
    assert RunFiles(out).latents.exists()


def test_the_lightest_plan_fits_what_the_last_retry_is_capped_to() -> None:
    request = Request(Geometry(1344, 768, 243))
    machine = HardwareSnapshot("linux", "", None, 24 * GIB, 24 * GIB, 64 * GIB, 64 * GIB)
    rows = choose_calibration(machine)
    needs = least_needs(request, machine, ModelFacts(), rows)
    assert set(needs) == {"encode", "sample_low", "sample_high", "decode"}
    vram = max(need["vram"] for need in needs.values())
    capped = replace(machine, vram_total_bytes=vram, vram_free_bytes=vram)
    plan = plan_request(request, capped, ModelFacts(), rows)
    high = plan.phase("sample_high")
    free = plan_request(request, machine, ModelFacts(), rows).phase("sample_high")
    assert high is not None and free is not None
    assert high.vram_peak_bytes < free.vram_peak_bytes
    assert high.placement is not None and high.placement.resident_blocks == 0
