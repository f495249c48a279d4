"""What a node's stage teaches this machine, as a run of the command line does: margins and times.

The history is a help: whatever is wrong with its file is a notice of its own (history_file.py), and
the stage's result stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..engine.errors import Cancelled, LowpeakError
from ..engine.events import Event, Host
from ..engine.planner.types import HardwareSnapshot
from ..engine.request import Request


@contextmanager
def teaching(
    report: Any, request: Request, machine: HardwareSnapshot, started_unix: float, host: Host
) -> Iterator[None]:
    """Record the body, a stage that fills `report` (a RunReport), also when it fails.

    machine: of before the stage. What the history has to say becomes notices of report and host.
    """
    outcome = "failed"
    try:
        yield
        outcome = "done"
    except Cancelled:
        outcome = "cancelled"
        raise
    except LowpeakError as failure:
        outcome = type(failure).__name__
        raise
    finally:
        told = {**report.as_json(), "attempts": [{"outcome": outcome}]}
        for notice in teach(told, request, machine, started_unix):
            if notice not in report.notices:  # the plan may have said it
                report.notices.append(notice)
                host.emit(Event("notice", "", notice))


def teach(
    report: Mapping[str, Any], request: Request, machine: HardwareSnapshot, started_unix: float
) -> list[str]:
    """Record one finished stage; gives notices about the history. A stage without any forecast
    that was measured teaches nothing and leaves no row."""
    from ..engine.learning import learn

    if not any(item.get("forecast") for item in report.get("phases", ())):
        return []
    return learn(report, request, machine, started_unix)
