"""Latent upscaler, reference form: a 3D convolutional network that lifts the first pass.

    z -> (z - mean) / std -> conv_in -> blocks -> resize H, W -> blocks -> GN, SiLU, conv_out
      -> * std + mean
The latents are already normalised; the network normalises them once more, as it was trained to.
Blocks are residual 3x3x3 convolutions modulated by an embedding of scale - 1, and temporal
convolutions after every block of even index. GroupNorm takes its statistics over the whole clip;
all padding is zeros, in time too (facts: model sheet d.7, l.11). Whole-clip tensors, nothing
clever: `upscaler_tiled` is the form that fits a small card and must agree with this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ..vae.config import PUBLISHED_VIDEO_MEAN, PUBLISHED_VIDEO_STD
from .canvas import lift_scale
from .upscaler_file import NORM_GROUPS, UpscalerConfig

NORM_EPS = 1e-5

Weights = Mapping[str, Tensor]
Probe = Callable[[str, Tensor], None]
"""Called with the name and value of intermediate tensors; for tests."""


def upscale(
    latents: Tensor,
    size: tuple[int, int],
    weights: Weights,
    config: UpscalerConfig,
    *,
    scale: float | None = None,
    mean: Sequence[float] = PUBLISHED_VIDEO_MEAN,
    std: Sequence[float] = PUBLISHED_VIDEO_STD,
    probe: Probe | None = None,
) -> Tensor:
    """Latents [1, 24, F, h, w] at `size` = (height, width): [1, 24, F, height, width] float32.

    weights: by bare name; their dtype is the dtype of the whole computation, mean and std included.
    scale: the number whose excess over 1 is embedded; from the sizes when None.
    mean, std: of the latent channels.
    Latents that already have the size come back as they are, not even normalised.
    """
    if tuple(latents.shape[-2:]) == tuple(size):
        return latents
    note = probe or (lambda name, value: None)
    dtype = weights["conv_in.weight"].dtype
    shift, factor = (channel_vector(values, latents.device, dtype) for values in (mean, std))
    x = (latents.to(dtype) - shift) / factor
    note("normalised", x)
    source = int(latents.shape[-2]), int(latents.shape[-1])
    embedding = embed_scale(lift_scale(source, size) if scale is None else scale, weights)
    note("embed", embedding)
    x = functional.conv3d(x, weights["conv_in.weight"], weights["conv_in.bias"], padding=1)
    note("conv_in", x)
    for name, temporal in config.entries("in_blocks"):
        x = _entry(x, name, temporal, weights, embedding, note)
    note("before_resize", x)
    x = functional.interpolate(x, size=(x.shape[2], *size), mode="trilinear", align_corners=False)
    note("after_resize", x)
    for name, temporal in config.entries("out_blocks"):
        x = _entry(x, name, temporal, weights, embedding, note)
    note("before_norm_out", x)
    x = functional.silu(_norm(x, "norm_out", weights))
    x = functional.conv3d(x, weights["conv_out.weight"], weights["conv_out.bias"], padding=1)
    note("conv_out", x)
    return (x * factor + shift).float()


def channel_vector(values: Sequence[float], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Per-channel numbers as [1, 24, 1, 1, 1], rounded to `dtype`."""
    return torch.tensor(values, device=device, dtype=dtype).view(1, -1, 1, 1, 1)


def embed_scale(scale: float, weights: Weights) -> Tensor:
    """The embedding of scale - 1: [1, 64] in the weights' dtype."""
    first = weights["embed.0.weight"]
    x = torch.tensor([[scale - 1]], device=first.device, dtype=first.dtype)
    x = functional.silu(functional.linear(x, first, weights["embed.0.bias"]))
    return functional.linear(x, weights["embed.2.weight"], weights["embed.2.bias"])


def modulation(name: str, weights: Weights, embedding: Tensor) -> Tensor:
    """Scale then shift of a residual block, [1, 2 * width]."""
    return functional.linear(
        functional.silu(embedding),
        weights[f"{name}.emb_layers.1.weight"],
        weights[f"{name}.emb_layers.1.bias"],
    )


def _entry(
    x: Tensor, name: str, temporal: bool, weights: Weights, embedding: Tensor, note: Probe
) -> Tensor:
    if temporal:
        x = _temporal_conv(x, name, weights, note)
    else:
        x = _residual_block(x, name, weights, embedding, note)
    note(name, x)
    return x


def _residual_block(
    x: Tensor, name: str, weights: Weights, embedding: Tensor, note: Probe
) -> Tensor:
    h = functional.silu(_norm(x, f"{name}.in_layers.0", weights))
    h = _conv(h, f"{name}.in_layers.2", weights, padding=1)
    note(f"{name}/in_layers", h)
    both = modulation(name, weights, embedding)
    note(f"{name}/emb_layers", both)
    scale, shift = both[:, :, None, None, None].chunk(2, dim=1)
    h = _norm(h, f"{name}.out_norm", weights)
    note(f"{name}/out_norm", h)
    h = h * (1 + scale) + shift
    note(f"{name}/modulated", h)
    h = _conv(functional.silu(h), f"{name}.out_layers.2", weights, padding=1)
    note(f"{name}/out_layers", h)
    return x + h


def _temporal_conv(x: Tensor, name: str, weights: Weights, note: Probe) -> Tensor:
    h = functional.silu(_norm(x, f"{name}.norm", weights))
    note(f"{name}/norm_silu", h)
    taps = weights[f"{name}.dwconv.weight"]
    h = functional.conv3d(
        h,
        taps,
        weights[f"{name}.dwconv.bias"],
        padding=(taps.shape[2] // 2, 0, 0),
        groups=taps.shape[0],
    )
    note(f"{name}/dwconv", h)
    h = _conv(h, f"{name}.pwconv", weights, padding=0)
    note(f"{name}/pwconv", h)
    return x + h


def _conv(x: Tensor, name: str, weights: Weights, *, padding: int) -> Tensor:
    return functional.conv3d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=padding)


def _norm(x: Tensor, name: str, weights: Weights) -> Tensor:
    return functional.group_norm(
        x, NORM_GROUPS, weights[f"{name}.weight"], weights[f"{name}.bias"], NORM_EPS
    )
