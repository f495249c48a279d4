"""RMS norms with what follows them at once: AdaLN modulation, rotary embedding.

    norm_modulate      y = rms_norm(x) * w * (1 + scale) + shift     scale, shift by row
    head_norm_rope     per head: rms_norm over D, then rotate the first channels

Everything is computed in float32 and rounded once, to the dtype of the input.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..weights import Activation
from .quantise import quantise_activation


def norm_modulate(
    x: Tensor,
    weight: Tensor,
    table: Tensor,
    rows: Tensor,
    column: int,
    *,
    eps: float,
    kind: str,
    group: int | None = None,
    keep_y: bool = True,
) -> tuple[Tensor, Activation]:
    """The modulated input of attention or feed-forward, plain and ready for a linear.

    x: [M, C]; weight: [C]; table: [T, 6C] AdaLN rows (shift, scale, gate, shift, scale, gate);
    rows: int32 [M], the table row of each packed row; column: 0 for attention, 3 for feed-forward.
    Returns y [M, C] in x's dtype and its Activation of `kind`; with keep_y false a fast form may
    leave y unwritten, and the caller must not read it. Formula: model sheet a.8.
    """
    width = x.shape[1]
    wide = torch.promote_types(x.dtype, torch.float32)
    value = x.to(wide)
    value = value * torch.rsqrt(value.square().mean(-1, keepdim=True) + eps) * weight.to(wide)
    picked = table[rows.long(), column * width : (column + 2) * width].to(wide)
    y = (value * (1 + picked[:, width:]) + picked[:, :width]).to(x.dtype)
    return y, quantise_activation(y, kind, group)


def head_norm_rope(
    raw: Tensor, weight: Tensor, cos: Tensor, sin: Tensor, *, eps: float, out: Tensor
) -> Tensor:
    """RMS norm over each head, then rotary embedding of its first channels.

    raw: [M, H*D]; weight: [D]; cos, sin: float32 [M, R/2] where R channels rotate (rotate-half over
    the first R); out: [M, H, D], written. Formula: model sheet a.6, a.8.
    """
    rows, heads, width = out.shape
    wide = torch.promote_types(raw.dtype, torch.float32)
    value = raw.view(rows, heads, width).to(wide)
    value = value * torch.rsqrt(value.square().mean(-1, keepdim=True) + eps) * weight.to(wide)
    half = cos.shape[1]
    first, second = value[..., :half], value[..., half : 2 * half]
    c, s = cos.to(wide)[:, None], sin.to(wide)[:, None]
    rotated = torch.cat([first * c - second * s, second * c + first * s], -1)
    out[..., : 2 * half] = rotated.to(out.dtype)
    out[..., 2 * half :] = value[..., 2 * half :].to(out.dtype)
    return out
