"""Norm, gate and SwiGLU that end in int8 codes, rotated and quantised while a row is in registers.

Other kinds of activation are those of `norm` and `gates`; these functions stand before them. Each
value is rounded to the input's dtype before it is rotated, as when it is written and read again.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..weights import Activation
from . import gates, norm
from .quantise import int8_codes, rotate_reversed, row_launch
from .rows import gated_row, normed_row, swiglu_row

KIND = "int8-convrot"


@triton.jit
def _store_codes(
    value, codes, scales, row, at, width, kind: tl.constexpr, BLOCK: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    value = value.to(kind).to(tl.float32)
    code, scale = int8_codes(rotate_reversed(value, BLOCK, GROUP), kind)
    to = at ^ (GROUP - 1)
    tl.store(codes + row * width + to, code.to(tl.int8), to < width)
    tl.store(scales + row, scale)


@triton.jit
def _norm_int8(
    x, weight, table, rows, y, codes, scales, width, column, eps,
    KEEP_Y: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    value = normed_row(x, weight, table, rows, row, at, inside, width, column, eps)
    if KEEP_Y:
        tl.store(y + row * width + at, value.to(y.dtype.element_ty), inside)
    _store_codes(value, codes, scales, row, at, width, x.dtype.element_ty, BLOCK, GROUP)


@triton.jit
def _gate_int8(
    x, logits, codes, scales, heads, logit_stride,
    D: tl.constexpr, GATED: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    width = heads * D
    at = tl.arange(0, BLOCK)
    inside = at < width
    value = gated_row(x, logits, row, at, inside, width, logit_stride, D, GATED)
    _store_codes(value, codes, scales, row, at, width, x.dtype.element_ty, BLOCK, GROUP)


@triton.jit
def _swiglu_int8(up, codes, scales, width, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    value = swiglu_row(up, row, at, inside, width)
    _store_codes(value, codes, scales, row, at, width, up.dtype.element_ty, BLOCK, GROUP)


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
    """As kernels.reference.norm.norm_modulate."""
    if kind != KIND:
        return norm.norm_modulate(
            x, weight, table, rows, column, eps=eps, kind=kind, group=group, keep_y=keep_y
        )
    count, width = x.shape
    y = torch.empty_like(x) if keep_y else x
    act = _empty(count, width, x.device)
    _norm_int8[(count,)](
        x, weight, table, rows, y, act.codes, act.scale, width, column, eps,
        KEEP_Y=keep_y, **row_launch(width, group, x.device),
    )  # fmt: skip
    return y, act


def gate_heads(
    attention: Tensor, logits: Tensor | None, *, kind: str, group: int | None = None
) -> Activation:
    """As kernels.reference.gates.gate_heads. logits may be a column slice (row stride kept)."""
    if kind != KIND:
        return gates.gate_heads(attention, logits, kind=kind, group=group)
    rows, heads, head_width = attention.shape
    attention = attention.contiguous()
    act = _empty(rows, heads * head_width, attention.device)
    _gate_int8[(rows,)](
        attention, attention if logits is None else logits, act.codes, act.scale, heads,
        0 if logits is None else logits.stride(0), D=head_width, GATED=logits is not None,
        **row_launch(heads * head_width, group, attention.device),
    )  # fmt: skip
    return act


def swiglu(up: Tensor, *, kind: str, group: int | None = None) -> Activation:
    """As kernels.reference.gates.swiglu."""
    if kind != KIND:
        return gates.swiglu(up, kind=kind, group=group)
    up = up.contiguous()
    rows, width = up.shape[0], up.shape[1] // 2
    act = _empty(rows, width, up.device)
    _swiglu_int8[(rows,)](up, act.codes, act.scale, width, **row_launch(width, group, up.device))
    return act


def _empty(rows: int, width: int, device: torch.device) -> Activation:
    codes = torch.empty(rows, width, dtype=torch.int8, device=device)
    return Activation(KIND, codes, torch.empty(rows, 1, dtype=torch.float32, device=device))
