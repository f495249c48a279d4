"""Gates, SwiGLU and residual, fused with the quantisation that follows. One program a row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..tuning import tuned
from ..weights import Activation
from .quantise import FP8, quantise_activation
from .rows import fp8_step, gated_row, swiglu_row


@triton.jit
def _gate_heads(
    x, logits, out, scales, heads, logit_stride,
    D: tl.constexpr, GATED: tl.constexpr, QUANT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    width = heads * D
    at = tl.arange(0, BLOCK)
    inside = at < width
    value = gated_row(x, logits, row, at, inside, width, logit_stride, D, GATED)
    if QUANT:
        step = fp8_step(value)
        value = value / step
        tl.store(scales + row, step)
    tl.store(out + row * width + at, value.to(out.dtype.element_ty), inside)


def gate_heads(
    attention: Tensor, logits: Tensor | None, *, kind: str, group: int | None = None
) -> Activation:
    """As kernels.reference.gates.gate_heads. logits may be a column slice (row stride kept)."""
    rows, heads, width = attention.shape
    attention = attention.contiguous()
    quant = kind == "fp8-rowwise"
    dtype = FP8 if quant else attention.dtype
    out = torch.empty(rows, heads * width, dtype=dtype, device=attention.device)
    scales = torch.empty(rows, 1, dtype=torch.float32, device=out.device) if quant else out
    _gate_heads[(rows,)](
        attention, attention if logits is None else logits, out, scales, heads,
        0 if logits is None else logits.stride(0),
        D=width, GATED=logits is not None, QUANT=quant,
        BLOCK=triton.next_power_of_2(heads * width), **tuned("gate_heads", out.device),
    )  # fmt: skip
    if quant:
        return Activation(kind, out, scales)
    return quantise_activation(out, kind, group)


@triton.jit
def _swiglu(up, out, scales, width, QUANT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    value = swiglu_row(up, row, at, inside, width)
    if QUANT:
        step = fp8_step(value)
        value = value / step
        tl.store(scales + row, step)
    tl.store(out + row * width + at, value.to(out.dtype.element_ty), inside)


def swiglu(up: Tensor, *, kind: str, group: int | None = None) -> Activation:
    """As kernels.reference.gates.swiglu."""
    rows, width = up.shape[0], up.shape[1] // 2
    quant = kind == "fp8-rowwise"
    out = torch.empty(rows, width, dtype=FP8 if quant else up.dtype, device=up.device)
    scales = torch.empty(rows, 1, dtype=torch.float32, device=up.device) if quant else out
    block = triton.next_power_of_2(width)
    launch = tuned("swiglu_wide" if block > 8192 else "swiglu", up.device)
    _swiglu[(rows,)](up, out, scales, width, QUANT=quant, BLOCK=block, **launch)
    if quant:
        return Activation(kind, out, scales)
    return quantise_activation(out, kind, group)


@triton.jit
def _add_gated(
    x, table, rows, a, b, width, column, TWO: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    gate = table + tl.load(rows + row).to(tl.int64) * 6 * width + column * width
    total = tl.load(a + row * width + at, inside, 0.0).to(tl.float32)
    if TWO:
        total += tl.load(b + row * width + at, inside, 0.0).to(tl.float32)
    value = tl.load(x + row * width + at, inside, 0.0).to(tl.float32)
    value += tl.load(gate + at, inside, 0.0).to(tl.float32) * total
    tl.store(x + row * width + at, value.to(x.dtype.element_ty), inside)


def add_gated(x: Tensor, table: Tensor, rows: Tensor, column: int, *outputs: Tensor) -> None:
    """As kernels.reference.gates.add_gated, for one or two outputs. x: contiguous rows."""
    first, second = outputs[0], outputs[-1]
    _add_gated[(x.shape[0],)](
        x, table, rows, first, second, x.shape[1], column,
        TWO=len(outputs) == 2, BLOCK=triton.next_power_of_2(x.shape[1]),
        **tuned("add_gated", x.device),
    )  # fmt: skip
