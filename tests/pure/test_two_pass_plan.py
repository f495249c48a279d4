"""Canvases and passes of the quality levels, against the golden plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lowpeak.engine.errors import RequestError
from lowpeak.engine.geometry import Geometry, snap_frames
from lowpeak.engine.planner.passes import sampling_passes
from lowpeak.engine.request import QUALITIES, Request
from lowpeak.engine.sampling.canvas import lift_scale, plan_two_pass_canvas
from lowpeak.engine.sampling.quality import LEVELS, plan_request, plan_sampling

HD = Geometry(1344, 768, 243)


def test_golden_plans_are_exact(golden_dir: Path) -> None:
    for want in json.loads((golden_dir / "two_pass.json").read_text())["plans"]:
        frames = snap_frames(want.get("frames_requested", want.get("frames")))
        geometry = Geometry(want["width"], want["height"], frames)

        def plan(want: dict = want, geometry: Geometry = geometry):
            return plan_sampling(
                geometry,
                two_pass=True,
                base_steps=want["base_steps"],
                refine_steps=want["refine_steps"],
            )

        if "refused" in want:
            if want["refused"] == "too short":
                # The origin refuses two passes below 39 frames; here every clip may have two.
                assert plan().two_pass
                continue
            with pytest.raises(RequestError, match=want["refused"].removeprefix("refine ")[:5]):
                plan()
            continue
        found = plan()
        canvas, low = found.canvas, found.first.geometry
        assert canvas is not None and found.refine is not None, want
        assert (low.width_px, low.height_px) == (want["first"]["width"], want["first"]["height"])
        assert [low.latent_frames, low.latent_height, low.latent_width] == want["first"]["latent"]
        assert [low.latent_frames, *canvas.lift_latent] == want["lift"]["latent"]
        assert canvas.lift_width_px == want["lift"]["width"]
        assert canvas.lift_height_px == want["lift"]["height"]
        assert [low.latent_frames, *canvas.target_latent] == want["target_latent"]
        assert (canvas.crop_left_px, canvas.crop_top_px) == (
            want["crop_pixels"]["left"],
            want["crop_pixels"]["top"],
        )
        assert canvas.crop_left == want["crop_latent"]["left"]
        assert canvas.crop_top == want["crop_latent"]["top"]
        assert found.evaluations == want["total_steps"]
        assert found.upscaling is want["upscaling"]
        assert found.refine.seed_offset == want["seed_offset"]
        named = found.refine.schedule.name
        assert named == want["refine_schedule"] or (
            want["refine_schedule"] == "original-tail" and named.startswith("tail-")
        )
        if found.upscaling:
            assert canvas.scale == want["scale"]


def test_golden_geometry_two_pass_is_exact(golden_dir: Path) -> None:
    for want in json.loads((golden_dir / "geometry.json").read_text())["two_pass"]:
        canvas = plan_two_pass_canvas(want["width"], want["height"])
        assert canvas.first_width_px == want["first"]["width"], want
        assert canvas.first_height_px == want["first"]["height"], want
        assert canvas.lift_width_px == want["lift"]["width"]
        assert canvas.lift_height_px == want["lift"]["height"]
        assert (canvas.crop_left_px, canvas.crop_top_px) == (
            want["crop"]["left"],
            want["crop"]["top"],
        )
        latent = want["latent_crop"]
        assert (canvas.crop_left, canvas.crop_top) == (latent["left"], latent["top"])
        assert canvas.target_latent == (latent["height"], latent["width"])
        assert canvas.upscaling is want["upscaling"]


def test_golden_runs_follow_the_rule_without_its_floor(golden_dir: Path) -> None:
    for want in json.loads((golden_dir / "two_pass.json").read_text())["assemblies"].values():
        height, width = (16 * side for side in want["target"])
        canvas = plan_two_pass_canvas(width, height, halving_floor_px=0)
        first = [canvas.first_height_px // 16, canvas.first_width_px // 16]
        assert first == want["plan"]["first"]
        assert list(canvas.lift_latent) == want["plan"]["lift"]
        assert (canvas.crop_top, canvas.crop_left) == (want["plan"]["top"], want["plan"]["left"])
        assert canvas.scale == want["scale"]


@pytest.mark.parametrize("width", range(32, 2080, 96))
@pytest.mark.parametrize("height", range(32, 2080, 224))
def test_the_lift_covers_every_target_and_the_crop_is_on_the_latent_grid(
    width: int, height: int
) -> None:
    canvas = plan_two_pass_canvas(width, height)
    for first, lift, target in (
        (canvas.first_width_px, canvas.lift_width_px, width),
        (canvas.first_height_px, canvas.lift_height_px, height),
    ):
        assert 0 < first <= lift and first % 32 == 0
        assert 0 <= lift - target <= 32
        assert (lift - target) // 2 % 16 == 0
    assert canvas.scale >= 1.0


@pytest.mark.parametrize("width", range(256, 2080, 96))
@pytest.mark.parametrize("height", range(256, 2080, 224))
def test_the_planner_prices_the_passes_that_are_sampled(width: int, height: int) -> None:
    if max(width / height, height / width) > 4:
        return
    by_hand = {"two_pass": True, "refine_steps": 2}
    for quality, options in (("light", {}), ("max", {}), ("high", by_hand)):
        request = Request(Geometry(width, height, 39), quality=quality, **options)
        priced = [(item.phase, item.geometry, item.steps) for item in sampling_passes(request)]
        sampled = [
            (item.phase, item.geometry, item.evaluations) for item in plan_request(request).passes
        ]
        assert priced == sampled


@pytest.mark.parametrize(
    "asked",
    [
        {"two_pass": False, "refine_steps": 3},
        {"quality": "max", "refine_steps": 3},
        {"refine_steps": 20},
        {"base_steps": 4, "refine_steps": 4},
        {"base_steps": 1, "refine_steps": 3},
        {"base_steps": 2},
        {"two_pass": False},
    ],
)
def test_the_planner_refuses_the_steps_that_the_sampler_refuses(asked: dict[str, Any]) -> None:
    request = Request(Geometry(512, 512, 39), **asked)
    said = []
    for passes_of in (plan_request, sampling_passes):
        try:
            passes_of(request)
            said.append("")
        except RequestError as refused:
            said.append(str(refused))
    assert said[0] == said[1]
    assert bool(said[0]) is ("refine_steps" in asked and asked.get("base_steps") != 1)


def test_scale_is_the_mean_when_the_axes_differ() -> None:
    assert lift_scale((4, 6), (8, 12)) == 2.0
    assert lift_scale((5, 7), (7, 9)) == pytest.approx((7 / 5 + 9 / 7) / 2)


def test_levels_are_the_request_levels_and_count_as_published() -> None:
    assert tuple(LEVELS) == QUALITIES
    counts = {name: plan_sampling(HD, name).evaluations for name in QUALITIES}
    assert counts == {"light": 11, "medium": 12, "high": 16, "max": 20}
    light = plan_sampling(HD, "light")
    assert [item.phase for item in light.passes] == ["sample_low", "sample_high"]
    assert [item.evaluations for item in light.passes] == [8, 3]
    assert [item.holds_audio for item in light.passes] == [False, True]
    assert plan_sampling(HD, "max").as_json()["passes"][0]["phase"] == "sample_high"


def test_every_level_can_be_set_by_hand() -> None:
    assert plan_sampling(HD, "light", two_pass=False).evaluations == 8
    assert plan_sampling(HD, "max", two_pass=True).evaluations == 23
    assert plan_sampling(HD, "high", base_steps=32).evaluations == 32
    assert plan_sampling(HD, "light", base_steps=12, refine_steps=4).evaluations == 16
    assert plan_sampling(HD, "light", base_steps=1).evaluations == 4
    named = plan_sampling(HD, "light", refine_steps=5, refine_name="community-sigma5")
    assert named.refine is not None and named.refine.schedule.evaluations == 5
    asked = plan_request(
        Request(HD, quality="medium", base_steps=10, refine_steps=2, two_pass=True)
    )
    assert asked.evaluations == 12


def test_a_small_canvas_still_has_two_passes_but_no_upscaler() -> None:
    found = plan_sampling(Geometry(832, 480, 124), "light")
    assert found.two_pass and not found.upscaling
    assert found.first.geometry == found.passes[1].geometry


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"quality": "best"}, "quality"),
        ({"base_steps": 0}, "base_steps"),
        ({"base_steps": 33}, "base_steps"),
        ({"refine_steps": 0}, "refine_steps"),
        ({"refine_steps": 32}, "refine_steps"),
        ({"refine_steps": 8}, "refine_steps"),
        ({"quality": "medium", "refine_steps": 3}, "refine_steps"),
        ({"two_pass": False, "refine_name": "community-sigma4"}, "refine_steps"),
        ({"refine_name": "community-sigma4"}, "refine_steps"),
        ({"refine_name": "nobody"}, "refine_schedule"),
    ],
)
def test_contradictions_are_refused_by_field(options: dict, field: str) -> None:
    with pytest.raises(RequestError) as refused:
        plan_sampling(HD, **options)
    assert refused.value.field == field


@pytest.mark.parametrize("side", [0, -32, 33])
def test_sides_off_the_grid_are_refused(side: int) -> None:
    with pytest.raises(RequestError, match="multiple of 32"):
        plan_two_pass_canvas(side, 512)
