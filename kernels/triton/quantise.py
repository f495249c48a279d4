"""Activation quantisation in one launch a tensor (two for one scale a tensor).

Int8 rotates in registers. H4 times x is sum(x) - 2 x reversed, and a sum over an axis does not
change when that axis is reversed, so H256 x is four rounds of sum - 2 x along the axes of
4 x 4 x 4 x 4, then one reversal of the whole group: `at ^ (GROUP - 1)` at the store.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..reference import quantise as reference
from ..tuning import tuned
from ..weights import Activation
from .rows import fp8_step

FP8 = torch.float8_e4m3fn
ROUND = tl.constexpr(12582912.0)  # 1.5 * 2**23: adding and subtracting it rounds half to even


@triton.jit
def _quantise_fp8(x, codes, scales, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    value = tl.load(x + row * width + at, inside, 0.0).to(tl.float32)
    step = fp8_step(value)
    tl.store(codes + row * width + at, (value / step).to(codes.dtype.element_ty), inside)
    tl.store(scales + row, step)


@triton.jit
def _absmax(x, found, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * width + at, at < width, 0.0).to(tl.float32)
    # Bits of floats that are not negative order as integers do.
    tl.atomic_max(found, tl.max(tl.abs(value)).to(tl.int32, bitcast=True))


@triton.jit
def _quantise_fp8_by(x, absmax, codes, scale, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    step = tl.maximum(tl.load(absmax).to(tl.float32, bitcast=True) / 448.0, 1e-12)
    value = tl.load(x + row * width + at, inside, 0.0).to(tl.float32)
    value = tl.minimum(tl.maximum(value / step, -448.0), 448.0)
    tl.store(codes + row * width + at, value.to(codes.dtype.element_ty), inside)
    tl.store(scale, step, row == 0)


@triton.jit
def _butterfly(x, BLOCK: tl.constexpr, STRIDE: tl.constexpr):
    """sum - 2 x over each four elements that lie STRIDE apart."""
    z = tl.reshape(x, (BLOCK // (4 * STRIDE), 4, STRIDE))
    return tl.reshape(tl.sum(z, 1)[:, None, :] - 2.0 * z, (BLOCK,))


@triton.jit
def rotate_reversed(x, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    """x [BLOCK] float32 times the rotation of each group, every group in reversed order."""
    if GROUP >= 4:
        x = _butterfly(x, BLOCK, 1)
    if GROUP >= 16:
        x = _butterfly(x, BLOCK, 4)
    if GROUP >= 64:
        x = _butterfly(x, BLOCK, 16)
    if GROUP >= 256:
        x = _butterfly(x, BLOCK, 64)
    if GROUP == 256:
        x = x * 0.0625
    elif GROUP == 64:
        x = x * 0.125
    elif GROUP == 16:
        x = x * 0.25
    elif GROUP == 4:
        x = x * 0.5
    return x


@triton.jit
def int8_codes(value, kind: tl.constexpr):
    """Codes (as float32) and scale of a rotated row, rounded as the format wants: `value` to the
    input's dtype, the division in that dtype by the rounded scale (kernels.reference.quantise).

    One reciprocal a row; its quotient is mended by its own remainder, which gives the rounding of
    a true division at a fraction of the cost. A divisor that underflows makes every code extreme.
    """
    value = value.to(kind).to(tl.float32)
    scale = tl.maximum(tl.div_rn(tl.max(tl.abs(value)), 127.0), 1e-30)
    divisor = scale.to(kind).to(tl.float32)
    inverse = tl.where(divisor == 0.0, 1e38, tl.div_rn(1.0, tl.where(divisor == 0.0, 1.0, divisor)))
    code = value * inverse
    code = tl.fma(tl.fma(-code, divisor, value), inverse, code)
    code = tl.minimum(tl.maximum(code.to(kind).to(tl.float32), -128.0), 127.0)
    return (code + ROUND) - ROUND, scale


@triton.jit
def _quantise_int8(x, codes, scales, width, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * width + at, at < width, 0.0).to(tl.float32)
    code, scale = int8_codes(rotate_reversed(value, BLOCK, GROUP), x.dtype.element_ty)
    to = at ^ (GROUP - 1)
    tl.store(codes + row * width + to, code.to(tl.int8), to < width)
    tl.store(scales + row, scale)


@triton.jit
def _rotate(x, out, width, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * width + at, at < width, 0.0).to(tl.float32)
    to = at ^ (GROUP - 1)
    rotated = rotate_reversed(value, BLOCK, GROUP)
    tl.store(out + row * width + to, rotated.to(out.dtype.element_ty), to < width)


def quantise_activation(x: Tensor, kind: str, group: int | None = None) -> Activation:
    """As kernels.reference.quantise.quantise_activation."""
    if kind == "plain":
        return Activation(kind, x)
    if kind == "int8-convrot":
        return quantise_int8(x, group)
    if kind not in ("fp8-rowwise", "fp8-tensor"):
        raise ValueError(f"unknown kind {kind!r}")
    x = x.contiguous()
    rows, width = x.shape
    codes = torch.empty(x.shape, dtype=FP8, device=x.device)
    launch = {"BLOCK": triton.next_power_of_2(width), **tuned("fp8_rows", x.device)}
    if kind == "fp8-rowwise":
        scales = torch.empty(rows, 1, dtype=torch.float32, device=x.device)
        _quantise_fp8[(rows,)](x, codes, scales, width, **launch)
        return Activation(kind, codes, scales)
    absmax = torch.zeros(1, dtype=torch.int32, device=x.device)
    scale = torch.empty(1, 1, dtype=torch.float32, device=x.device)
    _absmax[(rows,)](x, absmax, width, **launch)
    _quantise_fp8_by[(rows,)](x, absmax, codes, scale, width, **launch)
    return Activation(kind, codes, scale)


def rotate(x: Tensor, group: int | None = None) -> Tensor:
    """x H per group, rounded once to x's dtype. x: [M, K]; group None: `convrot_group(K)`."""
    x = x.contiguous()
    rows, width = x.shape
    out = torch.empty_like(x)
    _rotate[(rows,)](x, out, width, **row_launch(width, group, x.device))
    return out


def quantise_int8(x: Tensor, group: int | None, **launch: int) -> Activation:
    """The int8 case of `quantise_activation`. launch: overrides of the tuned parameters."""
    x = x.contiguous()
    rows, width = x.shape
    codes = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    scales = torch.empty(rows, 1, dtype=torch.float32, device=x.device)
    _quantise_int8[(rows,)](
        x, codes, scales, width, **{**row_launch(width, group, x.device), **launch}
    )
    return Activation("int8-convrot", codes, scales)


def row_launch(width: int, group: int | None, device: torch.device) -> dict[str, int]:
    """One program a row: block, group and launch parameters. Raises ValueError for a bad group."""
    group = reference.convrot_group(width) if group is None else group
    if width % group or group not in (1, 4, 16, 64, 256):
        raise ValueError(f"width {width} cannot rotate in groups of {group}")
    block = triton.next_power_of_2(width)
    op = "int8_wide_rows" if block > 8192 else "int8_rows"
    return {"BLOCK": block, "GROUP": group, **tuned(op, device)}
