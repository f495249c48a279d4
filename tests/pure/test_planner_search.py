"""The search over placements: to the byte on toys, against every candidate, monotone in memory."""

from __future__ import annotations

import itertools
import random

import pytest
from planner_tools import (
    FACTS,
    TOY,
    budget,
    machine,
    plan_on,
    reference_rows,
    single_pass,
    toy_search,
)

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.cost import RAM, VRAM, total
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.search import TIE, PassSearch, SearchSpace, make_budget
from lowpeak.engine.planner.timing import WRITE_SHARE, StepClock, spread
from lowpeak.engine.planner.types import HardwareSnapshot
from lowpeak.engine.planner.workload import BlockSeconds, Workload
from lowpeak.engine.request import Request

ALL = SearchSpace()

WHOLE = SearchSpace(("store",), ("device",), (False,), (1,))


def toy_fixed(search: PassSearch) -> int:
    """Device bytes of the toy beside weights."""
    return search.fixed_vram + total(search.memory.choice_vram("store", "device"), VRAM)


@pytest.mark.parametrize(
    ("room", "resident", "slots"),
    [
        (99, None, None),
        (100, 0, 1),
        (199, 0, 1),
        (250, 1, 1),
        (299, 1, 1),
        (300, 3, 0),
        (400, 3, 0),
    ],
)
def test_three_blocks_of_100_bytes_are_placed_to_the_byte(
    room: int, resident: int | None, slots: int | None
) -> None:
    search = toy_search(WHOLE, rates__link=1e-3)  # a slow link: residency pays
    choice = search.choose(budget(toy_fixed(search) + room, 1 << 30))
    if resident is None:
        assert choice is None
        return
    assert choice is not None
    place = choice.candidate.placement
    assert (place.resident_blocks, place.transfer_slots) == (resident, slots)
    assert choice.candidate.vram_bytes == toy_fixed(search) + 100 * (resident + (slots or 0))


@pytest.mark.parametrize(("room", "pinned", "disk"), [(299, None, None), (300, 3, 0), (1000, 3, 0)])
def test_pinned_blocks_are_placed_to_the_byte(
    room: int, pinned: int | None, disk: int | None
) -> None:
    search = toy_search(WHOLE, memory__staging_blocks=9)
    choice = search.choose(budget(toy_fixed(search) + 100, search.fixed_ram + room))
    if pinned is None:
        assert choice is None, "neither three pinned blocks nor a ring of nine fit"
        return
    assert choice is not None
    place = choice.candidate.placement
    assert (place.pinned_blocks, place.disk_blocks) == (pinned, disk)
    assert choice.candidate.ram_bytes == search.fixed_ram + 300


def test_the_staging_ring_is_charged_only_when_a_block_is_on_disk() -> None:
    search = toy_search(WHOLE, memory__staging_blocks=1)
    device = toy_fixed(search) + 100
    tight = search.choose(budget(device, search.fixed_ram + 250))
    assert tight is not None
    place = tight.candidate.placement
    assert (place.pinned_blocks, place.disk_blocks) == (1, 2)
    assert tight.candidate.ram_bytes == search.fixed_ram + 100 + 100
    roomy = search.choose(budget(device, search.fixed_ram + 300))
    assert roomy is not None and roomy.candidate.placement.disk_blocks == 0


def test_a_pin_limit_counts_like_memory() -> None:
    search = toy_search(WHOLE, memory__staging_blocks=1)
    device = toy_fixed(search) + 100
    choice = search.choose(budget(device, 1 << 30, pin_bytes=200))
    assert choice is not None
    assert choice.candidate.placement.pinned_blocks == 1


def random_search(rng: random.Random) -> tuple[PassSearch, HardwareSnapshot]:
    """A random clip on a random machine with random rates."""
    rows = reference_rows().with_values(
        rates__link=10 ** rng.uniform(9, 10.8),
        rates__disk=10 ** rng.uniform(8.5, 9.8),
        rates__attention=10 ** rng.uniform(13, 14.8),
        rates__gemm_fp8=10 ** rng.uniform(13.3, 15.1),
    )
    clip = Geometry(32 * rng.randint(8, 60), 32 * rng.randint(8, 34), 17 * rng.randint(1, 21) + 5)
    work = Workload(clip, FACTS, text_rows=rng.randint(0, 800))
    snapshot = machine(rng.uniform(3, 40), rng.uniform(5, 64))
    return PassSearch(work, 8, rows, "linux", ALL), snapshot


@pytest.mark.parametrize("seed", range(40))
def test_no_fitting_candidate_beats_the_chosen_one(seed: int) -> None:
    search, snapshot = random_search(random.Random(seed))
    room = make_budget(snapshot, reference_rows())
    choice = search.choose(room)
    priced = []
    for item in search.candidates(room):
        assert item.vram_bytes <= room.vram_bytes and item.ram_bytes <= room.ram_bytes
        place = item.placement
        assert place.resident_blocks + place.pinned_blocks + place.disk_blocks == FACTS.blocks
        seconds = search.clocks[place.keys, place.residual].step(place).total
        priced.append((seconds, item))
        terms = search.memory.terms(place)
        assert max(total(terms, VRAM), search.prologue) == item.vram_bytes
        assert total(terms, RAM) == item.ram_bytes
    assert (choice is None) == (not priced)
    if choice is None:
        assert search.shortages("sample_high", room)
        return
    best = min(seconds for seconds, _ in priced)
    assert choice.best_seconds == pytest.approx(best, rel=1e-12)
    near = [item.vram_bytes for seconds, item in priced if seconds <= TIE * best]
    assert choice.step.total <= TIE * best
    assert choice.candidate.vram_bytes == min(near)


@pytest.mark.parametrize("seed", range(25))
def test_fewer_pinned_blocks_are_never_faster(seed: int) -> None:
    search, _ = random_search(random.Random(1000 + seed))
    for clock in search.clocks.values():
        for resident in (0, 7, 33, 49):
            times = [
                max(clock.walk(resident, 2, True), disk * clock.read)
                for disk in range(FACTS.blocks - resident + 1)
            ]
            assert times == sorted(times)


Units = list[tuple[float, float]]  # a block's: seconds of upload, then of compute that needs it


def simulate_slots(blocks: list[Units], passes: int, slots: int = 2) -> float:
    """Event by event: a copy waits for a free slot and for the link; a block's slots are free at
    its end. Units without upload (below 0) are resident."""
    link_free = compute_end = 0.0
    free = [0.0] * slots
    ends = []
    for _ in range(passes):
        for units in blocks:
            for upload, seconds in units:
                ready = 0.0
                if upload >= 0:
                    link_free = ready = max(link_free, free.pop(0)) + upload
                compute_end = max(compute_end, ready) + seconds
            free += [compute_end for upload, _ in units if upload >= 0]
        ends.append(compute_end)
    return (ends[-1] - ends[1]) / (passes - 2)


@pytest.mark.parametrize(("half", "slots"), [(False, 2), (True, 2), (True, 3)])
@pytest.mark.parametrize("seed", range(12))
def test_the_walk_agrees_with_a_simulated_stream(seed: int, half: bool, slots: int) -> None:
    """As the engine streams: the attention half serves both sweeps, the other one the second."""
    rng = random.Random(seed)
    rows = reference_rows().with_values(rates__link=10 ** rng.uniform(8.5, 10.8), rates__step=1e-15)
    compute = BlockSeconds(rng.uniform(0.02, 0.3), rng.uniform(0.01, 0.1), 0.0)
    clock = StepClock(Workload(Geometry(512, 512, 56), FACTS, 10), compute, rows, "store", "device")
    resident = rng.choice([0, 0, 10, 25, 40])
    write = WRITE_SHARE * compute.attention
    read = compute.attention - write + compute.ffn
    blocks: list[Units] = []
    for streamed in spread(50 - resident, 50):
        if not streamed:
            blocks.append([(-1.0, write + read)])
        elif half:
            blocks.append([(clock.upload_attention, write), (clock.upload_ffn, read)])
        else:
            blocks.append([(clock.upload, write + read)])
    simulated = simulate_slots(blocks, 8, slots)
    walked = clock.walk(resident, slots, half)
    assert walked >= simulated * (1 - 1e-9), "a forecast may not be faster than the stream"
    if resident == 0:
        assert walked == pytest.approx(simulated, rel=0.02 if slots == 3 else 1e-9)
    busiest = max(
        sum(seconds for units in blocks for _, seconds in units),
        sum(upload for units in blocks for upload, _ in units if upload > 0),
    )
    assert walked <= 1.35 * max(simulated, busiest)


def test_one_slot_overlaps_nothing() -> None:
    rows = reference_rows().with_values(rates__step=1e-15)
    compute = BlockSeconds(0.1, 0.05, 0.0)
    clock = StepClock(Workload(Geometry(512, 512, 56), FACTS, 10), compute, rows, "store", "device")
    assert clock.walk(0, 1, False) == pytest.approx(50 * (0.15 + clock.upload))


GRID = [(v, r) for v in (4, 5, 6, 8, 10, 12, 16, 24, 48) for r in (8, 12, 16, 24, 32, 64)]


def best_seconds(request: Request, snapshot: HardwareSnapshot) -> float | None:
    """The fastest step before the tie rule; None when nothing fits."""
    work = Workload(request.geometry, FACTS, 256)
    rows = choose_calibration(snapshot)
    search = PassSearch(work, 8, rows, snapshot.system, ALL)
    choice = search.choose(make_budget(snapshot, rows))
    return None if choice is None else choice.best_seconds


@pytest.mark.parametrize("card", [None, "rtx-4060", "rtx-3090"])
@pytest.mark.parametrize("frames", [56, 243, 345])
def test_more_memory_is_never_slower(card: str | None, frames: int) -> None:
    request = single_pass(frames=frames)
    times = {
        cell: best_seconds(request, machine(*cell, card=card)) or float("inf") for cell in GRID
    }
    for (vram, ram), (more_vram, more_ram) in itertools.product(GRID, GRID):
        if more_vram >= vram and more_ram >= ram:
            limit = times[vram, ram] * (1 + 1e-9)
            assert times[more_vram, more_ram] <= limit, (vram, ram, more_vram, more_ram)


def test_the_tie_rule_costs_at_most_one_percent_with_more_memory() -> None:
    request = single_pass()
    last = {}
    for vram, ram in GRID:
        high = plan_on(request, machine(vram, ram)).phase("sample_high")
        assert high is not None
        for (less_vram, less_ram), seconds in last.items():
            if less_vram <= vram and less_ram <= ram:
                assert high.seconds_per_step <= TIE * seconds
        last[vram, ram] = high.seconds_per_step


@pytest.mark.parametrize("rate", ["link_bytes_per_second", "disk_bytes_per_second"])
def test_a_faster_link_or_disk_is_never_slower(rate: str) -> None:
    request = single_pass()
    for cell in [(4, 12), (6, 8), (8, 8), (12, 16)]:
        times = [
            best_seconds(request, machine(*cell, **{rate: value}))
            for value in (0.5e9, 1e9, 2e9, 4e9, 12e9, 25e9, 60e9)
        ]
        assert None not in times
        rounded = [round(value, 9) for value in times if value is not None]
        assert rounded == sorted(rounded, reverse=True), cell


def test_search_space_is_obeyed() -> None:
    only = SearchSpace(("recompute",), ("device",), (False,), (2,))
    request, snapshot = single_pass(), machine(8, 32)
    plan = plan_request(request, snapshot, FACTS, choose_calibration(snapshot), space=only)
    place = plan.phase("sample_high").placement  # type: ignore[union-attr]
    assert place is not None
    assert (place.keys, place.residual, place.half_slots) == ("recompute", "device", False)


def test_a_toy_with_every_byte_counted_twice_is_caught() -> None:
    """The toy's slots and blocks are the only weights: 100 bytes each, nothing rounded."""
    search = toy_search(ALL)
    for item in search.candidates(budget(1 << 40, 1 << 40)):
        place = item.placement
        base = search.fixed_vram + total(
            search.memory.choice_vram(place.keys, place.residual), VRAM
        )
        size = 60 if place.half_slots else 100
        weights = 100 * place.resident_blocks + size * place.transfer_slots
        assert item.vram_bytes == max(base + weights, search.prologue)
    assert TOY.block_bytes == 100


@pytest.mark.parametrize(("vram_gib", "keys"), [(8, "store"), (6, "recompute")])
def test_keys_are_kept_wherever_they_fit(vram_gib: float, keys: str) -> None:
    phase = plan_on(single_pass(frames=345), machine(vram_gib, 32)).phase("sample_high")
    assert phase is not None and phase.placement is not None
    assert phase.placement.keys == keys, "storing 345 frames of keys is faster and takes 1.5 GiB"
