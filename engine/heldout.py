"""Forecasts against real runs: `lowpeak bench forecast --cases ...`.

Each case is planned for its own caps, then the planned step is run under them: VRAM by the
allocator's limit, RAM by a cgroup. Cases whose blocks all wait in host memory share one worker and
its store; the others get a process of their own, in a group of their own from its first import.
Rows are written as they come; a case that fails leaves a row that says why. The order in which
cases are named is their rank: when time runs out, the last are left.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .cgroups import MemoryGroup, PeakWatch, own_group_name
from .errors import LowpeakError, RequestError
from .heldout_cases import Case
from .heldout_table import row_line, with_ratios
from .planner.types import HardwareSnapshot
from .procmemory import read_tree_memory
from .snapshot import read_snapshot
from .worker.supervisor import Worker

TEXT_ROWS = 500
SHARED_RAM_GIB = 64.0
TASKS = ".engine.heldout_tasks"


@dataclass
class Bench:
    """What all cases are run with.

    budget_seconds: nothing starts that would end after it, and a case that began measures fewer
    steps rather than pass it. attention: the implementation that every case is run with.
    """

    checkpoint: Path
    out: Path | None
    device: str = "auto"
    budget_seconds: float = 300.0
    progress: Callable[[str], None] = lambda line: None
    snapshot: Callable[[], HardwareSnapshot] = read_snapshot
    start: Callable[[], Worker] = Worker
    attention: str | None = None
    waiting: list[Case] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._began = time.monotonic()

    @property
    def left_seconds(self) -> float:
        """What is left of the budget."""
        return self.budget_seconds - (time.monotonic() - self._began)

    def room_for(self, case: Case) -> bool:
        """Whether a case fits in what is left, beside the more wanted ones that still wait."""
        before = self.waiting[: self.waiting.index(case)]
        return case.seconds + sum(item.seconds for item in before) <= self.left_seconds

    def keep(self, row: dict[str, Any]) -> None:
        """Add a row and write all of them."""
        self.rows.append(row)
        if self.out is not None:
            self.out.write_text(json.dumps(self.rows, indent=1) + "\n")
        self.progress(row_line(row))

    def say(self, text: str) -> None:
        """A line with the time since the start."""
        self.progress(f"{time.monotonic() - self._began:6.1f} s  {text}")


class Runner:
    """A worker, its group, and the cases it runs."""

    def __init__(self, bench: Bench, label: str, ram_gib: float | None) -> None:
        self.bench = bench
        self.notes: list[str] = []
        self._resources = ExitStack()
        self.group: MemoryGroup | None = None
        try:
            self.group = self._resources.enter_context(MemoryGroup(own_group_name(label), ram_gib))
        except RequestError as refused:
            self.notes.append(str(refused))
        self.worker = self._started()

    def _started(self) -> Worker:
        worker = self._resources.enter_context(self.bench.start())
        if self.group is not None:
            self.group.add(worker.process.pid)
        return worker

    def prepare(self) -> None:
        """Let the worker import what it needs; a fresh one where it has died."""
        if not self.worker.alive:
            self.notes.append("a fresh worker after the last one died")
            self.worker = self._started()
        try:
            self.ask("prepare", 120.0)
        except LowpeakError as failed:
            self.notes.append(str(failed))

    def recover(self) -> None:
        """After a case that failed: a fresh worker where the device does not answer as before."""
        try:
            settled = self.worker.alive and self.ask("settle", 20.0)
        except LowpeakError as failed:
            settled = False
            self.notes.append(str(failed)[:200])
        if not settled:
            self.worker.close()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *failure: object) -> None:
        self._resources.close()

    def needed_bytes(self) -> int:
        """Host memory that the worker could not do without, now."""
        if self.group is not None:
            return self.group.needed_bytes()
        found = read_tree_memory(self.worker.process.pid, quick=True)
        return 0 if found is None else found.needed_bytes

    def ask(self, task: str, limit_seconds: float, **arguments: Any) -> Any:
        """Run a task; it is cancelled when the time is up."""
        until = time.monotonic() + limit_seconds
        arguments |= {"checkpoint": str(self.bench.checkpoint), "device": self.bench.device}
        return self.worker.run(
            f"{TASKS}:{task}",
            arguments,
            on_event=lambda event: self.bench.say(event.message),
            is_cancelled=lambda: time.monotonic() > until,
        )

    def run(self, case: Case, machine: Mapping[str, Any]) -> dict[str, Any]:
        """The row of a case. Raises what the worker raised."""
        with PeakWatch(self.needed_bytes) as watch:
            left = max(5.0, self.bench.left_seconds)
            row = self.ask(
                "measure",
                min(max(3 * case.seconds, 60.0), left + case.seconds / (case.repeats + 1)),
                case=asdict(case),
                machine=dict(machine),
                attention=self.bench.attention,
                left_seconds=left,
            )
        own_store = row.pop("own_store")
        row["ram_peak_bytes"] = watch.peak_bytes or None
        row["ram_capped"] = self.group is not None
        if self.group is not None:
            row["ram_peak_with_clean_bytes"] = self.group.peak_bytes
        if not own_store and row["placement"]["pinned_blocks"] != row["blocks"]:
            row["ram_peak_bytes"] = None  # the shared store holds more than this plan asks for
        return with_ratios({**row, **_about(case)})


def run_cases(bench: Bench, cases: Sequence[Case]) -> list[dict[str, Any]]:
    """All cases, shared ones first, each kind in order. Never raises for one that failed."""
    bench.waiting = list(cases)
    shared = [case for case in cases if not case.own_process]
    alone = [case for case in cases if case.own_process]
    machine = bench.snapshot()
    with ExitStack() as stack:
        # Every process imports while nothing is measured yet; none makes a context before its turn.
        runners = [stack.enter_context(Runner(bench, case.name, case.ram_gib)) for case in alone]
        first = stack.enter_context(Runner(bench, "shared", SHARED_RAM_GIB))
        with ThreadPoolExecutor(len(runners) + 1) as pool:
            list(pool.map(Runner.prepare, [first, *runners]))
        with first:
            _run_group(first, shared, machine_json(machine, _rates(first)))
        for case, runner in zip(alone, runners, strict=True):
            with runner:  # the disk may have been busy with something else before
                _run_group(runner, [case], machine_json(machine, _rates(runner)))
    return bench.rows


def _rates(runner: Runner) -> Mapping[str, float | None]:
    """Link and disk as they are now; nothing where they could not be measured."""
    try:
        rates: Mapping[str, float | None] = runner.ask("rates", 60.0)
    except LowpeakError as failed:
        runner.bench.say(f"rates could not be measured: {failed}")
        return {}
    runner.bench.say(f"rates: {rates}")
    return rates


def _run_group(runner: Runner, cases: Sequence[Case], machine: Mapping[str, Any]) -> None:
    bench = runner.bench
    for case in cases:
        began = time.monotonic()
        if not runner.worker.alive:
            runner.prepare()
        if not bench.room_for(case):
            bench.waiting.remove(case)
            bench.keep({**_about(case), "error": "not run: no time left"})
            continue
        try:
            row = runner.run(case, machine)
        except LowpeakError as failed:
            row = {**_about(case), "error": f"{type(failed).__name__}: {failed}"[:600]}
        if runner.notes:
            row["notes"] = list(runner.notes)
        row["setup_and_run_seconds"] = time.monotonic() - began
        bench.waiting.remove(case)
        bench.keep(row)
        if "error" in row and case is not cases[-1]:
            runner.recover()


def machine_json(machine: HardwareSnapshot, rates: Mapping[str, float | None]) -> dict[str, Any]:
    """A snapshot as plain JSON, with rates that were just measured."""
    return {
        **asdict(machine),
        "link_bytes_per_second": rates.get("link") or machine.link_bytes_per_second,
        "disk_bytes_per_second": rates.get("disk") or machine.disk_bytes_per_second,
    }


def machine_from(data: Mapping[str, Any]) -> HardwareSnapshot:
    """The snapshot of `machine_json`."""
    capability = data["capability"]
    return HardwareSnapshot(
        **{
            **data,
            "capability": None if capability is None else tuple(capability),
            "notes": tuple(data["notes"]),
        }
    )


def _about(case: Case) -> dict[str, Any]:
    return {
        "bench": "forecast",
        "case": case.name,
        "use": case.use,
        "floor": case.floor,
        "forced": case.place is not None,
        "width": case.width,
        "height": case.height,
        "frames": case.frames,
        "vram_gib": case.vram_gib,
        "ram_gib": case.ram_gib,
        "process": "own" if case.own_process else "shared",
    }
