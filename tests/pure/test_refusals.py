"""Refusals: never a negative amount, and the memory that is short by its right name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowpeak.engine.errors import DoesNotFit, Shortage
from lowpeak.engine.forecast import forecast, forecast_for_run
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.types import ModelFacts
from lowpeak.engine.request import Request
from lowpeak.engine.snapshot import HardwareSnapshot, snapshot_from_options
from lowpeak.engine.units import GIB

REQUEST = Request(Geometry(1344, 768, 243))


@given(st.integers(0, 1 << 45), st.integers(-(1 << 40), 1 << 45))
def test_nothing_usable_is_zero_and_the_shortfall_stays(need: int, have: int) -> None:
    short = Shortage("ram", "decode", need, have)
    assert short.have_bytes == max(have, 0) and short.shortfall_bytes == need - have
    assert "-" not in str(short) or short.shortfall_bytes < 0


@pytest.mark.parametrize("ram_gib", [0.3, 0.6, 1.0])
@pytest.mark.parametrize("vram_gib", [0.25, 0.5, 2.0])
def test_a_plan_that_is_refused_speaks_of_no_negative_amount(
    vram_gib: float, ram_gib: float
) -> None:
    document = forecast(REQUEST, snapshot_from_options(vram_gib, ram_gib), ModelFacts())
    assert not document["fits"] and " -" not in document["message"]
    for item in document["short"]:
        assert item["have_bytes"] >= 0
        assert item["shortfall_bytes"] == item["need_bytes"] - item["have_bytes"] > 0


def test_a_run_on_a_cpu_is_short_of_ram_and_of_nothing_else() -> None:
    machine = HardwareSnapshot("linux", "", None, 0, 0, GIB, GIB // 2)
    with pytest.raises(DoesNotFit) as refused:
        forecast_for_run(REQUEST, machine, ModelFacts(), "cpu")
    phases = [item.phase for item in refused.value.short]
    assert {item.axis for item in refused.value.short} == {"ram"}
    assert len(phases) == len(set(phases)), "once a phase"
    assert "VRAM" not in str(refused.value) and " -" not in str(refused.value)
    # Two halves with a margin each stand behind it: the need is more than all that is there.
    assert all(item.need_bytes > GIB // 2 for item in refused.value.short)
