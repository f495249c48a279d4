"""The published capacity grid: 625 pairs of VRAM and RAM at 1344x768, 243 frames, on one H200."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from planner_tools import FACTS, machine, plan_on, reference_rows, single_pass

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.search import TIE, PassChoice, PassSearch, SearchSpace, make_budget
from lowpeak.engine.planner.workload import workload
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
def forecasts() -> dict[tuple[int, int], PassChoice]:
    """The sampling pass of every cell, by the search that `plan_request` uses."""
    rows, request = reference_rows(), single_pass()
    work = workload(request, request.geometry, FACTS)
    search = PassSearch(work, 8, rows, "linux", SearchSpace())
    found = {}
    for cell in published():
        choice = search.choose(make_budget(machine(*cell), rows))
        assert choice is not None, cell
        found[cell] = choice
    return found


def test_all_625_cells_fit_with_their_margins(
    forecasts: dict[tuple[int, int], PassChoice],
) -> None:
    assert len(forecasts) == 625
    for cell, choice in forecasts.items():
        room = make_budget(machine(*cell), reference_rows())
        assert choice.candidate.vram_bytes <= room.vram_bytes, cell
        assert choice.candidate.ram_bytes <= room.ram_bytes, cell


def test_whole_plans_agree_with_the_search(
    forecasts: dict[tuple[int, int], PassChoice],
) -> None:
    for cell in [(v, r) for v in (8, 9, 13, 20, 32) for r in (8, 11, 16, 25, 32)]:
        phase = plan_on(single_pass(), machine(*cell)).phase("sample_high")
        assert phase is not None
        assert phase.placement == forecasts[cell].candidate.placement
        assert phase.seconds_per_step == forecasts[cell].step.total


def test_every_cell_is_forecast_faster_than_published(
    forecasts: dict[tuple[int, int], PassChoice],
) -> None:
    slower = {
        cell: (forecasts[cell].step.total, seconds)
        for cell, seconds in published().items()
        if not forecasts[cell].step.total < seconds
    }
    assert not slower


def test_more_of_either_memory_is_never_slower_in_the_grid(
    forecasts: dict[tuple[int, int], PassChoice],
) -> None:
    for (vram, ram), choice in forecasts.items():
        for more in ((vram + 1, ram), (vram, ram + 1)):
            if more in forecasts:
                limit = TIE * choice.step.total
                assert forecasts[more].step.total <= limit, (vram, ram)


@pytest.mark.parametrize("clip", [(1344, 768, 345), (1920, 1088, 243)])
def test_larger_clips_fit_the_grid_too(clip: tuple[int, int, int]) -> None:
    request = Request(Geometry(*clip), base_steps=8, two_pass=False)
    for vram in (8, 12, 16, 24, 32):
        for ram in (8, 16, 24, 32):
            plan_on(request, machine(vram, ram))
