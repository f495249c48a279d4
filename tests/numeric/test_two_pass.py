"""The hand-over between the passes, stage by stage, against golden tensors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from lowpeak.engine.errors import RequestError
from lowpeak.engine.model.layout import patchify
from lowpeak.engine.sampling.canvas import TwoPassCanvas, plan_two_pass_canvas
from lowpeak.engine.sampling.noise import Noise, audio_to_rows, rows_to_audio
from lowpeak.engine.sampling.schedules import (
    Schedule,
    community_schedule,
    schedule,
    tail_schedule,
)
from lowpeak.engine.sampling.solver import HeldAudio, euler
from lowpeak.engine.sampling.two_pass import (
    crop_latents,
    lift_and_crop,
    noised_condition_rows,
    shrink_keyframe,
    start_first_pass,
    start_refine,
)


def error(found: torch.Tensor, want: torch.Tensor) -> float:
    return float((found.double() - want.double()).abs().max() / want.double().abs().max())


def named_schedule(name: str) -> Schedule:
    if name.startswith("tail_"):
        _, steps, _, of = name.split("_")
        return tail_schedule(int(steps), int(of))
    return community_schedule(name)


@pytest.fixture(scope="module")
def tensors(golden_dir: Path) -> dict[str, torch.Tensor]:
    return load_file(golden_dir / "two_pass.safetensors")


@pytest.fixture(scope="module")
def runs(golden_dir: Path) -> dict[str, dict]:
    return json.loads((golden_dir / "two_pass.json").read_text())["assemblies"]


def canvas_of(run: dict) -> TwoPassCanvas:
    height, width = (16 * side for side in run["target"])
    return plan_two_pass_canvas(width, height, halving_floor_px=0)


def noise_of(tensors: dict, prefix: str, condition: str, video: str, audio: str) -> Noise:
    drawn = sorted(key for key in tensors if key.startswith(prefix + condition))
    return Noise(
        tuple(tensors[key] for key in drawn), tensors[prefix + video], tensors[prefix + audio]
    )


def test_golden_start_mix_and_held_audio(tensors: dict, golden_dir: Path) -> None:
    with safe_open(golden_dir / "two_pass.safetensors", "pt") as opened:
        mixes = json.loads(opened.metadata()["fixture"])["mixes"]
    worst = 0.0
    for short, mixed in mixes.items():
        plan = named_schedule(mixed["schedule"])
        noise = Noise((), tensors["mix/in/video_noise"], tensors["mix/in/audio_noise_rows"])
        start = start_refine(tensors["mix/in/lifted"], tensors["mix/in/audio"], noise, plan)
        assert isinstance(start.audio, HeldAudio)
        worst = max(
            worst,
            error(start.video, tensors[f"mix/start_rows_{short}"]),
            error(start.video, patchify(tensors[f"mix/{short}/start"])),
        )
        assert torch.equal(start.audio.clean, tensors["mix/audio_clean_rows"])
        for step, time in enumerate(plan.audio_times):
            want = tensors[f"mix/{short}/audio_rows_step{step}"]
            worst = max(worst, error(start.audio.rows_at(time), want))
    assert worst <= 1e-6
    print(f"PARITY | two-pass start mix and held audio | golden two_pass | {worst:.1e}")


def test_golden_keyframes_shrink_for_the_first_pass(tensors: dict) -> None:
    canvases = {key.split("/")[1] for key in tensors if key.startswith("keyframe/")}
    assert canvases
    worst = 0.0
    for name in canvases:
        width, height = map(int, name.split("x"))
        found = shrink_keyframe(
            tensors[f"keyframe/{name}/target"], plan_two_pass_canvas(width, height)
        )
        worst = max(worst, error(found, tensors[f"keyframe/{name}/first_pass"]))
    assert worst <= 1e-5
    print(f"PARITY | keyframe latents of the first pass | golden two_pass | {worst:.1e}")


def test_golden_runs_stage_by_stage(tensors: dict, runs: dict) -> None:
    for name, run in runs.items():
        canvas, plan = canvas_of(run), named_schedule(run["schedule"])
        keyframes = [tensors[f"{name}/in/keyframe{i}"] for i in range(len(run["anchors"]))]
        for index, latents in enumerate(keyframes):
            found = shrink_keyframe(latents, canvas)
            assert error(found, tensors[f"{name}/first/keyframe{index}"]) <= 1e-5
        noise = noise_of(
            tensors,
            f"{name}/in/",
            "first_keyframe_noise",
            "first_video_noise",
            "first_audio_noise_rows",
        )
        if keyframes:
            small = [tensors[f"{name}/first/keyframe{i}"] for i in range(len(keyframes))]
            first = start_first_pass(noise, small)
            assert error(first.condition_rows, tensors[f"{name}/first/condition_rows"]) <= 1e-6
        assert torch.equal(crop_latents(tensors[f"{name}/lifted"], canvas),
                           tensors[f"{name}/cropped"])  # fmt: skip
        noise = noise_of(
            tensors, f"{name}/refine/", "condition_noise", "video_noise", "audio_noise_rows"
        )
        start = start_refine(
            tensors[f"{name}/cropped"], tensors[f"{name}/first/audio"], noise, plan, keyframes
        )
        assert error(start.video, patchify(tensors[f"{name}/refine/start_mix"])) <= 1e-6
        assert isinstance(start.audio, HeldAudio)
        assert torch.equal(start.audio.clean, tensors[f"{name}/refine/audio_clean_rows"])
        assert torch.equal(tensors[f"{name}/out/audio"], tensors[f"{name}/first/audio"])
        if keyframes:
            want = tensors[f"{name}/refine/condition_rows"]
            assert error(start.condition_rows, want) <= 1e-6


def test_golden_refine_steps_from_recorded_velocities(tensors: dict, runs: dict) -> None:
    for name, run in runs.items():
        plan = named_schedule(run["schedule"])
        prefix = f"{name}/refine/step"
        recorded = [
            step for step in range(plan.evaluations) if f"{prefix}{step}/video_velocity" in tensors
        ]
        assert recorded
        audio = HeldAudio(
            tensors[f"{name}/refine/audio_clean_rows"], tensors[f"{name}/refine/audio_noise_rows"]
        )
        start = patchify(tensors[f"{name}/refine/start_mix"])
        for step in recorded:
            before = start if step == 0 else tensors[f"{prefix}{step - 1}/video_rows"]
            part = Schedule(
                "part",
                plan.raw[step : step + 2],
                plan.video_sigmas[step : step + 2],
                plan.audio_sigmas[step : step + 2],
            )
            fed = []

            def model(video, rows, times, prefix=prefix, step=step, fed=fed):
                fed.append(rows)
                return tensors[f"{prefix}{step}/video_velocity"], torch.full_like(rows, torch.nan)

            found, kept = euler(model, before, audio, part)
            assert error(found, tensors[f"{prefix}{step}/video_rows"]) <= 1e-6
            assert torch.equal(kept, audio.clean)
            assert error(fed[0], tensors[f"{prefix}{step}/audio_rows_fed"]) <= 1e-6


def test_nothing_is_lifted_when_the_sizes_agree() -> None:
    canvas = plan_two_pass_canvas(256, 256)
    latents = torch.randn(1, 24, 2, 16, 16)
    assert torch.equal(lift_and_crop(latents, canvas, None), latents)
    assert shrink_keyframe(latents, canvas) is latents


def test_lift_is_called_with_the_lift_size_and_the_centre_is_kept() -> None:
    canvas = plan_two_pass_canvas(544, 512)
    asked = []

    def lift(latents: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        asked.append(size)
        return torch.arange(size[0] * size[1]).reshape(1, 1, 1, *size).float()

    found = lift_and_crop(torch.zeros(1, 1, 1, 16, 18), canvas, lift)
    assert asked == [(32, 36)]
    assert found.shape[-2:] == (32, 34)
    assert found[0, 0, 0, 0, 0] == 1 and found[0, 0, 0, 1, 0] == 37


def test_wrong_sizes_are_refused_before_anything_runs() -> None:
    canvas = plan_two_pass_canvas(1024, 1024)
    with pytest.raises(RequestError, match="the plan says"):
        lift_and_crop(torch.zeros(1, 24, 2, 8, 8), canvas, None)
    with pytest.raises(RequestError, match="upscaler"):
        lift_and_crop(torch.zeros(1, 24, 2, 32, 32), canvas, None)
    with pytest.raises(RequestError, match="target's size"):
        shrink_keyframe(torch.zeros(1, 24, 1, 8, 8), canvas)
    noise = Noise((), torch.zeros(1, 24, 2, 4, 4), torch.zeros(6, 32))
    with pytest.raises(RequestError, match="second pass"):
        start_refine(torch.zeros(1, 24, 2, 4, 6), torch.zeros(2, 32, 3), noise, tail_schedule(2, 8))
    with pytest.raises(RequestError, match="audio"):
        start_refine(torch.zeros(1, 24, 2, 4, 4), torch.zeros(2, 32, 4), noise, tail_schedule(2, 8))
    with pytest.raises(RequestError, match="1 conditions but 0"):
        noised_condition_rows([torch.zeros(1, 24, 1, 4, 4)], noise)


def test_a_refine_of_a_straight_flow_returns_its_data_and_the_same_audio() -> None:
    clean, audio = torch.randn(1, 24, 3, 4, 6), torch.randn(2, 32, 5)
    noise = Noise((), torch.randn(1, 24, 3, 4, 6), torch.randn(10, 32))
    for plan in (community_schedule(), tail_schedule(4, 12)):
        start = start_refine(clean, audio, noise, plan)
        velocity = patchify(clean - noise.video)
        video, rows = euler(lambda v, a, t, u=velocity: (u, a), start.video, start.audio, plan)
        assert error(video, patchify(clean)) <= 1e-6
        assert torch.equal(rows_to_audio(rows), audio)
    assert schedule(8).evaluations == 8
    assert torch.equal(audio_to_rows(audio)[0], audio[0, :, 0])
