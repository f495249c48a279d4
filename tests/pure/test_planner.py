"""The planner against its own rules: terms, budgets, margins, refusals, what a request gets."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from planner_tools import FACTS, known_rows, machine, plan_on, reference_rows, single_pass

from lowpeak.engine.errors import DoesNotFit, RequestError
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.calibration import Row, choose_calibration
from lowpeak.engine.planner.cost import KEPT_ROW, RAM, SECONDS, VRAM, total
from lowpeak.engine.planner.explain import what_more_memory_changes
from lowpeak.engine.planner.passes import (
    first_pass_geometry,
    lifted_geometry,
    sampling_passes,
    upscaler_workspace_bytes,
)
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.search import make_budget
from lowpeak.engine.planner.types import HardwareSnapshot
from lowpeak.engine.request import Request
from lowpeak.engine.units import GIB, format_gib


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


def test_the_peak_in_a_sentence_is_the_one_in_the_table() -> None:
    kept = Row(KEPT_ROW, 50e6, "B", "measured", "a test", 0.0)
    rows, seen = known_rows().with_rows([kept]), 0
    for vram, ram in ((4.25, 8), (4.5, 8), (5, 8), (6, 24)):
        plan = plan_on(Request(Geometry(1344, 768, 243)), machine(vram, ram), rows)
        for phase in plan.phases:
            for said in plan.reasons:
                if said.startswith(f"{phase.phase} ") and "smallest VRAM peak is kept" in said:
                    assert f"kept ({format_gib(phase.vram_peak_bytes)})" in said
                    seen += any(term.name.startswith("kept by") for term in phase.terms)
    assert seen, "no plan of these keeps anything in the allocator"


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
    short = max(caught.value.short, key=lambda item: item.shortfall_bytes)
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
