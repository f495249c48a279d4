"""A request in worker processes, one a heavy stage: encode, sample, decode.

The text encoder's process has ended before the transformer's begins, so its memory is back. What
each stage leaves lies in the files of the run, and a retry or a later start goes on from there:
conditioning, first-pass latents, sampled latents. After an out-of-memory a stage is tried again in
a fresh process with a lighter plan (ladder.py), and the report tells every attempt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..errors import Cancelled, DoesNotFit, MeasuredOverrun
from ..events import Event, Host
from ..files import RunFiles, write_json
from ..request import Request
from ..snapshot import cap_snapshot, read_snapshot
from ..units import GIB
from .attempts import tell_next, told
from .exits import Ending
from .ladder import Attempted, NextTry, next_try
from .protocol import request_to_json
from .supervisor import TaskFailed, Worker
from .tasks import GENERATE, options_to_json

if TYPE_CHECKING:
    from ..planner.types import HardwareSnapshot
    from ..run import RunOptions

STAGES = ("encode", "sample", "decode")
_PHASES = {
    "encode": ("encode",),
    "first": ("sample_low",),
    "sample": ("sample_low", "upscale", "sample_high"),
    "decode": ("decode",),
}
# Plans a request on a machine whose memory is capped: raises DoesNotFit with the least needs.
LeastNeeds = Callable[["HardwareSnapshot"], Mapping[str, Mapping[str, int]]]


@dataclass
class Story:
    """What all stages and attempts of a run left, merged into one report."""

    report: dict[str, Any] = field(default_factory=dict)
    attempts: list[dict[str, Any]] = field(default_factory=list)

    def add(self, stage_report: Mapping[str, Any]) -> None:
        """Put a finished stage's report behind the earlier ones."""
        phases = [*self.report.get("phases", ()), *stage_report["phases"]]
        notices = list(dict.fromkeys([*self.report.get("notices", ()), *stage_report["notices"]]))
        lora = stage_report["lora"] or self.report.get("lora", [])
        first = self.report or stage_report
        merged = {
            "phases": phases,
            "notices": notices,
            "lora": lora,
            "plan": first["plan"],
            "snapshot": first["snapshot"],
            "started_unix": first.get("started_unix", 0.0),
            "spans": [*self.report.get("spans", ()), *stage_report.get("spans", ())],
        }
        self.report = {**stage_report, **merged}


def choose_stages(options: RunOptions) -> tuple[str, ...]:
    """The stages that are left, given what `resume` holds and where to stop."""
    held: Mapping[str, str] = {}
    if options.resume is not None:
        held = RunFiles.of(options.resume).present()
    sample = "first" if options.stop_after == "first" else "sample"
    if "latents" in held:
        left = ["decode"]
    elif "conditioning" in held:
        left = [sample, "decode"]
    else:
        left = ["encode", sample, "decode"]
    if options.stop_after is not None:
        left = left[: left.index(options.stop_after) + 1] if options.stop_after in left else []
    return tuple(left)


@dataclass(frozen=True)
class Launch:
    """What stages are started with.

    start: makes a worker. snapshot: reads the machine. least_needs: {phase: {axis: bytes}} of the
    lightest placements with their margins, for the second retry.
    """

    host: Host
    notices: tuple[str, ...] = ()
    start: Callable[[], Worker] = Worker
    snapshot: Callable[[], HardwareSnapshot] = read_snapshot
    least_needs: LeastNeeds | None = None


def run_in_workers(request: Request, options: RunOptions, launch: Launch) -> dict[str, Any]:
    """`run.run_request` in worker processes: the same files, the same report, as JSON.

    Raises the stage's own LowpeakError, Cancelled, or WorkerDied with what was saved.
    """
    files, story = RunFiles(options.out), Story()
    resume = options.resume
    # With none left, one looks whether what is held is of these settings, and makes the report.
    stages = choose_stages(options) or (options.stop_after or "decode",)
    try:
        for stage in stages:
            stop = None if stage == "decode" else stage
            asked = replace(options, stop_after=stop, resume=resume)
            story.add(_with_retries(request, asked, stage, story.attempts, launch))
            resume = options.out
    finally:
        if story.report:
            story.report |= {"attempts": story.attempts, "files": files.present()}
            write_json(files.report, story.report)
    return story.report


def _with_retries(
    request: Request,
    options: RunOptions,
    stage: str,
    attempts: list[dict[str, Any]],
    launch: Launch,
) -> dict[str, Any]:
    """One stage, at most three times, each time in a fresh process."""
    machine = cap_snapshot(launch.snapshot(), vram_gib=options.vram_gib, ram_gib=options.ram_gib)
    tries = [Attempted(machine.vram_free_bytes, machine.ram_available_bytes)]
    files = RunFiles(options.out)
    while True:
        try:
            with told(attempts, stage):
                return _run_once(request, options, launch)
        except TaskFailed as failed:
            tries[-1] = replace(tries[-1], overrun_bytes=_overrun_bytes(failed))
            step = next_try(failed.ending, tries)
            if isinstance(step, str):
                ending = Ending(failed.kind, f"{stage}: {failed.detail} ({step})")
                raise TaskFailed(ending, saved=files.kept(), trace=failed.trace) from failed
            notice = f"{failed.kind}: {step.reason}"
        except DoesNotFit as refusal:
            if len(tries) == 1:
                raise
            ending = Ending("out_of_device_memory", f"{stage}: no lighter placement fits")
            raise TaskFailed(ending, saved=files.kept()) from refusal
        except Cancelled as cancelled:
            raise Cancelled(cancelled.where, saved=files.kept()) from cancelled
        launch.host.emit(Event("notice", _PHASES[stage][0], notice))
        tell_next(attempts, step)
        tries.append(step.attempt)
        options = _lighter(options, stage, step, machine, launch.least_needs)
        if stage != "encode" and files.kept():
            options = replace(options, resume=options.out)


def _run_once(request: Request, options: RunOptions, launch: Launch) -> dict[str, Any]:
    arguments = {
        "request": request_to_json(request),
        "options": options_to_json(options),
        "notices": list(launch.notices),
    }
    host, started_unix = launch.host, time.time()
    with launch.start() as worker:
        result = worker.run(GENERATE, arguments, on_event=host.emit, is_cancelled=host.is_cancelled)
        finished_unix = time.time()
    assert isinstance(result, dict)
    began_unix = result.get("started_unix") or finished_unix
    result["spans"] = [
        _span("worker starts, imports", started_unix, began_unix),
        *result.get("spans", ()),
        _span("worker ends", finished_unix, time.time()),
    ]
    return result


def _span(name: str, start: float, stop: float) -> dict[str, Any]:
    return {"name": name, "phase": "", "started_unix": start, "seconds": max(0.0, stop - start)}


def _overrun_bytes(failed: TaskFailed) -> int:
    """What was measured beyond the forecast, when both are known."""
    cause = failed.__cause__
    if not isinstance(cause, MeasuredOverrun) or not cause.forecast_bytes:
        return 0
    return max(0, cause.measured_bytes - cause.forecast_bytes)


def _lighter(
    options: RunOptions,
    stage: str,
    step: NextTry,
    machine: HardwareSnapshot,
    least_needs: LeastNeeds | None,
) -> RunOptions:
    """The options of the next attempt: caps that make the planner choose a lighter placement."""
    vram, ram = step.attempt.vram_cap_bytes, step.attempt.ram_cap_bytes
    if step.attempt.lightest and least_needs is not None:
        needs = least_needs(machine)
        phases = [needs[name] for name in _PHASES[stage] if name in needs]
        if ram is None:
            vram = max((need["vram"] for need in phases), default=vram)
        else:  # it was host memory that ran out
            ram = max((need["ram"] for need in phases), default=ram)
    return replace(
        options,
        vram_gib=options.vram_gib if vram is None else max(0.25, vram / GIB),
        ram_gib=options.ram_gib if ram is None else max(0.25, ram / GIB),
    )
