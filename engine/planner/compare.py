"""Bench rows against forecasts: the table of `bench forecast`, and rows written into a file.

A step row says what was run (size, text rows, placement) and what was measured (seconds a step,
peaks, rates). The forecast is priced for exactly that placement, so a difference is the cost
model's own. What corrects it is in fitting.py; the table should then be drawn over other rows.
Pure: reads values, returns values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..geometry import Geometry
from ..units import GIB
from .calibration import Calibration, Row
from .cost import RAM, VRAM, SampleMemory, total
from .search import ENDLESS
from .timing import StepClock, StepSeconds
from .types import ModelFacts, Placement
from .workload import Workload, block_seconds


@dataclass(frozen=True)
class Compared:
    """One bench row beside its forecast. Bytes and seconds; None where the row has no figure."""

    row: Mapping[str, Any]
    step: StepSeconds
    vram_bytes: int
    ram_bytes: int
    memory: SampleMemory
    placement: Placement
    kept: int  # of the VRAM, what is held only because there is room

    def ratio(self, axis: str) -> float | None:
        """forecast / measured of "seconds", "vram" or "ram"."""
        forecast, measured = {
            "seconds": (self.step.total, self.row.get("seconds_per_step")),
            "vram": (self.vram_bytes, self.row.get("vram_peak_bytes")),
            "ram": (self.ram_bytes, self.row.get("ram_peak_bytes")),
        }[axis]
        return forecast / measured if measured else None


def usable(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of finished step measurements. What grew beside the allocator is in the peak."""
    kinds = ("step", "forecast")
    found = [row for row in rows if row.get("bench") in kinds and row.get("seconds_per_step")]
    return [_with_growth(row) for row in found]


def _with_growth(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row whose bench reports the growth of the context apart from the peak, as one peak."""
    if "context_growth_bytes" not in row or not row.get("vram_peak_bytes"):
        return row
    context = row["context_bytes"]
    growth = max(0, row["context_growth_bytes"], row.get("context_after_bytes", 0) - context)
    row = {key: value for key, value in row.items() if key != "context_growth_bytes"}
    return {
        **row,
        "vram_peak_bytes": row["vram_peak_bytes"] + growth,
        "context_after_bytes": context + growth,
    }


def compare(row: Mapping[str, Any], facts: ModelFacts, calibration: Calibration) -> Compared:
    """Price what a step row ran."""
    known = {key: row["placement"][key] for key in vars(Placement()) if key in row["placement"]}
    place = Placement(**known)
    blocks = place.resident_blocks + place.pinned_blocks + place.disk_blocks
    if blocks != facts.blocks:  # a cut checkpoint: as many blocks as it was run with
        facts = replace(facts, blocks=blocks)
    geometry = Geometry(row["width"], row["height"], row["frames"])
    work = Workload(geometry, facts, int(row.get("text_rows", 256)))
    memory = SampleMemory(work, calibration, "linux", 8, bool(row.get("kept_store")))
    clock = StepClock(
        work, block_seconds(work, calibration), calibration, place.keys, place.residual
    )
    terms = memory.terms(place)
    need = total(terms, VRAM)
    if place.keys == "store" and "in_ring" not in row:  # an engine that stored every chunk
        need += work.in_ring_bytes
    cap = row.get("vram_gib")
    kept = memory.kept_bytes(place.keys, ENDLESS if cap is None else int(cap * GIB) - need)
    return Compared(row, clock.step(place), need + kept, total(terms, RAM), memory, place, kept)


def same_groups(row: Mapping[str, Any]) -> bool:
    """Whether a row was run with the groups of chunks that a forecast of its size counts.

    Rows from before there were groups do not name them; they are right for large pictures alone.
    """
    geometry = Geometry(row["width"], row["height"], row["frames"])
    without = geometry.grouped if row.get("bench") == "forecast" else 1
    return bool(row.get("grouped", without) == geometry.grouped)


def forecast_table(
    rows: Iterable[Mapping[str, Any]], facts: ModelFacts, calibration: Calibration
) -> str:
    """Forecast beside measurement as a Markdown table, one line a row."""
    return compared_table(compare(row, facts, calibration) for row in usable(rows))


def compared_table(items: Iterable[Compared]) -> str:
    """The same for rows that are priced already."""
    lines = [
        "| case | size | placement | s/step measured | forecast | VRAM measured | forecast | "
        "RAM measured | forecast |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for item in items:
        row, place = item.row, item.placement
        words = f"{place.keys}, x {place.residual}, {place.resident_blocks}/{place.pinned_blocks}"
        lines.append(
            f"| {row.get('case', '')} | {row['width']}x{row['height']}x{row['frames']} | "
            f"{words}/{place.disk_blocks} | {row['seconds_per_step']:.2f} | "
            f"{_against(item.step.total, item.ratio('seconds'))} | "
            f"{_gib(row.get('vram_peak_bytes'))} | "
            f"{_against(item.vram_bytes / 2**30, item.ratio('vram'))} | "
            f"{_gib(row.get('ram_peak_bytes'))} | "
            f"{_against(item.ram_bytes / 2**30, item.ratio('ram'))} |"
        )
    return "\n".join(lines)


def _against(forecast: float, ratio: float | None) -> str:
    return f"{forecast:.2f}" if ratio is None else f"{forecast:.2f} (x {ratio:.3f})"


def _gib(value: int | None) -> str:
    return "" if value is None else f"{value / 2**30:.2f}"


def replace_tables(
    text: str, rows: Iterable[Row], *, device: str, command: str, date: str, software: str
) -> str:
    """Calibration TOML with the tables of `rows` replaced, or appended where it has none."""
    for row in rows:
        table = (
            f'[{row.name}]\nvalue = {row.value:.10g}\nunit = "{row.unit}"\n'
            f'error_p95 = {min(row.error_p95, 0.99):.3g}\nstatus = "{row.status}"\n'
            f'source = "{row.source}"\ndevice = "{device}"\nsoftware = {{ torch = '
            f'"{software}" }}\ncommand = "{command}"\ndate = "{date}"\n'
        )
        start = text.find(f"[{row.name}]")
        if start < 0:
            text = f"{text.rstrip()}\n\n{table}"
            continue
        end = text.find("\n[", start)
        rest = "" if end < 0 else text[end:]
        text = f"{text[:start]}{table}{rest}"
    return text
