"""What this machine did before: attempts, forecasts and measurements, in one SQLite file.

It corrects margins (raised at once, lowered only after five clean runs in a row), forecasts time
with a range and the basis it stands on, and lets a placement that was tried before replace the
planned one only for a predicted gain of 2 % or more. Runs that were hot or shared the card are
kept and teach nothing. history_file.py holds the file.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
from pathlib import Path
from typing import Any

from .attempts import Attempt, TimeForecast, machine_key
from .calibration import Calibration
from .history_file import WAIT_SECONDS, HistoryFile
from .types import HardwareSnapshot, Placement, Plan

CLEAN_RUNS_TO_LOWER = 5
LEAST_GAIN = 0.02
MOST_RUNS = 64  # of one phase: older ones say less about the machine as it is
SAME_RANGE, THIN_RANGE, MODEL_RANGE = 0.15, 0.35, 0.5


class History:
    """The store. `notices` says what happened to an unusable file; then nothing is recorded."""

    def __init__(self, path: Path, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self.path = path
        self._file = HistoryFile(path, wait_seconds=wait_seconds)
        self._rows = self._file.rows

    @property
    def notices(self) -> list[str]:
        """What is wrong with the file, as sentences; a later access may add one."""
        return self._file.notices

    def record(self, attempt: Attempt) -> None:
        """Keep one attempt, or leave a notice why not."""

        def insert(database: sqlite3.Connection) -> None:
            cursor = database.execute(
                "INSERT INTO attempt (machine, software, shape, started, outcome, disturbed,"
                " request) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    attempt.machine,
                    attempt.software,
                    attempt.shape,
                    attempt.started,
                    attempt.outcome,
                    attempt.disturbed,
                    json.dumps(dict(attempt.request)),
                ),
            )
            database.executemany(
                "INSERT INTO phase VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        cursor.lastrowid,
                        item.name,
                        None if item.placement is None else json.dumps(item.placement.as_json()),
                        item.steps,
                        item.vram_forecast_bytes,
                        item.vram_measured_bytes,
                        item.ram_forecast_bytes,
                        item.ram_measured_bytes,
                        item.seconds_forecast,
                        item.seconds_measured,
                    )
                    for item in attempt.phases
                ],
            )

        self._file.change(insert)

    def overruns(self, machine: str, axis: str) -> list[int]:
        """measured - forecast of the worst phase of each clean, complete run, oldest first. Bytes.

        A run that ended out of memory counts too: what it had reached is a lower bound.
        """
        if axis not in ("vram", "ram"):
            raise ValueError(f"axis {axis!r} is neither vram nor ram")
        rows = self._rows(
            f"SELECT MAX(p.{axis}_measured - p.{axis}_forecast) FROM attempt a JOIN phase p "
            "ON p.attempt = a.id WHERE a.machine = ? AND a.disturbed = '' "
            "AND a.outcome IN ('done', 'out_of_memory') "
            f"AND p.{axis}_measured IS NOT NULL AND p.{axis}_forecast IS NOT NULL "
            "GROUP BY a.id ORDER BY a.started, a.id",
            (machine,),
        )
        return [int(row[0]) for row in rows]

    def margin(self, machine: str, axis: str, floor_bytes: int) -> tuple[int, str]:
        """The margin that this machine's runs ask for, and a sentence about it.

        Raised by the first overrun beyond it; lowered to the p95 of the last five runs only when
        those five all stayed within it. Never below `floor_bytes`.
        """
        overruns = self.overruns(machine, axis)
        margin = floor_bytes
        clean: list[int] = []
        for overrun in overruns:
            if overrun > margin:
                margin, clean = overrun, []
                continue
            clean.append(overrun)
            if len(clean) >= CLEAN_RUNS_TO_LOWER:
                margin = max(floor_bytes, max(clean[-CLEAN_RUNS_TO_LOWER:]))
        basis = f"{len(overruns)} run(s) on this machine" if overruns else "no run on this machine"
        return margin, f"{axis.upper()} margin {margin / 2**30:.2f} GiB, from {basis}"

    def margins(self, snapshot: HardwareSnapshot, calibration: Calibration) -> dict[str, int]:
        """What `plan_request` takes as margins on this machine: bytes by axis."""
        found = self.margins_with_basis(snapshot, calibration)
        return {axis: size for axis, (size, _) in found.items()}

    def margins_with_basis(
        self, snapshot: HardwareSnapshot, calibration: Calibration
    ) -> dict[str, tuple[int, str]]:
        """The same, each with the sentence that says what it stands on."""
        machine = machine_key(snapshot)
        return {
            axis: self.margin(machine, axis, calibration.margin_bytes(axis, snapshot.system))
            for axis in ("vram", "ram")
        }

    def forecast_seconds(
        self, machine: str, shape: str, plan: Plan, *, software: str | None = None
    ) -> TimeForecast:
        """How long a request will take: this machine's runs of the same shape, else its ratio of
        measured to forecast over other shapes, else the plan's own figure.

        Phase by phase, because stages are runs of their own and some are reused.
        """
        planned = {phase.phase: phase.seconds for phase in plan.phases}
        same = self._phase_seconds(machine, shape, software)
        known = [name for name in planned if name in same]
        if known:
            medians = {name: statistics.median(m for m, _ in same[name]) for name in known}
            forecast = sum(planned[name] for name in known)
            # How far encoding alone was from its forecast says nothing of sampling.
            sampled = any(name.startswith("sample") for name in known)
            ratio = sum(medians.values()) / forecast if forecast and sampled else 1.0
            rest = sum(value for name, value in planned.items() if name not in same)
            count = min(len(same[name]) for name in known)
            basis = f"{count} run(s) of this size on this machine"
            spread = SAME_RANGE if count >= 3 else THIN_RANGE
            return _ranged(sum(medians.values()) + ratio * rest, spread, basis, count)
        others = self._phase_seconds(machine, None, software)
        ratios = {
            name: found
            for name, rows in others.items()
            if (found := [measured / forecast for measured, forecast in rows if forecast])
        }
        if ratios:
            usual = statistics.median(value for found in ratios.values() for value in found)
            seconds = sum(
                value * (statistics.median(ratios[name]) if name in ratios else usual)
                for name, value in planned.items()
            )
            count = max(len(found) for found in ratios.values())
            times = seconds / plan.total_seconds if plan.total_seconds else 1.0
            basis = f"the plan, times {times:.2f} from {count} run(s) of other sizes here"
            spread = SAME_RANGE if count >= 6 else THIN_RANGE
            return _ranged(seconds, spread, basis, count)
        total = plan.total_seconds
        low, high = plan.seconds_range or (total * (1 - MODEL_RANGE), total * (1 + MODEL_RANGE))
        return TimeForecast(total, low, high, "the plan alone: no run on this machine yet", 0)

    def _phase_seconds(
        self, machine: str, shape: str | None, software: str | None
    ) -> dict[str, list[tuple[float, float | None]]]:
        """{phase: [(measured, forecast) seconds]} of clean, complete runs, newest first."""
        query = (
            "SELECT p.name, p.seconds_measured, p.seconds_forecast FROM attempt a JOIN phase p "
            "ON p.attempt = a.id WHERE a.machine = ? AND a.disturbed = '' AND a.outcome = 'done' "
            "AND p.seconds_measured IS NOT NULL "
        )
        values: list[object] = [machine]
        for column, value in (("shape", shape), ("software", software)):
            if value is not None:
                query += f"AND a.{column} = ? "
                values.append(value)
        found: dict[str, list[tuple[float, float | None]]] = {}
        for name, measured, forecast in self._rows(query + "ORDER BY a.started DESC", values):
            if len(rows := found.setdefault(name, [])) < MOST_RUNS:
                rows.append((measured, forecast))
        return found

    def better_placement(
        self, machine: str, shape: str, phase: str, planned: Placement, planned_seconds: float
    ) -> tuple[Placement, str] | None:
        """A placement tried here that is predicted at least 2 % faster, with the sentence, or None.

        A placement's time is the median of its clean runs. The planned one's is that of its own
        runs when it has any, else `planned_seconds` times this machine's ratio for the phase.
        """
        rows = self._rows(
            "SELECT p.placement, p.seconds_measured, p.seconds_forecast FROM attempt a JOIN phase p"
            " ON p.attempt = a.id WHERE a.machine = ? AND a.shape = ? AND p.name = ?"
            " AND a.disturbed = '' AND a.outcome = 'done' AND p.placement IS NOT NULL"
            " AND p.seconds_measured IS NOT NULL ORDER BY a.started DESC LIMIT 64",
            (machine, shape, phase),
        )
        times: dict[str, list[float]] = {}
        ratios = []
        for text, measured, forecast in rows:
            if _placement(text) is None:
                continue
            times.setdefault(text, []).append(measured)
            if forecast:
                ratios.append(measured / forecast)
        own = times.pop(json.dumps(planned.as_json()), None)
        if own:
            expected = statistics.median(own)
        else:
            expected = planned_seconds * (statistics.median(ratios) if ratios else 1.0)
        if not times:
            return None
        text, seconds = min(
            ((key, statistics.median(values)) for key, values in times.items()),
            key=lambda item: item[1],
        )
        gain = 1 - seconds / expected
        if gain < LEAST_GAIN:
            return None
        why = (
            f"{phase}: a placement tried here took {seconds:.1f} s, the planned one is expected to "
            f"take {expected:.1f} s: the tried one is used, a gain of {100 * gain:.0f} %"
        )
        place = _placement(text)
        return None if place is None else (place, why)

    def attempts(self, machine: str | None = None, *, limit: int = 50) -> list[dict[str, Any]]:
        """The latest attempts as JSON objects, newest first."""
        where, values = ("WHERE machine = ? ", [machine]) if machine else ("", [])
        rows = self._rows(
            "SELECT id, machine, shape, started, outcome, disturbed FROM attempt "
            f"{where}ORDER BY started DESC, id DESC LIMIT ?",
            [*values, limit],
        )
        names = ("id", "machine", "shape", "started", "outcome", "disturbed")
        return [dict(zip(names, row, strict=True)) for row in rows]


def _placement(text: str) -> Placement | None:
    """A kept placement; None for one that another version of the program wrote otherwise."""
    try:
        return Placement(**json.loads(text))
    except (TypeError, ValueError):
        return None


def _ranged(seconds: float, spread: float, basis: str, samples: int) -> TimeForecast:
    return TimeForecast(seconds, seconds * (1 - spread), seconds * (1 + spread), basis, samples)
