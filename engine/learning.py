"""What this machine's own runs teach: margins and times for the next plan.

Between runs and planner/history.py: where the file is, what is recorded (runs on a card; a CPU has
no time forecast to learn from), and what a plan asks. LOWPEAK_HOME moves the folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .planner.calibration import Calibration
from .planner.history import History, attempt_of, machine_key, shape_key
from .planner.types import HardwareSnapshot
from .request import Request

FILE = "history.sqlite3"


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


def learned_margins(snapshot: HardwareSnapshot, calibration: Calibration) -> dict[str, int]:
    """Bytes by axis that this machine's runs ask to keep free; the calibration's without runs."""
    return open_history().margins(snapshot, calibration)


def learn(
    report: Mapping[str, Any], request: Request, snapshot: HardwareSnapshot, started_unix: float
) -> list[str]:
    """Record a run; gives notices about the history file itself."""
    history = open_history()
    attempt = attempt_of(
        report,
        machine_key(snapshot),
        shape_key(request),
        started_unix,
        software=str(report.get("versions", {}).get("lowpeak", "")),
    )
    history.record(attempt)
    return history.notices
