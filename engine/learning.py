"""What this machine's own runs teach: margins, times and constants for the next plan.

Between runs and planner/history.py: where the file is, what is recorded (runs on a card; a CPU has
no time forecast to learn from), and what a plan asks. What `optimize` measured lies beside it in
calibration.toml and replaces the shipped rows on this machine. LOWPEAK_HOME moves the folder.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .gpu import Gpu, read_gpu
from .planner.attempts import (
    Attempt,
    PhaseRecord,
    attempt_of,
    is_disturbed,
    machine_key,
    shape_key,
)
from .planner.calibration import (
    SCHEMA,
    Calibration,
    Row,
    choose_calibration,
    read_rows,
    with_snapshot_rates,
)
from .planner.compare import replace_tables
from .planner.history import History
from .planner.types import HardwareSnapshot, Placement
from .request import Request

FILE = "history.sqlite3"
CALIBRATION = "calibration.toml"


def home() -> Path:
    """The folder for what outlives a run: LOWPEAK_HOME, else the user's cache folder."""
    named = os.environ.get("LOWPEAK_HOME")
    if named:
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "lowpeak"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lowpeak"


def open_history() -> History:
    """This user's history; made when there is none."""
    return History(home() / FILE)


def learn(
    report: Mapping[str, Any],
    request: Request,
    snapshot: HardwareSnapshot,
    started_unix: float,
    *,
    card_now: Callable[[], Gpu | str] = read_gpu,
) -> list[str]:
    """Record a run; gives notices about the history file itself.

    snapshot: of before the run. A run on a card that others used, or that was hot at both ends, is
    kept and teaches nothing.
    """
    history = open_history()
    attempt = attempt_of(
        report,
        machine_key(snapshot),
        shape_key(request),
        started_unix,
        disturbed=disturbance(snapshot, card_now()),
        software=str(report.get("versions", {}).get("lowpeak", "")),
    )
    history.record(attempt)
    return history.notices


def disturbance(before: HardwareSnapshot, after: Gpu | str) -> str:
    """Why a run must not teach, from the card before and after it; empty for a clean one."""
    hot = [before.gpu_hot] + ([after.thermal] if isinstance(after, Gpu) else [])
    share = after.clock_share if isinstance(after, Gpu) else None
    return is_disturbed(
        thermal_share=sum(hot) / len(hot),
        clock_share=0.0 if share is None else share,
        busy_percent=before.gpu_busy_percent or 0,
    )


def machine_name(snapshot: HardwareSnapshot) -> str:
    """The card, or what is known of the machine."""
    return snapshot.card or snapshot.device_name or snapshot.system


def machine_calibration(snapshot: HardwareSnapshot, checkpoint: Path | None = None) -> Calibration:
    """The rows for a machine, with those that `optimize` measured on it in front, and with the
    rates of link and disk that are known here.

    checkpoint: where the weights lie, for the rate of that disk; without it the disk that was
    measured last counts. A file that cannot be read, or of another machine, is passed over with a
    note.
    """
    from .rates import with_known_rates

    here = with_known_rates(snapshot, checkpoint)
    chosen = with_snapshot_rates(choose_calibration(snapshot), here)
    path = home() / CALIBRATION
    if not path.is_file():
        return chosen
    try:
        meta, own = read_rows(path)
    except (OSError, ValueError) as damaged:
        note = f"{path.name} is passed over: {damaged}"
        return replace(chosen, notes=(*chosen.notes, note))
    if meta.get("machine") != machine_key(snapshot):
        return chosen
    note = f"{len(own)} rows measured on this machine by optimize, {meta.get('date', 'undated')}"
    merged = replace(
        chosen,
        rows={**chosen.rows, **own},
        extrapolated=False,
        notes=(*chosen.notes, note),
    )
    return with_snapshot_rates(merged, here)


def keep_calibration(
    snapshot: HardwareSnapshot, rows: Sequence[Row], weight_format: str, date: str
) -> Path:
    """Write rows as this machine's own, atomically. Rows that are not replaced stay."""
    path = home() / CALIBRATION
    kept: dict[str, Row] = {}
    if path.is_file():
        try:
            meta, kept = read_rows(path)
            if meta.get("machine") != machine_key(snapshot):
                kept = {}
        except (OSError, ValueError):
            kept = {}
    kept |= {row.name: row for row in rows}
    head = (
        "# Measured on this machine by `lowpeak optimize`; remove the file to forget it.\n"
        f"[meta]\nschema = {SCHEMA}\nname = {json.dumps(machine_name(snapshot))}\n"
        f"machine = {json.dumps(machine_key(snapshot))}\ndate = {json.dumps(date)}\n"
        f"weight_format = {json.dumps(weight_format)}\n"
    )
    text = replace_tables(
        head,
        kept.values(),
        device=machine_name(snapshot),
        command="lowpeak optimize",
        date=date,
        software="",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text)
    part.replace(path)
    return path


def record_trials(
    request: Request,
    snapshot: HardwareSnapshot,
    rows: Sequence[Mapping[str, Any]],
    started_unix: float,
) -> list[str]:
    """Each finished trial of `optimize` as a run of its phase; notices about the history file."""
    history = open_history()
    for index, row in enumerate(rows):
        if "error" in row:
            continue
        forecast = row["forecast"]
        phase = PhaseRecord(
            row["phase"],
            len(row["step_seconds"]),
            forecast["vram_peak_bytes"],
            row.get("vram_peak_bytes"),
            forecast["ram_peak_bytes"],
            row.get("ram_peak_bytes"),
            forecast["seconds_per_step"] * len(row["step_seconds"]),
            row["seconds"],
            Placement(**row["placement"]),
        )
        history.record(
            Attempt(
                machine_key(snapshot),
                shape_key(request),
                started_unix + index,
                "done",
                (phase,),
                software=str(row.get("versions", {}).get("lowpeak", "")),
                request={"purpose": "optimize"},
            )
        )
    return history.notices
