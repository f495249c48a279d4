"""Adapters to attention libraries. Same names and signatures as kernels.reference.attention."""

from __future__ import annotations

import torch
from torch import Tensor


def _heads_first(tensor: Tensor) -> Tensor:
    return tensor.transpose(0, 1)[None]


def cudnn_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """cuDNN's fused attention. q: [M, H, D]; k, v: [K, H, D], any row stride."""
    return _cudnn(q, k, v, with_lse=False)[0][0].transpose(0, 1)


def cudnn_attention_partial(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """As `cudnn_attention`, with the log-sum-exp as float32 [M, H]."""
    out, lse = _cudnn(q, k, v, with_lse=True)[:2]
    return out[0].transpose(0, 1), lse.reshape(q.shape[1], q.shape[0]).transpose(0, 1)


def flash_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """PyTorch's own flash attention."""
    return _flash(q, k, v)[0][0].transpose(0, 1)


def flash_attention_partial(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """As `flash_attention`, with the log-sum-exp as float32 [M, H]."""
    out, lse = _flash(q, k, v)[:2]
    return out[0].transpose(0, 1), lse[0, :, : q.shape[0]].transpose(0, 1)


def _cudnn(q: Tensor, k: Tensor, v: Tensor, *, with_lse: bool) -> tuple[Tensor, ...]:
    return torch.ops.aten._scaled_dot_product_cudnn_attention(
        _heads_first(q), _heads_first(k), _heads_first(v), None, with_lse, 0.0, False, False
    )


def _flash(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    return torch.ops.aten._scaled_dot_product_flash_attention(
        _heads_first(q), _heads_first(k), _heads_first(v), 0.0, False, False
    )
