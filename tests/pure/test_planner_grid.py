"""The published capacity grid: 625 pairs of VRAM and RAM at 1344x768, 243 frames, on one H200."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from planner_tools import FACTS, machine, plan_on, reference_rows, single_pass

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.search import TIE, make_budget
from lowpeak.engine.planner.types import PhasePlan
from lowpeak.engine.request import Request

PUBLISHED = Path(__file__).parents[1] / "data" / "published_capacity.csv"


def published() -> dict[tuple[int, int], float]:
    """Seconds a step by (VRAM GiB, RAM GiB)."""
    with PUBLISHED.open() as file:
        return {
            (int(row["vram_gib"]), int(row["ram_gib"])): float(row["seconds_per_step"])
            for row in csv.DictReader(file)
        }


@pytest.fixture(scope="module")
def forecasts() -> dict[tuple[int, int], PhasePlan]:
    """The sampling phase of every cell."""
    rows, request = reference_rows(), single_pass()
    found = {}
    for cell in published():
        plan = plan_request(request, machine(*cell), FACTS, rows)
        phase = plan.phase("sample_high")
        assert phase is not None
        found[cell] = phase
    return found


def test_all_625_cells_fit_with_their_margins(
    forecasts: dict[tuple[int, int], PhasePlan],
) -> None:
    assert len(forecasts) == 625
    for cell, phase in forecasts.items():
        room = make_budget(machine(*cell), reference_rows())
        assert phase.vram_peak_bytes <= room.vram_bytes, cell
        assert phase.ram_peak_bytes <= room.ram_bytes, cell


def test_every_cell_is_forecast_faster_than_published(
    forecasts: dict[tuple[int, int], PhasePlan],
) -> None:
    slower = {
        cell: (forecasts[cell].seconds_per_step, seconds)
        for cell, seconds in published().items()
        if not forecasts[cell].seconds_per_step < seconds
    }
    assert not slower


def test_more_of_either_memory_is_never_slower_in_the_grid(
    forecasts: dict[tuple[int, int], PhasePlan],
) -> None:
    for (vram, ram), phase in forecasts.items():
        for more in ((vram + 1, ram), (vram, ram + 1)):
            if more in forecasts:
                limit = TIE * phase.seconds_per_step
                assert forecasts[more].seconds_per_step <= limit, (vram, ram)


@pytest.mark.parametrize("clip", [(1344, 768, 345), (1920, 1088, 243)])
def test_larger_clips_fit_the_grid_too(clip: tuple[int, int, int]) -> None:
    request = Request(Geometry(*clip), base_steps=8, two_pass=False)
    for vram in (8, 12, 16, 24, 32):
        for ram in (8, 16, 24, 32):
            plan_on(request, machine(vram, ram))
