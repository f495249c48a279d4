"""The memory picture of a run: what was forecast and what was measured, phase by phase.

A small SVG without a library: one panel an axis (device memory, host memory), one pair of bars a
phase, both on one scale, so that a wrong forecast shows as two bars of different length. Colours
follow the reader's light or dark preference. It draws a report and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from .units import format_gib, format_seconds

AXES = (("vram_peak_bytes", "Device memory (VRAM)"), ("ram_peak_bytes", "Host memory (RAM)"))
WIDTH_PX, LABEL_PX, VALUE_PX = 760, 120, 210
BAR_PX, ROW_PX, PANEL_GAP_PX, HEAD_PX = 14, 48, 40, 64
BARS_PX = WIDTH_PX - LABEL_PX - VALUE_PX

STYLE = """
  svg { --ink: #1f2328; --soft: #59636e; --paper: #ffffff; --rule: #d1d9e0;
        --plan: #9ec5fe; --real: #0a58ca; --over: #c2410c; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #9198a1; --paper: #0d1117; --rule: #3d444d;
          --plan: #27456f; --real: #6ea8fe; --over: #fb923c; } }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); }
  .head { font-size: 17px; font-weight: 600; } .soft { fill: var(--soft); font-size: 12px; }
  .paper { fill: var(--paper); } .rule { stroke: var(--rule); }
  .plan { fill: var(--plan); } .real { fill: var(--real); } .over { fill: var(--over); }
"""


@dataclass(frozen=True)
class Pair:
    """One phase on one axis. Bytes; None means that the figure does not exist."""

    phase: str
    forecast_bytes: int | None
    measured_bytes: int | None
    note: str

    @property
    def over(self) -> bool:
        """More was used than was planned."""
        both = self.forecast_bytes is not None and self.measured_bytes is not None
        return both and (self.measured_bytes or 0) > (self.forecast_bytes or 0)


def memory_svg(report: Mapping[str, Any]) -> str:
    """SVG text of a V.request.json object. Axes without a single figure are left out."""
    panels = [(title, _pairs(report.get("phases", ()), key)) for key, title in AXES]
    panels = [(title, pairs) for title, pairs in panels if pairs]
    height = HEAD_PX + 28 + sum(PANEL_GAP_PX + ROW_PX * len(pairs) for _, pairs in panels)
    size = report.get("geometry", {})
    name = f"{size.get('width', '?')} x {size.get('height', '?')}, {size.get('frames', '?')} frames"
    device = str(report.get("snapshot", {}).get("device_name") or "")
    body = [
        f'<text class="head" x="16" y="28">Memory: forecast and measured, {escape(name)}</text>',
        f'<text class="soft" x="16" y="48">{escape(device)}</text>',
    ]
    top = HEAD_PX
    for title, pairs in panels:
        body += _panel(title, pairs, top)
        top += PANEL_GAP_PX + ROW_PX * len(pairs)
    body += _legend(top + 8)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH_PX}" height="{height}" '
            f'viewBox="0 0 {WIDTH_PX} {height}" role="img">',
            f"<title>Memory of a {escape(name)} run</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{WIDTH_PX}" height="{height}"/>',
            *body,
            "</svg>\n",
        ]
    )


def _pairs(phases: Sequence[Mapping[str, Any]], key: str) -> list[Pair]:
    pairs = []
    for item in phases:
        forecast, measured = item.get("forecast") or {}, item.get("measured") or {}
        seconds = measured.get("seconds")
        note = "" if seconds is None else format_seconds(seconds)
        pairs.append(Pair(str(item["phase"]), forecast.get(key), measured.get(key), note))
    # Zero on both sides is an axis that the run did not have, such as VRAM on a CPU.
    known = any(pair.forecast_bytes or pair.measured_bytes for pair in pairs)
    return pairs if known else []


def _panel(title: str, pairs: Sequence[Pair], top: int) -> list[str]:
    most = max(max(pair.forecast_bytes or 0, pair.measured_bytes or 0) for pair in pairs)
    lines = [
        f'<text x="16" y="{top + 18}" font-weight="600">{escape(title)}</text>',
        f'<line class="rule" x1="{LABEL_PX}" x2="{LABEL_PX}" y1="{top + 28}" '
        f'y2="{top + 28 + ROW_PX * len(pairs)}"/>',
    ]
    for row, pair in enumerate(pairs):
        y = top + 32 + ROW_PX * row
        lines.append(f'<text x="16" y="{y + 14}">{escape(pair.phase)}</text>')
        lines.append(f'<text class="soft" x="16" y="{y + 30}">{escape(pair.note)}</text>')
        figures = (
            (pair.forecast_bytes, "plan", "forecast"),
            (pair.measured_bytes, "over" if pair.over else "real", "measured"),
        )
        for offset, (value, style, word) in enumerate(figures):
            lines += _bar(value, most, y + offset * (BAR_PX + 3), style, word)
    return lines


def _bar(value: int | None, most: int, y: int, style: str, word: str) -> list[str]:
    length = 0 if value is None or not most else max(1, round(BARS_PX * value / most))
    text = f"{word} unknown" if value is None else f"{word} {format_gib(value)}"
    return [
        f'<rect class="{style}" x="{LABEL_PX}" y="{y}" width="{length}" height="{BAR_PX}" rx="2"/>',
        f'<text class="soft" x="{LABEL_PX + length + 8}" y="{y + 11}">{escape(text)}</text>',
    ]


def _legend(y: int) -> list[str]:
    words = (("plan", "forecast"), ("real", "measured"), ("over", "measured above the forecast"))
    lines, x = [], 16
    for style, word in words:
        lines.append(f'<rect class="{style}" x="{x}" y="{y}" width="12" height="12" rx="2"/>')
        lines.append(f'<text class="soft" x="{x + 18}" y="{y + 11}">{word}</text>')
        x += 40 + 7 * len(word)
    return lines
