"""The time of a whole request: what is read once, what again, and how far the sum may be off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from planner_tools import FACTS, machine, plan_on, reference_rows

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.types import PhasePlan, Plan
from lowpeak.engine.request import Request

LIGHT = Request(Geometry(1344, 768, 243))
DISK = 1.92e9
ROWS = reference_rows().with_values(rates__disk=DISK, rates__worker_start=6.0)


def planned(vram_gib: float, ram_gib: float, rows: Any = ROWS) -> Plan:
    return plan_request(LIGHT, machine(vram_gib, ram_gib), FACTS, rows)


def phase_of(plan: Plan, name: str) -> PhasePlan:
    phase = plan.phase(name)
    assert phase is not None
    return phase


def seconds_of(phase: PhasePlan) -> dict[str, float]:
    return {term.name: term.value for term in phase.terms if term.unit == "seconds"}


@pytest.mark.parametrize("memory", [(8, 32), (8, 8), (4, 16), (24, 64)])
def test_terms_of_every_phase_sum_to_its_time_and_phases_to_the_whole(memory) -> None:
    plan = planned(*memory)
    for phase in plan.phases:
        assert sum(seconds_of(phase).values()) == pytest.approx(phase.seconds), phase.phase
    assert plan.total_seconds == pytest.approx(sum(phase.seconds for phase in plan.phases))


def test_the_first_pass_reads_everything_once_and_the_second_nothing() -> None:
    plan = planned(8, 32)
    low, high = phase_of(plan, "sample_low"), phase_of(plan, "sample_high")
    read = (50 * FACTS.block_bytes + FACTS.root_bytes) / DISK  # 11.7 s for 22.6 GB
    assert 11 < read < 12
    assert low.seconds == pytest.approx(6.0 + read + 7 * low.seconds_per_step)
    assert high.seconds == pytest.approx(3 * high.seconds_per_step)


def test_blocks_that_could_not_stay_are_read_again_for_the_second_pass() -> None:
    plan = planned(8, 8)
    high = phase_of(plan, "sample_high")
    read = 50 * FACTS.block_bytes / DISK  # no root: the first pass has read it
    assert high.seconds == pytest.approx(read + 2 * high.seconds_per_step)


def test_the_range_holds_what_a_slower_or_faster_disk_would_give() -> None:
    disk = ROWS.rows["rates.disk"]
    for memory in [(8, 8), (4, 16), (8, 32)]:
        rows = ROWS.with_rows([replace(disk, error_p95=0.3)])
        plan = planned(*memory, rows)
        assert plan.seconds_range is not None
        low, high = plan.seconds_range
        places = {
            phase.phase: (phase.placement, "")
            for phase in plan.phases
            if phase.placement and phase.phase.startswith("sample")
        }
        for factor in (0.7, 1.3):
            other = plan_request(
                LIGHT, machine(*memory), FACTS, ROWS.with_values(rates__disk=factor * DISK),
                preferred=places,
            )  # fmt: skip
            assert low < other.total_seconds < high, (memory, factor)
        sure = planned(*memory, ROWS.with_rows([replace(disk, error_p95=0.05)])).seconds_range
        assert sure is not None and sure[1] < high and sure[0] >= low
        total = plan.total_seconds
        assert sure == pytest.approx((0.75 * total, 1.25 * total))


def test_a_card_that_was_never_measured_has_the_wider_range() -> None:
    plan = plan_on(LIGHT, machine(24, 64, card="rtx-4090"))
    assert plan.seconds_range is not None
    low, high = plan.seconds_range
    assert low <= 0.5 * plan.total_seconds and high >= 1.5 * plan.total_seconds
