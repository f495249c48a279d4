"""Fused norms: RMS norm + modulation + FP8 quantisation, and head norm + rotary embedding.

One program a row (norm_modulate) or a row and eight heads (head_norm_rope); the row stays in
registers, so each input is read once and each output written once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..tuning import tuned
from ..weights import Activation
from .quantise import FP8, quantise_activation
from .rows import normed_row


@triton.jit
def _norm_modulate(
    x, weight, table, rows, y, codes, scales, width, column, eps,
    KEEP_Y: tl.constexpr, QUANT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    value = normed_row(x, weight, table, rows, row, at, inside, width, column, eps)
    if KEEP_Y:
        tl.store(y + row * width + at, value.to(y.dtype.element_ty), inside)
    if QUANT:
        step = tl.maximum(tl.max(tl.where(inside, tl.abs(value), 0.0)) / 448.0, 1e-12)
        tl.store(codes + row * width + at, (value / step).to(codes.dtype.element_ty), inside)
        tl.store(scales + row, step)


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
    """As kernels.reference.norm.norm_modulate; FP8 codes are made from the unrounded y."""
    count, width = x.shape
    fused = kind == "fp8-rowwise"
    keep_y = keep_y or not fused
    y = torch.empty_like(x) if keep_y else x
    codes = torch.empty(x.shape, dtype=FP8, device=x.device) if fused else x
    scales = torch.empty(count, 1, dtype=torch.float32, device=x.device) if fused else x
    _norm_modulate[(count,)](
        x, weight, table, rows, y, codes, scales, width, column, eps,
        KEEP_Y=keep_y, QUANT=fused, BLOCK=triton.next_power_of_2(width),
        **tuned("norm_modulate", x.device),
    )  # fmt: skip
    if fused:
        return y, Activation(kind, codes, scales)
    return y, quantise_activation(y, kind, group)


@triton.jit
def _head_norm_rope(
    raw, weight, cos, sin, out, heads, stride, eps,
    D: tl.constexpr, HALF: tl.constexpr, REST: tl.constexpr,
    BLOCK_HALF: tl.constexpr, BLOCK_REST: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    here = (head < heads)[:, None]
    a = tl.arange(0, BLOCK_HALF)
    b = tl.arange(0, BLOCK_REST)
    in_a = (a < HALF)[None, :] & here
    in_b = (b < REST)[None, :] & here
    base = raw + row * stride + head[:, None] * D
    x1 = tl.load(base + a[None, :], in_a, 0.0).to(tl.float32)
    x2 = tl.load(base + HALF + a[None, :], in_a, 0.0).to(tl.float32)
    x3 = tl.load(base + 2 * HALF + b[None, :], in_b, 0.0).to(tl.float32)
    total = tl.sum(x1 * x1, 1) + tl.sum(x2 * x2, 1) + tl.sum(x3 * x3, 1)
    factor = tl.rsqrt(total / D + eps)[:, None]
    w1 = tl.load(weight + a, a < HALF, 0.0).to(tl.float32)[None, :]
    w2 = tl.load(weight + HALF + a, a < HALF, 0.0).to(tl.float32)[None, :]
    w3 = tl.load(weight + 2 * HALF + b, b < REST, 0.0).to(tl.float32)[None, :]
    x1 = x1 * factor * w1
    x2 = x2 * factor * w2
    x3 = x3 * factor * w3
    c = tl.load(cos + row * HALF + a, a < HALF, 0.0)[None, :]
    s = tl.load(sin + row * HALF + a, a < HALF, 0.0)[None, :]
    to = out + row * heads * D + head[:, None] * D
    kind = out.dtype.element_ty
    tl.store(to + a[None, :], (x1 * c - x2 * s).to(kind), in_a)
    tl.store(to + HALF + a[None, :], (x2 * c + x1 * s).to(kind), in_a)
    tl.store(to + 2 * HALF + b[None, :], x3.to(kind), in_b)


def head_norm_rope(
    raw: Tensor, weight: Tensor, cos: Tensor, sin: Tensor, *, eps: float, out: Tensor
) -> Tensor:
    """As kernels.reference.norm.head_norm_rope. cos, sin: contiguous float32 [M, R/2]."""
    rows, heads, width = out.shape
    half = cos.shape[1]
    rest = width - 2 * half
    launch = tuned("head_norm_rope", out.device)
    _head_norm_rope[(rows, triton.cdiv(heads, launch["BLOCK_H"]))](
        raw, weight, cos, sin, out, heads, raw.stride(0), eps,
        D=width, HALF=half, REST=rest, BLOCK_HALF=triton.next_power_of_2(half),
        BLOCK_REST=max(1, triton.next_power_of_2(max(rest, 1))), **launch,
    )  # fmt: skip
    return out
