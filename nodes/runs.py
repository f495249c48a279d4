"""The run book: what recent prompts forecast, did and measured, for the panel and Lowpeak Report.

A run is one ComfyUI prompt; its nodes add to it. Kept in memory while it goes on, written as one
JSON file when a node ends, the oldest removed. Holds no prompt text and no path. Thread-safe: the
prompt's thread writes, the web server's reads.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..engine.events import Event

MAX_RUNS = 50
MAX_NOTICES = 50
MAX_CURVE_POINTS = 600
OTHERS = ("vram_other_bytes", "vram_evictable_bytes", "ram_other_bytes", "ram_evictable_bytes")
RUN_ID = re.compile(r"[0-9a-zA-Z-]{1,64}")
FILE_NAME = re.compile(r"(?P<id>[0-9a-zA-Z-]{1,64})\.run\.json")
log = logging.getLogger(__name__)


@dataclass
class Run:
    """One run as the panel sees it. Bytes and seconds; None means unknown."""

    run_id: str
    started_unix_seconds: float
    status: str = "running"  # running | done | failed | cancelled
    request: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, dict[str, Any]] = field(default_factory=dict)
    curve: list[list[Any]] = field(default_factory=list)  # [seconds, phase, VRAM, RAM, *OTHERS]
    notices: list[str] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    sequence: int = 0

    def as_json(self) -> dict[str, Any]:
        """The run object of GET /lowpeak/runs/{id}."""
        return dict(vars(self))

    def summary(self) -> dict[str, Any]:
        """One row of GET /lowpeak/runs."""
        kept = ("run_id", "started_unix_seconds", "status", "request")
        forecast = [p.get("forecast", {}).get("seconds") for p in self.phases.values()]
        measured = [p.get("measured", {}).get("seconds") for p in self.phases.values()]
        return {
            **{name: getattr(self, name) for name in kept},
            "forecast_seconds": _sum(forecast),
            "measured_seconds": _sum(measured),
            "forecast_vram_peak_bytes": self._peak("forecast", "vram_peak_bytes"),
            "measured_vram_peak_bytes": self._peak("measured", "vram_peak_bytes"),
            "forecast_ram_peak_bytes": self._peak("forecast", "ram_peak_bytes"),
            "measured_ram_peak_bytes": self._peak("measured", "ram_peak_bytes"),
        }

    def _peak(self, side: str, name: str) -> int | None:
        values = [phase.get(side, {}).get(name) for phase in self.phases.values()]
        return max((value for value in values if value is not None), default=None)


class RunBook:
    """Recent runs. `folder` None keeps them in memory only; `clock` gives seconds since 1970."""

    def __init__(
        self,
        folder: Callable[[], Path | None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._clock = folder, clock
        self._lock = threading.RLock()
        self._runs: dict[str, Run] | None = None
        self.active: str | None = None

    def begin(self, run_id: str | None) -> str:
        """Open the run of this prompt, or go on with it. None makes a new id."""
        name = run_id if run_id and RUN_ID.fullmatch(run_id) else uuid.uuid4().hex
        with self._lock:
            runs = self._loaded()
            if name not in runs:
                runs[name] = Run(name, self._clock())
            runs[name].status, self.active = "running", name
            for old in list(runs)[:-MAX_RUNS]:
                self._drop(old)
        return name

    def take(self, run_id: str, event: Event, others: Mapping[str, int] | None = None) -> int:
        """Add one event; gives its sequence number within the run.

        others: memory that is not ours, by the names of OTHERS; what is missing is unknown.
        """
        with self._lock:
            run = self._loaded()[run_id]
            run.sequence += 1
            phase = run.phases.setdefault(event.phase, {}) if event.phase else {}
            data = event.as_json()
            if event.kind in ("forecast", "measured"):
                phase[event.kind] = data
            elif event.kind == "progress":
                phase["progress"] = data
                elapsed = round(self._clock() - run.started_unix_seconds, 2)
                rest = [(others or {}).get(name) for name in OTHERS]
                run.curve.append([elapsed, event.phase, event.vram_bytes, event.ram_bytes, *rest])
                if len(run.curve) > MAX_CURVE_POINTS:
                    run.curve = run.curve[::2]
            elif event.message and len(run.notices) < MAX_NOTICES:
                run.notices.append(event.message)
            return run.sequence

    def describe(self, run_id: str, *, request: dict[str, Any], plan: dict[str, Any]) -> None:
        """Keep the request and the plan of a run, and say what the plan's notices say."""
        with self._lock:
            run = self._loaded()[run_id]
            run.request, run.plan = request, plan
            run.notices += [text for text in plan.get("notices", ()) if text not in run.notices]

    def end(
        self, run_id: str, status: str, *, report: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """A node of the run ended; write the run to its file."""
        with self._lock:
            run = self._loaded()[run_id]
            run.status, run.error = status, error
            run.report = _merged(run.report, report or {})
            if self.active == run_id:
                self.active = None
            self._write(run)

    def get(self, run_id: str) -> dict[str, Any] | None:
        """The run of that id. The id is looked up among known ids and never becomes a path."""
        with self._lock:
            run = self._loaded().get(run_id)
            return None if run is None else json.loads(json.dumps(run.as_json(), default=str))

    def summaries(self) -> list[dict[str, Any]]:
        """Rows for the history, newest first."""
        with self._lock:
            return [run.summary() for run in reversed(list(self._loaded().values()))]

    def _loaded(self) -> dict[str, Run]:
        if self._runs is None:
            self._runs = {run.run_id: run for run in _read_folder(self._folder())}
        return self._runs

    def _drop(self, run_id: str) -> None:
        del self._loaded()[run_id]
        folder = self._folder()
        if folder is not None:
            (folder / f"{run_id}.run.json").unlink(missing_ok=True)

    def _write(self, run: Run) -> None:
        folder = self._folder()
        if folder is None:
            return
        target = folder / f"{run.run_id}.run.json"
        part = target.with_suffix(".part")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(run.as_json(), default=str), encoding="utf-8")
            os.replace(part, target)
        except OSError as problem:  # a full or read-only disk must not fail the video
            log.warning("Lowpeak: the run book could not be written: %s", problem)


def _read_folder(folder: Path | None) -> list[Run]:
    if folder is None or not folder.is_dir():
        return []
    found: list[Run] = []
    for path in folder.iterdir():
        match = FILE_NAME.fullmatch(path.name)
        if not match:
            continue
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            run = Run(**data)
        except (OSError, ValueError, TypeError) as problem:
            log.warning("Lowpeak: ignoring the damaged run file %s: %s", path.name, problem)
            continue
        if run.run_id == match["id"]:
            run.status = "failed" if run.status == "running" else run.status
            found.append(run)
    return sorted(found, key=lambda run: run.started_unix_seconds)[-MAX_RUNS:]


def _merged(known: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Reports of two nodes of a run: lists go on, everything else is the later node's."""
    joined = {**known, **more}
    for name in ("phases", "notices"):
        if name in known and name in more:
            joined[name] = [*known[name], *(x for x in more[name] if x not in known[name])]
    if "attempts" in known and "attempts" in more:  # two that went alike are two
        joined["attempts"] = [*known["attempts"], *more["attempts"]]
    return joined


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
