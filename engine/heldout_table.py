"""Forecast / measured of held-out rows: ratios, limits, the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .heldout_cases import TEACHING
from .units import GIB

# What a forecast may be, as a share of what was measured: memory never below it.
VRAM_LIMITS, RAM_LIMITS, SECONDS_LIMITS = (1.0, 1.06), (1.0, 1.12), (1 / 1.1, 1 / 0.9)


def with_ratios(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with forecast / measured, and whether each ratio is within its limits."""
    limits = {
        "seconds_per_step": SECONDS_LIMITS,
        "vram_peak_bytes": VRAM_LIMITS,
        "ram_peak_bytes": RAM_LIMITS,
    }
    ratio: dict[str, float | None] = {}
    within: dict[str, bool | None] = {}
    for name, (low, high) in limits.items():
        forecast, measured = row["forecast"].get(name), row.get(name)
        found = None if not forecast or not measured else forecast / measured
        ratio[name] = found
        within[name] = None if found is None else low <= found <= high
    return {**row, "forecast_over_measured": ratio, "within": within}


def held_out_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Forecast beside measurement, a Markdown line a case; ratios are forecast / measured."""
    lines = [
        "| case | use | process | caps GiB | placement | s/step | forecast | VRAM GiB | forecast | "
        "RAM GiB | forecast | |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        caps = " / ".join(
            "-" if row[name] is None else f"{row[name]:g}" for name in ("vram_gib", "ram_gib")
        )
        head = f"| {row['case']} | {_use(row)} | {row['process']} | {caps} |"
        if "error" in row:
            lines.append(f"{head} {row['error'][:120]} | | | | | | | not run |")
            continue
        place, planned = row["placement"], row["forecast"]
        blocks = "/".join(str(place[f"{kind}_blocks"]) for kind in ("resident", "pinned", "disk"))
        slots = f"{place['transfer_slots']}{'h' if place['half_slots'] else ''}"
        cells = [
            f"{place['keys']}{', x host' if place['residual'] == 'host' else ''}, {blocks}, "
            f"{slots}",
            *_pair(row, planned, "seconds_per_step", 1.0),
            *_pair(row, planned, "vram_peak_bytes", GIB),
            *_pair(row, planned, "ram_peak_bytes", GIB),
        ]
        missed = [name.split("_")[0] for name, ok in row["within"].items() if ok is False]
        verdict = f"missed: {', '.join(missed)}" if missed else "within"
        lines.append(f"{head} {' | '.join(cells)} | {verdict} |")
    return "\n".join(lines)


def _use(row: Mapping[str, Any]) -> str:
    """What a row is for: whether it may teach the next constants, and more about it."""
    words = ["calibration" if row["use"] in TEACHING else row["use"]]
    words += ["floor"] if row.get("floor") and row["use"] != "floor" else []
    words += ["forced"] if row.get("forced") else []
    return ", ".join([*words, row["attention"]] if row.get("attention") else words)


def _pair(
    row: Mapping[str, Any], planned: Mapping[str, Any], name: str, unit: float
) -> tuple[str, str]:
    measured, forecast = row.get(name), planned.get(name)
    ratio = row["forecast_over_measured"][name]
    return (
        "" if not measured else f"{measured / unit:.2f}",
        "" if not forecast else f"{forecast / unit:.2f}" + (f" (x {ratio:.3f})" if ratio else ""),
    )


def row_line(row: Mapping[str, Any]) -> str:
    """A row in one line."""
    if "error" in row:
        return f"{row['case']}: {row['error']}"
    ratios = ", ".join(
        f"{name.split('_')[0]} x {value:.3f}"
        for name, value in row["forecast_over_measured"].items()
        if value
    )
    return f"{row['case']}: {row['seconds_per_step']:.3f} s/step; forecast / measured {ratios}"
