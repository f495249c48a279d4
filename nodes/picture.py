"""The memory picture as pixels: one row a phase, VRAM above RAM, measured drawn on forecast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.events import PHASES
from ..engine.units import format_gib, format_seconds

WIDTH_PX, ROW_PX, TOP_PX, LEFT_PX, RIGHT_PX = 900, 64, 56, 150, 190
PAPER, INK, DIM, TRACK = (250, 250, 251), (29, 30, 34), (99, 101, 110), (225, 226, 230)
COLOURS = {"vram": (47, 95, 208), "ram": (63, 125, 31)}
TITLES = {"encode": "Encode", "sample_low": "First pass", "upscale": "Upscale",
          "sample_high": "Full size", "decode": "Decode"}  # fmt: skip


def draw(phases: Mapping[str, Mapping[str, Any]]) -> Any:
    """Pixels [H, W, 3] uint8 of {phase: {"forecast": {...}, "measured": {...}}}; peaks in bytes."""
    import numpy
    from PIL import Image, ImageDraw, ImageFont

    rows = [(name, phases[name]) for name in PHASES if name in phases]
    picture = Image.new("RGB", (WIDTH_PX, TOP_PX + ROW_PX * max(1, len(rows)) + 24), PAPER)
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(15)
    pen.text((20, 18), "Peaks by phase: pale forecast, solid measured", INK, font)
    if not rows:
        pen.text((20, TOP_PX + 10), "Nothing has been measured or forecast yet.", DIM, font)
    for number, (name, sides) in enumerate(rows):
        top = TOP_PX + number * ROW_PX
        pen.text((20, top + 12), TITLES[name], INK, font)
        for axis, offset in (("vram", 4), ("ram", 28)):
            _bar(pen, font, top + offset, axis, sides, _largest(rows, axis))
    return numpy.asarray(picture)


def _bar(pen: Any, font: Any, top: int, axis: str, sides: Mapping[str, Any], largest: int) -> None:
    full = WIDTH_PX - LEFT_PX - RIGHT_PX
    forecast = sides.get("forecast", {}).get(f"{axis}_peak_bytes")
    measured = sides.get("measured", {}).get(f"{axis}_peak_bytes")
    pen.rectangle((LEFT_PX, top, LEFT_PX + full, top + 18), TRACK)
    pale = tuple((2 * 255 + channel) // 3 for channel in COLOURS[axis])
    for value, colour, inset in ((forecast, pale, 0), (measured, COLOURS[axis], 5)):
        if value is not None:
            right = LEFT_PX + round(full * value / largest)
            pen.rectangle((LEFT_PX, top + inset, right, top + 18 - inset), colour)
    known = measured if measured is not None else forecast
    text = f"{axis.upper()} " + ("unknown" if known is None else format_gib(known))
    seconds = sides.get("measured", sides.get("forecast", {})).get("seconds")
    if axis == "vram" and seconds is not None:
        text += f", {format_seconds(seconds)}"
    pen.text((WIDTH_PX - RIGHT_PX + 10, top), text, DIM, font)


def _largest(rows: list[tuple[str, Mapping[str, Any]]], axis: str) -> int:
    values = [
        side.get(f"{axis}_peak_bytes") or 0
        for _, sides in rows
        for side in (sides.get("forecast", {}), sides.get("measured", {}))
    ]
    return max([1, *values])
