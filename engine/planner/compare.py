"""Bench rows against forecasts: the table of `bench forecast`, and the rows that correct it.

A step row says what was run (size, text rows, placement) and what was measured (seconds a step,
peaks, rates). The forecast is priced for exactly that placement, so a difference is the cost
model's own. Calibration takes rows that were measured for it; the table should then be drawn over
others. Pure: reads values, returns values.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..geometry import Geometry
from .calibration import Calibration, Row
from .cost import RAM, VRAM, SampleMemory, total
from .timing import StepClock, StepSeconds
from .types import ModelFacts, Placement
from .workload import BF16, Workload, block_seconds

QUIET_STALL = 0.02  # share of a step that may be spent waiting in a row that teaches compute


@dataclass(frozen=True)
class Compared:
    """One bench row beside its forecast. Bytes and seconds; None where the row has no figure."""

    row: Mapping[str, Any]
    step: StepSeconds
    vram_bytes: int
    ram_bytes: int
    memory: SampleMemory
    placement: Placement

    def ratio(self, axis: str) -> float | None:
        """forecast / measured of "seconds", "vram" or "ram"."""
        forecast, measured = {
            "seconds": (self.step.total, self.row.get("seconds_per_step")),
            "vram": (self.vram_bytes, self.row.get("vram_peak_bytes")),
            "ram": (self.ram_bytes, self.row.get("ram_peak_bytes")),
        }[axis]
        return forecast / measured if measured else None


def usable(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of finished step measurements."""
    return [row for row in rows if row.get("bench") == "step" and row.get("seconds_per_step")]


def compare(row: Mapping[str, Any], facts: ModelFacts, calibration: Calibration) -> Compared:
    """Price what a step row ran."""
    known = {key: row["placement"][key] for key in vars(Placement()) if key in row["placement"]}
    place = Placement(**known)
    geometry = Geometry(row["width"], row["height"], row["frames"])
    work = Workload(geometry, facts, int(row.get("text_rows", 256)))
    memory = SampleMemory(work, calibration, "linux", 8)
    clock = StepClock(
        work, block_seconds(work, calibration), calibration, place.keys, place.residual
    )
    terms = memory.terms(place)
    return Compared(row, clock.step(place), total(terms, VRAM), total(terms, RAM), memory, place)


def forecast_table(
    rows: Iterable[Mapping[str, Any]], facts: ModelFacts, calibration: Calibration
) -> str:
    """Forecast beside measurement as a Markdown table, one line a row."""
    lines = [
        "| case | size | placement | s/step measured | forecast | VRAM measured | forecast | "
        "RAM measured | forecast |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for item in (compare(row, facts, calibration) for row in usable(rows)):
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


def measured_rows(
    rows: Iterable[Mapping[str, Any]], facts: ModelFacts, calibration: Calibration
) -> list[Row]:
    """Calibration rows that bench rows correct, in the order in which they depend on each other.

    Memory rows take the largest value that any bench row asks for, because a forecast may not be
    below a measurement; rates take the median.
    """
    found: list[Row] = []
    steps = usable(rows)

    def learn(name: str, values: Sequence[float], choose: Any, unit: str, source: str) -> None:
        nonlocal calibration
        if not values:
            return
        value = float(choose(values))
        spread = max(abs(item - value) for item in values) / value
        row = Row(name, value, unit, "measured", f"{source}, {len(values)} row(s)", spread)
        found.append(row)
        calibration = replace(calibration, rows={**calibration.rows, name: row})

    contexts = [row["context_bytes"] for row in steps if row.get("context_bytes")]
    learn("memory.context", contexts, max, "B", "context beside the allocator")
    disks = [row["disk_bytes_per_second"] for row in steps if row.get("disk_bytes_per_second")]
    learn("rates.disk", disks, statistics.median, "B/s", "the store's own reader")
    links = [row["link_bytes_per_second"] for row in steps if row.get("link_bytes_per_second")]
    learn("rates.link", links, statistics.median, "B/s", "pinned copies to the device")
    temporaries = []
    for item in (compare(row, facts, calibration) for row in steps):
        if item.ratio("vram") is not None:
            unit_bytes = item.memory.work.chunk_rows * item.memory.work.width * BF16
            slack = calibration["memory.chunk_temporaries"]
            short = item.row["vram_peak_bytes"] - item.vram_bytes
            temporaries.append(slack + short / unit_bytes)
    learn("memory.chunk_temporaries", temporaries, max, "1", "reserved beyond the shaped terms")
    capped = [compare(row, facts, calibration) for row in steps if row.get("ram_gib")]
    # The root is on the host only while a pass is bound, which a bench does before blocks are read.
    hosts = [
        calibration["memory.interpreter"]
        + item.row["ram_peak_bytes"]
        - (item.ram_bytes - facts.root_bytes)
        for item in capped
        if item.ratio("ram") is not None
    ]
    learn("memory.interpreter", hosts, max, "B", "host peak under a cgroup, shaped terms off")
    quiet = []
    for item in (compare(row, facts, calibration) for row in steps):
        waited = sum(item.row.get("stall_seconds", {}).values())
        busy = item.step.limited_by == "compute"
        if busy and waited < QUIET_STALL * item.row["seconds_per_step"]:
            quiet.append(
                calibration["rates.sustained"] * item.step.total / item.row["seconds_per_step"]
            )
    learn("rates.sustained", quiet, statistics.median, "1", "steps that wait for nothing")
    return found


def replace_tables(
    text: str, rows: Iterable[Row], *, device: str, command: str, date: str, software: str
) -> str:
    """Calibration TOML with the tables of `rows` replaced, or appended where it has none."""
    for row in rows:
        table = (
            f'[{row.name}]\nvalue = {row.value:.6g}\nunit = "{row.unit}"\n'
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
