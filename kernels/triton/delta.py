"""Delta rule kernels: statistics on the tensor cores, an in-register inverse, scans by row block.

The inverse of the positive definite I + A is made by the sweep operator: D pivots, no pivoting
needed because every pivot is at least 1. The scans use that the rows of a state evolve
independently, so a program owns some rows of one head and walks the chunk's frames.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _statistics(
    k, v, a, b, tokens, D: tl.constexpr, ROWS: tl.constexpr, BLOCK_S: tl.constexpr
):  # fmt: skip
    which = tl.program_id(0).to(tl.int64)  # frame * H + head
    parts: tl.constexpr = D // ROWS
    part = tl.program_id(1) % parts
    of_b = tl.program_id(1) // parts
    r = part * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, D)
    left = k
    out = a
    if of_b:
        left = v
        out = b
    total = tl.zeros((ROWS, D), tl.float32)
    for start in range(0, tokens, BLOCK_S):
        s = start + tl.arange(0, BLOCK_S)
        inside = (s < tokens)[:, None]
        base = (which * tokens + s)[:, None] * D
        x = tl.load(left + base + r[None, :], inside, 0.0)
        y = tl.load(k + base + d[None, :], inside, 0.0)
        total = tl.dot(tl.trans(x), y, total, input_precision="ieee")
    tl.store(out + which * D * D + r[:, None] * D + d[None, :], total)


def frame_statistics(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """As kernels.reference.delta.frame_statistics, accumulated in float32."""
    frames, heads, tokens, width = keys.shape
    a = torch.empty(frames, heads, width, width, dtype=torch.float32, device=keys.device)
    b = torch.empty_like(a)
    rows = min(64, width)
    _statistics[(frames * heads, 2 * (width // rows))](
        keys, values, a, b, tokens, D=width, ROWS=rows, BLOCK_S=64, num_warps=4
    )
    return a, b


@triton.jit
def _sweep(x, N: tl.constexpr):
    """Inverse of a symmetric positive definite [N, N] by the sweep operator, in registers.

    The matrix stays symmetric, so a pivot's column is its row in another layout.
    """
    i = tl.arange(0, N)
    for pivot in range(0, N):
        here = i == pivot
        row = tl.sum(tl.where(here[:, None], x, 0.0), 0)
        p = tl.sum(tl.where(here, row, 0.0), 0)
        scaled = row / p
        x -= row[:, None] * scaled[None, :]
        scaled = tl.where(here, -1.0 / p, scaled)
        x = tl.where(here[:, None], scaled[None, :], x)
        x = tl.where(here[None, :], scaled[:, None], x)
    return -x


@triton.jit
def _invert_pair(source, target, LD: tl.constexpr, H: tl.constexpr, PRECISION: tl.constexpr):
    """Inverse of a [2H, 2H] corner in memory through its Schur complement."""
    i = tl.arange(0, H)
    at = i[:, None] * LD + i[None, :]
    a = tl.load(source + at)
    b = tl.load(source + H * LD + at)
    c = tl.load(source + H * LD + H + at)
    ai = _sweep(a, H)
    w = tl.dot(b, ai, input_precision=PRECISION)
    si = _sweep(c - tl.dot(w, tl.trans(b), input_precision=PRECISION), H)
    x = tl.dot(si, w, input_precision=PRECISION)
    tl.store(target + at, ai + tl.dot(tl.trans(w), x, input_precision=PRECISION))
    tl.store(target + H * LD + at, -x)
    tl.store(target + H + at, -tl.trans(x))
    tl.store(target + H * LD + H + at, si)


@triton.jit
def _inverse_small(a, alpha, m, t, divisor, D: tl.constexpr):
    which = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, D)
    at = which * D * D + i[:, None] * D + i[None, :]
    eye = (i[:, None] == i[None, :]).to(tl.float32)
    inverse = _sweep(tl.load(a + at) / divisor + eye, D)
    tl.store(m + at, inverse)
    tl.store(t + at, inverse * tl.load(alpha + which * D + i)[:, None])


@triton.jit
def _inverse(a, alpha, m, t, divisor, D: tl.constexpr, PRECISION: tl.constexpr):
    """m = (I + A / divisor)^-1 and t = diag(alpha) m, by halves; m and t are scratch on the way."""
    which = tl.program_id(0).to(tl.int64)
    H: tl.constexpr = D // 2
    a += which * D * D
    m += which * D * D
    t += which * D * D
    alpha += which * D
    i = tl.arange(0, H)
    at = i[:, None] * D + i[None, :]
    eye = (i[:, None] == i[None, :]).to(tl.float32)
    corner = H * D + H
    tl.store(m + at, tl.load(a + at) / divisor + eye)
    lower = tl.load(a + H * D + at) / divisor
    tl.debug_barrier()
    _invert_pair(m, t, D, D // 4, PRECISION)
    tl.debug_barrier()
    ai = tl.load(t + at)
    w = tl.dot(lower, ai, input_precision=PRECISION)
    schur = tl.load(a + corner + at) / divisor + eye
    schur -= tl.dot(w, tl.trans(lower), input_precision=PRECISION)
    tl.store(m + corner + at, schur)
    tl.debug_barrier()
    _invert_pair(m + corner, t + corner, D, D // 4, PRECISION)
    tl.debug_barrier()
    si = tl.load(t + corner + at)
    x = tl.dot(si, w, input_precision=PRECISION)
    ai += tl.dot(tl.trans(w), x, input_precision=PRECISION)
    top = tl.load(alpha + i)[:, None]
    low = tl.load(alpha + H + i)[:, None]
    tl.debug_barrier()
    tl.store(m + at, ai)
    tl.store(m + H * D + at, -x)
    tl.store(m + H + at, -tl.trans(x))
    tl.store(m + corner + at, si)
    tl.store(t + at, ai * top)
    tl.store(t + H * D + at, -x * low)
    tl.store(t + H + at, -tl.trans(x) * top)
    tl.store(t + corner + at, si * low)


def delta_solve(
    a: Tensor, b: Tensor, alpha: Tensor, *, rule: str, tokens: int
) -> tuple[Tensor, Tensor]:
    """As kernels.reference.delta.delta_solve, float32."""
    frames, heads, width, _ = a.shape
    if rule == "sana_scaled":
        eye = torch.eye(width, dtype=a.dtype, device=a.device)
        return alpha[..., None] * (eye - a / tokens), b / tokens**0.5
    scaled = rule == "vdn_scaled"
    inverse, transition = torch.empty_like(a), torch.empty_like(a)
    divisor = float(tokens) if scaled else 1.0
    if width >= 64:  # a product needs 16 rows, and a quarter of 64 has them
        _inverse[(frames * heads,)](
            a, alpha.contiguous(), inverse, transition, divisor,
            D=width, PRECISION="tf32x3", num_warps=2,
        )  # fmt: skip
    else:
        _inverse_small[(frames * heads,)](
            a, alpha.contiguous(), inverse, transition, divisor, D=width, num_warps=4
        )  # fmt: skip
    flat = (frames * heads, width, width)
    injection = torch.bmm(b.view(flat), inverse.view(flat)).view_as(b)
    return transition, injection / tokens**0.5 if scaled else injection


@triton.jit
def _scan(
    state, transition, injection, fold_t, fold_j, heads, start, count, slots,
    D: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    r = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    what = tl.program_id(2)  # 0 forward state, 1 folded T, 2 folded J
    d = tl.arange(0, D)
    rows = r[:, None] * D + d[None, :]
    square = d[:, None] * D + d[None, :]
    if what == 0:
        value = tl.load(state + head * D * D + rows)
    elif what == 1:
        value = (r[:, None] == d[None, :]).to(tl.float32)
    else:
        value = tl.zeros((ROWS, D), tl.float32)
    for index in range(0, count):
        step = index
        if what > 0:
            step = count - 1 - index
        base = (((start + step) % slots) * heads + head) * D * D
        t = tl.load(transition + base + square)
        if what == 1:
            value = tl.dot(value, t, input_precision=PRECISION)
        else:
            j = tl.load(injection + base + rows)
            value = tl.dot(value, t, j, input_precision=PRECISION)
    if what == 0:
        tl.store(state + head * D * D + rows, value)
    elif what == 1:
        tl.store(fold_t + head * D * D + rows, value)
    else:
        tl.store(fold_j + head * D * D + rows, value)


def scan_chunk(
    state: Tensor,
    transition: Tensor,
    injection: Tensor,
    fold_t: Tensor,
    fold_j: Tensor,
    *,
    slots: list[int],
) -> None:
    """As kernels.reference.delta.scan_chunk; slots are consecutive modulo the ring."""
    heads, width, _ = state.shape
    rows = min(32, width)
    _scan[(heads, width // rows, 3)](
        state, transition, injection, fold_t, fold_j, heads, slots[0] if slots else 0, len(slots),
        transition.shape[0], D=width, ROWS=rows, PRECISION="tf32x3", num_warps=4,
    )  # fmt: skip


@triton.jit
def _window_states(
    before, after, decay_before, decay_after, out, heads, D: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    which = tl.program_id(0).to(tl.int64)  # frame * H + head
    head = which % heads
    r = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, D)
    rows = r[:, None] * D + d[None, :]
    x = tl.load(before + head * D * D + rows) * tl.load(decay_before + which * D + d)[None, :]
    y = tl.load(after + head * D * D + rows) * tl.load(decay_after + which * D + d)[None, :]
    tl.store(out + which * D * D + rows, (x + y).to(out.dtype.element_ty))


def window_states(
    before: Tensor, after: Tensor, decay_before: Tensor, decay_after: Tensor, dtype: torch.dtype
) -> Tensor:
    """As kernels.reference.delta.window_states."""
    heads, width, _ = before.shape
    frames = decay_before.shape[0]
    out = torch.empty(frames, heads, width, width, dtype=dtype, device=before.device)
    rows = min(32, width)
    _window_states[(frames * heads, width // rows)](
        before, after, decay_before.contiguous(), decay_after.contiguous(), out, heads,
        D=width, ROWS=rows, num_warps=4,
    )  # fmt: skip
    return out
