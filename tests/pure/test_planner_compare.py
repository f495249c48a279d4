"""Calibration from bench rows: rows made by a known machine give that machine back."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from planner_tools import FACTS, known_rows, machine, single_pass

from lowpeak.engine.planner.calibration import Calibration, read_rows
from lowpeak.engine.planner.compare import (
    compare,
    forecast_table,
    replace_tables,
    same_groups,
    usable,
)
from lowpeak.engine.planner.cost import captured_graphs
from lowpeak.engine.planner.fit_memory import envelope
from lowpeak.engine.planner.fitting import margin_rows, measured_rows
from lowpeak.engine.planner.least_squares import positive_least_squares
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.types import Placement

HALVES = Placement("recompute", pinned_blocks=50, transfer_slots=3, half_slots=True)
CASES: list[tuple[tuple[int, int, int], Placement, float | None]] = [
    ((480, 288, 243), Placement("store", pinned_blocks=50), None),
    ((960, 960, 39), Placement("store", pinned_blocks=50), None),
    ((1344, 768, 243), Placement("store", pinned_blocks=50), None),
    ((1344, 768, 345), Placement("recompute", pinned_blocks=50), None),
    ((1920, 1088, 362), HALVES, None),
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
        graphs = priced.memory.graph_bytes(0, place.transfer_slots, place.half_slots)
        row["context_after_bytes"] = row["context_bytes"] + graphs
        row["seconds_per_step"] = priced.step.total
        row["vram_peak_bytes"] = priced.vram_bytes
        row["ram_peak_bytes"] = priced.ram_bytes
        if place.disk_blocks:
            row["disk_bytes_per_second"] = truth["rates.disk"]
        rows.append(row)
    return [*rows, {"bench": "step", "case": "failed", "error": "out of memory"}]


TRUTH = {
    "memory__context": 700_000_000.0,
    "memory__graph_launch": 700e3,
    "memory__allocator": 90e6,
    "memory__chunk_temporaries": 7.5,
    "memory__allocator_alone": 60e6,
    "memory__chunk_temporaries_alone": 5.5,
    "memory__grouped": 0.4,
    "memory__interpreter": 1_500_000_000.0,
    "rates__attention": 500e12,
    "rates__launch": 2.5e-4,
    "rates__step": 0.15,
    "rates__disk": 5.5e9,
}


SCALES = (1.0, 1.5e-4, 0.05)
DRAWN = ("rates__attention", "rates__launch", "rates__step")  # weakly, to the rows before
OTHERS = {"rates.gemm_fp8", "rates.copy", "rates.convolution", "rates.readout", "rates.solve",
          "rates.sustained", "rates.alone"}  # fmt: skip


def test_the_constants_of_a_machine_come_back_from_its_rows() -> None:
    truth = known_rows().with_values(**TRUTH, rates__sustained=1.0)
    found = {row.name: row for row in measured_rows(rows_of(truth), FACTS, known_rows())}
    assert set(found) == {name.replace("__", ".", 1) for name in TRUTH} | OTHERS
    for name, value in TRUTH.items():
        row = found[name.replace("__", ".", 1)]
        assert row.value == pytest.approx(value, rel=0.05 if name in DRAWN else 1e-6), name
        assert row.status == "measured"


def test_a_memory_forecast_is_never_below_a_row_that_taught_it() -> None:
    rows = rows_of(known_rows().with_values(**TRUTH))
    rows[1]["vram_peak_bytes"] += 300 << 20
    before = known_rows()
    after = before.with_rows(measured_rows(rows, FACTS, before))
    for row in usable(rows):
        assert compare(row, FACTS, after).vram_bytes >= row["vram_peak_bytes"] - 1


FOUR = 4 << 30
CHUNK = 5040 * 7168 * 2


def test_a_row_of_an_engine_that_stored_every_chunk_is_priced_with_all_of_them() -> None:
    row = {**rows_of(known_rows())[2], "frames": 243}
    old = compare(row, FACTS, known_rows())
    new = compare({**row, "in_ring": 3}, FACTS, known_rows())
    assert row["placement"]["keys"] == "store"
    assert old.vram_bytes - new.vram_bytes == 14 * 1008 * 7168 * 2 * 2


def recomputed(truth: Calibration, cap_gib: float, peak_bytes: int) -> dict[str, Any]:
    """A run of 1344x768x243 with recomputed keys and x on the device under a cap."""
    place = Placement("recompute", pinned_blocks=50, half_slots=True)
    row = {**rows_of(truth)[3], "frames": 243, "placement": place.as_json(), "vram_gib": cap_gib}
    return {**row, "vram_peak_bytes": peak_bytes}


def test_recomputed_keys_teach_their_own_slack_and_the_tightest_run_says_what_is_needed() -> None:
    before = known_rows()
    stored = [row for row in rows_of(before) if row.get("placement", {}).get("keys") == "store"]
    shaped = compare(recomputed(before, 6, 1), FACTS, before).vram_bytes - int(
        before["memory.allocator_alone"] + before["memory.chunk_temporaries_alone"] * CHUNK
    )
    tight, roomy = (
        recomputed(before, cap, shaped + mb * 10**6) for cap, mb in ((4, 550), (6, 750))
    )
    found = {row.name: row for row in measured_rows([*stored, tight, roomy], FACTS, before)}
    for name in ("memory.allocator", "memory.chunk_temporaries"):
        assert found[name].value == pytest.approx(before[name], rel=1e-3), "stored keys' own"
    need = found["memory.allocator_alone"].value
    need += found["memory.chunk_temporaries_alone"].value * CHUNK
    assert need == pytest.approx(550e6, rel=1e-6)
    assert found["memory.allocator_kept"].value == pytest.approx(200e6, rel=1e-6)
    after = before.with_rows(found.values())
    assert compare(roomy, FACTS, after).vram_bytes == pytest.approx(roomy["vram_peak_bytes"], abs=2)
    held = compare(tight, FACTS, after).vram_bytes
    assert tight["vram_peak_bytes"] <= held + 2 <= FOUR + 2, "no more is kept than there is room"
    # The floor of 4 GiB and 16 GiB: x stays on the device once such a run has been seen.
    small = machine(4, 16, device_name="NVIDIA H200")
    for rows, residual in ((before, "host"), (after, "device")):
        phase = plan_request(single_pass(), small, FACTS, rows).phase("sample_high")
        assert phase is not None and phase.placement is not None
        assert (phase.placement.keys, phase.placement.residual) == ("recompute", residual)
        assert phase.vram_peak_bytes <= FOUR
        terms = {term.name: term.value for term in phase.terms if term.unit == "vram_bytes"}
        assert sum(terms.values()) == phase.vram_peak_bytes
    assert terms["kept by the allocator while there is room"] > 0
    alone = {row.name: row.value for row in measured_rows([*stored, roomy], FACTS, before)}
    assert "memory.allocator_kept" not in alone, "without a tight run, all of it is need"


def test_small_pictures_teach_what_a_group_holds_and_nothing_else() -> None:
    before = known_rows()
    truth = before.with_values(memory__grouped=0.3)
    rows = [row for row in rows_of(truth) if "placement" in row]
    found = {row.name: row.value for row in measured_rows(rows, FACTS, before)}
    assert found["memory.grouped"] == pytest.approx(0.3, abs=1e-6)
    for name in ("allocator", "chunk_temporaries", "allocator_alone", "chunk_temporaries_alone"):
        assert found[f"memory.{name}"] == pytest.approx(before[f"memory.{name}"], rel=1e-6), name
    rows[0]["vram_peak_bytes"] = 1 << 30
    least = {row.name: row.value for row in measured_rows(rows, FACTS, before)}
    assert 0 < least["memory.grouped"] < 1e-5, "the shapes of one chunk are always counted"


def test_a_row_from_before_there_were_groups_is_told_by_its_size() -> None:
    small = {"bench": "step", "width": 672, "height": 384, "frames": 243}
    large = {**small, "width": 1344, "height": 768}
    assert same_groups(large) and same_groups({**large, "grouped": 1})
    assert not same_groups(small) and not same_groups({**small, "grouped": 1})
    assert same_groups({**small, "grouped": 4}) and same_groups({**small, "bench": "forecast"})


def test_the_envelope_is_the_lowest_pair_that_covers_every_point() -> None:
    points = [(1.0, 12.0, 100.0), (2.0, 20.0, 100.0), (4.0, 42.0, 200.0), (3.0, 25.0, 120.0)]
    a, b = envelope(points)
    assert all(a + b * u >= s - 1e-6 for u, s, _ in points)
    worst = max((a + b * u - s) / whole for u, s, whole in points)
    for other_a in range(40):
        for tenth in range(150):
            pair = float(other_a), tenth / 10
            if all(pair[0] + pair[1] * u >= s for u, s, _ in points):
                loss = max((pair[0] + pair[1] * u - s) / whole for u, s, whole in points)
                assert loss >= worst - 1e-9


def test_what_points_do_not_tell_apart_stays_where_it_was() -> None:
    truth = (0.9, 2e-4, 0.2)
    sizes = [(4.0, 400.0), (8.0, 900.0), (0.3, 200.0), (1.5, 900.0)]
    times = [truth[0] * w + truth[1] * n + truth[2] for w, n in sizes]
    points = [(w / t, n / t, 1 / t) for (w, n), t in zip(sizes, times, strict=True)]
    found = positive_least_squares(points, (1.0, 1e-4, 0.02), scales=SCALES)
    assert found == pytest.approx(truth, rel=0.05)
    one = positive_least_squares(points[:1], (1.0, 1e-4, 0.02), scales=SCALES)
    assert sum(x * p for x, p in zip(one, points[0], strict=True)) == pytest.approx(1, abs=1e-3)
    assert one[2] == pytest.approx(0.02, rel=0.1), "one size says nothing of its parts"
    negative = positive_least_squares(
        [(1.0, 1.0, 0.1), (1.0, 2.0, 0.1)], (1.0, 0.1, 0.01), scales=SCALES
    )
    assert min(negative) >= 0


def test_a_margin_is_what_a_size_needed_beyond_a_forecast_from_the_others() -> None:
    rows = rows_of(known_rows().with_values(**TRUTH))
    exact, _ = margin_rows(rows, FACTS, known_rows())
    assert exact.value == 32 << 20, "rows of one truth leave the floor"
    rows[1]["vram_peak_bytes"] += 300 << 20
    learned, _ = margin_rows(rows, FACTS, known_rows())
    assert learned.value == pytest.approx(300 << 20, rel=1e-3)
    assert not margin_rows(rows[:2], FACTS, known_rows()), "two sizes say nothing"


@pytest.mark.parametrize(
    ("resident", "slots", "half", "graphs"),
    [(0, 2, False, 4), (0, 1, False, 2), (0, 2, True, 2), (0, 3, True, 6), (50, 0, False, 64)],
)
def test_a_graph_is_captured_for_each_place_a_block_can_have(
    resident: int, slots: int, half: bool, graphs: int
) -> None:
    assert captured_graphs(resident, slots, half) == graphs


def test_growth_that_a_bench_reports_apart_belongs_to_the_peak() -> None:
    rows = rows_of(known_rows().with_values(**TRUTH))
    for row in usable(rows):
        growth = row.pop("context_after_bytes") - row["context_bytes"]
        row["vram_peak_bytes"] -= growth
        row["context_growth_bytes"] = growth
    found = {row.name: row.value for row in measured_rows(rows, FACTS, known_rows())}
    assert found["memory.context"] == pytest.approx(700e6, rel=1e-6)
    assert found["memory.graph_launch"] == pytest.approx(700e3, rel=1e-6)


def test_rows_that_wait_do_not_teach_compute() -> None:
    rows = rows_of(known_rows().with_values(rates__sustained=0.5))
    for row in usable(rows):
        row["stall_seconds"] = {"link": 0.5 * row["seconds_per_step"], "disk": 0.0}
    names = {row.name for row in measured_rows(rows, FACTS, known_rows())}
    assert "rates.sustained" not in names


def test_the_table_has_a_line_for_every_finished_row() -> None:
    rows = rows_of(known_rows())
    table = forecast_table(rows, FACTS, known_rows())
    lines = table.splitlines()
    assert len(lines) == 2 + len(CASES)
    assert all("(x 1.000)" in line for line in lines[2:])


def test_tables_are_replaced_in_place_and_stay_readable(tmp_path: Path) -> None:
    rows = measured_rows(rows_of(known_rows().with_values(**TRUTH)), FACTS, known_rows())
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


def test_other_sizes_are_covered_by_as_much_as_one_missed() -> None:
    before = known_rows()
    rows = rows_of(before)[:-1]
    rows[0]["vram_peak_bytes"] += 80 << 20
    margin, unseen = margin_rows(rows, FACTS, before)
    assert unseen.name == "memory.unseen"
    assert unseen.value == margin.value >= 40 << 20
    after = before.with_rows([unseen])
    for row in usable(rows):
        more = compare(row, FACTS, after).vram_bytes - compare(row, FACTS, before).vram_bytes
        assert more == pytest.approx(unseen.value, abs=1)
    again = measured_rows(rows, FACTS, after)
    assert [row.value for row in again] == [row.value for row in measured_rows(rows, FACTS, before)]
    assert margin_rows(rows, FACTS, after) == [margin, unseen]
