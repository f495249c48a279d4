"""What begins a row-wise kernel, whatever its row becomes: one row, float32, in registers.

row: int64; at: column numbers of the block; inside: those below the width. Called within kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def normed_row(x, weight, table, rows, row, at, inside, width, column, eps):
    """A row after RMS norm, shift and scale (kernels.reference.norm.norm_modulate)."""
    value = tl.load(x + row * width + at, inside, 0.0).to(tl.float32)
    value = value * tl.rsqrt(tl.sum(value * value) / width + eps)
    value = value * tl.load(weight + at, inside, 0.0).to(tl.float32)
    base = table + tl.load(rows + row).to(tl.int64) * 6 * width + column * width
    shift = tl.load(base + at, inside, 0.0).to(tl.float32)
    scale = tl.load(base + width + at, inside, 0.0).to(tl.float32)
    return value * (1.0 + scale) + shift


@triton.jit
def gated_row(
    x, logits, row, at, inside, width, logit_stride, D: tl.constexpr, GATED: tl.constexpr
):  # fmt: skip
    """A row of attention, each head times the sigmoid of its logit."""
    value = tl.load(x + row * width + at, inside, 0.0).to(tl.float32)
    if GATED:
        logit = tl.load(logits + row * logit_stride + at // D, inside, 0.0).to(tl.float32)
        value = value * tl.sigmoid(logit)
    return value


@triton.jit
def swiglu_row(up, row, at, inside, width):
    """The first half of a row times SiLU of the second."""
    value = tl.load(up + row * 2 * width + at, inside, 0.0).to(tl.float32)
    gate = tl.load(up + row * 2 * width + width + at, inside, 0.0).to(tl.float32)
    return value * gate * tl.sigmoid(gate)


@triton.jit
def fp8_step(value):
    """The scale of a row's FP8 codes; values outside the width are zero."""
    return tl.maximum(tl.max(tl.abs(value)) / 448.0, 1e-12)
