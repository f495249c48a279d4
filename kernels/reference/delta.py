"""The delta rule of the linear branch: statistics, solve, scans (model sheet b.5 to b.7).

State S is [value dim, key dim] a head, read as S q. Per frame
    A = sum beta k k^T,  B = sum beta v k^T,  S_j = S_{j-1} T_j + J_j
A is formed as a Gram matrix of sqrt(beta) k, hence symmetric and positive in any precision.
"""

from __future__ import annotations

import torch
from torch import Tensor


def frame_statistics(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """A and B of each frame and head.

    keys, values: [n, H, S, D], already times sqrt(beta). Returns float32 (or wider)
    A [n, H, D, D] = k^T k and B [n, H, D, D] = v^T k.
    """
    wide = torch.promote_types(keys.dtype, torch.float32)
    k = keys.to(wide)
    return k.transpose(-1, -2) @ k, values.to(wide).transpose(-1, -2) @ k


def delta_solve(
    a: Tensor, b: Tensor, alpha: Tensor, *, rule: str, tokens: int
) -> tuple[Tensor, Tensor]:
    """Transition T and injection J of each frame.

    a, b: [n, H, D, D] float32; alpha: [n, H, D], scales T's rows; tokens: R of the scaled rules.
    vdn_solve: M = (I + A)^-1, T = diag(alpha) M, J = B M.
    """
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    if rule == "sana_scaled":
        return alpha[..., None] * (eye - a / tokens), b / tokens**0.5
    scaled = rule == "vdn_scaled"
    factor = torch.linalg.cholesky(eye + (a / tokens if scaled else a))
    inverse = torch.cholesky_inverse(factor)
    return alpha[..., None] * inverse, (b / tokens**0.5 if scaled else b) @ inverse


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
    """Advance the forward state over some chunks and fold each of them for the reverse scan.

    state: [H, D, D], updated in place: S <- S T_j + J_j over the frames in order. transition,
    injection: [R, H, D, D] rings, frame j in slot j % R. A chunk has `size` frames, of which those
    in `frames` take part, maybe none. For each of `chunks` these are written: after [C, H, D, D],
    the state behind it; fold_t, fold_j [C, H, D, D], the affine map Q -> Q fold_t + fold_j that its
    frames make in descending order.
    """
    eye = torch.eye(state.shape[-1], dtype=state.dtype, device=state.device)
    for chunk in chunks:
        inside = range(max(chunk * size, frames.start), min((chunk + 1) * size, frames.stop))
        slots = [frame % transition.shape[0] for frame in inside]
        total_t, total_j = eye.expand_as(state).clone(), torch.zeros_like(state)
        for slot in slots:
            state.copy_(state @ transition[slot] + injection[slot])
        for slot in reversed(slots):
            total_j = total_j @ transition[slot] + injection[slot]
            total_t = total_t @ transition[slot]
        after[chunk] = state
        fold_t[chunk] = total_t
        fold_j[chunk] = total_j


def scan_back(start: Tensor, fold_t: Tensor, fold_j: Tensor) -> None:
    """The reverse scan over the chunks' maps, the last chunk first.

    start: [H, D, D]; fold_t, fold_j: [C, H, D, D]. Each fold_j is replaced by the state behind its
    chunk: Q <- Q fold_t + fold_j.
    """
    state = start
    for chunk in reversed(range(fold_t.shape[0])):
        fold_j[chunk] += state @ fold_t[chunk]
        state = fold_j[chunk]


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
    """The state each frame reads: before and after its window, decayed by the bridge.

    before, after: [C, H, D, D], by chunk of `chunk` frames; decay_*: [n, H, D], on the key channel,
    of the frames from `first` on, counted from the first chunk's start. Returns [n, H, D, D].
    """
    count = decay_before.shape[0]
    where = torch.arange(first, first + count, device=before.device) // chunk
    made = before[where] * decay_before[:, :, None] + after[where] * decay_after[:, :, None]
    return made.to(dtype)
