"""Short convolutions of the linear branch.

Spatial: a program owns 32 columns (frames side by side) and a channel block, walks down the rows
and keeps five output rows in registers, so an input row is read five times (once a column shift)
instead of twenty-five. Temporal: the same walk over frames; SiLU, L2 norm and sqrt(beta) follow in
registers, and what is written is exactly what the statistics multiply.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _conv_spatial(
    x, weight, ring, frames, height, width, channels, first, slots,
    TAPS: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    frame = p // width
    column = p % width
    here = p < frames * width
    in_c = c < channels
    tokens = height * width
    source = x + (frame * tokens + column).to(tl.int64)[:, None] * channels + c[None, :]
    slot = (first + frame) % slots
    target = ring + (slot * tokens + column).to(tl.int64)[:, None] * channels + c[None, :]
    a0 = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
    a1 = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
    a2 = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
    a3 = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
    for y in range(0, height + 2):
        a4 = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
        if y < height:
            for dx in tl.static_range(0, 5):
                xx = column + dx - 2
                ok = here & (xx >= 0) & (xx < width)
                v = tl.load(
                    source + (y * width + dx - 2) * channels,
                    ok[:, None] & in_c[None, :],
                    0.0,
                ).to(tl.float32)
                w = weight + dx * channels + c
                a0 += v * tl.load(w + 20 * channels, in_c, 0.0).to(tl.float32)[None, :]
                a1 += v * tl.load(w + 15 * channels, in_c, 0.0).to(tl.float32)[None, :]
                a2 += v * tl.load(w + 10 * channels, in_c, 0.0).to(tl.float32)[None, :]
                a3 += v * tl.load(w + 5 * channels, in_c, 0.0).to(tl.float32)[None, :]
                a4 += v * tl.load(w, in_c, 0.0).to(tl.float32)[None, :]
        if y >= 2:
            tl.store(
                target + (y - 2) * width * channels,
                a0.to(ring.dtype.element_ty),
                here[:, None] & in_c[None, :],
            )
        a0 = a1
        a1 = a2
        a2 = a3
        a3 = a4


def conv_taps(weight: Tensor) -> Tensor:
    """Taps [C, 1, 5, 5] or [C, 1, 5] channel-last: [25, C] or [5, C]."""
    return weight.reshape(weight.shape[0], -1).t().contiguous()


def conv_spatial(
    rows: Tensor, weight: Tensor | None, ring: Tensor, *, first: int, grid: tuple[int, int]
) -> None:
    """As kernels.reference.conv.conv_spatial; weight: what `conv_taps` gave, [25, C]."""
    height, width = grid
    slots, tokens, channels = ring.shape
    frames = rows.shape[0] // tokens
    if weight is None:
        for index in range(frames):
            ring[(first + index) % slots] = rows[index * tokens : (index + 1) * tokens]
        return
    block_p, block_c = 16, min(64, triton.next_power_of_2(channels))
    launch = (triton.cdiv(frames * width, block_p), triton.cdiv(channels, block_c))
    _conv_spatial[launch](
        rows, weight, ring, frames, height, width, channels, first, slots,
        TAPS=5, BLOCK_P=block_p, BLOCK_C=block_c, num_warps=4,
    )  # fmt: skip


@triton.jit
def _conv_temporal(
    ring, weight, beta, out, tokens, slots, channels, heads, first, count, low, high,
    TAPS: tl.constexpr, NORMALISE: tl.constexpr, D: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    head = tl.program_id(1)
    d = tl.arange(0, D)
    c = head * D + d
    here = p < tokens
    reach: tl.constexpr = TAPS // 2
    a0 = tl.zeros((BLOCK_P, D), tl.float32)
    a1 = tl.zeros((BLOCK_P, D), tl.float32)
    a2 = tl.zeros((BLOCK_P, D), tl.float32)
    a3 = tl.zeros((BLOCK_P, D), tl.float32)
    for frame in range(first - reach, first + count + reach):
        at = p * 0 + frame
        inside = here & (at >= low) & (at <= high)
        slot = (frame + slots) % slots
        v = tl.load(
            ring + (slot * tokens + p).to(tl.int64)[:, None] * channels + c[None, :],
            inside[:, None],
            0.0,
        ).to(tl.float32)
        if TAPS == 5:
            # input frame f meets outputs f-2 .. f+2 with taps 4 .. 0
            a0 += v * tl.load(weight + 4 * channels + c).to(tl.float32)[None, :]
            a1 += v * tl.load(weight + 3 * channels + c).to(tl.float32)[None, :]
            a2 += v * tl.load(weight + 2 * channels + c).to(tl.float32)[None, :]
            a3 += v * tl.load(weight + channels + c).to(tl.float32)[None, :]
            a4 = v * tl.load(weight + c).to(tl.float32)[None, :]
        else:
            a0 = v
            a4 = v
        done = frame - reach
        if done >= first:
            f = a0 * tl.sigmoid(a0)
            if NORMALISE:
                f = f / tl.maximum(tl.sqrt(tl.sum(f * f, 1)), 1e-6)[:, None]
            b = tl.load(beta + (done * tokens + p) * heads + head, here, 0.0).to(tl.float32)
            f = f * tl.sqrt(b)[:, None]
            base = ((done - first) * heads + head).to(tl.int64) * tokens
            tl.store(
                out + (base + p)[:, None] * D + d[None, :],
                f.to(out.dtype.element_ty),
                here[:, None],
            )
        a0 = a1
        a1 = a2
        a2 = a3
        a3 = a4


def conv_temporal_features(
    ring: Tensor,
    weight: Tensor | None,
    beta: Tensor,
    *,
    first: int,
    count: int,
    low: int,
    high: int,
    heads: int,
    normalise: bool,
) -> Tensor:
    """As kernels.reference.conv.conv_temporal_features; weight: what `conv_taps` gave, [5, C]."""
    slots, tokens, channels = ring.shape
    width = channels // heads
    out = torch.empty(count, heads, tokens, width, dtype=ring.dtype, device=ring.device)
    taps = ring if weight is None else weight
    block = 16
    _conv_temporal[(triton.cdiv(tokens, block), heads)](
        ring, taps, beta, out, tokens, slots, channels, heads, first, count, low, high,
        TAPS=1 if weight is None else 5, NORMALISE=normalise, D=width, BLOCK_P=block, num_warps=4,
    )  # fmt: skip
    return out
