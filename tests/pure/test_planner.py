"""The planner against its own rules: byte-exact toys, optimality, monotony, terms, refusals."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import replace

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

from lowpeak.engine.errors import DoesNotFit, RequestError
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.cost import RAM, SECONDS, VRAM, SampleMemory, total
from lowpeak.engine.planner.explain import what_more_memory_changes
from lowpeak.engine.planner.passes import (
    DecodeWork,
    first_pass_geometry,
    lifted_geometry,
    sampling_passes,
    upscaler_workspace_bytes,
)
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.search import TIE, PassSearch, SearchSpace, make_budget
from lowpeak.engine.planner.timing import StepClock, spread
from lowpeak.engine.planner.types import HardwareSnapshot
from lowpeak.engine.planner.workload import BlockSeconds, Workload
from lowpeak.engine.request import Request
from lowpeak.engine.units import GIB

WHOLE = SearchSpace(("store",), ("device",), (False,), (1,))
ALL = SearchSpace()


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


def simulate_slots(compute: list[float], upload: list[float], passes: int, slots: int = 2) -> float:
    """Event by event: a copy into slot i % slots waits for the slot's user and for the link."""
    link_free = compute_end = 0.0
    slot_free = [0.0] * slots
    index, ends = 0, []
    for _ in range(passes):
        for seconds, size in zip(compute, upload, strict=True):
            ready = 0.0
            if size >= 0:
                link_free = max(link_free, slot_free[index % slots]) + size
                ready = link_free
            compute_end = max(compute_end, ready) + seconds
            if size >= 0:
                slot_free[index % slots] = compute_end
                index += 1
        ends.append(compute_end)
    return (ends[-1] - ends[1]) / (passes - 2)


@pytest.mark.parametrize(("half", "slots"), [(False, 2), (True, 2), (True, 3)])
@pytest.mark.parametrize("seed", range(12))
def test_the_walk_agrees_with_a_simulated_stream(seed: int, half: bool, slots: int) -> None:
    rng = random.Random(seed)
    rows = reference_rows().with_values(rates__link=10 ** rng.uniform(8.5, 10.8), rates__step=1e-15)
    compute = BlockSeconds(rng.uniform(0.02, 0.3), rng.uniform(0.01, 0.1), 0.0)
    clock = StepClock(Workload(Geometry(512, 512, 56), FACTS, 10), compute, rows, "store", "device")
    resident = rng.choice([0, 0, 10, 25, 40])
    times, uploads = [], []
    for streamed in spread(50 - resident, 50):
        if not half:
            times.append(compute.attention + compute.ffn)
            uploads.append(clock.upload if streamed else -1.0)
        else:
            times += [compute.attention, compute.ffn]
            uploads += [clock.upload_attention, clock.upload_ffn] if streamed else [-1.0, -1.0]
    simulated = simulate_slots(times, uploads, 8, slots)
    walked = clock.walk(resident, slots, half)
    assert walked >= simulated * (1 - 1e-9), "a forecast may not be faster than the stream"
    busiest = max(sum(times), sum(x for x in uploads if x > 0))
    if resident == 0:
        assert walked == pytest.approx(simulated, rel=1e-9)
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


@pytest.mark.parametrize("cell", [(4, 16), (8, 8), (8, 16), (12, 32), (24, 64)])
@pytest.mark.parametrize("quality", ["light", "high"])
def test_terms_sum_to_every_peak_and_time(cell: tuple[float, float], quality: str) -> None:
    plan = plan_on(Request(Geometry(1344, 768, 243), quality=quality), machine(*cell))
    names = [phase.phase for phase in plan.phases]
    both = ["encode", "sample_low", "upscale", "sample_high", "decode"]
    assert names == (both if quality == "light" else ["encode", "sample_high", "decode"])
    for phase in plan.phases:
        assert total(phase.terms, VRAM) == phase.vram_peak_bytes, phase.phase
        assert total(phase.terms, RAM) == phase.ram_peak_bytes, phase.phase
        seconds = sum(term.value for term in phase.terms if term.unit == SECONDS)
        assert seconds == pytest.approx(phase.seconds), phase.phase
        assert {term.unit for term in phase.terms} <= {VRAM, RAM, SECONDS}
    assert plan.total_seconds == pytest.approx(sum(phase.seconds for phase in plan.phases))
    assert not plan.changes_arithmetic


def test_a_tiny_clip_is_charged_for_the_refiner() -> None:
    plan = plan_on(single_pass(256, 256, 22), machine(8, 32))
    phase = plan.phase("sample_high")
    assert phase is not None
    assert phase.vram_peak_bytes >= FACTS.root_bytes + int(reference_rows()["memory.context"])
    assert total(phase.terms, VRAM) == phase.vram_peak_bytes


def test_every_phase_stays_inside_its_budget() -> None:
    rng = random.Random(5)
    planned = 0
    for _ in range(60):
        snapshot = machine(rng.uniform(3, 24), rng.uniform(4, 48))
        clip = Geometry(
            32 * rng.randint(8, 60), 32 * rng.randint(8, 34), 17 * rng.randint(1, 21) + 5
        )
        room = make_budget(snapshot, choose_calibration(snapshot))
        try:
            plan = plan_on(Request(clip, quality=rng.choice(["light", "max"])), snapshot)
        except DoesNotFit:
            continue
        planned += 1
        for phase in plan.phases:
            kept = sum(t.value for t in phase.terms if t.name.startswith("kept by the allocator"))
            assert phase.vram_peak_bytes - kept <= room.vram_bytes
            assert phase.vram_peak_bytes <= snapshot.vram_free_bytes
            assert phase.ram_peak_bytes <= room.ram_bytes
    assert planned > 20


@pytest.mark.parametrize(
    ("cell", "axes"), [((3, 32), {"vram"}), ((16, 3), {"ram"}), ((2.5, 3), {"vram", "ram"})]
)
def test_a_refusal_names_the_axis_and_sizes_that_do_plan(
    cell: tuple[float, float], axes: set[str]
) -> None:
    request = Request(Geometry(1920, 1088, 362))
    with pytest.raises(DoesNotFit) as caught:
        plan_on(request, machine(*cell))
    refusal = caught.value
    assert {item.axis for item in refusal.short} == axes
    for item in refusal.short:
        assert item.shortfall_bytes > 0 and item.phase
    for fits in refusal.fits_instead:
        clip = Geometry(fits["width"], fits["height"], fits["frames"])
        assert clip.video_tokens < request.geometry.video_tokens
        plan_on(replace(request, geometry=clip), machine(*cell))
    if cell == (3, 32):
        assert refusal.fits_instead


def test_the_shortfall_is_exact() -> None:
    request = single_pass()
    with pytest.raises(DoesNotFit) as caught:
        plan_on(request, machine(2.5, 64))
    short = next(item for item in caught.value.short if item.phase == "sample_high")
    enough = machine(2.5, 64)
    enough = replace(
        enough,
        vram_total_bytes=enough.vram_total_bytes + short.shortfall_bytes,
        vram_free_bytes=enough.vram_free_bytes + short.shortfall_bytes,
    )
    assert plan_on(request, enough).phase("sample_high")
    with pytest.raises(DoesNotFit):
        plan_on(request, replace(enough, vram_free_bytes=enough.vram_free_bytes - 1))


def test_the_request_is_never_shrunk() -> None:
    request = single_pass(frames=345)
    for cell in [(6, 16), (8, 8), (12, 32)]:
        plan = plan_on(request, machine(*cell))
        phase = plan.phase("sample_high")
        assert phase is not None and phase.steps == 8


@pytest.mark.parametrize(
    ("cell", "clip"),
    [((4, 16), (1344, 768, 243)), ((8, 8), (1344, 768, 243)), ((6, 16), (1344, 768, 345))],
)
def test_the_floors_plan(cell: tuple[float, float], clip: tuple[int, int, int]) -> None:
    for request in (Request(Geometry(*clip)), single_pass(*clip)):
        plan_on(request, machine(*cell))


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
    costs = [PassSearch(w, 1, reference_rows(), "linux", ALL).memory for w in (small, large)]
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


@pytest.mark.parametrize("seed", range(20))
def test_two_pass_canvases_agree_with_the_sampler(seed: int) -> None:
    canvas = pytest.importorskip("lowpeak.engine.sampling.canvas")
    cost = pytest.importorskip("lowpeak.engine.sampling.upscaler_cost")
    rng = random.Random(seed)
    for _ in range(40):
        clip = Geometry(32 * rng.randint(8, 70), 32 * rng.randint(8, 70), 56)
        theirs = canvas.plan_two_pass_canvas(clip.width_px, clip.height_px)
        first, lifted = first_pass_geometry(clip), lifted_geometry(clip)
        assert (first.width_px, first.height_px) == (theirs.first_width_px, theirs.first_height_px)
        assert (lifted.width_px, lifted.height_px) == (theirs.lift_width_px, theirs.lift_height_px)
        expected = cost.workspace_bytes(
            lifted.latent_frames, lifted.latent_height, lifted.latent_width, 512, 2
        )
        assert upscaler_workspace_bytes(lifted, 512) == expected


def test_quality_levels_give_the_published_steps() -> None:
    clip = Geometry(1344, 768, 243)
    steps = {
        quality: [item.steps for item in sampling_passes(Request(clip, quality=quality))]
        for quality in ("light", "medium", "high", "max")
    }
    assert steps == {"light": [8, 3], "medium": [12], "high": [16], "max": [20]}


def test_decoder_tiles_agree_with_the_sheet() -> None:
    work = DecodeWork(Geometry(1344, 768, 243))
    assert (work.tiles, work.clips, work.tile_tokens) == (28, 14, 7 * 256 + 5)


def test_search_space_is_obeyed() -> None:
    only = SearchSpace(("recompute",), ("device",), (False,), (2,))
    request, snapshot = single_pass(), machine(8, 32)
    plan = plan_request(request, snapshot, FACTS, choose_calibration(snapshot), space=only)
    place = plan.phase("sample_high").placement  # type: ignore[union-attr]
    assert place is not None
    assert (place.keys, place.residual, place.half_slots) == ("recompute", "device", False)


def test_margins_of_the_history_replace_the_floors() -> None:
    request, snapshot = single_pass(), machine(4.5, 32)
    rows = choose_calibration(snapshot)
    roomy = plan_request(request, snapshot, FACTS, rows)
    tight = plan_request(request, snapshot, FACTS, rows, margins={"vram": GIB})
    high = [plan.phase("sample_high") for plan in (roomy, tight)]
    assert high[0] is not None and high[1] is not None
    assert high[1].vram_peak_bytes <= int(3.5 * GIB) < 4.5 * GIB
    assert "1.00 GiB margin" in " ".join(tight.reasons)


def test_an_extrapolated_card_gets_twice_the_margin() -> None:
    snapshot = machine(8, 32, card="rtx-4060")
    rows = choose_calibration(snapshot)
    assert rows.extrapolated
    assert rows.margin_bytes("vram", "linux") == 2 * rows["margin.vram_linux"]
    own = reference_rows()
    assert own.margin_bytes("vram", "linux") == own["margin.vram_linux"] < rows["margin.vram_linux"]


def test_lora_factors_are_charged() -> None:
    snapshot, request = machine(8, 32), single_pass()
    rows = choose_calibration(snapshot)
    heavy = replace(FACTS, lora_block_bytes=40_000_000, lora_root_bytes=10_000_000)
    with_lora = plan_request(request, snapshot, heavy, rows).phase("sample_high")
    without = plan_request(request, snapshot, FACTS, rows).phase("sample_high")
    assert with_lora is not None and without is not None
    assert with_lora.vram_peak_bytes > without.vram_peak_bytes
    assert with_lora.ram_peak_bytes - without.ram_peak_bytes == 50 * 40_000_000


def test_what_more_memory_changes_is_planned_not_guessed() -> None:
    request = single_pass()
    snapshot = replace(machine(4, 8), disk_bytes_per_second=1e9)  # slow enough to be felt

    def plan(other: HardwareSnapshot):  # type: ignore[no-untyped-def]
        return plan_on(request, other)

    sentences = what_more_memory_changes(plan(snapshot), snapshot, plan)
    assert len(sentences) == 2
    assert "faster" in sentences[0] and "faster" in sentences[1]
    rich = what_more_memory_changes(plan(machine(24, 64)), machine(24, 64), plan)
    assert all("nothing worth naming" in sentence for sentence in rich)
    refused = what_more_memory_changes(None, machine(2.5, 32), plan)
    assert "would fit" in refused[0] and "still not fit" in refused[1]


def test_macos_is_recorded_and_not_planned() -> None:
    with pytest.raises(RequestError, match="macOS"):
        plan_on(single_pass(), machine(16, 32, system="macos"))


def test_a_constant_at_the_edge_of_its_error_moves_the_plan_to_a_neighbour() -> None:
    request, snapshot = single_pass(), machine(8, 16)
    rows = choose_calibration(snapshot)
    base = plan_request(request, snapshot, FACTS, rows).phase("sample_high")
    assert base is not None and base.placement is not None
    for name, row in rows.rows.items():
        for sign in (-1, 1):
            changed = rows.with_values(
                **{name.replace(".", "__", 1): row.value * (1 + sign * min(0.5, row.error_p95))}
            )
            other = plan_request(request, snapshot, FACTS, changed).phase("sample_high")
            assert other is not None and other.placement is not None
            assert abs(other.placement.resident_blocks - base.placement.resident_blocks) <= 8, name
            ratio = other.seconds_per_step / base.seconds_per_step
            assert 0.85 < ratio < 1.2, (name, ratio)


def test_a_plan_takes_under_50_ms() -> None:
    request = Request(Geometry(1344, 768, 243))
    plan_on(request, machine(8, 16))
    for cell in [(4, 16), (8, 8), (12, 32), (32, 16), (80, 64)]:
        snapshot = machine(*cell)
        rows = choose_calibration(snapshot)
        taken = []
        for _ in range(5):
            start = time.process_time()
            plan_request(request, snapshot, FACTS, rows)
            taken.append(time.process_time() - start)
        assert min(taken) < 0.05, cell


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
