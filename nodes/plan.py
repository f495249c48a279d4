"""Lowpeak Plan: the forecast of a request, before anything is loaded."""

from __future__ import annotations

from typing import Any

from ..engine.geometry import plan_geometry
from ..engine.units import format_gib, format_seconds
from . import tables
from .asking import make_request, size_problem
from .handles import ModelHandle, PlanHandle


class Plan:
    """Computes, stores nothing, loads nothing. A request that does not fit is said, not raised."""

    table = tables.PLAN_NODE
    pack: Any

    @classmethod
    def execute(
        cls, model: ModelHandle, width: int, height: int, seconds: float, quality: str = "light",
        passes: str = tables.PASSES[0], base_steps: int = 0, refine_steps: int = 0,
    ) -> tuple[Any, str]:  # fmt: skip
        """The plan's handle and its text."""
        geometry, notices = plan_geometry(width, height, seconds=seconds)
        request = make_request(
            model, geometry, quality=quality, passes=passes,
            base_steps=base_steps, refine_steps=refine_steps,
        )  # fmt: skip
        document = cls.pack.engine.forecast(request, model, {})
        said = document.get("notices", ())
        return PlanHandle(request, document), "\n".join([*notices, *said, *plan_lines(document)])

    @classmethod
    def validate_inputs(
        cls, width: int | None = None, height: int | None = None, seconds: float | None = None
    ) -> bool | str:
        """Before queueing: the size can run."""
        return size_problem(width, height, seconds) or True

    @classmethod
    def fingerprint_inputs(cls, **constants: Any) -> Any:
        """Free memory changes, so a plan is made anew each time; it takes milliseconds."""
        return float("nan")


def plan_lines(document: Any) -> list[str]:
    """A plan document as text, one line a phase."""
    if not document.get("fits"):
        short = [
            f"{item['axis'].upper()}: phase {item['phase']} needs {format_gib(item['need_bytes'])},"
            f" {format_gib(item['have_bytes'])} is usable"
            for item in document.get("short", ())
        ]
        instead = [
            f"Fits instead: {item['width']}x{item['height']}, {item['frames']} frames"
            for item in document.get("fits_instead", ())
        ]
        return ["Does not fit.", *short, *instead]
    total = document["total_seconds"]
    lines = ["Fits." if total is None else f"Fits. About {format_seconds(total)}."]
    for phase in document["phases"]:
        parts = [
            f"{axis.upper()} {format_gib(phase[f'{axis}_peak_bytes'])}"
            for axis in ("vram", "ram")
            if phase[f"{axis}_peak_bytes"] is not None
        ]
        if phase["seconds"] is not None:
            parts += [format_seconds(phase["seconds"]), f"limited by {phase['limited_by']}"]
        lines.append(f"{phase['phase']}: {', '.join(parts)}")
    return [*lines, *document.get("reasons", ())]
