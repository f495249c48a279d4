"""The timeline of a run: phases, steps and named work on one axis, and what every gap was spent on.

A gap is a stretch longer than GAP_SECONDS that belongs to no step and to no phase without steps. It
is explained by the named work that fell into it. Times are the host's clock, in a run of several
processes too. It reads a report and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from .memory_svg import STYLE
from .units import format_gib, format_seconds

GAP_SECONDS = 0.3
WIDTH_PX, LEFT_PX, RIGHT_PX, LANE_PX = 980, 96, 24, 30
LINE_PX, CHARACTER_PX = 20, 7


@dataclass(frozen=True)
class Stretch:
    """Seconds from the start of the run."""

    name: str
    start: float
    stop: float

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.stop - self.start


def timeline(report: Mapping[str, Any]) -> dict[str, Any]:
    """Phases, steps, named work and gaps of a V.request.json object, seconds from its start."""
    origin = _origin(report)
    phases, steps = _phases(report, origin), _steps(report, origin)
    spans = [
        Stretch(item["name"], item["started_unix"] - origin,
                item["started_unix"] - origin + item["seconds"])
        for item in report.get("spans", ())
    ]  # fmt: skip
    stepped = {item["phase"] for item in report["phases"] if item["measured"]["step_seconds"]}
    busy = [*steps, *(phase for phase in phases if phase.name not in stepped)]
    end = max((item.stop for item in [*phases, *spans]), default=0.0)
    gaps = [
        {
            "start": gap.start,
            "seconds": gap.seconds,
            "spent_on": _spent(gap, spans),
        }
        for gap in _gaps(busy, end)
    ]
    return {
        "total_seconds": end,
        "phases": [vars(item) for item in phases],
        "steps": [vars(item) for item in steps],
        "spans": [vars(item) for item in spans],
        "gaps": gaps,
        "sampling_seconds": _sampling(phases),
        "peaks": [_peaks(item) for item in report["phases"]],
    }


def timeline_svg(report: Mapping[str, Any]) -> str:
    """SVG text: a lane of phases, one of steps, one of named work, then gaps and peaks in words."""
    found = timeline(report)
    total = max(found["total_seconds"], 1e-9)
    scale = (WIDTH_PX - LEFT_PX - RIGHT_PX) / total
    size, device = report.get("geometry", {}), report.get("snapshot", {}).get("device_name") or ""
    title = (
        f"{size.get('width', '?')} x {size.get('height', '?')}, {size.get('frames', '?')} frames, "
        f"{report.get('request', {}).get('quality', '')}: {format_seconds(total)}"
    )
    body = [
        f'<text class="head" x="16" y="28">{escape(title)}</text>',
        f'<text class="soft" x="16" y="48">{escape(str(device))}</text>',
    ]
    top = 64
    for lane, style in (("phases", "real"), ("steps", "plan"), ("spans", "over")):
        label = "named work" if lane == "spans" else lane
        body.append(f'<text class="soft" x="16" y="{top + 16}">{label}</text>')
        body += _lane([Stretch(**item) for item in found[lane]], top, scale, style)
        top += LANE_PX
    body += _axis(total, top, scale)
    top += 44
    for line in _words(found):
        body.append(f'<text class="soft" x="16" y="{top}">{escape(line)}</text>')
        top += LINE_PX
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH_PX}" height="{top}" '
            f'viewBox="0 0 {WIDTH_PX} {top}" role="img">',
            f"<title>Timeline of a run: {escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{WIDTH_PX}" height="{top}"/>',
            *body,
            "</svg>\n",
        ]
    )


def _origin(report: Mapping[str, Any]) -> float:
    starts = [item["measured"]["started_unix"] for item in report["phases"]]
    starts += [item["started_unix"] for item in report.get("spans", ())]
    return min(starts, default=0.0)


def _phases(report: Mapping[str, Any], origin: float) -> list[Stretch]:
    return [
        Stretch(item["phase"], start, start + item["measured"]["seconds"])
        for item in report["phases"]
        for start in [item["measured"]["started_unix"] - origin]
    ]


def _steps(report: Mapping[str, Any], origin: float) -> list[Stretch]:
    found = []
    for item in report["phases"]:
        measured = item["measured"]
        start = measured.get("steps_started_unix", 0.0) - origin
        for number, seconds in enumerate(measured["step_seconds"], start=1):
            found.append(Stretch(f"{item['phase']} {number}", start, start + seconds))
            start += seconds
    return found


def _gaps(busy: Sequence[Stretch], end: float) -> list[Stretch]:
    found, cursor = [], 0.0
    for item in sorted(busy, key=lambda item: item.start):
        if item.start - cursor > GAP_SECONDS:
            found.append(Stretch("gap", cursor, item.start))
        cursor = max(cursor, item.stop)
    if end - cursor > GAP_SECONDS:
        found.append(Stretch("gap", cursor, end))
    return found


def _spent(gap: Stretch, spans: Sequence[Stretch]) -> dict[str, float]:
    """Seconds of the gap by named work, and what no name covers."""
    found: dict[str, float] = {}
    for span in spans:
        shared = min(gap.stop, span.stop) - max(gap.start, span.start)
        if shared > 0:
            found[span.name] = found.get(span.name, 0.0) + shared
    rest = gap.seconds - sum(found.values())
    return {**found, **({"unnamed": rest} if rest > 0.01 else {})}


def _sampling(phases: Sequence[Stretch]) -> float | None:
    """From the start of the first sampling phase to the end of the last; the upscale is between."""
    own = [item for item in phases if item.name in ("sample_low", "upscale", "sample_high")]
    return max(p.stop for p in own) - min(p.start for p in own) if own else None


def _peaks(item: Mapping[str, Any]) -> dict[str, Any]:
    forecast, measured = item.get("forecast") or {}, item["measured"]
    keys = ("vram_peak_bytes", "ram_peak_bytes", "seconds")
    return {
        "phase": item["phase"],
        "forecast": {key: forecast.get(key) for key in keys},
        "measured": {key: measured.get(key) for key in keys},
    }


def _lane(items: Sequence[Stretch], top: int, scale: float, style: str) -> list[str]:
    lines = []
    for item in items:
        x, width = LEFT_PX + item.start * scale, max(0.5, item.seconds * scale - 0.5)
        words = f"{item.name}, {format_seconds(item.seconds)}"
        lines.append(
            f'<rect class="{style}" x="{x:.1f}" y="{top}" width="{width:.1f}" height="20">'
            f"<title>{escape(words)}</title></rect>"
        )
        if width > CHARACTER_PX * len(item.name) and style == "real":
            lines.append(
                f'<text x="{x + 4:.1f}" y="{top + 15}" style="fill: var(--paper)">'
                f"{escape(item.name)}</text>"
            )
    return lines


def _axis(total: float, top: int, scale: float) -> list[str]:
    step = next((s for s in (0.1, 0.5, 1, 2, 5, 10, 20, 60, 120) if total / s <= 16), 600)
    lines = [
        f'<line class="rule" x1="{LEFT_PX}" x2="{WIDTH_PX - RIGHT_PX}" y1="{top}" y2="{top}"/>'
    ]
    for index in range(int(total / step) + 1):
        x = LEFT_PX + index * step * scale
        lines.append(f'<text class="soft" x="{x:.1f}" y="{top + 16}">{index * step:g} s</text>')
    return lines


def _words(found: Mapping[str, Any]) -> list[str]:
    lines = []
    if found["sampling_seconds"] is not None:
        lines.append(f"sampling, upscale included: {format_seconds(found['sampling_seconds'])}")
    for gap in found["gaps"]:
        spent = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in gap["spent_on"].items())
        lines.append(f"gap at {gap['start']:.1f} s, {gap['seconds']:.2f} s: {spent}")
    for item in found["peaks"]:
        parts = []
        for key, axis in (("vram_peak_bytes", "VRAM"), ("ram_peak_bytes", "RAM")):
            values = item["forecast"][key], item["measured"][key]
            if any(values):
                words = [format_gib(value) if value else "unknown" for value in values]
                parts.append(f"{axis} planned {words[0]}, measured {words[1]}")
        lines.append(f"{item['phase']}: {'; '.join(parts)}")
    return lines
