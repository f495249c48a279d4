"""Encoded conditions on their way into the packed sequence.

A keyframe or visual reference is the autoencoder's posterior, sampled with a generator of its own
(seed 42, so a picture always gives the same latents), rounded to float16 and normalised. At the
start of a pass it is noised to t = 0.999 (two_pass.noised_condition_rows) and stays so. Reference
sound is the posterior's mean and stays clean (facts: model sheet g, d.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ..errors import RequestError
from ..model.layout import Reference
from ..vae.config import PIXEL_MEAN, PIXEL_STD
from .canvas import TwoPassCanvas
from .schedules import ConditionTimes
from .two_pass import shrink_keyframe

POSTERIOR_SEED = 42
PATCH_LATENTS = 4  # a row stands for 2 x 2 latents
LOG_VARIANCE_RANGE = (-30.0, 20.0)


@dataclass(frozen=True)
class EncodedReference:
    """One reference as latents. latents: [1, 24, F, H, W] normalised, of a picture or video;
    sound_rows: [2A, 32] of a sound, or of a video that has sound. Both float32."""

    kind: str
    latents: Tensor | None = None
    sound_rows: Tensor | None = None

    @property
    def block(self) -> Reference:
        """The layout's view. Raises RequestError when sizes do not fit the kind."""
        return reference_block(self.kind, self.latents, self.sound_rows)

    @property
    def rows(self) -> int:
        """Rows in the packed sequence."""
        visual = 0 if self.latents is None else self.latents[0, 0].numel() // PATCH_LATENTS
        return visual + (0 if self.sound_rows is None else len(self.sound_rows))


@dataclass(frozen=True)
class ConditionSet:
    """All encoded conditions of a request, in packed order.

    keyframes: of "first", "last".  references: sizes of reference blocks.  One of the two is empty.
    latents: visual conditions, normalised, [1, 24, F, H, W] float32 each.
    audio_rows: reference sound, one [2A, 32] float32 for each block that has sound.
    """

    keyframes: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    latents: tuple[Tensor, ...] = ()
    audio_rows: tuple[Tensor, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.keyframes and self.references:
            raise RequestError("keyframes and references cannot be mixed", field="references")
        visual = len(self.keyframes) + sum(item.latent_frames > 0 for item in self.references)
        sounding = sum(item.audio_latents > 0 for item in self.references)
        if visual != len(self.latents) or sounding != len(self.audio_rows):
            raise RequestError(
                f"{visual} visual and {sounding} sounding conditions, but latents of "
                f"{len(self.latents)} and {len(self.audio_rows)}",
                field="references",
            )

    @classmethod
    def of_references(cls, references: Sequence[EncodedReference]) -> ConditionSet:
        """The conditions of a request with references, in its order."""
        return cls(
            references=tuple(item.block for item in references),
            latents=tuple(item.latents for item in references if item.latents is not None),
            audio_rows=tuple(i.sound_rows for i in references if i.sound_rows is not None),
        )

    @property
    def times(self) -> ConditionTimes:
        """Which clocks the conditions add to a schedule."""
        return ConditionTimes(visual=bool(self.latents), reference_audio=bool(self.audio_rows))

    @property
    def shapes(self) -> tuple[torch.Size, ...]:
        """Latent shapes in the order in which their noise is drawn."""
        return tuple(item.shape for item in self.latents)

    def packed_audio(self) -> Tensor | None:
        """All reference sound rows [J, 32], or None."""
        return torch.cat(self.audio_rows) if self.audio_rows else None

    def for_first_pass(self, canvas: TwoPassCanvas) -> ConditionSet:
        """The same conditions for the small canvas: keyframes shrink, references stay."""
        if not self.keyframes:
            return self
        return replace(
            self, latents=tuple(shrink_keyframe(latents, canvas) for latents in self.latents)
        )


def pixels_for_encoder(pixels: Tensor) -> Tensor:
    """uint8 [F, H, W, 3] -> the encoder's space [1, 3, F, H, W] float32."""
    if pixels.dtype != torch.uint8 or pixels.ndim != 4 or pixels.shape[-1] != 3:
        raise RequestError(
            f"pixels are {pixels.dtype} {tuple(pixels.shape)}, expected uint8 [F, H, W, 3]"
        )
    mean, std = (
        torch.tensor(values, device=pixels.device).view(1, -1, 1, 1, 1)
        for values in (PIXEL_MEAN, PIXEL_STD)
    )
    planes = pixels.permute(3, 0, 1, 2)[None].float()
    return (planes / 255.0 - mean) / std


def sample_condition(
    mean: Tensor,
    log_variance: Tensor,
    latents_mean: Sequence[float],
    latents_std: Sequence[float],
    *,
    seed: int = POSTERIOR_SEED,
) -> Tensor:
    """Normalised latents [1, 24, F, H, W] float32 on the CPU from the encoder's posterior.

    mean, log_variance: [1, 24, F, H, W].  latents_mean, latents_std: per channel.
    The draw is a CPU draw in the posterior's dtype, whatever its device.
    """
    generator = torch.Generator(device="cpu").manual_seed(seed)
    noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device="cpu")
    deviation = (0.5 * log_variance.clamp(*LOG_VARIANCE_RANGE)).exp()
    drawn = mean + deviation * noise.to(mean.device)
    # The published pipeline keeps eleven bits of a condition; so does this one.
    rounded = drawn.to(torch.float16).float().cpu()
    return (rounded - _per_channel(latents_mean, 1, 5)) / _per_channel(latents_std, 1, 5)


def sound_rows(mean: Tensor, latents_mean: Sequence[float], latents_std: Sequence[float]) -> Tensor:
    """Reference sound rows [2A, 32] float32 on the CPU from the posterior's mean [2, 32, A]."""
    latents = mean.float().cpu().transpose(1, 2)
    normalised = (latents - _per_channel(latents_mean, 2, 3)) / _per_channel(latents_std, 2, 3)
    return normalised.reshape(-1, mean.shape[1])


def reference_block(kind: str, latents: Tensor | None, audio_rows: Tensor | None) -> Reference:
    """The layout's view of one encoded reference.

    latents: [1, 24, F, H, W] of a picture or video.  audio_rows: [2A, 32] of a sound, or of a
    video that has sound.  Raises RequestError when they do not fit the kind.
    """
    frames, height, width = (0, 0, 0) if latents is None else latents.shape[-3:]
    sounds = 0 if audio_rows is None else audio_rows.shape[0] // 2
    return Reference(kind, frames, height, width, sounds)


def _per_channel(values: Sequence[float], axis: int, dimensions: int) -> Tensor:
    shape = [1] * dimensions
    shape[axis] = -1
    return torch.tensor(list(values), dtype=torch.float32).view(shape)
