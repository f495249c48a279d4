"""Cheap pictures of latents while a pass runs: a linear map from 24 channels to red, green, blue.

No decoder is needed. The factors are data (a 24 x 3 matrix and three offsets) and come from
outside, or from a least-squares fit to frames that this machine has decoded itself. A preview shows
the solver's clean estimate, one latent as one pixel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

SECONDS_BETWEEN_PREVIEWS = 0.5


@dataclass(frozen=True)
class PreviewFactors:
    """rgb = latents @ weights + offset, in [0, 1]. weights: [24, 3], offset: [3], float32."""

    weights: Tensor
    offset: Tensor


def preview_rgb(latents: Tensor, factors: PreviewFactors) -> Tensor:
    """Normalised latents [1, 24, F, H, W] -> uint8 [F, H, W, 3] on the latents' device."""
    weights = factors.weights.to(latents.device, torch.float32)
    offset = factors.offset.to(latents.device, torch.float32)
    channels_last = latents[0].permute(1, 2, 3, 0).float()
    rgb = channels_last @ weights + offset
    return (rgb.nan_to_num(0.0).clamp(0, 1) * 255).round().to(torch.uint8)


def fit_preview_factors(latents: Tensor, frames: Tensor, *, ridge: float = 1e-3) -> PreviewFactors:
    """Least squares from a decoded clip.

    latents: [1, 24, F, H, W] normalised.  frames: uint8 [n, h, w, 3], n = 17k+5 for F = 5k+2, any
    h, w; each latent frame is matched with the mean of the pixel frames it covers.
    ridge: relative to the mean channel variance; keeps a clip of few colours from giving wild
    factors.
    """
    target = _pixels_of_latents(frames, latents.shape[-3:])
    x = latents[0].permute(1, 2, 3, 0).reshape(-1, latents.shape[1]).double().cpu()
    y = target.reshape(-1, 3).double().cpu()
    x_mean, y_mean = x.mean(0), y.mean(0)
    x, y = x - x_mean, y - y_mean
    gram = x.T @ x
    gram += ridge * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    weights = torch.linalg.solve(gram, x.T @ y)
    return PreviewFactors(weights.float(), (y_mean - x_mean @ weights).float())


class PreviewPace:
    """Lets at most two previews a second through; the first one at once."""

    def __init__(self, clock: Callable[[], float], interval: float = SECONDS_BETWEEN_PREVIEWS):
        self._clock, self._interval_seconds = clock, interval
        self._due_seconds: float | None = None

    def is_due(self) -> bool:
        """True when enough time has passed since the last True."""
        now = self._clock()
        if self._due_seconds is not None and now < self._due_seconds:
            return False
        self._due_seconds = now + self._interval_seconds
        return True


def _pixels_of_latents(frames: Tensor, size: tuple[int, ...]) -> Tensor:
    """[F, H, W, 3] float32 in [0, 1]: pixels averaged over what each latent covers."""
    count, height, width = size
    planes = functional.adaptive_avg_pool2d(
        frames.permute(0, 3, 1, 2).float() / 255, (height, width)
    )
    means, start = [], 0
    for frame in range(count):
        # Latent 0 of a group of five covers one pixel frame, the others four (facts a.5).
        span = 1 if frame % 5 == 0 else 4
        means.append(planes[start : start + span].mean(0))
        start += span
    if start != len(frames):
        raise ValueError(f"{len(frames)} frames do not belong to {count} latent frames")
    return torch.stack(means).permute(0, 2, 3, 1)
