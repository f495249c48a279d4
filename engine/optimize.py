"""`lowpeak optimize`: the best few placements of a request, run for real, and what they teach.

Link and disk are measured first, and kernels that never were, so that the plans stand on this
machine's own rates. Then every sampling pass of the request is run whole, once for each of its best
placements, on random inputs and the same noise, each in a process of its own. Nothing is kept
where latents of a pass differ in a bit. Else the placements go into the history, where the next
plan finds the fastest, and the constants into calibration.toml beside it. Where one placement of a
pass ran to its end there is nothing to compare: its figures are kept, and no claim is made.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cgroups import PeakWatch
from .errors import LowpeakError, RequestError
from .learning import (
    home,
    keep_calibration,
    machine_calibration,
    machine_name,
    open_history,
    record_trials,
)
from .planner.calibration import Calibration
from .planner.explain import place_in_words
from .planner.fitting import measured_rows
from .planner.passes import sampling_passes
from .planner.search import EVERY_PLACEMENT, PassSearch, make_budget
from .planner.types import HardwareSnapshot, ModelFacts, Placement
from .planner.workload import workload
from .procmemory import read_tree_memory
from .request import Request
from .snapshot import read_snapshot
from .units import format_gib, format_seconds
from .worker.protocol import request_to_json
from .worker.supervisor import Worker

TASKS = ".engine.optimize_tasks"
SLOWEST_TRIED = 1.15  # of the best forecast; slower ones would only cost time


@dataclass(frozen=True)
class Trial:
    """A placement of a pass, and its forecast. Bytes and seconds."""

    phase: str
    placement: Placement
    forecast: Mapping[str, Any]


@dataclass
class Optimizer:
    """What `run` works with; everything that touches the machine can be replaced."""

    checkpoint: Path
    device: str
    vram_gib: float | None = None
    ram_gib: float | None = None
    most: int = 3
    progress: Callable[[str], None] = lambda line: None
    start: Callable[[], Worker] = Worker
    snapshot: Callable[[], HardwareSnapshot] = read_snapshot
    rates: Callable[[], dict[str, Any]] = dict
    rows: list[dict[str, Any]] = field(default_factory=list)

    def run(self, request: Request, facts: ModelFacts) -> dict[str, Any]:
        """The document of `optimize --json`. Raises DoesNotFit, RequestError."""
        from .rates import with_known_rates

        self.progress(f"rates: {self.rates()}")
        machine = with_known_rates(self.snapshot(), self.checkpoint)
        before = machine_calibration(machine, self.checkpoint)
        trials = choose_trials(request, machine, facts, before, most=self.most)
        began = time.time()
        self.rows = [self.tried(request, trial) for trial in trials]
        differing = differing_phases(self.rows)
        ran = {trial.phase: finished(self.rows, trial.phase) for trial in trials}
        unfinished = [phase for phase, count in ran.items() if not count]
        alone = [phase for phase, count in ran.items() if count == 1]
        same: bool | None = not differing
        if same and (alone or unfinished):
            same = None  # a pass had nothing to compare
        document: dict[str, Any] = {
            "optimize": request.as_json(),
            "machine": machine.as_json(),
            "trials": self.rows,
            "bit_identical": same,
            "stored": False,
        }
        if differing or unfinished:
            why = [f"{name}: latents differ between placements" for name in sorted(differing)]
            why += [f"{name}: no placement ran to its end" for name in sorted(unfinished)]
            return {**document, "message": "; ".join(why) + ": nothing is kept"}
        found = measured_rows(self.rows, facts, before)
        keep_calibration(machine, found, facts.weight_format, datetime.date.today().isoformat())
        notices = record_trials(request, machine, self.rows, began)
        alone_said = [f"{name}: one placement ran, nothing to compare" for name in alone]
        slowest_first = sorted(filter(good, self.rows), key=_seconds, reverse=True)
        best = {row["phase"]: row for row in slowest_first}
        return {
            **document,
            "stored": True,
            "calibration": [vars(row) for row in found],
            "files": {"calibration": str(home()), "history": str(open_history().path)},
            "best": {phase: row["placement"] for phase, row in best.items()},
            "notices": notices,
            "message": "; ".join([f"kept for {machine_name(machine)}", *alone_said, *notices]),
        }

    def tried(self, request: Request, trial: Trial) -> dict[str, Any]:
        """One whole pass under a placement; a row of measurements, or of what went wrong."""
        words = place_in_words(trial.placement)
        self.progress(f"{trial.phase}: {words}")
        head = {
            "bench": "step",
            "phase": trial.phase,
            "placement": trial.placement.as_json(),
            "forecast": dict(trial.forecast),
            "ram_gib": self.ram_gib,
            "vram_gib": self.vram_gib,
        }
        arguments = {
            "checkpoint": str(self.checkpoint),
            "device": self.device,
            "request": request_to_json(request),
            "phase": trial.phase,
            "placement": trial.placement.as_json(),
            "vram_gib": self.vram_gib,
            "context_bytes": trial.forecast["context_bytes"],
            "forecast_bytes": trial.forecast["vram_peak_bytes"],
        }
        try:
            with self.start() as worker, PeakWatch(lambda: _needed(worker.process.pid)) as watch:
                row = worker.run(
                    f"{TASKS}:run_pass",
                    arguments,
                    on_event=lambda event: self.progress(f"  {event.message}"),
                )
        except LowpeakError as failed:
            self.progress(f"  {failed}")
            return {**head, "error": f"{type(failed).__name__}: {failed}"[:600]}
        row = {**head, **row, "ram_peak_bytes": watch.peak_bytes or None}
        self.progress(
            f"  {format_seconds(row['seconds_per_step'])} a step, forecast "
            f"{format_seconds(trial.forecast['seconds_per_step'])}; latents {row['sha256'][:12]}"
        )
        return row


def choose_trials(
    request: Request, machine: HardwareSnapshot, facts: ModelFacts, calibration: Calibration, *,
    most: int,
) -> list[Trial]:  # fmt: skip
    """The planned placement of each pass and its best rivals of another kind.

    Raises RequestError when a pass fits in no way.
    """
    budget = make_budget(machine, calibration)
    trials = []
    for item in sampling_passes(request):
        search = PassSearch(
            workload(request, item.geometry, facts), item.steps, calibration, machine.system,
            EVERY_PLACEMENT,
        )  # fmt: skip
        planned = search.choose(budget)
        if planned is None:
            short = "; ".join(map(str, search.shortages(item.phase, budget)))
            raise RequestError(f"nothing to try: {short}", field="vram_gib")
        rivals = [
            choice
            for choice in search.best_of_each_kind(budget)
            if choice.candidate.placement != planned.candidate.placement
            and choice.step.total <= SLOWEST_TRIED * planned.step.total
        ]
        for choice in [planned, *rivals][: max(1, most)]:
            place = choice.candidate.placement
            trials.append(
                Trial(
                    item.phase,
                    place,
                    {
                        "seconds_per_step": choice.step.total,
                        "vram_peak_bytes": choice.candidate.vram_bytes,
                        "ram_peak_bytes": choice.candidate.ram_bytes,
                        "context_bytes": int(calibration["memory.context"])
                        + choice.memory.graph_bytes(
                            place.resident_blocks, place.transfer_slots, place.half_slots
                        ),
                    },
                )
            )
    return trials


def good(row: Mapping[str, Any]) -> bool:
    """Whether a trial ran to its end."""
    return "error" not in row


def finished(rows: Sequence[Mapping[str, Any]], phase: str) -> int:
    """How many trials of a pass ran to their end."""
    return sum(good(row) for row in rows if row["phase"] == phase)


def differing_phases(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Passes whose finished trials did not all give the same latents."""
    found: dict[str, set[str]] = {}
    for row in filter(good, rows):
        found.setdefault(row["phase"], set()).add(row["sha256"])
    return {phase for phase, sums in found.items() if len(sums) > 1}


def optimize_text(document: Mapping[str, Any]) -> str:
    """The document as lines for a terminal."""
    lines = []
    for row in document["trials"]:
        words = place_in_words(Placement(**row["placement"]))
        if not good(row):
            lines.append(f"{row['phase']:<12} {words}: {row['error'][:200]}")
            continue
        peak = row.get("vram_peak_bytes")
        lines.append(
            f"{row['phase']:<12} {words}: {format_seconds(row['seconds_per_step'])} a step "
            f"(forecast {format_seconds(row['forecast']['seconds_per_step'])})"
            + (f", VRAM {format_gib(peak)}" if peak else "")
        )
    for phase, place in document.get("best", {}).items():
        lines.append(f"{phase:<12} fastest: {place_in_words(Placement(**place))}")
    return "\n".join([*lines, document["message"]])


def _needed(pid: int) -> int:
    found = read_tree_memory(pid, quick=True)
    return 0 if found is None else found.needed_bytes


def _seconds(row: Mapping[str, Any]) -> float:
    return float(row["seconds_per_step"])


def optimize_here(
    request: Request,
    checkpoint: Path,
    device: str,
    *,
    vram_gib: float | None = None,
    ram_gib: float | None = None,
    most: int = 3,
    kernels: bool | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Optimise `request` on this machine. Raises RequestError without a CUDA device.

    kernels: judge and time them first; None: only where they never were.
    """
    from .device import choose_device
    from .models import open_models
    from .snapshot import cap_snapshot

    if choose_device(device).type != "cuda":
        raise RequestError("optimize measures a CUDA device and found none", field="device")

    def machine() -> HardwareSnapshot:
        return cap_snapshot(read_snapshot(), vram_gib=vram_gib, ram_gib=ram_gib)

    def rates() -> dict[str, Any]:
        with Worker() as worker:
            found = dict(worker.run(f"{TASKS}:rates", {"checkpoint": str(checkpoint)}))
            if kernels is not False:
                found["kernels"] = worker.run(
                    f"{TASKS}:kernels",
                    {"device": device, "again": kernels is True},
                    on_event=lambda event: progress(f"  {event.message}"),
                )
        return found

    work = Optimizer(
        checkpoint, device, vram_gib, ram_gib, most, progress, snapshot=machine,
        rates=rates,
    )  # fmt: skip
    return work.run(request, open_models(checkpoint, "cpu").facts())
