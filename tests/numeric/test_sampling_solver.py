"""The solver's arithmetic and the draw order, against golden numbers and diffusers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from lowpeak.engine.errors import Cancelled
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.sampling.noise import (
    audio_to_rows,
    draw_noise,
    draw_pass_noise,
    rows_to_audio,
)
from lowpeak.engine.sampling.schedules import (
    CONDITION_TIME,
    TASK_CONDITIONS,
    Schedule,
    schedule,
)
from lowpeak.engine.sampling.solver import HeldAudio, StepResult, euler, euler_step, mix


def error(found: torch.Tensor, want: torch.Tensor) -> float:
    return float((found.double() - want.double()).abs().max() / want.double().abs().max())


def sigmas_of(found: Schedule, modality: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if modality == "video":
        return found.video_sigmas, found.video_times
    return found.audio_sigmas, found.audio_times


def test_golden_steps_on_six_numbers(golden_file: Callable[[str], Path]) -> None:
    worst = 0.0
    for name, want in json.loads(golden_file("schedule.json").read_text())["steps"].items():
        sigmas, times = sigmas_of(schedule(want["N"]), name.split("_")[0])
        rows = torch.tensor(want["samples"][0])
        for step, velocity in enumerate(want["velocities"]):
            rows = euler_step(rows, torch.tensor(velocity), times[step], sigmas[step : step + 2])
            worst = max(worst, error(rows, torch.tensor(want["samples"][step + 1])))
    assert worst <= 2e-7
    print(f"PARITY | Euler steps, 8 and 20 evaluations | golden schedule.json | {worst:.1e}")


def test_golden_condition_mix(golden_file: Callable[[str], Path]) -> None:
    want = json.loads(golden_file("schedule.json").read_text())["condition_noise"]
    found = mix(torch.tensor(want["sample"]), torch.tensor(want["noise"]), CONDITION_TIME)
    assert error(found, torch.tensor(want["noised"])) <= 1e-7


@pytest.mark.parametrize("evaluations", [1, 5, 12])
def test_a_whole_walk_is_parity_with_the_diffusers_scheduler(evaluations: int) -> None:
    diffusers = pytest.importorskip("diffusers")
    generator = torch.Generator().manual_seed(evaluations)
    velocities = [
        (torch.randn(6, 4, generator=generator), torch.randn(3, 5, generator=generator))
        for _ in range(evaluations)
    ]
    start = torch.randn(6, 4, generator=generator), torch.randn(3, 5, generator=generator)
    plan = schedule(evaluations)
    video, audio = euler(lambda v, a, t: velocities[t.step], *start, plan)
    for rows, index, shift in ((video, 0, 12.0), (audio, 1, 3.0)):
        reference = diffusers.MiniMaxH3Scheduler(shift=shift)
        reference.set_timesteps(evaluations + 1)
        want = start[index]
        for step, time in enumerate(reference.timesteps):
            want = reference.step(velocities[step][index], time, want, return_dict=False)[0]
        assert error(rows, want) <= 5e-7


def golden_loops(folder: Path) -> list[Path]:
    return sorted(folder.glob("h3_sample_*.safetensors"))


def test_golden_recorded_velocities_give_the_recorded_rows(golden_dir: Path) -> None:
    files = golden_loops(golden_dir)
    assert files, "no sampling loops in the golden folder"
    for file in files:
        with safe_open(file, "pt") as opened:
            about = json.loads(opened.metadata()["fixture"])
        tensors = load_file(file)
        plan = schedule(about["steps"])
        task = "fl2va" if about["request"]["anchors"] else "t2va"
        times = plan.steps(TASK_CONDITIONS[task])
        for step in about["keep"]:
            stored = tensors[f"step{step}/timestep"].tolist()
            assert list(times[step].distinct) == stored, (file.name, step)
            for modality in ("video", "audio"):
                before = (
                    f"in/{modality}_noise_rows" if step == 0 else f"step{step - 1}/{modality}_rows"
                )
                if before not in tensors:
                    continue  # the step before was not recorded
                sigmas, moments = sigmas_of(plan, modality)
                found = euler_step(
                    tensors[before],
                    tensors[f"step{step}/{modality}_velocity"],
                    moments[step],
                    sigmas[step : step + 2],
                )
                assert error(found, tensors[f"step{step}/{modality}_rows"]) <= 1e-6


def test_a_straight_flow_ends_on_its_data_for_any_number_of_steps() -> None:
    clean, noise = torch.randn(9, 8), torch.randn(9, 8)
    sound, hiss = torch.randn(4, 6), torch.randn(4, 6)
    for count in (1, 3, 8, 20):
        video, audio = euler(
            lambda v, a, t: (clean - noise, sound - hiss), noise, hiss, schedule(count)
        )
        assert error(video, clean) <= 1e-6
        assert error(audio, sound) <= 1e-6


def test_the_model_sees_rows_at_the_times_it_is_told() -> None:
    clean, noise = torch.randn(9, 8), torch.randn(9, 8)
    sound, hiss = torch.randn(4, 6), torch.randn(4, 6)

    def model(video, audio, times):
        assert error(video, mix(clean, noise, times.t_video)) <= 1e-5
        assert error(audio, mix(sound, hiss, times.t_audio)) <= 1e-5
        return clean - noise, sound - hiss

    euler(model, noise, hiss, schedule(8))


def test_held_audio_is_renoised_with_one_noise_and_returned_untouched() -> None:
    held = HeldAudio(torch.randn(4, 6), torch.randn(4, 6))
    fed = []

    def model(video, audio, times):
        fed.append((times.t_audio, audio))
        return torch.zeros_like(video), torch.full_like(audio, torch.nan)

    _, audio = euler(model, torch.randn(3, 2), held, schedule(5))
    assert torch.equal(audio, held.clean)
    for time, rows in fed:
        assert torch.equal(rows, mix(held.clean, held.noise, time))


def test_inputs_are_not_written_and_half_precision_velocities_are_read() -> None:
    video, audio = torch.randn(5, 3), torch.randn(2, 4)
    kept = video.clone(), audio.clone()
    out = euler(lambda v, a, t: (v.bfloat16(), a.bfloat16()), video, audio, schedule(4))
    assert torch.equal(video, kept[0]) and torch.equal(audio, kept[1])
    assert all(rows.dtype == torch.float32 for rows in out)


def test_every_step_is_reported_with_the_clean_estimate() -> None:
    clean, noise = torch.randn(5, 3), torch.randn(5, 3)
    seen: list[StepResult] = []
    euler(
        lambda v, a, t: (clean - noise, torch.zeros_like(a)),
        noise,
        torch.randn(2, 4),
        schedule(6),
        seen.append,
    )
    assert [item.times.step for item in seen] == list(range(6))
    for item in seen:
        assert error(item.denoised_video, clean) <= 1e-5
    assert error(seen[-1].video, clean) <= 1e-6


def test_cancel_is_asked_before_every_evaluation() -> None:
    calls: list[int] = []

    def model(video, audio, times):
        calls.append(times.step)
        return torch.zeros_like(video), torch.zeros_like(audio)

    with pytest.raises(Cancelled, match="step 3 of 8"):
        euler(
            model,
            torch.randn(2, 2),
            torch.randn(2, 2),
            schedule(8),
            is_cancelled=lambda: len(calls) == 2,
        )
    assert calls == [0, 1]


def test_golden_noise_is_drawn_in_the_documented_order(golden_dir: Path) -> None:
    tensors = load_file(golden_dir / "two_pass.safetensors")
    runs = json.loads((golden_dir / "two_pass.json").read_text())["assemblies"]
    for name, run in runs.items():
        for offset, (height, width), video, audio, condition in (
            (0, run["plan"]["first"], "in/first_video_noise", "in/first_audio_noise_rows",
             "in/first_keyframe_noise"),
            (1, run["target"], "refine/video_noise", "refine/audio_noise_rows",
             "refine/condition_noise"),
        ):  # fmt: skip
            shape = (1, tensors[f"{name}/{video}"].shape[1], 1, height, width)
            found = draw_noise(
                run["seed"] + offset,
                latent_frames=run["latent_frames"],
                latent_height=height,
                latent_width=width,
                audio_latents=run["audio_latents"],
                condition_shapes=[shape] * len(run["anchors"]),
            )
            assert torch.equal(found.video, tensors[f"{name}/{video}"])
            assert torch.equal(found.audio_rows, tensors[f"{name}/{audio}"])
            for index, drawn in enumerate(found.conditions):
                assert torch.equal(drawn, tensors[f"{name}/{condition}{index}"])


def test_noise_shapes_follow_the_geometry_and_the_global_generator_is_left_alone() -> None:
    geometry = Geometry(256, 320, 39)
    torch.manual_seed(5)
    want = torch.rand(3)
    torch.manual_seed(5)
    noise = draw_pass_noise(7, geometry, [(1, 24, 1, 20, 16)])
    assert torch.equal(torch.rand(3), want)
    assert noise.video.shape == (1, 24, 12, 20, 16)
    assert noise.audio_rows.shape == (2 * geometry.audio_latents, 32)
    assert not torch.equal(noise.video, draw_pass_noise(7, geometry).video)  # order matters


def test_audio_rows_are_channel_major() -> None:
    audio = torch.randn(2, 32, 9)
    rows = audio_to_rows(audio)
    assert torch.equal(rows[:9], audio[0].T) and torch.equal(rows[9:], audio[1].T)
    assert torch.equal(rows_to_audio(rows), audio)
