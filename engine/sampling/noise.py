"""The random numbers of a pass: one generator, one order.

A pass seeds one CPU generator and draws float32 normals in this order (facts: model sheet d.5):
    1. one draw per visual condition, in packed order, in the shape of its latents;
    2. the video noise, [1, 24, F, H, W];
    3. the audio noise, drawn as rows, [2A, 32]: the left channel's latents, then the right's.
The generator is on the CPU whatever the device, so a seed means the same noise everywhere.
A refine does the same with seed + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..geometry import Geometry

VIDEO_CHANNELS = 24
AUDIO_CHANNELS = 32
SOUND_CHANNELS = 2  # stereo


@dataclass(frozen=True)
class Noise:
    """All draws of one pass, float32 on the CPU.

    conditions: one tensor per visual condition, in the shape of its latents.
    video: [1, 24, F, H, W].  audio_rows: [2A, 32].
    """

    conditions: tuple[Tensor, ...]
    video: Tensor
    audio_rows: Tensor


def draw_noise(
    seed: int,
    *,
    latent_frames: int,
    latent_height: int,
    latent_width: int,
    audio_latents: int,
    condition_shapes: Sequence[Sequence[int]] = (),
    video_channels: int = VIDEO_CHANNELS,
    audio_channels: int = AUDIO_CHANNELS,
) -> Noise:
    """Every draw of a pass, in the order of the module's docstring.

    condition_shapes: latent shapes [1, 24, F, H, W] of the visual conditions, in packed order.
    """
    generator = torch.Generator(device="cpu").manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float32, device="cpu")

    conditions = tuple(normal(*shape) for shape in condition_shapes)
    video = normal(1, video_channels, latent_frames, latent_height, latent_width)
    return Noise(conditions, video, normal(SOUND_CHANNELS * audio_latents, audio_channels))


def draw_pass_noise(
    seed: int, geometry: Geometry, condition_shapes: Sequence[Sequence[int]] = ()
) -> Noise:
    """`draw_noise` for a geometry. For a refine pass seed + 1 (PassPlan.seed_offset)."""
    return draw_noise(
        seed,
        latent_frames=geometry.latent_frames,
        latent_height=geometry.latent_height,
        latent_width=geometry.latent_width,
        audio_latents=geometry.audio_latents,
        condition_shapes=condition_shapes,
    )


def audio_to_rows(audio: Tensor) -> Tensor:
    """[2, 32, A] -> rows [2A, 32], left channel first (facts: model sheet a.3)."""
    return audio.transpose(1, 2).reshape(-1, audio.shape[1])


def rows_to_audio(rows: Tensor) -> Tensor:
    """Rows [2A, 32] -> [2, 32, A]; the inverse of `audio_to_rows`."""
    return rows.reshape(SOUND_CHANNELS, -1, rows.shape[-1]).transpose(1, 2).contiguous()
