"""Short convolutions of the linear branch. A warp owns two or four channels a lane, and walks.

Spatial: down the rows of a strip of columns, taps and five open output rows in registers, so an
input is read once a strip (and once more at its borders) and a tap once a strip. Temporal: all
frames of a group are read before the first is made, so their reads wait together; SiLU, L2 norm
and sqrt(beta) follow in registers, and what is written is exactly what the statistics multiply.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..tuning import tuned

STRIPS = (7, 6, 5, 4)  # columns of a strip, the widest first: more need too many registers


# Not specialised by where a group begins or how long it is: each case would be compiled anew.
@triton.jit(do_not_specialize=["first"])
def _conv_spatial(
    x, weight, ring, height, width, channels, first, slots, strips,
    W: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    frame = tl.program_id(0) // strips
    left = (tl.program_id(0) % strips) * W
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    in_c = c < channels
    none = c * 0  # masks are made as vectors: Triton's interpreter widens a scalar condition
    x0 = none + left
    taps = ()
    for tap in tl.static_range(25):
        taps += (tl.load(weight + tap * channels + c, in_c, 0.0).to(tl.float32),)
    tokens = height * width
    source = x + (frame * tokens + left).to(tl.int64) * channels + c
    slot = (first + frame) % slots
    target = ring + (slot * tokens + left).to(tl.int64) * channels + c
    zero = tl.zeros((BLOCK_C,), tl.float32)
    open_rows = ()  # output rows y-2 .. y+1 before input row y, W columns each
    for _ in tl.static_range(4 * W):
        open_rows += (zero,)
    for y in range(0, height + 2):
        here = none + y
        row = ()
        for dx in tl.static_range(W + 4):
            ok = in_c & (here < height) & (x0 + dx >= 2) & (x0 + dx < width + 2)
            at = source + (y * width + dx - 2) * channels
            row += (tl.load(at, ok, 0.0).to(tl.float32),)
        made = ()
        for out in tl.static_range(5):  # input row y meets output row y-2+out with tap row 4-out
            for column in tl.static_range(W):
                total = zero
                if out < 4:
                    total = open_rows[out * W + column]
                for dx in tl.static_range(5):
                    total += row[column + dx] * taps[(4 - out) * 5 + dx]
                made += (total,)
        for column in tl.static_range(W):
            ok = in_c & (here >= 2) & (x0 + column < width)
            at = target + ((y - 2) * width + column) * channels
            tl.store(at, made[column].to(ring.dtype.element_ty), ok)
        open_rows = made[W:]


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
    strip = min(STRIPS, key=lambda w: triton.cdiv(width, w) * (w + 1))
    strips = triton.cdiv(width, strip)
    launch = tuned("conv_spatial", rows.device)
    block = min(launch["BLOCK_C"], triton.next_power_of_2(channels))
    _conv_spatial[(frames * strips, triton.cdiv(channels, block))](
        rows, weight, ring, height, width, channels, first, slots, strips,
        W=strip, **{**launch, "BLOCK_C": block},
    )  # fmt: skip


@triton.jit(do_not_specialize=["first", "count", "high"])
def _conv_temporal(
    ring, weight, beta, out, tokens, slots, channels, heads, first, count, low, high,
    TAPS: tl.constexpr, NORMALISE: tl.constexpr, D: tl.constexpr, FRAMES: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    begin = tl.program_id(2) * FRAMES
    d = tl.arange(0, D)
    c = head * D + d
    none = d * 0
    reach: tl.constexpr = TAPS // 2
    taps = ()
    for tap in tl.static_range(TAPS):
        if TAPS > 1:
            taps += (tl.load(weight + tap * channels + c).to(tl.float32),)
    p = tl.program_id(0)
    frames = ()
    for index in tl.static_range(FRAMES + 2 * reach):
        frame = first + begin + index - reach
        inside = (none + frame >= low) & (none + frame <= high)
        inside = inside & (none + begin + index < count + 2 * reach)
        at = ring + (((frame + slots) % slots) * tokens + p).to(tl.int64) * channels + c
        frames += (tl.load(at, inside, 0.0),)
    for index in tl.static_range(FRAMES):
        value = frames[index].to(tl.float32)
        if TAPS > 1:
            value = value * taps[0]
            for tap in tl.static_range(TAPS - 1):
                value += frames[index + tap + 1].to(tl.float32) * taps[tap + 1]
        value = value * tl.sigmoid(value)
        if NORMALISE:
            value = value / tl.maximum(tl.sqrt(tl.sum(value * value)), 1e-6)
        wanted = none + begin + index < count
        row = tl.minimum(first + begin + index, first + count - 1) * tokens + p
        value = value * tl.sqrt(tl.load(beta + row.to(tl.int64) * heads + head).to(tl.float32))
        at = out + (((begin + index) * heads + head).to(tl.int64) * tokens + p) * D + d
        tl.store(at, value.to(out.dtype.element_ty), wanted)


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
    launch = tuned("conv_temporal", ring.device)
    _conv_temporal[(tokens, heads, triton.cdiv(count, launch["FRAMES"]))](
        ring, taps, beta, out, tokens, slots, channels, heads, first, count, low, high,
        TAPS=1 if weight is None else 5, NORMALISE=normalise, D=width, **launch,
    )  # fmt: skip
    return out
