"""Calibration from bench rows: rows made by a known machine give that machine back."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from planner_tools import FACTS, reference_rows

from lowpeak.engine.planner.calibration import Calibration, read_rows
from lowpeak.engine.planner.compare import (
    compare,
    forecast_table,
    measured_rows,
    replace_tables,
    usable,
)
from lowpeak.engine.planner.types import Placement

CASES: list[tuple[tuple[int, int, int], Placement, float | None]] = [
    ((1344, 768, 243), Placement("store", pinned_blocks=50), None),
    ((1344, 768, 345), Placement("recompute", pinned_blocks=50), None),
    ((1920, 1088, 362), Placement("recompute", pinned_blocks=50, half_slots=True), None),
    ((1344, 768, 243), Placement("store", pinned_blocks=26, disk_blocks=24), 16.0),
]


def rows_of(truth: Calibration) -> list[dict[str, Any]]:
    """Bench rows as a machine with these constants would write them."""
    rows = []
    for (width, height, frames), place, ram_gib in CASES:
        row: dict[str, Any] = {
            "bench": "step",
            "device": "NVIDIA H200",
            "width": width,
            "height": height,
            "frames": frames,
            "text_rows": 500,
            "placement": place.as_json(),
            "context_bytes": int(truth["memory.context"]),
            "ram_gib": ram_gib,
            "stall_seconds": {"link": 0.0, "disk": 0.0},
        }
        priced = compare(row, FACTS, truth)
        row["seconds_per_step"] = priced.step.total
        row["vram_peak_bytes"] = priced.vram_bytes
        # A bench binds its pass before the blocks are read: its peak is without the root.
        row["ram_peak_bytes"] = priced.ram_bytes - FACTS.root_bytes
        if place.disk_blocks:
            row["disk_bytes_per_second"] = truth["rates.disk"]
        rows.append(row)
    return [*rows, {"bench": "step", "case": "failed", "error": "out of memory"}]


TRUTH = {
    "memory__context": 700_000_000.0,
    "memory__chunk_temporaries": 7.5,
    "memory__interpreter": 1_500_000_000.0,
    "rates__sustained": 0.88,
    "rates__disk": 5.5e9,
}


def test_the_constants_of_a_machine_come_back_from_its_rows() -> None:
    truth = reference_rows().with_values(**TRUTH)
    found = {row.name: row for row in measured_rows(rows_of(truth), FACTS, reference_rows())}
    assert set(found) == {name.replace("__", ".", 1) for name in TRUTH}
    for name, value in TRUTH.items():
        row = found[name.replace("__", ".", 1)]
        assert row.value == pytest.approx(value, rel=1e-6), name
        assert row.status == "measured"


def test_a_memory_forecast_is_never_below_a_row_that_taught_it() -> None:
    rows = rows_of(reference_rows().with_values(**TRUTH))
    rows[1]["vram_peak_bytes"] += 300 << 20
    before = reference_rows()
    values = {
        row.name.replace(".", "__", 1): row.value for row in measured_rows(rows, FACTS, before)
    }
    after = before.with_values(**values)
    for row in usable(rows):
        assert compare(row, FACTS, after).vram_bytes >= row["vram_peak_bytes"] - 1


def test_rows_that_wait_do_not_teach_compute() -> None:
    rows = rows_of(reference_rows().with_values(rates__sustained=0.5))
    for row in usable(rows):
        row["stall_seconds"] = {"link": 0.5 * row["seconds_per_step"], "disk": 0.0}
    names = {row.name for row in measured_rows(rows, FACTS, reference_rows())}
    assert "rates.sustained" not in names


def test_the_table_has_a_line_for_every_finished_row() -> None:
    rows = rows_of(reference_rows())
    table = forecast_table(rows, FACTS, reference_rows())
    lines = table.splitlines()
    assert len(lines) == 2 + len(CASES)
    assert all("(x 1.000)" in line for line in lines[2:])


def test_tables_are_replaced_in_place_and_stay_readable(tmp_path: Path) -> None:
    rows = measured_rows(rows_of(reference_rows().with_values(**TRUTH)), FACTS, reference_rows())
    source = Path(__file__).parents[2] / "engine" / "calibration" / "h200.toml"
    text = replace_tables(
        source.read_text(), rows, device="NVIDIA H200", command="bench", date="2026-12-01",
        software="2.13.0",
    )  # fmt: skip
    path = tmp_path / "h200.toml"
    path.write_text(text)
    meta, read = read_rows(path)
    assert meta["name"] == "h200"
    for row in rows:
        assert read[row.name].value == pytest.approx(row.value, rel=1e-5)
        assert tomllib.loads(text)[row.name.split(".")[0]][row.name.split(".")[1]]["device"]
    _, before = read_rows(source)
    untouched = set(before) - {row.name for row in rows}
    assert {name: read[name] for name in untouched} == {name: before[name] for name in untouched}
