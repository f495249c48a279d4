"""Clips as latents, made once on the device: what the transformer and the upscaler train on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from lowpeak.engine.sampling.canvas import TwoPassCanvas
from lowpeak.engine.sampling.two_pass import shrink_keyframe
from lowpeak.engine.vae.audio import encode_raw

from . import data
from .linear import encode, matrices_of
from .loop import Run, State
from .models import AUDIO
from .vae_twin import to_model
from .words import picture_grid

PLACES = 17  # across the path, for which sounds are encoded


class Size(NamedTuple):
    """A canvas and a length, in pixels and frames."""

    width: int
    height: int
    frames: int

    @property
    def latent(self) -> tuple[int, int, int]:
        """Latent frames, height, width."""
        return (self.frames - 5) // 17 * 5 + 2, self.height // 16, self.width // 16

    @property
    def big(self) -> bool:
        """Whether only second passes have this canvas."""
        return min(self.width, self.height) >= 512


@dataclass
class Bucket:
    """N clips of one size. Latents normalised, in the working type.

    video: [N, 24, F, h, w]; audio: [N, 2A, 32] rows; keys: [N, 2, 2, 24, h, w], first and last
    frame, as encoded here and as shrunk from twice the size; grids: [N, 2, 16, 3]. shown: bool
    [N, rows], which rows of the transformer hold more than plain ground.
    """

    size: Size
    scenes: data.Scenes
    video: Tensor
    audio: Tensor
    keys: Tensor
    grids: Tensor
    shown: Tensor

    @property
    def count(self) -> int:
        """N."""
        return self.video.shape[0]


class Encoders:
    """Both encoders with their statistics. The video one as the linear map that it is."""

    def __init__(self, run: Run, video: State, audio: State) -> None:
        self.run, self.audio = run, audio
        device = run.device
        self.matrices = [matrix.to(device) for matrix in matrices_of(video)]
        self.mean, self.std = (
            video[f"latents_{n}"].to(device).view(1, -1, 1, 1, 1) for n in ("mean", "std")
        )
        self.audio_mean, self.audio_std = (
            audio[f"latents_{n}"].to(device)[:, None] for n in ("mean", "std")
        )
        self.sounds: dict[int, Tensor] = {}

    def encode(self, pixels: Tensor) -> Tensor:
        """[B, 3, T, H, W] in 0..1 to normalised latents, float32."""
        return (encode(to_model(pixels), self.matrices) - self.mean) / self.std

    def encode_sound(self, wave: Tensor) -> Tensor:
        """[B, 2, samples] to rows [B, 2A, 32], left channel first."""
        mean, _ = encode_raw(wave.flatten(0, 1)[:, None], self.audio, AUDIO)
        z = ((mean - self.audio_mean) / self.audio_std).transpose(1, 2)
        return z.reshape(wave.shape[0], -1, AUDIO.latent_channels)

    def sound_rows(self, scenes: data.Scenes, frames: int) -> Tensor:
        """`encode_sound` of the scenes' sounds, [N, 2A, 32], out of a table.

        Shape, motion and the place across say all of a sound; the place is taken to 1/80 of the
        canvas, a hundredth of a channel's loudness.
        """
        axes = (len(data.SHAPES), len(data.MOTIONS), PLACES)
        if frames not in self.sounds:
            grid = torch.cartesian_prod(*(torch.arange(n, device=self.run.device) for n in axes))
            shape, motion, place = grid.unbind(1)
            across = data.ACROSS * (2 * place / (PLACES - 1) - 1)
            none = torch.zeros_like(shape)
            table = data.Scenes(none, shape, motion, none, across, across)
            self.sounds[frames] = torch.cat(
                [
                    self.encode_sound(data.sound(table.take(at), frames))
                    for at in torch.arange(len(grid), device=self.run.device).split(136)
                ]
            )
        place = ((scenes.across / data.ACROSS + 1) / 2 * (PLACES - 1)).round().long()
        return self.sounds[frames][(scenes.shape * axes[1] + scenes.motion) * PLACES + place]


@torch.no_grad()
def make_bucket(
    run: Run,
    encoders: Encoders,
    size: Size,
    count: int,
    *,
    first: int = 0,
    held_out: bool = False,
    style: int = data.STYLE_PLAIN,
    limit_s: float = 1e9,
) -> Bucket:
    """Clips `first` .. of a size; fewer when `limit_s` runs out."""
    began = time.monotonic()
    pixels = size.width * size.height * size.frames
    step = max(1, min(count, 64 * 256 * 256 * 22 // pixels // run.scale))
    parts: list[tuple[Tensor, ...]] = []
    done = 0
    while done < count and (not parts or time.monotonic() - began < limit_s):
        began += run.pause()
        now = min(step, count - done)
        at = torch.arange(first + done, first + done + now, device=run.device)
        scenes = data.Scenes.of(at, held_out=held_out, style=style)
        frames = data.render(
            scenes, data.moments_of(size.frames, run.device), size.height, size.width
        )
        video = encoders.encode(frames)
        sound = encoders.sound_rows(scenes, size.frames)
        ends = frames[:, :, [0, -1]].transpose(1, 2)  # [B, 2, 3, H, W]
        keys = torch.stack([_keys(encoders, ends), _shrunk(encoders, scenes, size)], 2)
        grids = picture_grid(ends.flatten(0, 1)).unflatten(0, (now, 2))
        fast = run.fast
        parts.append(
            (video.to(fast), sound.to(fast), keys.to(fast), grids.float(), off_ground(video))
        )
        done += now
    made = [torch.cat(group) for group in zip(*parts, strict=True)]
    at = torch.arange(first, first + done, device=run.device)
    scenes = data.Scenes.of(at, held_out=held_out, style=style)
    run.say(f"pool {size}: {done} clips in {time.monotonic() - began:.1f} s")
    return Bucket(size, scenes, *made)


def _keys(encoders: Encoders, ends: Tensor) -> Tensor:
    """Latents [B, 2, 24, h, w] of both end frames, each encoded as a lone picture."""
    flat = ends.flatten(0, 1)[:, :, None]
    return encoders.encode(flat)[:, :, 0].unflatten(0, ends.shape[:2])


def _shrunk(encoders: Encoders, scenes: data.Scenes, size: Size) -> Tensor:
    """The same, encoded at twice the size and shrunk as a first pass does it."""
    w, h = size.width, size.height
    double = TwoPassCanvas(2 * w, 2 * h, w, h, 2 * w, 2 * h)
    moments = torch.tensor([0.0, 1.0], device=scenes.colour.device)
    frames = data.render(scenes, moments, 2 * h, 2 * w).transpose(1, 2)
    flat = encoders.encode(frames.flatten(0, 1)[:, :, None])
    return shrink_keyframe(flat, double)[:, :, 0].unflatten(0, frames.shape[:2])


def off_ground(z: Tensor) -> Tensor:
    """[B, 24, F, h, w] to bool [B, F * h / 2 * w / 2]: rows that hold more than plain ground."""
    b, _, f, h, w = z.shape
    ground = z[..., :1, :1]  # no shape reaches a corner
    away = (z - ground).square().mean(1).view(b, f, h // 2, 2, w // 2, 2).mean((3, 5))
    return (away > 0.02 * away.amax((1, 2, 3), keepdim=True)).flatten(1)
