"""Linear readout of a chunk: features of q, state times q, RMS norm, output gate (sheet b.8)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .conv import L2_EPS


def linear_readout(
    raw: Tensor,
    states: Tensor,
    norm_weight: Tensor,
    gate_hidden: Tensor,
    gate_weight: Tensor,
    gate_bias: Tensor,
    *,
    eps: float,
) -> Tensor:
    """o = rms_norm(S q~) * sigmoid(up(hidden)), q~ = L2(SiLU(raw q)).

    raw: [n*S, H*D] q before norm and rope; states: [n, H, D, D] (value, key); norm_weight: [D];
    gate_hidden: [n*S, G] = down(y); gate_weight: [H*D, G]; gate_bias: [H*D]. Returns [n*S, H*D].
    """
    frames, heads, width, _ = states.shape
    wide = torch.promote_types(raw.dtype, torch.float32)
    q = F.silu(raw.to(wide)).view(frames, -1, heads, width)
    q = q / q.norm(dim=-1, keepdim=True).clamp_min(L2_EPS)
    r = torch.einsum("nshk,nhvk->nshv", q.to(raw.dtype).to(wide), states.to(wide))
    r = r * torch.rsqrt(r.square().mean(-1, keepdim=True) + eps) * norm_weight.to(wide)
    gate = gate_hidden.to(wide) @ gate_weight.to(wide).T + gate_bias.to(wide)
    return (r.reshape(raw.shape) * gate.sigmoid()).to(raw.dtype)
