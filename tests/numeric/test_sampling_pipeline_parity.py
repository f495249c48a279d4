"""Whole dense runs against the published pipeline, put together here from diffusers' own blocks.

Text-to-video, keyframes and references: layout, draw order, condition rows, the denoising loop with
both schedulers and the transformer are diffusers'; ours are build_layout, draw_noise, the solver
and the plain model. Same weights, same seed; only the final latents are compared.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.layout import build_layout, unpatchify
from lowpeak.engine.model.plain import PlainModel
from lowpeak.engine.sampling.condition_latents import ConditionSet, reference_block
from lowpeak.engine.sampling.noise import draw_noise, rows_to_audio
from lowpeak.engine.sampling.packing import condition_times, packed_model_fn
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.sampling.solver import euler
from lowpeak.engine.sampling.two_pass import start_first_pass

pytest.importorskip("diffusers", reason="diffusers 0.42.1 is not installed (extra dev)")

CONFIG: dict[str, Any] = {
    "num_attention_heads": 3,
    "attention_head_dim": 32,
    "hidden_size": 64,
    "num_layers": 2,
    "num_refiner_layers": 1,
    "ffn_dim": 96,
    "in_channels": 24,
    "audio_in_channels": 32,
    "patch_size": [1, 2, 2],
    "text_dim": 48,
    "freq_dim": 32,
    "time_embed_hidden_dim": 48,
    "time_embed_dim": 40,
    "rope_freq_dim": 4,
    "rope_theta": 10000.0,
}
FRAMES, HEIGHT, WIDTH, SOUNDS, STEPS = 7, 4, 6, 37, 8
TAGS = torch.tensor([1, 0, 0, 1, 1, 1])


def random_model(seed: int) -> torch.nn.Module:
    """Diffusers' transformer with every parameter random, norms included."""
    from diffusers import MiniMaxH3Transformer3DModel

    model = MiniMaxH3Transformer3DModel(**CONFIG).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            wide = parameter.ndim > 1
            parameter.copy_(noise * parameter.shape[1] ** -0.5 if wide else 0.5 + 0.3 * noise)
    return model


def latents_of(generator: torch.Generator, frames: int, height: int, width: int) -> Tensor:
    return torch.randn(1, 24, frames, height, width, generator=generator)


def conditions_of(task: str) -> ConditionSet:
    generator = torch.Generator().manual_seed(77)
    if task == "t2va":
        return ConditionSet()
    if task == "ref2va":
        picture = latents_of(generator, 1, 6, 4)
        video = latents_of(generator, 7, 4, 4)
        sound, track = (torch.randn(rows, 32, generator=generator) for rows in (10, 22))
        blocks = (
            reference_block("image", picture, None),
            reference_block("audio", None, sound),
            reference_block("video", video, track),
        )
        return ConditionSet((), blocks, (picture, video), (sound, track))
    names = tuple(task.split("+"))
    return ConditionSet(names, latents=tuple(latents_of(generator, 1, 4, 6) for _ in names))


def published_run(
    model: torch.nn.Module, text: Tensor, conditions: ConditionSet, seed: int
) -> tuple[Tensor, Tensor]:
    """Final target rows from diffusers' blocks."""
    from diffusers import MiniMaxH3Scheduler
    from diffusers.modular_pipelines.minimax_h3 import before_denoise, denoise
    from diffusers.utils.torch_utils import randn_tensor

    if conditions.references:
        described = [
            SimpleNamespace(kind=item.kind, has_audio=item.audio_latents > 0)
            for item in conditions.references
        ]
        packed = before_denoise.MiniMaxH3Ref2VAPrepareLayoutStep.build_ref2va_packed_sequence(
            TAGS, described, list(conditions.latents), list(conditions.audio_rows),
            FRAMES, HEIGHT, WIDTH, SOUNDS, (1, 2, 2), 2, 2, 0,
        )  # fmt: skip
    else:
        packed = before_denoise.MiniMaxH3PrepareLayoutStep.build_packed_sequence(
            TAGS, FRAMES, HEIGHT, WIDTH, SOUNDS, (1, 2, 2), 2, 2, 0, conditions.keyframes
        )
    positions, tags, video_indices, audio_indices, text_indices, held_video, held_audio = packed
    schedulers = MiniMaxH3Scheduler(shift=12.0), MiniMaxH3Scheduler(shift=3.0)
    for item in schedulers:
        item.set_timesteps(STEPS + 1)

    generator = torch.Generator().manual_seed(seed)
    rows = []
    for item in conditions.latents:
        noise = randn_tensor(item.shape, generator=generator, dtype=torch.float32)
        noised = schedulers[0].scale_noise(item, 0.999, noise)
        rows.append(before_denoise.patchify_video_latents(noised, (1, 2, 2)))
    video = randn_tensor((1, 24, FRAMES, HEIGHT, WIDTH), generator=generator, dtype=torch.float32)
    rows.append(before_denoise.patchify_video_latents(video, (1, 2, 2)))
    sound = randn_tensor((2 * SOUNDS, 32), generator=generator, dtype=torch.float32)
    state = SimpleNamespace(
        latents=torch.cat(rows),
        audio_latents=torch.cat([*conditions.audio_rows, sound]),
        audio_timesteps=schedulers[1].timesteps,
        num_condition_video_rows=held_video,
        num_condition_audio_rows=held_audio,
    )
    components = SimpleNamespace(scheduler=schedulers[0], audio_scheduler=schedulers[1])
    update = denoise.MiniMaxH3LoopSchedulerStep()
    for step, time in enumerate(schedulers[0].timesteps):
        distinct, indices = before_denoise.MiniMaxH3SetTimestepsStep.build_row_timesteps(
            video_indices, audio_indices, held_video, held_audio, len(text_indices),
            float(time), float(state.audio_timesteps[step]), max(float(time), 0.999), 1.0,
        )  # fmt: skip
        with torch.no_grad():
            state.noise_pred, state.audio_noise_pred = model(
                hidden_states=state.latents[None],
                audio_hidden_states=state.audio_latents[None],
                encoder_hidden_states=text[None],
                timestep=distinct,
                timestep_indices=indices,
                token_tags=tags,
                position_ids=positions,
                video_indices=video_indices,
                audio_indices=audio_indices,
                text_indices=text_indices,
                return_dict=False,
            )
        update(components, state, step, time)
    return state.latents[held_video:], state.audio_latents[held_audio:]


def our_run(
    model: torch.nn.Module, text: Tensor, conditions: ConditionSet, seed: int
) -> tuple[Tensor, Tensor]:
    plain = PlainModel(model.state_dict(), ModelConfig.from_json(CONFIG, None))
    layout = build_layout(
        latent_frames=FRAMES,
        latent_height=HEIGHT,
        latent_width=WIDTH,
        audio_latents=SOUNDS,
        text_tags=TAGS,
        keyframes=conditions.keyframes,
        references=conditions.references,
    )
    assert condition_times(layout) == conditions.times
    noise = draw_noise(
        seed,
        latent_frames=FRAMES,
        latent_height=HEIGHT,
        latent_width=WIDTH,
        audio_latents=SOUNDS,
        condition_shapes=conditions.shapes,
    )
    start = start_first_pass(noise, conditions.latents)
    function = packed_model_fn(
        plain.forward,
        text,
        layout,
        condition_rows=start.condition_rows,
        condition_audio_rows=conditions.packed_audio(),
    )
    with torch.no_grad():
        return euler(
            function, start.video, start.audio, schedule(STEPS), conditions=conditions.times
        )


@pytest.mark.parametrize("task", ["t2va", "first", "last", "first+last", "ref2va"])
def test_a_whole_run_is_parity_with_the_published_pipeline(task: str, relative_error) -> None:
    model = random_model(4)
    text = torch.randn(len(TAGS), 48, generator=torch.Generator().manual_seed(5))
    conditions = conditions_of(task)
    want_video, want_audio = published_run(model, text, conditions, seed=31)
    video, audio = our_run(model, text, conditions, seed=31)
    errors = [
        relative_error(
            unpatchify(video, FRAMES, HEIGHT, WIDTH), unpatchify(want_video, FRAMES, HEIGHT, WIDTH)
        ),
        relative_error(rows_to_audio(audio), rows_to_audio(want_audio)),
    ]
    print(f"PARITY | whole run {task}, 8 steps | diffusers' blocks | {max(errors):.1e}")
    assert max(errors) <= 1e-4
