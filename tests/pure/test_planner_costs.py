"""What a pass costs: prototypes reproduced, groups, key sources, what stands beside blocks."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from planner_tools import FACTS, budget, known_rows, machine, plan_on, reference_rows, single_pass

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.cost import RAM, VRAM, SampleMemory, total
from lowpeak.engine.planner.passes import DecodeWork
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.search import PassSearch, SearchSpace
from lowpeak.engine.planner.workload import Workload
from lowpeak.engine.request import Request
from lowpeak.engine.units import GIB

ALL = SearchSpace()


@pytest.mark.parametrize("size", [(288, 480), (1344, 768), (1920, 1088)])
def test_more_frames_never_need_less(size: tuple[int, int]) -> None:
    rows = reference_rows()
    last = (0, 0, 0)
    for frames in range(22, 500, 17):
        work = Workload(Geometry(*size, frames), FACTS, 256)
        search = PassSearch(work, 8, rows, "linux", ALL)
        least = search.least_vram()
        floors = least, search.least_ram(1 << 60), search.least_ram(least)
        assert all(now >= before for now, before in zip(floors[:2], last[:2], strict=True)), frames
        assert any(True for _ in search.candidates(budget(least, floors[2])))
        assert not any(True for _ in search.candidates(budget(least - 1, 1 << 50)))
        assert not any(True for _ in search.candidates(budget(least, floors[2] - 1)))
        last = floors


def test_a_tiny_clip_is_charged_for_the_refiner() -> None:
    plan = plan_on(single_pass(256, 256, 22), machine(8, 32))
    phase = plan.phase("sample_high")
    assert phase is not None
    assert phase.vram_peak_bytes >= FACTS.root_bytes + int(reference_rows()["memory.context"])
    assert total(phase.terms, VRAM) == phase.vram_peak_bytes


def test_prototype_working_sets_are_reproduced() -> None:
    """Reserved beside the context, whole-block slots: 5.2, 3.25, 3.6, 6.1 GiB (design numbers)."""
    rows = reference_rows().with_values(
        memory__chunk_temporaries=9.5,
        memory__allocator=1,
        memory__chunk_temporaries_alone=9.5,
        memory__allocator_alone=1,
    )
    for size, frames, keys, reserved_gib in [
        ((1344, 768), 243, "store", 5.2),
        ((1344, 768), 243, "recompute", 3.25),
        ((1344, 768), 345, "recompute", 3.6),
        ((1920, 1088), 362, "recompute", 6.1),
    ]:
        search = PassSearch(Workload(Geometry(*size, frames), FACTS, 107), 1, rows, "linux", ALL)
        terms = search.memory.fixed_vram() + search.memory.choice_vram(keys, "device")
        ours = total(terms, VRAM) - int(rows["memory.context"]) + 2 * FACTS.block_bytes
        beside = {"root", "AdaLN rows of a step", "latents and positions", "text rows"}
        ours -= sum(int(term.value) for term in terms if term.name in beside)  # not in the probe
        assert ours / GIB == pytest.approx(reserved_gib, rel=0.06), (size, frames, keys)


def test_prototype_times_are_reproduced() -> None:
    # The prototype's own rates, launch gaps and clock; the shipped rows are of today's engine.
    rows = reference_rows().with_values(
        rates__attention=551e12,
        rates__gemm_fp8=1300e12,
        rates__copy=4.2e12,
        rates__convolution=0.667e12,
        rates__readout=0.8e12,
        rates__solve=315e3,
        rates__sustained=0.955,
        rates__launch=1e-15,
        rates__alone=1e-15,
        rates__step=1e-15,
    )
    for size, frames, keys, seconds in [
        ((1344, 768), 243, "store", 8.8),
        ((1344, 768), 243, "recompute", 9.4),
        ((1344, 768), 345, "recompute", 13.3),
        ((1920, 1088), 362, "recompute", 38.0),
    ]:
        work = Workload(Geometry(*size, frames), FACTS, 107)
        search = PassSearch(work, 1, rows, "linux", ALL)
        assert search.clocks[keys, "device"].walk(0, 2, False) == pytest.approx(seconds, rel=0.03)


def test_a_small_pass_counts_the_rows_of_its_groups() -> None:
    small, large = (
        Workload(Geometry(*size, 243), FACTS, 107) for size in ((672, 384), (1344, 768))
    )
    assert small.group_rows == large.group_rows == large.chunk_rows == 4 * small.chunk_rows == 5040
    assert (small.launches, large.launches) == (4 + 2, 15 + 2)
    costs = [PassSearch(w, 1, known_rows(), "linux", ALL).memory for w in (small, large)]
    fixed = [
        {term.name: term.value for term in [*cost.fixed_vram(), *cost.slack_vram("store")]}
        for cost in costs
    ]
    assert fixed[0]["chunk temporaries"] == fixed[1]["chunk temporaries"]
    square = 56 * 128 * 128 * 4
    # T and J of 25 frames, and A, B, M, T, J of 15 frames that a single chunk does not have
    assert fixed[0]["frame ring of T and J"] == (2 * 25 + 5 * 15) * square
    assert fixed[1]["frame ring of T and J"] == 2 * 10 * square
    # two features; attention in pieces and whole; queries, attention and linear branch of the group
    # ahead; statistics of three times twenty frames
    assert costs[0].side_bytes() == 7 * 5040 * 7168 * 2 + 3 * 20 * square + (32 << 20)
    for keys, count in (("recompute", 4), ("host", 6)):
        added = {term.name: term.value for term in costs[0].choice_vram(keys, "device")}
        assert added["key/value chunks in flight"] == count * 1260 * 7168 * 2 * 2
    added = {term.name: term.value for term in costs[1].choice_vram("recompute", "host")}
    assert added["key/value chunks in flight"] == 0
    added = {term.name: term.value for term in costs[0].choice_vram("recompute", "host")}
    assert added["residual stream, chunks"] == (2 * 5040 + small.dense_rows) * 5376 * 2


def test_key_sources_and_halves_cost_what_the_design_says() -> None:
    work = Workload(Geometry(1344, 768, 243), FACTS, 107)
    assert work.store_bytes == 72_576 * 7168 * 2 * 2
    assert work.residual_bytes == work.rows * 5376 * 2
    assert work.rows == 72_576 + 810 + 107
    search = PassSearch(work, 1, reference_rows(), "linux", ALL)
    names = {term.name: term.value for term in search.memory.fixed_vram()}
    ring = (2 * 1008 + 917 + 3 * 5040) * 7168 * 2 * 2
    assert names["key/value ring"] == ring
    assert names["dense-row accumulators"] == (2 * 1008 + 917) * 7168 * 8
    assert names["scan states"] == (15 * 3 + 4) * 56 * 128 * 128 * 4


def test_decoder_tiles_agree_with_the_sheet() -> None:
    work = DecodeWork(Geometry(1344, 768, 243))
    assert (work.tiles, work.clips, work.tile_tokens) == (28, 14, 7 * 256 + 5)


def test_lora_factors_are_charged() -> None:
    snapshot, request = machine(8, 32), single_pass()
    rows = choose_calibration(snapshot)
    heavy = replace(FACTS, lora_block_bytes=40_000_000, lora_root_bytes=10_000_000)
    with_lora = plan_request(request, snapshot, heavy, rows).phase("sample_high")
    without = plan_request(request, snapshot, FACTS, rows).phase("sample_high")
    assert with_lora is not None and without is not None
    assert with_lora.vram_peak_bytes > without.vram_peak_bytes
    assert with_lora.ram_peak_bytes - without.ram_peak_bytes == 50 * 40_000_000


@pytest.mark.parametrize("kept", [False, True])
def test_the_room_for_blocks_is_what_is_left_beside_the_root(kept: bool) -> None:
    work, rng = Workload(Geometry(1344, 768, 243), FACTS, 256), random.Random(5)
    memory = SampleMemory(work, reference_rows(), "linux", 8, kept)
    whole = FACTS.blocks * FACTS.block_bytes
    for _ in range(300):
        room = rng.randint(0, 30 * GIB)
        most = memory.weights_room(room)
        if most < 0:
            assert memory.with_root(0) > room
            continue
        assert memory.with_root(min(most, whole)) <= room
        if most < whole - 1:
            assert memory.with_root(most + 1) > room


def test_a_second_pass_over_kept_blocks_reads_the_root_beside_them() -> None:
    request = Request(Geometry(1344, 768, 243))
    plan = plan_on(request, machine(12, 64))
    low, high = plan.phase("sample_low"), plan.phase("sample_high")
    assert low is not None and high is not None and low.placement and high.placement
    assert low.placement.pinned_blocks == high.placement.pinned_blocks == FACTS.blocks
    terms = {term.name: term.value for term in high.terms if term.unit == RAM}
    assert terms["root, while a pass is bound"] == FACTS.root_bytes
    assert "root, while a pass is bound" not in {term.name for term in low.terms}
