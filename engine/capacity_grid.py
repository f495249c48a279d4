"""The capacity grid: one forecast for every pair of VRAM and RAM, and its picture.

Side by side with a published grid when there is one: the same cells, one colour scale, seconds in
each cell, so that a reader sees where memory binds and where it buys nothing. An SVG without a
library. Forecasts only: it loads no weight and needs no GPU.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from .errors import DoesNotFit
from .geometry import Geometry
from .planner.calibration import Calibration, choose_calibration
from .planner.explain import place_in_words
from .planner.plan import plan_request
from .planner.types import HardwareSnapshot, ModelFacts
from .request import Request
from .units import GIB

Cells = Mapping[tuple[int, int], float | None]  # (VRAM GiB, RAM GiB) -> seconds a step
CELL_WIDTH_PX, CELL_HEIGHT_PX, EDGE_PX, HEAD_PX, GAP_PX = 30, 16, 46, 66, 40
# Fast to slow, perceptually even from dark blue to yellow; text turns dark on the light half.
SCALE = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))

STYLE = """
  svg { --ink: #1f2328; --soft: #59636e; --paper: #ffffff; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #9198a1; --paper: #0d1117; } }
  text { font: 11px system-ui, sans-serif; fill: var(--ink); }
  .head { font-size: 15px; font-weight: 600; } .soft { fill: var(--soft); }
  .cell { font-size: 9px; text-anchor: middle; } .paper { fill: var(--paper); }
"""


def grid_rows(geometry: Geometry, card: str) -> list[dict[str, Any]]:
    """Forecast cells for 8 to 32 GiB on both axes, a single pass of 8."""
    calibration = choose_calibration(HardwareSnapshot("linux", "", None, 0, 0, 0, 0, card=card))
    request = Request(geometry, base_steps=8, two_pass=False)
    return capacity_rows(request, ModelFacts(), calibration)


def grid_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The grid as a table: a line for each amount of RAM, seconds a step, '-' for refused."""
    columns = sorted({row["vram_gib"] for row in rows})
    cells = {(row["vram_gib"], row["ram_gib"]): row.get("seconds_per_step") for row in rows}
    lines = ["RAM\\VRAM " + "".join(f"{column:>6}" for column in columns)]
    for ram in sorted({row["ram_gib"] for row in rows}):
        values = [cells[column, ram] for column in columns]
        texts = ["     -" if value is None else f"{value:6.2f}" for value in values]
        lines.append(f"{ram:>8} " + "".join(texts))
    return "\n".join(lines)


def capacity_rows(
    request: Request,
    facts: ModelFacts,
    calibration: Calibration,
    *,
    vram_gib: Sequence[int] = range(8, 33),
    ram_gib: Sequence[int] = range(8, 33),
    system: str = "linux",
) -> list[dict[str, Any]]:
    """One JSON-ready row a cell: steady seconds a step, peaks, placement, or that it is refused."""
    rows = []
    for ram in ram_gib:
        for vram in vram_gib:
            device, host = vram * GIB, ram * GIB
            snapshot = HardwareSnapshot(system, "", None, device, device, host, host)
            row: dict[str, Any] = {"vram_gib": vram, "ram_gib": ram}
            try:
                phase = plan_request(request, snapshot, facts, calibration).phase("sample_high")
            except DoesNotFit as refusal:
                rows.append({**row, "fits": False, "why": str(refusal)})
                continue
            assert phase is not None and phase.placement is not None
            rows.append(
                {
                    **row,
                    "fits": True,
                    "seconds_per_step": phase.seconds_per_step,
                    "limited_by": phase.limited_by,
                    "vram_peak_bytes": phase.vram_peak_bytes,
                    "ram_peak_bytes": phase.ram_peak_bytes,
                    "placement": place_in_words(phase.placement),
                }
            )
    return rows


def cells_of(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], float | None]:
    """Rows as cells; None where the request is refused."""
    return {(row["vram_gib"], row["ram_gib"]): row.get("seconds_per_step") for row in rows}


def read_published(path: Path) -> dict[tuple[int, int], float | None]:
    """A CSV with the columns vram_gib, ram_gib, seconds_per_step."""
    with path.open(newline="") as file:
        return {
            (int(row["vram_gib"]), int(row["ram_gib"])): float(row["seconds_per_step"])
            for row in csv.DictReader(file)
        }


def capacity_svg(title: str, panels: Sequence[tuple[str, Cells]]) -> str:
    """SVG text of one or more grids on one colour scale."""
    values = [value for _, cells in panels for value in cells.values() if value is not None]
    low, high = min(values), max(values)
    columns = sorted({vram for _, cells in panels for vram, _ in cells})
    lines = sorted({ram for _, cells in panels for _, ram in cells})
    panel_px = EDGE_PX + len(columns) * CELL_WIDTH_PX
    width = 16 + len(panels) * (panel_px + GAP_PX)
    height = HEAD_PX + len(lines) * CELL_HEIGHT_PX + 76
    body = [f'<text class="head" x="16" y="24">{escape(title)}</text>']
    for index, (name, cells) in enumerate(panels):
        left = 16 + index * (panel_px + GAP_PX)
        body += _panel(name, cells, columns, lines, left, low, high)
    body += _legend(low, high, height - 22)
    inner = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}"><style>{STYLE}</style>'
        f'<rect class="paper" width="100%" height="100%"/>\n{inner}\n</svg>\n'
    )


def _panel(
    name: str,
    cells: Cells,
    columns: Sequence[int],
    lines: Sequence[int],
    left: int,
    low: float,
    high: float,
) -> list[str]:
    """One grid: RAM upwards, VRAM to the right."""
    body = [f'<text x="{left}" y="50">{escape(name)}</text>']
    bottom = HEAD_PX + len(lines) * CELL_HEIGHT_PX
    for row, ram in enumerate(reversed(lines)):
        top = HEAD_PX + row * CELL_HEIGHT_PX
        body.append(f'<text class="soft" x="{left + 22}" y="{top + 12}">{ram}</text>')
        for column, vram in enumerate(columns):
            if (vram, ram) not in cells:
                continue
            value = cells[vram, ram]
            share = 0.0 if value is None else (value - low) / max(high - low, 1e-9)
            red, green, blue = _colour(share)
            fill = "none" if value is None else f"rgb({red},{green},{blue})"
            ink = "#111" if share > 0.55 else "#fff"
            x = left + EDGE_PX + column * CELL_WIDTH_PX
            text = "-" if value is None else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
            body.append(
                f'<rect x="{x}" y="{top}" width="{CELL_WIDTH_PX - 1}" '
                f'height="{CELL_HEIGHT_PX - 1}" fill="{fill}"/>'
                f'<text class="cell" style="fill:{ink}" x="{x + CELL_WIDTH_PX // 2}" '
                f'y="{top + 11}">{text}</text>'
            )
    for column, vram in enumerate(columns):
        x = left + EDGE_PX + column * CELL_WIDTH_PX + CELL_WIDTH_PX // 2
        body.append(f'<text class="cell soft" x="{x}" y="{bottom + 14}">{vram}</text>')
    middle = left + EDGE_PX + len(columns) * CELL_WIDTH_PX // 2
    body.append(f'<text class="soft" x="{middle - 30}" y="{bottom + 30}">VRAM, GiB</text>')
    body.append(
        f'<text class="soft" transform="translate({left + 8},{(HEAD_PX + bottom) // 2 + 25}) '
        'rotate(-90)">RAM, GiB</text>'
    )
    return body


def _legend(low: float, high: float, top: int) -> list[str]:
    body = [f'<text class="soft" x="16" y="{top + 10}">{low:.1f} s a step</text>']
    for step in range(60):
        red, green, blue = _colour(step / 59)
        body.append(
            f'<rect x="{100 + 3 * step}" y="{top}" width="3" height="12" '
            f'fill="rgb({red},{green},{blue})"/>'
        )
    return [*body, f'<text class="soft" x="290" y="{top + 10}">{high:.1f} s</text>']


def _colour(share: float) -> tuple[int, int, int]:
    """The colour at `share` of the scale, between its two neighbours."""
    place = min(max(share, 0.0), 1.0) * (len(SCALE) - 1)
    index = min(int(place), len(SCALE) - 2)
    rest = place - index
    first, second = SCALE[index], SCALE[index + 1]
    red, green, blue = (round(a + rest * (b - a)) for a, b in zip(first, second, strict=True))
    return red, green, blue
