"""Merging partial attention in one pass. The attention itself is a library's (kernels.vendor)."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ..tuning import tuned


@triton.jit
def _merge(total, total_lse, part, part_lse, heads, count, D: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = at < count
    old = tl.load(total_lse + at, here, 0.0)
    new = tl.load(part_lse + at, here, 0.0)
    top = tl.maximum(old, new)
    lse = top + tl.log(tl.exp(old - top) + tl.exp(new - top))
    d = tl.arange(0, D)
    where = at[:, None] * D + d[None, :]
    x = tl.load(total + where, here[:, None], 0.0) * tl.exp(old - lse)[:, None]
    y = tl.load(part + where, here[:, None], 0.0).to(tl.float32) * tl.exp(new - lse)[:, None]
    tl.store(total + where, x + y, here[:, None])
    tl.store(total_lse + at, lse, here)


def merge_partial(total: Tensor, total_lse: Tensor, part: Tensor, part_lse: Tensor) -> None:
    """As kernels.reference.attention.merge_partial; all [M, H, D] and [M, H], contiguous."""
    rows, heads, width = total.shape
    count = rows * heads
    launch = tuned("merge_partial", total.device)
    _merge[(triton.cdiv(count, launch["BLOCK"]),)](
        total, total_lse, part.contiguous(), part_lse.contiguous(), heads, count,
        D=width, **launch,
    )  # fmt: skip
