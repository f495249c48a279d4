"""From the first pass to the second: lift, crop, start mix, held audio, keyframes on both canvases.

    first pass -> normalised latents -> upscaler -> centre crop -> x = t0 lifted + (1 - t0) noise
t0 is the first time of the refine schedule. The audio of the first pass is finished: at every step
it is re-noised with one fixed noise to the step's audio time, and it is returned as it was. The
refine takes the unshrunk keyframes, noised again with new draws (facts: model sheet d.6, l.12).
Sizes are decided in `canvas` and `quality`; the functions here only move latents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ..errors import RequestError
from ..model.layout import patchify
from .canvas import TwoPassCanvas
from .noise import Noise, audio_to_rows
from .schedules import CONDITION_TIME, Schedule
from .solver import HeldAudio, mix

Lift = Callable[[Tensor, tuple[int, int]], Tensor]
"""(latents [1, 24, F, h, w], (height, width)) -> latents of that size; `upscaler` gives one."""


@dataclass(frozen=True)
class PassStart:
    """What a pass starts from; arguments of `solver.euler` plus the condition rows.

    video: [F*S, 96] float32.  audio: [2A, 32] rows, or HeldAudio in a refine.
    condition_rows: [K, 96] float32, noised and patchified in packed order; K may be 0.
    """

    video: Tensor
    audio: Tensor | HeldAudio
    condition_rows: Tensor


def start_first_pass(noise: Noise, conditions: Sequence[Tensor] = ()) -> PassStart:
    """A pass from pure noise.

    noise: the draws of the pass, one condition draw for each of `conditions`.
    conditions: normalised latents [1, 24, F, H, W] of this pass's canvas, in packed order.
    """
    return PassStart(
        patchify(noise.video), noise.audio_rows, noised_condition_rows(conditions, noise)
    )


def start_refine(
    lifted: Tensor,
    audio: Tensor,
    noise: Noise,
    schedule: Schedule,
    conditions: Sequence[Tensor] = (),
) -> PassStart:
    """The second pass.

    lifted: lifted and cropped latents [1, 24, F, H, W] float32.
    audio: the finished audio of the first pass, latents [2, 32, A].
    noise: the draws of seed + 1.  schedule: the refine schedule.
    conditions: the unshrunk condition latents.
    Raises RequestError when latents and noise differ in size.
    """
    if lifted.shape != noise.video.shape:
        raise RequestError(
            f"first-pass latents {tuple(lifted.shape)} do not have the second pass's size "
            f"{tuple(noise.video.shape)}",
            field="resume",
        )
    held = HeldAudio(audio_to_rows(audio), noise.audio_rows)
    if held.clean.shape != held.noise.shape:
        raise RequestError(
            f"first-pass audio has {tuple(held.clean.shape)} rows, this clip has "
            f"{tuple(held.noise.shape)}",
            field="resume",
        )
    return PassStart(
        patchify(start_mix(lifted, noise.video, schedule)),
        held,
        noised_condition_rows(conditions, noise),
    )


def start_mix(lifted: Tensor, noise: Tensor, schedule: Schedule) -> Tensor:
    """t0 lifted + (1 - t0) noise at the first time of `schedule`. Any shape, float32."""
    return mix(lifted, noise, schedule.video_times[0])


def noised_condition_rows(conditions: Sequence[Tensor], noise: Noise) -> Tensor:
    """Visual conditions at t = 0.999 as rows [K, 96] float32, in packed order (facts g).

    They keep these values through all steps of a pass.
    """
    if len(conditions) != len(noise.conditions):
        raise RequestError(
            f"{len(conditions)} conditions but {len(noise.conditions)} noise draws for them"
        )
    rows = [
        patchify(mix(latents, drawn, CONDITION_TIME))
        for latents, drawn in zip(conditions, noise.conditions, strict=True)
    ]
    return torch.cat(rows) if rows else noise.video.new_zeros(0, 4 * noise.video.shape[1])


def lift_and_crop(latents: Tensor, canvas: TwoPassCanvas, lift: Lift | None) -> Tensor:
    """First-pass latents [1, 24, F, h, w] on the target's canvas [1, 24, F, H, W].

    lift: the upscaler; may be None when `canvas.upscaling` is False, and is then not called.
    """
    expected = canvas.first_height_px // 16, canvas.first_width_px // 16
    if tuple(latents.shape[-2:]) != expected:
        raise RequestError(
            f"first-pass latents are {tuple(latents.shape[-2:])}, the plan says {expected}",
            field="resume",
        )
    if canvas.upscaling:
        if lift is None:
            raise RequestError("this canvas needs the latent upscaler, and none is loaded")
        latents = lift(latents, canvas.lift_latent)
    return crop_latents(latents, canvas)


def crop_latents(latents: Tensor, canvas: TwoPassCanvas) -> Tensor:
    """The centre of lifted latents [..., H', W'] -> [..., H, W]; a view."""
    height, width = canvas.target_latent
    top, left = canvas.crop_top, canvas.crop_left
    return latents[..., top : top + height, left : left + width]


def shrink_keyframe(latents: Tensor, canvas: TwoPassCanvas) -> Tensor:
    """A keyframe's latents for the first pass: [1, 24, 1, H, W] -> [1, 24, 1, h, w], float32.

    The border that the crop will cut is added by repeating the edge, then the whole is resized:
    bilinear, antialiased, align_corners false (facts: model sheet d.6).
    """
    if tuple(latents.shape[-2:]) != canvas.target_latent:
        raise RequestError(
            f"keyframe latents {tuple(latents.shape[-2:])} do not have the target's size "
            f"{canvas.target_latent}"
        )
    if not canvas.upscaling:
        return latents
    (height, width), (lift_height, lift_width) = canvas.target_latent, canvas.lift_latent
    top, left = canvas.crop_top, canvas.crop_left
    border = (left, lift_width - width - left, top, lift_height - height - top)
    images = latents.transpose(1, 2).flatten(0, 1).float()  # frames as a batch of images
    padded = functional.pad(images, border, mode="replicate")
    small = functional.interpolate(
        padded,
        size=(canvas.first_height_px // 16, canvas.first_width_px // 16),
        mode="bilinear",
        align_corners=False,
        antialias=True,
    )
    return small.unflatten(0, (latents.shape[0], latents.shape[2])).transpose(1, 2)
