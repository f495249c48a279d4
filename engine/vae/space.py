"""The spaces at the two ends of the video autoencoder: normalised latents, and colours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from .config import PIXEL_MEAN, PIXEL_STD, VideoVaeConfig


@contextmanager
def exact_convolutions() -> Iterator[None]:
    """Convolutions in whole float32, the same bits every time; cuDNN's default rounds to TF32."""
    with torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    ):
        yield


def denormalise(latents: Tensor, config: VideoVaeConfig, *, channel_axis: int = 1) -> Tensor:
    """latents * std + mean, per channel (facts e.3)."""
    mean, std = _statistics(latents, config, channel_axis)
    return latents * std + mean


def normalise(latents: Tensor, config: VideoVaeConfig, *, channel_axis: int = 1) -> Tensor:
    """(latents - mean) / std, per channel (facts e.3)."""
    mean, std = _statistics(latents, config, channel_axis)
    return (latents - mean) / std


class PixelBytes:
    """Model colours to bytes; the constants go to the device once, because each copy would wait."""

    def __init__(self, device: torch.device) -> None:
        self._mean = torch.tensor(PIXEL_MEAN, device=device).view(3, 1, 1, 1)
        self._std = torch.tensor(PIXEL_STD, device=device).view(3, 1, 1, 1)

    def __call__(self, frames: Tensor) -> Tensor:
        """[3, n, H, W] float32 to uint8 [n, H, W, 3], rounded to nearest."""
        levels = (frames * self._std + self._mean).clamp_(0, 1).mul_(255).round_()
        return levels.to(torch.uint8).permute(1, 2, 3, 0).contiguous()


def pixels_to_uint8(frames: Tensor) -> Tensor:
    """Model colours [3, n, H, W] float32 to uint8 [n, H, W, 3]."""
    return PixelBytes(frames.device)(frames)


def _statistics(like: Tensor, config: VideoVaeConfig, axis: int) -> tuple[Tensor, Tensor]:
    shape = [1] * like.ndim
    shape[axis] = -1
    mean = torch.tensor(config.latents_mean, dtype=torch.float32, device=like.device).view(shape)
    std = torch.tensor(config.latents_std, dtype=torch.float32, device=like.device).view(shape)
    return mean, std


def pixels_to_model(frames: Tensor) -> Tensor:
    """uint8 [n, H, W, 3] to model colours [1, 3, n, H, W] float32: the encoder's input."""
    x = frames.permute(3, 0, 1, 2).float() / 255
    mean = x.new_tensor(PIXEL_MEAN).view(3, 1, 1, 1)
    std = x.new_tensor(PIXEL_STD).view(3, 1, 1, 1)
    return ((x - mean) / std).unsqueeze(0)
