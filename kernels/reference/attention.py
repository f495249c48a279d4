"""Softmax attention over one contiguous key slice, whole or as a partial result to be merged.

Partial results over disjoint key sets combine exactly through their log-sum-exp:
    l = log(e^l1 + e^l2),  o = e^(l1-l) o1 + e^(l2-l) o2
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(D)) v. q: [M, H, D]; k, v: [K, H, D]. Returns [M, H, D]."""
    out = F.scaled_dot_product_attention(*(t.transpose(0, 1)[None] for t in (q, k, v)))
    return out[0].transpose(0, 1)


def attention_partial(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """As `attention`, with its log-sum-exp: ([M, H, D], float32 [M, H])."""
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = torch.einsum("mhd,khd->mhk", q.to(wide), k.to(wide)) * q.shape[-1] ** -0.5
    lse = scores.logsumexp(-1)
    out = torch.einsum("mhk,khd->mhd", (scores - lse[..., None]).exp(), v.to(wide))
    return out.to(q.dtype), lse


def merge_partial(total: Tensor, total_lse: Tensor, part: Tensor, part_lse: Tensor) -> None:
    """Merge a partial result into float32 [M, H, D] and its log-sum-exp [M, H], in place.

    A fresh total has log-sum-exp -inf and finite values.
    """
    lse = torch.logaddexp(total_lse, part_lse)
    keep, add = (total_lse - lse).exp()[..., None], (part_lse - lse).exp()[..., None]
    total.copy_(total * keep + part.to(total.dtype) * add)
    total_lse.copy_(lse)
