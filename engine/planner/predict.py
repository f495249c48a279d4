"""A plan with what this machine has learned: margins, tried placements, a time with its basis.

`plan` asks about any machine; `predict` about this one. The history may keep more memory free, may
put a placement that was tried before in the planned one's stead when it is predicted at least 2 %
faster and still fits, and says how long the request will take and what that stands on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..request import Request
from .attempts import TimeForecast, machine_key, shape_key
from .calibration import Calibration
from .history import History
from .plan import EVERYTHING, plan_request
from .search import SearchSpace
from .types import HardwareSnapshot, ModelFacts, Placement, Plan


@dataclass(frozen=True)
class Prediction:
    """A plan and the time that this machine's history expects for it."""

    plan: Plan
    time: TimeForecast


def predict(
    request: Request,
    snapshot: HardwareSnapshot,
    facts: ModelFacts,
    calibration: Calibration,
    history: History,
    *,
    space: SearchSpace = EVERYTHING,
    software: str | None = None,
) -> Prediction:
    """Plan a request on this machine with its history. Raises what `plan_request` raises.

    software: only runs of the same software teach time, when given.
    """
    machine, shape = machine_key(snapshot), shape_key(request)
    margins = history.margins(snapshot, calibration)
    plan = plan_request(request, snapshot, facts, calibration, space=space, margins=margins)
    preferred: dict[str, tuple[Placement, str]] = {}
    for phase in plan.phases:
        if phase.placement is None or not phase.phase.startswith("sample"):
            continue
        better = history.better_placement(
            machine, shape, phase.phase, phase.placement, phase.seconds
        )
        if better is not None:
            preferred[phase.phase] = better
    if preferred:
        plan = plan_request(
            request,
            snapshot,
            facts,
            calibration,
            space=space,
            margins=margins,
            preferred=preferred,
        )
    time = history.forecast_seconds(machine, shape, plan, software=software)
    learned = [
        history.margin(machine, axis, calibration.margin_bytes(axis, snapshot.system))[1]
        for axis in ("vram", "ram")
    ]
    reasons = (*plan.reasons, *learned, f"time from {time.basis}")
    plan = replace(plan, reasons=reasons, seconds_range=(time.low_seconds, time.high_seconds))
    return Prediction(plan, time)
