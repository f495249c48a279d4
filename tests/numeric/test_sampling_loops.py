"""Whole golden runs with the plain model: sampling loops and two passes, from noise to latents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from lowpeak.engine.model.config import ModelConfig, VdnConfig
from lowpeak.engine.model.layout import PackedLayout, build_layout, unpatchify
from lowpeak.engine.model.plain import PlainModel
from lowpeak.engine.sampling.canvas import TwoPassCanvas, plan_two_pass_canvas
from lowpeak.engine.sampling.noise import Noise, draw_noise, rows_to_audio
from lowpeak.engine.sampling.packing import condition_times, packed_model_fn, row_times
from lowpeak.engine.sampling.schedules import (
    NO_CONDITIONS,
    ConditionTimes,
    Schedule,
    community_schedule,
    schedule,
    tail_schedule,
)
from lowpeak.engine.sampling.solver import HeldAudio, StepResult, euler
from lowpeak.engine.sampling.two_pass import (
    PassStart,
    lift_and_crop,
    shrink_keyframe,
    start_first_pass,
    start_refine,
)
from lowpeak.engine.sampling.upscaler import upscale
from lowpeak.engine.sampling.upscaler_file import UpscalerConfig


def error(found: Tensor, want: Tensor) -> float:
    return float((found.double() - want.double()).abs().max() / want.double().abs().max())


def read(path: Path) -> tuple[dict[str, Tensor], dict]:
    with safe_open(path, "pt") as opened:
        return load_file(path), json.loads(opened.metadata()["fixture"])


def plain_model(folder: Path, name: str, *, vdn: bool) -> PlainModel:
    tensors, about = read(folder / name)
    state = {k.removeprefix("state/"): v for k, v in tensors.items() if k.startswith("state/")}
    config = ModelConfig.from_json(about["config"], VdnConfig().as_json() if vdn else None)
    return PlainModel(state, config)


def walk(
    model: PlainModel,
    start: PassStart,
    text: Tensor,
    layout: PackedLayout,
    plan: Schedule,
) -> tuple[Tensor, Tensor, list[StepResult]]:
    seen: list[StepResult] = []
    function = packed_model_fn(model.forward, text, layout, condition_rows=start.condition_rows)
    video, audio = euler(
        function, start.video, start.audio, plan, seen.append, conditions=condition_times(layout)
    )
    return video, audio, seen


def test_golden_sampling_loops_end_where_recorded(golden_dir: Path) -> None:
    files = sorted(golden_dir.glob("h3_sample_*.safetensors"))
    assert files, "no sampling loops in the golden folder"
    for file in files:
        tensors, about = read(file)
        request = about["request"]
        model = plain_model(golden_dir, about["weights_from"], vdn=about["vdn"])
        layout = build_layout(
            latent_frames=request["T"],
            latent_height=request["LH"],
            latent_width=request["LW"],
            audio_latents=request["A"],
            text_tags=request["text_tags"],
            keyframes=request["anchors"],
        )
        start = PassStart(
            tensors["in/video_noise_rows"],
            tensors["in/audio_noise_rows"],
            tensors["in/condition_rows"],
        )
        *_, seen = walk(model, start, tensors["in/text"], layout, schedule(about["steps"]))
        worst = 0.0
        for step in about["keep"]:
            assert list(seen[step].times.distinct) == tensors[f"step{step}/timestep"].tolist()
            worst = max(worst, error(seen[step].video, tensors[f"step{step}/video_rows"]))
            worst = max(worst, error(seen[step].audio, tensors[f"step{step}/audio_rows"]))
        assert worst <= 1e-4
        print(f"PARITY | sampling loop, {file.stem} | golden, fp32 | {worst:.1e}")


def two_pass_noise(run: dict, size: tuple[int, int], offset: int) -> Noise:
    height, width = size
    return draw_noise(
        run["seed"] + offset,
        latent_frames=run["latent_frames"],
        latent_height=height,
        latent_width=width,
        audio_latents=run["audio_latents"],
        condition_shapes=[(1, 24, 1, height, width)] * len(run["anchors"]),
    )


def run_layout(run: dict, size: tuple[int, int]) -> PackedLayout:
    return build_layout(
        latent_frames=run["latent_frames"],
        latent_height=size[0],
        latent_width=size[1],
        audio_latents=run["audio_latents"],
        text_tags=run["text_tags"],
        keyframes=run["anchors"],
    )


def refine_of(run: dict) -> Schedule:
    if run["schedule"].startswith("tail_"):
        _, steps, _, of = run["schedule"].split("_")
        return tail_schedule(int(steps), int(of))
    return community_schedule(run["schedule"])


def canvas_of(run: dict) -> TwoPassCanvas:
    height, width = (16 * side for side in run["target"])
    return plan_two_pass_canvas(width, height, halving_floor_px=0)


def test_golden_two_pass_runs_from_noise_to_latents(golden_dir: Path) -> None:
    tensors = load_file(golden_dir / "two_pass.safetensors")
    runs = json.loads((golden_dir / "two_pass.json").read_text())["assemblies"]
    for name, run in runs.items():
        worst = check_two_pass_run(golden_dir, tensors, name, run)
        print(f"PARITY | two-pass run {name}, noise to latents | golden, fp32 | {worst:.1e}")


def check_two_pass_run(golden_dir: Path, tensors: dict[str, Tensor], name: str, run: dict) -> float:
    canvas, refine = canvas_of(run), refine_of(run)
    model = plain_model(golden_dir, run["model_weights"], vdn=run["vdn"])
    text = tensors[f"{name}/in/text"]
    keyframes = [tensors[f"{name}/in/keyframe{i}"] for i in range(len(run["anchors"]))]
    small = [shrink_keyframe(latents, canvas) for latents in keyframes]
    size = canvas.first_height_px // 16, canvas.first_width_px // 16
    start = start_first_pass(two_pass_noise(run, size, 0), small)
    rows, sound, _ = walk(model, start, text, run_layout(run, size), schedule(run["base_steps"]))
    first = unpatchify(rows, run["latent_frames"], *size)[None]
    audio = rows_to_audio(sound)
    assert error(first, tensors[f"{name}/first/video_latents"]) <= 1e-4
    assert error(audio, tensors[f"{name}/first/audio"]) <= 1e-4

    weights, about = read(golden_dir / run["upscaler_weights"])
    state = {k[6:]: v.float() for k, v in weights.items() if k.startswith("state/")}
    given = about["config"]
    config = UpscalerConfig(given["channels"], given["in_blocks"], given["out_blocks"])
    lifted = lift_and_crop(
        first,
        canvas,
        lambda latents, target: upscale(
            latents, target, state, config, mean=about["latents_mean"], std=about["latents_std"]
        ),
    )
    assert error(lifted, tensors[f"{name}/cropped"]) <= 1e-4
    target = canvas.target_latent
    start = start_refine(lifted, audio, two_pass_noise(run, target, 1), refine, keyframes)
    rows, kept, seen = walk(model, start, text, run_layout(run, target), refine)
    for step, result in enumerate(seen):
        want = tensors[f"{name}/refine/step{step}/timestep"].tolist()
        assert list(result.times.distinct) == want
        assert error(result.video, tensors[f"{name}/refine/step{step}/video_rows"]) <= 1e-4
    latents = unpatchify(rows, run["latent_frames"], *target)[None]
    worst = error(latents, tensors[f"{name}/out/video_latents"])
    assert worst <= 1e-4
    assert isinstance(start.audio, HeldAudio) and torch.equal(kept, start.audio.clean)
    assert error(rows_to_audio(kept), tensors[f"{name}/out/audio"]) <= 1e-4
    return worst


def little_layout(**options) -> PackedLayout:
    return build_layout(
        latent_frames=7,
        latent_height=4,
        latent_width=4,
        audio_latents=3,
        text_tags=[1, 1],
        **options,
    )


def test_condition_rows_are_fed_first_and_their_velocities_dropped() -> None:
    layout = little_layout(keyframes=["first"])
    conditions = torch.randn(layout.condition_video_rows, 96)

    def forward(video: Tensor, audio: Tensor, text: Tensor, times, seen) -> tuple[Tensor, Tensor]:
        assert torch.equal(video[: len(conditions)], conditions)
        clocks = times.distinct[times.timestep_indices][layout.video_indices]
        assert bool((clocks[: len(conditions)] >= 0.999).all())
        return video, audio

    function = packed_model_fn(forward, torch.randn(2, 8), layout, condition_rows=conditions)
    video, audio = torch.randn(7 * 4, 96), torch.randn(6, 32)
    times = schedule(4).steps(ConditionTimes(visual=True))[1]
    out = function(video, audio, times)
    assert torch.equal(out[0], video) and torch.equal(out[1], audio)


def test_a_layout_and_a_schedule_that_disagree_are_refused() -> None:
    layout = little_layout(keyframes=["last"])
    with pytest.raises(ValueError, match="4 visual condition rows, 0 were given"):
        packed_model_fn(lambda *_: (None, None), torch.zeros(2, 8), layout)
    with pytest.raises(ValueError, match="condition_times"):
        row_times(layout, schedule(4).steps(NO_CONDITIONS)[1])
    assert condition_times(layout) == ConditionTimes(visual=True)
