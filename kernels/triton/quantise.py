"""Activation quantisation by row, and the quantised linear through PyTorch's scaled product."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..reference import quantise as reference
from ..weights import Activation, Weight

FP8 = torch.float8_e4m3fn


@triton.jit
def _quantise_fp8(x, codes, scales, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    value = tl.load(x + row * width + at, inside, 0.0).to(tl.float32)
    step = tl.maximum(tl.max(tl.abs(value)) / 448.0, 1e-12)
    tl.store(codes + row * width + at, (value / step).to(codes.dtype.element_ty), inside)
    tl.store(scales + row, step)


def quantise_activation(x: Tensor, kind: str, group: int | None = None) -> Activation:
    """As kernels.reference.quantise.quantise_activation."""
    if kind != "fp8-rowwise":
        return reference.quantise_activation(x, kind, group)
    x = x.contiguous()
    codes = torch.empty(x.shape, dtype=FP8, device=x.device)
    scales = torch.empty(x.shape[0], 1, dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    _quantise_fp8[(x.shape[0],)](x, codes, scales, x.shape[1], BLOCK=block, num_warps=8)
    return Activation(kind, codes, scales)


def linear(
    act: Activation, weight: Weight, out_dtype: torch.dtype, *, out: Tensor | None = None
) -> Tensor:
    """As kernels.reference.quantise.linear, on the tensor cores where the shapes allow it."""
    codes = act.codes
    if not _scaled_product_takes(act, weight):
        return reference.linear(act, weight, out_dtype, out=out)
    where = {} if out is None else {"out": out}
    result = torch._scaled_mm(
        codes,
        weight.codes.t(),
        scale_a=act.scale,
        scale_b=weight.scale,
        out_dtype=out_dtype,
        use_fast_accum=True,
        **where,
    )
    return result if weight.bias is None else result.add_(weight.bias.to(out_dtype))


def _scaled_product_takes(act: Activation, weight: Weight) -> bool:
    """FP8 on a CUDA device with widths that are multiples of 16."""
    if not act.kind.startswith("fp8") or not act.codes.is_cuda:
        return False
    outputs, width = weight.codes.shape
    return outputs % 16 == 0 and width % 16 == 0
