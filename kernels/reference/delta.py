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


def scan_chunk(
    state: Tensor,
    transition: Tensor,
    injection: Tensor,
    fold_t: Tensor,
    fold_j: Tensor,
    *,
    slots: list[int],
) -> None:
    """Advance the forward state over a chunk and fold the chunk for the reverse scan.

    state: [H, D, D], updated in place: S <- S T_j + J_j over the frames in order. transition,
    injection: [R, H, D, D] rings; slots: where the chunk's frames stand in them, maybe none.
    fold_t, fold_j: [H, D, D], written: the affine map Q -> Q fold_t + fold_j that the frames make
    in descending order.
    """
    eye = torch.eye(state.shape[-1], dtype=state.dtype, device=state.device)
    total_t, total_j = eye.expand_as(state).clone(), torch.zeros_like(state)
    for slot in slots:
        state.copy_(state @ transition[slot] + injection[slot])
    for slot in reversed(slots):
        total_j = total_j @ transition[slot] + injection[slot]
        total_t = total_t @ transition[slot]
    fold_t.copy_(total_t)
    fold_j.copy_(total_j)


def window_states(
    before: Tensor, after: Tensor, decay_before: Tensor, decay_after: Tensor, dtype: torch.dtype
) -> Tensor:
    """The state each frame of a chunk reads: before and after its window, decayed by the bridge.

    before, after: [H, D, D]; decay_*: [n, H, D], on the key channel. Returns [n, H, D, D].
    """
    return (before * decay_before[:, :, None] + after * decay_after[:, :, None]).to(dtype)
