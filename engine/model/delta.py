"""The linear branch in whole-sequence form: features, delta rules, scans, bridge, readout.

A state S [Dv, Dk] a head is read as S q and walks over frames by S <- S T + J (facts: model sheet
b.4 to b.8). One frame is one ridge step: S minimises |S - S' diag(alpha)|^2 + sum beta |S k - v|^2.

This is the oracle: loops over frames, one matrix a frame, no chunks, no shortcuts. Statistics,
states and scans are float32, or float64 when the rows are.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .windows import Windows

L2_EPS = 1e-6
READOUT_EPS = 1e-6  # the base model's norms have 1e-5
ALPHA_FLOOR = 1e-12
TEXT_STATE_SCALE = 0.5


def wide(dtype: torch.dtype) -> torch.dtype:
    """float32, or float64 where the rows are float64."""
    return torch.promote_types(dtype, torch.float32)


def short_conv(x: Tensor, spatial: Tensor, temporal: Tensor, grid: tuple[int, int]) -> Tensor:
    """Depthwise 5x5 in every frame, then 5 taps over frames, zeros outside; not causal.

    x: [J, S, channels]; spatial: [channels, 1, 5, 5]; temporal: [channels, 1, 5]; tap a multiplies
    frame j + a - 2. Returns [J, S, channels].
    """
    frames, tokens, channels = x.shape
    x = x.view(frames, *grid, channels).permute(0, 3, 1, 2)
    x = F.conv2d(x, spatial.to(x.dtype), padding=2, groups=channels)
    x = x.permute(2, 3, 1, 0).reshape(tokens, channels, frames)
    x = F.conv1d(x, temporal.to(x.dtype), padding=2, groups=channels)
    return x.permute(2, 0, 1)


def feature(x: Tensor, *, unit: bool) -> Tensor:
    """SiLU, and for queries and keys unit length over the last axis."""
    x = F.silu(x)
    return x / x.norm(dim=-1, keepdim=True).clamp_min(L2_EPS) if unit else x


def statistics(k: Tensor, v: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """A = sum beta k k^T and B = sum beta v k^T of each frame.

    k, v: [J, S, H, D]; beta: [J, S, H]. Returns A [J, H, Dk, Dk] symmetric and B [J, H, Dv, Dk].
    """
    kind = wide(k.dtype)
    weighted = k.to(kind) * beta.to(kind)[..., None]
    a = torch.einsum("jshk,jshl->jhkl", weighted, k.to(kind))
    b = torch.einsum("jshv,jshk->jhvk", v * beta[..., None], k).to(kind)
    return (a + a.transpose(-1, -2)) / 2, b


def delta_rule(a: Tensor, b: Tensor, alpha: Tensor, rule: str, rows: int) -> tuple[Tensor, Tensor]:
    """Transition T and injection J of each frame.

    a, b: [J, H, D, D]; alpha: [J, H, D] scales T's rows; rows: tokens that were summed.
        vdn_solve    M = (I + A)^-1         T = diag(alpha) M               J = B M
        vdn_scaled   M = (I + A/rows)^-1    T = diag(alpha) M               J = B M / sqrt(rows)
        sana_scaled                         T = diag(alpha) (I - A/rows)    J = B / sqrt(rows)
    """
    one = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    rows = max(rows, 1)  # an empty prompt: A and B are zero and stay zero
    if rule == "vdn_solve":
        m = torch.cholesky_inverse(torch.linalg.cholesky(one + a))
        return alpha[..., None] * m, b @ m
    if rule == "vdn_scaled":
        m = torch.cholesky_inverse(torch.linalg.cholesky(one + a / rows))
        return alpha[..., None] * m, b @ m / rows**0.5
    if rule == "sana_scaled":
        return alpha[..., None] * (one - a / rows), b / rows**0.5
    raise ValueError(f"unknown delta rule {rule!r}")


def scan(transition: Tensor, injection: Tensor, start: Tensor, *, reverse: bool = False) -> Tensor:
    """States after each frame, [J, H, D, D]: S_j = S_(j-1) T_j + J_j from `start`, or backwards."""
    order = range(transition.shape[0])
    states, state = torch.empty_like(injection), start
    for frame in reversed(order) if reverse else order:
        state = state @ transition[frame] + injection[frame]
        states[frame] = state
    return states


def linear_states(
    prefix: Tensor,
    suffix: Tensor,
    start: Tensor,
    alpha: Tensor,
    windows: Windows,
    bridge: str,
    skip_ends: bool,
) -> Tensor:
    """What each inner frame reads: the states on both sides of its window, decayed by the bridge.

    prefix, suffix: [J, H, D, D] of the two scans; start: [H, D, D], which a side without frames
    reads; alpha: [J, H, D]. With `skip_ends` inner frame j is frame j + 1 of the clip. The bridge
    multiplies key channels by alpha of every frame skipped, the frame itself on both sides.
    """
    count, first = prefix.shape[0], int(skip_ends)
    log_alpha = alpha.clamp_min(ALPHA_FLOOR).log()
    states = torch.empty_like(prefix)
    for frame in range(count):
        low, high = (bound - first for bound in windows.raw_bounds(frame + first))
        before = prefix[low - 1] if low >= 1 else start
        after = suffix[high + 1] if high + 1 < count else start
        if bridge == "alpha":
            before = before * log_alpha[max(low, 0) : frame + 1].sum(0).exp()[:, None, :]
            after = after * log_alpha[frame : min(high, count - 1) + 1].sum(0).exp()[:, None, :]
        states[frame] = before + after
    return states


def frame_decay(
    y: Tensor, down: Tensor, up: Tensor, dt_bias: Tensor, a_log: Tensor, heads: int
) -> Tensor:
    """alpha [J, H, D] in (0, 1): exp(-exp(A_log) softplus(up(down(mean y)) + dt_bias)), all wide.

    y: [J, S, C]; down: [A, C]; up: [H*D, A]; dt_bias: [H*D]; a_log: [H].
    """
    kind = wide(y.dtype)
    mean = y.to(kind).mean(1)
    dt = F.linear(F.linear(mean, down.to(kind)), up.to(kind)) + dt_bias.to(kind)
    dt = F.softplus(dt).view(y.shape[0], heads, -1)
    return torch.exp(-a_log.to(kind).exp()[:, None] * dt)


def normalise_readout(raw: Tensor, weight: Tensor) -> Tensor:
    """RMSNorm over a head's D channels, eps 1e-6, second moment wide, weight in raw's dtype."""
    kind = wide(raw.dtype)
    square = raw.to(kind).square().mean(-1, keepdim=True)
    return (raw.to(kind) * (square + READOUT_EPS).rsqrt()).to(raw.dtype) * weight.to(raw.dtype)
