"""Rotary position embedding over three axes (facts: model sheet a.6).

f frequencies serve the axes t, h, w alike: 3f angles turn 3f channel pairs, the first 6f of D head
channels; the rest pass. Channel j pairs with channel j + 3f, so both halves of a cos or sin table
are equal and only one half is kept here.
"""

from __future__ import annotations

import torch
from torch import Tensor


def rotary_tables(position_ids: Tensor, freqs: int, theta: float) -> tuple[Tensor, Tensor]:
    """cos and sin of every row's angles.

    position_ids: [N, 3], any float dtype; rounded to float32 first, because the trained model forms
    its angles in float32 and large times lose digits there in a way that is part of the model.
    Returns two float32 tensors [N, 3 * freqs], columns t then h then w.
    """
    exponent = torch.arange(0, 2 * freqs, 2, dtype=torch.float32, device=position_ids.device)
    inverse = 1.0 / theta ** (exponent / (2 * freqs))
    angles = (position_ids.to(torch.float32)[:, :, None] * inverse).flatten(1)
    return angles.cos(), angles.sin()


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the leading channels of every head.

    x: [N, H, D] in any float dtype; cos, sin: [N, 3 * freqs], cast to x's dtype before they
    multiply. Returns [N, H, D] in x's dtype; channels from 6 * freqs on are unchanged.
    """
    half = cos.shape[-1]
    cos, sin = cos.to(x.dtype)[:, None, :], sin.to(x.dtype)[:, None, :]
    first, second = x[..., :half], x[..., half : 2 * half]
    turned = (first * cos - second * sin, second * cos + first * sin, x[..., 2 * half :])
    return torch.cat(turned, dim=-1)
