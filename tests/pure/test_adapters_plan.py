"""LoRAs in a plan: which way they are applied, what they add, and what the plan says of it."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from planner_tools import machine, reference_rows, single_pass

from lowpeak.engine.adapter_plan import plan_with_sizes
from lowpeak.engine.errors import DoesNotFit, RequestError
from lowpeak.engine.forecast import forecast, forecast_for_run
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.lora import planned
from lowpeak.engine.lora.loraset import LoraSet
from lowpeak.engine.lora.planned import plan_with_loras
from lowpeak.engine.planner.adapters import (
    AdapterSizes,
    assumed_sizes,
    choose_adapter_mode,
    merge_seconds,
    online_seconds,
    planned_mode,
    with_adapters,
)
from lowpeak.engine.planner.calibration import choose_calibration, published_facts
from lowpeak.engine.planner.types import ModelFacts
from lowpeak.engine.request import LoraChoice, Request

# Rank 64 on attention and feed-forward at the published widths.
SIZES = AdapterSizes(
    slot_bytes=13_331_456,
    host_bytes=665_190_400,
    row_flops=2 * 64 * 104_000,
    row_bytes=4 * 104_000,
    merge_bytes=380_000_000,
)
ROWS = reference_rows()
FACTS = published_facts(ROWS)
SHORT, LONG = single_pass(256, 256, 22), single_pass(1344, 768, 345)


def choose(wanted: str = "auto", sizes: AdapterSizes = SIZES, request=LONG, **more: Any):
    return choose_adapter_mode(wanted, sizes, request, FACTS, ROWS, **more)


def test_the_cheaper_way_is_taken_and_the_word_of_the_user_obeyed() -> None:
    assert choose(request=LONG).mode == "merged" and choose(request=SHORT).mode == "online"
    assert choose("online").mode == "online" and choose("merged", request=SHORT).mode == "merged"
    reason = choose().reason
    assert reason.startswith("LoRA merged: online about") and "merging" in reason
    with pytest.raises(RequestError, match="none of auto, merged, online"):
        choose("fused")


def test_without_low_rank_or_without_times_weights_are_merged() -> None:
    merged = choose("online", replace(SIZES, slot_bytes=0))
    assert merged.mode == "merged" and "low rank" in merged.reason
    assert choose(request=SHORT, timed=False).mode == "merged"


def test_costs_are_shapes_over_rates() -> None:
    twice = replace(LONG, base_steps=16)
    once, two = (online_seconds(SIZES, item, FACTS, ROWS) for item in (LONG, twice))
    assert two == pytest.approx(2 * once)
    # By hand: 8 steps, 50 blocks; a row is 13.3 MFLOP and 416 kB.
    products, copy, link = (ROWS[f"rates.{name}"] for name in ("gemm_bf16", "copy", "link"))
    rows = once / 1.49 / 8 / 50 / (13.312e6 / products + 416e3 / copy)
    assert 103_000 < rows < 106_000
    seconds = merge_seconds(SIZES, FACTS, ROWS)
    moved = 60 * 0.38e9 / copy + 2 * 0.38e9 / link
    assert seconds == pytest.approx(50 * (moved + 181.2 * 2e-4), rel=1e-3)


@pytest.mark.parametrize("mode", ["online", "merged"])
def test_the_bytes_of_adapters_are_terms_of_the_plan(mode) -> None:
    small = machine(24, 64)
    plain = forecast_for_run(LONG, small, FACTS, "cuda")
    found = forecast_for_run(LONG, small, with_adapters(FACTS, SIZES, mode), "cuda")
    assert plain["phases"][1]["placement"] == found["phases"][1]["placement"]
    slots = plain["phases"][1]["placement"]["transfer_slots"]
    before, after = (
        {t["name"]: t["value"] for t in d["phases"][1]["terms"]} for d in (plain, found)
    )
    changed = {name for name in after if after[name] != before.get(name)}
    names = {"LoRA factors, as read", "LoRA workspace"}
    tile = 2560 * (FACTS.hidden + FACTS.ffn) * 2
    assert after["LoRA workspace"] == (2 * tile if mode == "online" else 256_000_000)
    if mode == "online":
        names |= {"transfer slots", "pinned blocks"}
        assert after["transfer slots"] - before["transfer slots"] == slots * SIZES.slot_bytes
        assert after["pinned blocks"] - before["pinned blocks"] == 50 * SIZES.slot_bytes
    assert names <= changed and after["LoRA factors, as read"] == SIZES.host_bytes


def with_ranks(request: Request, *ranks: int, strength: float = 1.0) -> Request:
    loras = tuple(LoraChoice(f"LoRA {at}", strength, rank) for at, rank in enumerate(ranks))
    return replace(request, loras=loras)


def test_a_rank_stands_in_for_a_file() -> None:
    found = assumed_sizes(with_ranks(LONG, 64), FACTS)
    assert found is not None
    for name, value in vars(SIZES).items():
        assert getattr(found, name) == pytest.approx(value, rel=0.02), name
    twice = assumed_sizes(with_ranks(LONG, 32, 32), FACTS)
    assert twice == found, "ranks add up"
    assert assumed_sizes(LONG, FACTS) is None
    assert assumed_sizes(with_ranks(LONG, 64, strength=0.0), FACTS) is None, "0 is no LoRA"
    assert assumed_sizes(replace(LONG, loras=(LoraChoice("x"),)), FACTS) is None, "a file's own"
    with pytest.raises(RequestError, match=r"1\.\.2048"):
        LoraChoice("x", rank=0)


def seconds_of(phase: dict[str, Any]) -> dict[str, float]:
    return {t["name"]: t["value"] for t in phase["terms"] if t["unit"] == "seconds"}


@pytest.mark.parametrize(("clip", "mode"), [(LONG, "merged"), (SHORT, "online")])
def test_the_count_of_loras_and_their_ranks_change_time_vram_and_ram(clip, mode) -> None:
    here = machine(24, 64)
    plain, one, two = (
        forecast(with_ranks(clip, *ranks), here, FACTS, what_if=False)
        for ranks in ((), (64,), (64, 64))
    )
    assert "lora" not in plain and one["lora"]["mode"] == mode, one["lora"]
    sample = [document["phases"][1] for document in (plain, one, two)]
    for axis in ("vram_peak_bytes", "ram_peak_bytes"):
        assert sample[0][axis] < sample[1][axis] <= sample[2][axis], axis
    assert sample[1]["ram_peak_bytes"] + 500e6 < sample[2]["ram_peak_bytes"]
    assert plain["total_seconds"] < one["total_seconds"] <= two["total_seconds"]
    added = one["total_seconds"] - plain["total_seconds"]
    asked = one["lora"]["merge_seconds" if mode == "merged" else "online_seconds"]
    # Branches of the first of eight steps hide behind the first reading of the blocks.
    assert added == pytest.approx(asked * (1 if mode == "merged" else 7 / 8), rel=0.01)
    terms = seconds_of(sample[1])
    assert sum(terms.values()) == pytest.approx(sample[1]["seconds"], rel=1e-3)
    assert ("LoRA merge" in terms) == (mode == "merged")
    assert one["request"]["loras"] == [{"strength": 1.0, "rank": 64}]
    assert any(reason.startswith(f"LoRA {mode}") for reason in one["reasons"])


def test_blocks_that_stay_for_the_second_pass_are_merged_once() -> None:
    light = with_ranks(Request(Geometry(1344, 768, 243), base_steps=20, refine_steps=19), 64)
    phases = forecast(light, machine(24, 64), FACTS, what_if=False)["phases"]
    merged = {phase["phase"]: seconds_of(phase).get("LoRA merge", 0.0) for phase in phases}
    assert merged["sample_low"] > 1 and merged["sample_high"] == 0
    small = forecast(light, machine(24, 16), FACTS, what_if=False)["phases"]
    again = {phase["phase"]: seconds_of(phase).get("LoRA merge", 0.0) for phase in small}
    assert again["sample_high"] > 1, "blocks that did not stay are read and merged again"


def test_a_request_that_fits_only_merged_is_merged_unless_told_otherwise(monkeypatch) -> None:
    monkeypatch.setattr(planned, "sizes_of", lambda loras: replace(SIZES, slot_bytes=40 << 30))
    held = LoraSet(differences=MappingProxyType({"x": ()}))
    here = machine(8, 64)

    def plan(wanted: str) -> dict[str, Any]:
        return plan_with_loras(
            held, wanted, SHORT, FACTS, choose_calibration(here),
            lambda facts: forecast_for_run(SHORT, here, facts, "cuda"), timed=True,
        )  # fmt: skip

    document = plan("auto")
    assert planned_mode(document) == "merged" == document["lora"]["mode"]
    assert document["lora"]["block_bytes"] == 0
    assert document["lora"]["host_bytes"] == SIZES.host_bytes
    assert document["reasons"][-1] == document["lora"]["reason"]
    with pytest.raises(DoesNotFit):
        plan("online")

    def refused(facts: ModelFacts) -> dict[str, Any]:  # as a panel's forecast tells it
        return {"fits": facts.lora_block_bytes == 0, "reasons": []}

    sizes = replace(SIZES, slot_bytes=40 << 30)
    told = plan_with_sizes(sizes, "auto", SHORT, FACTS, ROWS, refused, timed=True)
    assert told["fits"] and told["lora"]["mode"] == "merged"
    tight = machine(8, 12)
    kept = plan_with_sizes(
        SIZES, "merged", LONG, FACTS, ROWS,
        lambda facts: forecast_for_run(LONG, tight, facts, "cuda"), timed=True,
    )  # fmt: skip
    assert "read at every step are kept merged on the disk" in kept["reasons"][-1]
    assert not plan_with_sizes(sizes, "online", SHORT, FACTS, ROWS, refused, timed=True)["fits"]


def test_a_plan_without_adapters_is_untouched() -> None:
    made = {"reasons": []}
    assert (
        plan_with_loras(LoraSet(), "auto", SHORT, FACTS, ROWS, lambda f: made, timed=True) is made
    )
    assert planned_mode(made) == "merged"
