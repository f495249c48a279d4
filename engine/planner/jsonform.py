"""The documents of `plan --json`: one for a plan, one for a refusal. Names are a contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import DoesNotFit
from ..request import Request
from .calibration import Calibration
from .passes import sampling_passes
from .types import HardwareSnapshot, Plan

Margins = Mapping[str, Mapping[str, Any]]


def _heads(request: Request, snapshot: HardwareSnapshot) -> dict[str, Any]:
    asked = request.as_json()
    asked["passes"] = [
        {"phase": item.phase, "steps": item.steps, **_canvas(item.geometry.as_json())}
        for item in sampling_passes(request)
    ]
    return {
        "request": asked,
        "geometry": request.geometry.as_json(),
        "snapshot": snapshot.as_json(),
    }


def _canvas(geometry: dict[str, Any]) -> dict[str, Any]:
    return {key: geometry[key] for key in ("width", "height", "frames")}


def plan_document(
    request: Request,
    snapshot: HardwareSnapshot,
    plan: Plan,
    *,
    what_if: list[str] | None = None,
    margins: Margins | None = None,
) -> dict[str, Any]:
    """The document of a plan: phases with terms, total, reasons, what stays free beside it."""
    return {
        **_heads(request, snapshot),
        "fits": True,
        "phases": [phase.as_json() for phase in plan.phases],
        "total_seconds": plan.total_seconds,
        "seconds_range": None if plan.seconds_range is None else list(plan.seconds_range),
        "reasons": list(plan.reasons),
        "changes_arithmetic": plan.changes_arithmetic,
        "notes": list(plan.notes),
        "what_if": what_if or [],
        "margins": dict(margins or {}),
    }


def refusal_document(
    request: Request,
    snapshot: HardwareSnapshot,
    refusal: DoesNotFit,
    *,
    what_if: list[str] | None = None,
    margins: Margins | None = None,
) -> dict[str, Any]:
    """The document of a refusal: every shortage, and requests that would fit."""
    return {
        **_heads(request, snapshot),
        "fits": False,
        "message": str(refusal),
        "short": [
            {
                "axis": item.axis,
                "phase": item.phase,
                "need_bytes": item.need_bytes,
                "have_bytes": item.have_bytes,
                "shortfall_bytes": item.shortfall_bytes,
            }
            for item in refusal.short
        ],
        "fits_instead": list(refusal.fits_instead),
        "what_if": what_if or [],
        "margins": dict(margins or {}),
    }


def margins_document(
    snapshot: HardwareSnapshot,
    calibration: Calibration,
    learned: Mapping[str, tuple[int, str]] | None = None,
) -> dict[str, dict[str, Any]]:
    """{axis: {bytes, basis, row}}: what stays free beside a forecast, and why.

    learned: by axis, the bytes and the sentence of this machine's history, where it was asked.
    """
    found = {}
    for axis in ("vram", "ram"):
        row = calibration.margin_row(axis, snapshot.system)
        size, basis = calibration.margin_bytes(axis, snapshot.system), calibration.source(row)
        if calibration.extrapolated and axis == "vram":
            basis = f"{basis}, times {calibration['margin.extrapolated_factor']:g}: not measured"
        if learned is not None:
            size, basis = learned[axis]
        found[axis] = {"bytes": size, "basis": basis, "row": row}
    return found
