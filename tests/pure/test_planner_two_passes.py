"""Two passes are planned together: what the first leaves in memory, the second need not read."""

from __future__ import annotations

import itertools

import pytest
from planner_tools import machine, plan_on

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.calibration import choose_calibration, published_facts
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.search import TIE
from lowpeak.engine.planner.types import HardwareSnapshot, Placement
from lowpeak.engine.request import Request

SHORT = Request(Geometry(352, 544, 294), quality="light")
CLIP = Request(Geometry(672, 384, 90), quality="light")


def slow_disk(vram_gib: float, ram_gib: float = 34.7) -> HardwareSnapshot:
    """A machine whose disk takes longer than its steps."""
    rates = {"link_bytes_per_second": 6e9, "disk_bytes_per_second": 0.5e9}
    return machine(vram_gib, ram_gib, **rates)


@pytest.mark.parametrize("request_", [SHORT, CLIP])
def test_more_device_memory_is_never_slower_in_all(request_: Request) -> None:
    times = [plan_on(request_, slow_disk(vram)).total_seconds for vram in (3.1, 4, 5, 6.6, 8, 12)]
    for less, more in itertools.pairwise(times):
        assert more <= TIE * less, times


@pytest.mark.parametrize("vram", [4, 6.6, 10])
def test_no_first_pass_that_pins_every_block_makes_a_faster_whole(vram: float) -> None:
    snapshot = slow_disk(vram)
    rows = choose_calibration(snapshot)
    facts = published_facts(rows)
    found = plan_request(SHORT, snapshot, facts, rows)
    for keys in ("store", "recompute"):
        for slots, half in ((1, False), (2, False), (2, True), (3, True)):
            place = Placement(keys, "device", 0, facts.blocks, 0, slots, half)
            tried = plan_request(
                SHORT, snapshot, facts, rows, preferred={"sample_low": (place, "tried")}
            )
            assert found.total_seconds <= TIE * tried.total_seconds, place


def test_it_is_said_why_the_first_pass_is_not_placed_for_itself() -> None:
    plan = plan_on(SHORT, slow_disk(6.6))
    low, high = plan.phase("sample_low"), plan.phase("sample_high")
    assert low is not None and low.placement is not None and low.placement.pinned_blocks == 50
    assert high is not None and not any(t.name.startswith("first read") for t in high.terms)
    assert any("the second reads none again" in reason for reason in plan.reasons)


def test_a_pass_that_history_placed_is_left_as_it_is() -> None:
    place = Placement("recompute", "device", 5, 45, 0, 2, False)
    snapshot = slow_disk(12)
    rows = choose_calibration(snapshot)
    plan = plan_request(
        SHORT, snapshot, published_facts(rows), rows, preferred={"sample_low": (place, "tried")}
    )
    low = plan.phase("sample_low")
    assert low is not None and low.placement == place and "tried" in plan.reasons
