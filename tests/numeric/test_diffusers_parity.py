"""The base model against diffusers, a test dependency: positions, packing, grids, the forward pass.

Every parameter is randomised: freshly built norms are ones, and a wrong block could pass unseen.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from lowpeak.engine.model.layout import Reference, build_layout, patchify

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
    print(f"PARITY | positions {'+'.join(keyframes) or 't2va'} | diffusers | {error:.1e}")
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
