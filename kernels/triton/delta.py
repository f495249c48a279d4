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

from ..tuning import for_width, tuned


def fitting(launch: dict[str, int], width: int) -> dict[str, int]:
    """Launch parameters whose pieces of a state, ROWS and W, are no wider than the head."""
    return {
        name: min(value, width) if name in ("ROWS", "W") else value
        for name, value in launch.items()
    }


@triton.jit
def _statistics(k, v, a, b, tokens, D: tl.constexpr, BLOCK_S: tl.constexpr):
    which = tl.program_id(0).to(tl.int64)  # frame * H + head
    d = tl.arange(0, D)
    of_keys = tl.zeros((D, D), tl.float32)
    of_values = tl.zeros((D, D), tl.float32)
    for start in range(0, tokens, BLOCK_S):
        s = start + tl.arange(0, BLOCK_S)
        inside = (s < tokens)[:, None]
        at = (which * tokens + s)[:, None] * D + d[None, :]
        x = tl.load(k + at, inside, 0.0)
        y = tl.load(v + at, inside, 0.0)
        of_keys = tl.dot(tl.trans(x), x, of_keys, input_precision="ieee")
        of_values = tl.dot(tl.trans(y), x, of_values, input_precision="ieee")
    square = which * D * D + d[:, None] * D + d[None, :]
    tl.store(a + square, of_keys)
    tl.store(b + square, of_values)


def frame_statistics(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """As kernels.reference.delta.frame_statistics, accumulated in float32."""
    frames, heads, tokens, width = keys.shape
    a = torch.empty(frames, heads, width, width, dtype=torch.float32, device=keys.device)
    b = torch.empty_like(a)
    launch = tuned(for_width("frame_statistics", width), keys.device)
    _statistics[(frames * heads,)](keys, values, a, b, tokens, D=width, **launch)
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
def _invert_block(source, target, LD: tl.constexpr, N: tl.constexpr):
    """Inverse of a positive definite [N, N] in memory by the sweep operator, a row a register.

    The matrix stays symmetric, so a pivot's column is one lane of every row: a shuffle each.
    """
    lane = tl.arange(0, N)
    x = ()
    for i in tl.static_range(N):
        x += (tl.load(source + i * LD + lane),)
    for p in tl.static_range(N):
        at = tl.full((N,), p, tl.int32)
        here = lane == p
        inverse = 1.0 / tl.gather(x[p], at, 0)
        scaled = tl.where(here, -1.0, x[p]) * inverse
        made = ()
        for i in tl.static_range(N):
            if i == p:
                made += (scaled,)
            else:
                made += (tl.where(here, 0.0, x[i]) - tl.gather(x[i], at, 0) * scaled,)
        x = made
    for i in tl.static_range(N):
        tl.store(target + i * LD + lane, -x[i])


@triton.jit
def _invert_corner(
    source, target, LD: tl.constexpr, W: tl.constexpr, N: tl.constexpr, PRECISION: tl.constexpr
):  # fmt: skip
    """Inverse of a [W, W] corner in memory, the sweep operator by blocks of N.

    With P the inverse of the pivot block and R its rows, x becomes x - R^T P R, its rows P R and
    its own block -P; after the last block it is the negative inverse. `source` is used up: its row
    blocks are kept current one ahead; `target` holds P R and P on the way. W >= 2 N.
    """
    i = tl.arange(0, W)
    k = tl.arange(0, N)
    square = i[:, None] * LD + i[None, :]
    panel = k[:, None] * LD + i[None, :]
    block = target + W // 2 * LD  # where P waits
    x = tl.load(source + square)
    for low in range(0, W, N):
        r = tl.load(source + low * LD + panel)
        _invert_block(source + low * LD + low, block, LD, N)
        tl.debug_barrier()
        mine = (i >= low) & (i < low + N)
        p = tl.load(block + k[:, None] * LD + k[None, :])
        w = tl.dot(p, r, input_precision=PRECISION)
        own = tl.load(block + k[:, None] * LD + (i - low)[None, :], mine[None, :], 0.0)
        w = tl.where(mine[None, :], -own, w)
        x -= tl.dot(tl.trans(r), w, input_precision=PRECISION)
        tl.store(target + panel, w)
        tl.debug_barrier()
        across = tl.load(target + (i - low)[:, None] * LD + i[None, :], mine[:, None], 0.0)
        down = tl.load(target + (i - low)[None, :] * LD + i[:, None], mine[None, :], 0.0)
        x = tl.where(mine[:, None], across, tl.where(mine[None, :], down, x))
        after = (i >= low + N) & (i < low + 2 * N)
        tl.store(source + square, x, after[:, None] & (i[None, :] < W))
        tl.debug_barrier()
    tl.store(target + square, -x)


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
def _inverse(a, alpha, m, t, divisor, D: tl.constexpr, N: tl.constexpr, PRECISION: tl.constexpr):
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
    for half in range(0, 2):
        off = half * corner
        _invert_corner(m + off, t + off, D, H, N, PRECISION)
        tl.debug_barrier()
        if half == 0:
            ai = tl.load(t + at)
            w = tl.dot(lower, ai, input_precision=PRECISION)
            schur = tl.load(a + corner + at) / divisor + eye
            schur -= tl.dot(w, tl.trans(lower), input_precision=PRECISION)
            tl.store(m + corner + at, schur)
            tl.store(m + H * D + at, w)
            tl.debug_barrier()
    si = tl.load(t + corner + at)
    w = tl.load(m + H * D + at)
    ai = tl.load(t + at)
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
            D=width, PRECISION="tf32x3", **tuned("delta_solve", a.device),
        )  # fmt: skip
    else:
        _inverse_small[(frames * heads,)](
            a, alpha.contiguous(), inverse, transition, divisor,
            D=width, **tuned("delta_solve_small", a.device),
        )  # fmt: skip
    flat = (frames * heads, width, width)
    injection = torch.bmm(b.view(flat), inverse.view(flat)).view_as(b)
    return transition, injection / tokens**0.5 if scaled else injection


@triton.jit
def _advance(
    value, t, j, rows, D: tl.constexpr, W: tl.constexpr, ADD: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """value T (+ J): [R, D] as a tuple of column pieces W wide, so that T fits in registers."""
    w = tl.arange(0, W)
    made = ()
    for n in tl.static_range(D // W):
        total = value[0] * 0.0
        if ADD:
            total = tl.load(j + rows + n * W + w[None, :])
        for k in tl.static_range(D // W):
            piece = tl.load(t + (k * W + w)[:, None] * D + n * W + w[None, :])
            total = tl.dot(value[k], piece, total, input_precision=PRECISION)
        made += (total,)
    return made


# Not specialised by where a group begins or how long it is: each case would be compiled anew.
@triton.jit(do_not_specialize=["first", "count", "high"])
def _scan(
    state, transition, injection, after, fold_t, fold_j, heads, slots, first, count, size, low,
    high, D: tl.constexpr, ROWS: tl.constexpr, W: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Program 0 of the last axis walks all chunks forward; then two a chunk fold T and J."""
    head = tl.program_id(0).to(tl.int64)
    r = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    which = tl.program_id(2)
    what = 0  # 0 forward state, 1 folded T, 2 folded J
    chunk = first
    walk = count
    if which > 0:
        what = 1 + (which - 1) % 2
        chunk = first + (which - 1) // 2
        walk = 1
    w = tl.arange(0, W)
    rows = r[:, None] * D
    place = head * D * D + rows + w[None, :]
    value = ()
    for n in tl.static_range(D // W):
        column = w[None, :] + n * W
        forward = r[:, None] * 0 + column * 0 + what == 0
        piece = tl.load(state + place + n * W, forward, 0.0)
        unit = (r[:, None] == column) & (r[:, None] * 0 + what == 1)
        value += (tl.where(unit, 1.0, piece),)
    for _ in range(0, walk):
        begin = chunk * size
        stop = begin + size
        if begin < low:
            begin = low
        if stop > high:
            stop = high
        for index in range(0, stop - begin):
            frame = begin + index
            if what > 0:
                frame = stop - 1 - index
            base = ((frame % slots) * heads + head) * D * D
            if what == 1:
                value = _advance(
                    value, transition + base, injection + base, rows, D, W, False, PRECISION
                )
            else:
                value = _advance(
                    value, transition + base, injection + base, rows, D, W, True, PRECISION
                )
        out = after
        if what == 1:
            out = fold_t
        if what == 2:
            out = fold_j
        out += chunk.to(tl.int64) * heads * D * D
        for n in tl.static_range(D // W):
            tl.store(out + place + n * W, value[n])
        chunk += 1
    if what == 0:
        for n in tl.static_range(D // W):
            tl.store(state + place + n * W, value[n])


def scan_chunks(
    state: Tensor,
    transition: Tensor,
    injection: Tensor,
    after: Tensor,
    fold_t: Tensor,
    fold_j: Tensor,
    *,
    chunks: range,
    size: int,
    frames: range,
) -> None:
    """As kernels.reference.delta.scan_chunks."""
    heads, width, _ = state.shape
    launch = fitting(tuned(for_width("scan_chunks", width), state.device), width)
    _scan[(heads, width // launch["ROWS"], 1 + 2 * len(chunks))](
        state, transition, injection, after, fold_t, fold_j, heads, transition.shape[0],
        chunks.start, len(chunks), size, frames.start, frames.stop,
        D=width, PRECISION="tf32x3", **launch,
    )  # fmt: skip


@triton.jit
def _scan_back(
    start, fold_t, fold_j, heads, chunks,
    D: tl.constexpr, ROWS: tl.constexpr, W: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    w = tl.arange(0, W)
    rows = (tl.program_id(1) * ROWS + tl.arange(0, ROWS))[:, None] * D
    place = head * D * D + rows + w[None, :]
    value = ()
    for n in tl.static_range(D // W):
        value += (tl.load(start + place + n * W),)
    for index in range(0, chunks):
        base = ((chunks - 1 - index).to(tl.int64) * heads + head) * D * D
        value = _advance(value, fold_t + base, fold_j + base, rows, D, W, True, PRECISION)
        for n in tl.static_range(D // W):
            tl.store(fold_j + base + rows + n * W + w[None, :], value[n])


def scan_back(start: Tensor, fold_t: Tensor, fold_j: Tensor) -> None:
    """As kernels.reference.delta.scan_back."""
    chunks, heads, width, _ = fold_t.shape
    launch = fitting(tuned("scan_back", start.device), width)
    _scan_back[(heads, width // launch["ROWS"])](
        start, fold_t, fold_j, heads, chunks, D=width, PRECISION="tf32x3", **launch
    )


@triton.jit(do_not_specialize=["first"])
def _window_states(
    before, after, decay_before, decay_after, out, heads, first, chunk,
    D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    which = tl.program_id(0).to(tl.int64)  # frame * H + head
    state = (first + which // heads) // chunk * heads + which % heads
    r = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, D)
    rows = r[:, None] * D + d[None, :]
    x = tl.load(before + state * D * D + rows) * tl.load(decay_before + which * D + d)[None, :]
    y = tl.load(after + state * D * D + rows) * tl.load(decay_after + which * D + d)[None, :]
    tl.store(out + which * D * D + rows, (x + y).to(out.dtype.element_ty))


def window_states(
    before: Tensor,
    after: Tensor,
    decay_before: Tensor,
    decay_after: Tensor,
    dtype: torch.dtype,
    *,
    first: int,
    chunk: int,
) -> Tensor:
    """As kernels.reference.delta.window_states."""
    heads, width = before.shape[1:3]
    frames = decay_before.shape[0]
    out = torch.empty(frames, heads, width, width, dtype=dtype, device=before.device)
    launch = fitting(tuned("window_states", before.device), width)
    _window_states[(frames * heads, width // launch["ROWS"])](
        before, after, decay_before.contiguous(), decay_after.contiguous(), out, heads, first,
        chunk, D=width, **launch,
    )  # fmt: skip
    return out
