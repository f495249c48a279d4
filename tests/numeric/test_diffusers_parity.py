"""The base model against diffusers, a test dependency: positions, packing, grids, the forward pass.

Every parameter is randomised: freshly built norms are ones, and a wrong block could pass unseen.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.layout import Reference, build_layout, patchify
from lowpeak.engine.model.plain import PlainModel
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.sampling.solver import euler_step

before_denoise = pytest.importorskip(
    "diffusers.modular_pipelines.minimax_h3.before_denoise",
    reason="diffusers 0.42.1 is not installed (extra dev)",
)

PATCH = (1, 2, 2)


def compare_layout(layout, packed) -> float:
    """Asserts equal packing; returns the largest relative difference of positions."""
    positions, tags, video, audio, text, condition_video, condition_audio = packed
    assert torch.equal(layout.token_tags, tags)
    assert torch.equal(layout.video_indices, video)
    assert torch.equal(layout.audio_indices, audio)
    assert torch.equal(layout.text_indices, text)
    assert layout.condition_video_rows == condition_video
    assert layout.condition_audio_rows == condition_audio
    return float((layout.position_ids - positions).abs().max() / positions.abs().max())


def compare_times(layout, t_video: float, t_audio: float) -> None:
    build = before_denoise.MiniMaxH3SetTimestepsStep.build_row_timesteps
    distinct, indices = build(
        layout.video_indices,
        layout.audio_indices,
        layout.condition_video_rows,
        layout.condition_audio_rows,
        layout.text_rows,
        t_video,
        t_audio,
        max(t_video, 0.999),
        1.0,
    )
    times = layout.at(t_video, t_audio)
    assert torch.equal(times.distinct, distinct)
    assert torch.equal(times.timestep_indices, indices)


@pytest.mark.parametrize("keyframes", [(), ("first",), ("last",), ("first", "last")])
@pytest.mark.parametrize(("frames", "height", "width"), [(7, 4, 6), (12, 6, 4), (32, 10, 14)])
def test_parity_of_the_packed_layout(keyframes, frames, height, width) -> None:
    tags = torch.tensor([1, 0, 0, 1, 1, 1, 1])
    build = before_denoise.MiniMaxH3PrepareLayoutStep.build_packed_sequence
    packed = build(tags, frames, height, width, 9, PATCH, 2, 2, 0, keyframes)
    layout = build_layout(
        latent_frames=frames,
        latent_height=height,
        latent_width=width,
        audio_latents=9,
        text_tags=tags,
        keyframes=keyframes,
    )
    error = compare_layout(layout, packed)
    task = "+".join(keyframes) or "t2va"
    print(f"PARITY | positions {task}, F={frames} | diffusers | {error:.1e}")
    assert error <= 1e-12
    compare_times(layout, 0.2, 0.5)
    compare_times(layout, 0.0, 0.0)


REFERENCES = [
    [Reference("image", 1, 6, 4)],
    [Reference("audio", audio_latents=5), Reference("image", 1, 8, 8)],
    [Reference("video", 7, 4, 6, audio_latents=11), Reference("image", 1, 4, 4)],
    [Reference("video", 12, 6, 6), Reference("audio", audio_latents=3)],
    [Reference("image", 1, 4, 4), Reference("video", 2, 4, 8, audio_latents=40)],
]


@pytest.mark.parametrize("references", REFERENCES)
def test_parity_of_the_reference_layout(references) -> None:
    tags = torch.tensor([1, 0, 1, 1])
    visual = [r for r in references if r.kind != "audio"]
    latents = [torch.zeros(1, 24, r.latent_frames, r.latent_height, r.latent_width) for r in visual]
    sounds = [torch.zeros(2 * r.audio_latents, 32) for r in references if r.audio_latents]
    described = [SimpleNamespace(kind=r.kind, has_audio=bool(r.audio_latents)) for r in references]
    build = before_denoise.MiniMaxH3Ref2VAPrepareLayoutStep.build_ref2va_packed_sequence
    packed = build(tags, described, latents, sounds, 12, 4, 6, 20, PATCH, 2, 2, 0)
    layout = build_layout(
        latent_frames=12,
        latent_height=4,
        latent_width=6,
        audio_latents=20,
        text_tags=tags,
        references=references,
    )
    kinds = "+".join(r.kind for r in references)
    error = compare_layout(layout, packed)
    print(f"PARITY | positions ref2va {kinds} | diffusers | {error:.1e}")
    assert error <= 1e-12
    compare_times(layout, 0.2, 0.5)


def test_parity_of_patchify() -> None:
    latents = torch.randn(1, 24, 7, 4, 6, generator=torch.Generator().manual_seed(3))
    expected = before_denoise.patchify_video_latents(latents, PATCH)
    assert torch.equal(patchify(latents, PATCH), expected)
    print("PARITY | patchify | diffusers | 0.0e+00")


TINY = {
    "num_attention_heads": 4,
    "attention_head_dim": 32,
    "hidden_size": 96,
    "num_layers": 2,
    "num_refiner_layers": 1,
    "ffn_dim": 128,
    "in_channels": 24,
    "audio_in_channels": 32,
    "patch_size": [1, 2, 2],
    "text_dim": 64,
    "freq_dim": 32,
    "time_embed_hidden_dim": 48,
    "time_embed_dim": 40,
    "rope_freq_dim": 4,
    "rope_theta": 10000.0,
}
OTHER = {
    **TINY,
    "num_attention_heads": 3,
    "attention_head_dim": 24,
    "hidden_size": 80,
    "num_refiner_layers": 2,
    "ffn_dim": 112,
    "rope_freq_dim": 3,
    "rope_theta": 500.0,
}
TASKS = {
    "t2va": {},
    "fl2va": {"keyframes": ("first", "last")},
    "ref2va": {"references": REFERENCES[2]},
}


def randomised(config, seed: int):
    """A diffusers model whose every parameter is random, norms included."""
    from diffusers import MiniMaxH3Transformer3DModel

    model = MiniMaxH3Transformer3DModel(**config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim == 1:
                parameter.copy_(0.5 + 0.3 * noise)
            else:
                parameter.copy_(noise * parameter.shape[1] ** -0.5)
    return model


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("config", "seed"), [(TINY, 1), (OTHER, 2)])
def test_parity_of_the_packed_forward(task, config, seed, relative_error) -> None:
    theirs = randomised(config, seed)
    ours = PlainModel(theirs.state_dict(), ModelConfig.from_json(config, None))
    layout = build_layout(
        latent_frames=7, latent_height=4, latent_width=6, audio_latents=9,
        text_tags=[1, 0, 0, 1, 1, 1, 1], **TASKS[task],
    )  # fmt: skip
    times = layout.at(0.2, 0.5)
    generator = torch.Generator().manual_seed(seed + 100)
    video, audio, text = (
        torch.randn(rows, width, generator=generator)
        for rows, width in (
            (len(layout.video_indices), 96),
            (len(layout.audio_indices), 32),
            (layout.text_rows, 64),
        )
    )
    with torch.no_grad():
        expected = theirs(
            hidden_states=video[None],
            audio_hidden_states=audio[None],
            encoder_hidden_states=text[None],
            timestep=times.distinct,
            timestep_indices=times.timestep_indices,
            token_tags=layout.token_tags,
            position_ids=layout.position_ids,
            video_indices=layout.video_indices,
            audio_indices=layout.audio_indices,
            text_indices=layout.text_indices,
            return_dict=False,
        )
        found = ours.forward(video, audio, text, times, layout)
    errors = [relative_error(a, b[0]) for a, b in zip(found, expected, strict=True)]
    print(f"PARITY | packed forward {task}, seed {seed} | diffusers | {max(errors):.1e}")
    assert max(errors) <= 1e-5


def test_a_state_dictionary_has_the_published_names() -> None:
    names = set(randomised(TINY, 1).state_dict())
    config = ModelConfig.from_json(TINY, None)
    used = _Recorder(randomised(TINY, 1).state_dict())
    layout = build_layout(
        latent_frames=2, latent_height=2, latent_width=2, audio_latents=1, text_tags=[1]
    )
    PlainModel(used, config).forward(
        torch.zeros(2, 96), torch.zeros(2, 32), torch.zeros(1, 64), layout.at(0.1, 0.2), layout
    )
    assert used.seen == names


class _Recorder(dict):
    def __init__(self, values) -> None:
        super().__init__(values)
        self.seen: set[str] = set()

    def __getitem__(self, name):
        self.seen.add(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        self.seen.update({name} & self.keys())
        return super().get(name, default)


@pytest.mark.parametrize("evaluations", [1, 8, 12, 16, 20])
def test_parity_of_the_scheduler_grid_and_its_steps(evaluations) -> None:
    from diffusers import MiniMaxH3Scheduler

    ours = schedule(evaluations)
    generator = torch.Generator().manual_seed(evaluations)
    worst = 0.0
    for shift, sigmas, times in (
        (12.0, ours.video_sigmas, ours.video_times),
        (3.0, ours.audio_sigmas, ours.audio_times),
    ):
        theirs = MiniMaxH3Scheduler(shift=shift)
        theirs.set_timesteps(evaluations + 1)  # counts grid points, not evaluations
        worst = max(worst, float((torch.tensor(sigmas) - theirs.sigmas).abs().max()))
        x = torch.randn(5, 7, generator=generator)
        for step, time in enumerate(theirs.timesteps):
            velocity = torch.randn(5, 7, generator=generator)
            expected = theirs.step(velocity, time, x, return_dict=False)[0]
            x = euler_step(x, velocity, times[step], sigmas[step : step + 2])
            worst = max(worst, float((x - expected).abs().max()))
    print(f"PARITY | schedule and Euler, {evaluations} evaluations | diffusers | {worst:.1e}")
    assert worst <= 2e-6
