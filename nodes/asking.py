"""From widgets to a Request: the part that several nodes share. Pure."""

from __future__ import annotations

import math
from typing import Any

from ..engine.errors import RequestError
from ..engine.geometry import CANVAS_STEP_PX, Geometry, plan_geometry
from ..engine.request import Request
from ..engine.units import gib_to_bytes
from .handles import ModelHandle
from .tables import PASSES

TWO_PASS = {PASSES[0]: None, PASSES[1]: False, PASSES[2]: True}


def size_problem(width: Any, height: Any, seconds: Any) -> str | None:
    """A sentence for a size that cannot run, before anything is queued. None: fine, or unknown.

    Inputs that are connected are None here and are checked when they are known.
    """
    for name, side in (("width", width), ("height", height)):
        if side is not None and side % CANVAS_STEP_PX:
            near = max(CANVAS_STEP_PX, round(side / CANVAS_STEP_PX) * CANVAS_STEP_PX)
            return f"{name} {side} px is not a multiple of {CANVAS_STEP_PX}; {near} px is"
    try:
        plan_geometry(width or height or 512, height or width or 512, seconds=seconds or 5.0)
    except RequestError as problem:
        return str(problem)
    return None


def budget_problem(**budgets_gib: float | None) -> str | None:
    """A sentence for a memory budget that is no amount of memory."""
    for name, value in budgets_gib.items():
        if value is not None and (not math.isfinite(value) or value < 0):
            return f"{name} {value} is not an amount of memory"
    return None


def budget_bytes(value_gib: float) -> int | None:
    """Bytes of a budget widget; its 0 means all that is free."""
    return gib_to_bytes(value_gib) or None


def make_request(
    model: ModelHandle | None,
    geometry: Geometry,
    *,
    quality: str = "light",
    passes: str = PASSES[0],
    base_steps: int = 0,
    refine_steps: int = 0,
    **more: Any,
) -> Request:
    """The Request of a node's widgets; step counts of 0 mean as quality says."""
    return Request(
        geometry=geometry,
        quality=quality,
        two_pass=TWO_PASS[passes],
        base_steps=base_steps or None,
        refine_steps=refine_steps or None,
        loras=model.lora_choices if model else (),
        **more,
    )
