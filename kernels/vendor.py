"""Adapters to attention libraries, with the names and signatures of kernels.reference.attention.

q: [M, H, D]; k, v: [K, H, D], any row stride, unit stride along D; none is changed. A `_partial`
form also gives the natural log-sum-exp of the scaled scores, float32 [M, H]. Packages are imported
inside, so that one that is absent or broken costs nothing but its own candidate.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .reference.attention import attention_partial as plain_partial

PARTIAL_BYTES = 256 << 20  # scores that the plain partial form may hold at once


def cudnn_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """cuDNN's fused attention, through PyTorch."""
    return _cudnn(q, k, v, with_lse=False)[0][0].transpose(0, 1)


def cudnn_attention_partial(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """As `cudnn_attention`, with the log-sum-exp."""
    out, lse = _cudnn(q, k, v, with_lse=True)[:2]
    return out[0].transpose(0, 1), lse.reshape(q.shape[1], q.shape[0]).transpose(0, 1)


def flash_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """PyTorch's own flash attention."""
    return _flash(q, k, v)[0][0].transpose(0, 1)


def flash_attention_partial(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """As `flash_attention`, with the log-sum-exp."""
    out, lse = _flash(q, k, v)[:2]
    return out[0].transpose(0, 1), lse[0, :, : q.shape[0]].transpose(0, 1)


def efficient_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """PyTorch's memory-efficient attention, the only fused one before Ampere."""
    return _efficient(q, k, v, with_lse=False)[0][0].transpose(0, 1)


def efficient_attention_partial(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """As `efficient_attention`, with the log-sum-exp."""
    out, lse = _efficient(q, k, v, with_lse=True)[:2]
    return out[0].transpose(0, 1), lse[0, :, : q.shape[0]].transpose(0, 1)


def tiled_attention_partial(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The plain partial form, a head and a few rows at a time: bounded memory, any device, slow."""
    step = max(1, PARTIAL_BYTES // (4 * k.shape[0]))
    heads = []
    for head in range(q.shape[1]):
        one = slice(head, head + 1)
        parts = [plain_partial(rows, k[:, one], v[:, one]) for rows in q[:, one].split(step)]
        heads.append((torch.cat([out for out, _ in parts]), torch.cat([lse for _, lse in parts])))
    return torch.cat([out for out, _ in heads], 1), torch.cat([lse for _, lse in heads], 1)


def flash2_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """flash-attn 2."""
    from flash_attn import flash_attn_func

    return flash_attn_func(q[None], k[None], v[None])[0]


def flash2_attention_partial(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """As `flash2_attention`, with the log-sum-exp."""
    from flash_attn import flash_attn_func

    out, lse, _ = flash_attn_func(q[None], k[None], v[None], return_attn_probs=True)
    return out[0], lse[0].transpose(0, 1)


def flash4_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """flash-attn 4 (CuTe)."""
    from flash_attn.cute import flash_attn_func

    found = flash_attn_func(q[None], k[None], v[None])
    return (found[0] if isinstance(found, tuple) else found)[0]


def flash4_attention_partial(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """As `flash4_attention`, with the log-sum-exp."""
    from flash_attn.cute import flash_attn_func

    out, lse = flash_attn_func(q[None], k[None], v[None], return_lse=True)[:2]
    return out[0], lse[0].transpose(0, 1)


def sage1_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """SageAttention 1: int8 scores. Its own smoothing subtracts the mean from the caller's keys in
    place, so it is done here, on a copy: ring keys are read by the next window too."""
    from sageattention import sageattn

    smooth = k - k.mean(0, keepdim=True)
    return sageattn(q[None], smooth[None], v[None], tensor_layout="NHD", smooth_k=False)[0]


def sage2_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """SageAttention 2: int8 scores, FP8 or FP16 values."""
    from sageattention import sageattn

    return sageattn(q[None], k[None], v[None], tensor_layout="NHD")[0]


def sage2_attention_partial(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """As `sage2_attention`, with the log-sum-exp."""
    from sageattention import sageattn

    out, lse = sageattn(q[None], k[None], v[None], tensor_layout="NHD", return_lse=True)
    return out[0], lse[0].transpose(0, 1)


def sage3_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """SageAttention 3: FP4, Blackwell."""
    from sageattn3 import sageattn3_blackwell

    heads_first = (t.transpose(0, 1)[None].contiguous() for t in (q, k, v))
    return sageattn3_blackwell(*heads_first, is_causal=False)[0].transpose(0, 1)


def kitchen_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """comfy-kitchen's int8 attention: queries, keys and values in int8."""
    import comfy_kitchen

    found = comfy_kitchen.int8_attention(_heads_first(q), _heads_first(k), _heads_first(v))
    return found[0].transpose(0, 1)


def _heads_first(tensor: Tensor) -> Tensor:
    return tensor.transpose(0, 1)[None]


def _cudnn(q: Tensor, k: Tensor, v: Tensor, *, with_lse: bool) -> tuple[Tensor, ...]:
    return torch.ops.aten._scaled_dot_product_cudnn_attention(
        _heads_first(q), _heads_first(k), _heads_first(v), None, with_lse, 0.0, False, False
    )


def _flash(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    return torch.ops.aten._scaled_dot_product_flash_attention(
        _heads_first(q), _heads_first(k), _heads_first(v), 0.0, False, False
    )


def _efficient(q: Tensor, k: Tensor, v: Tensor, *, with_lse: bool) -> tuple[Tensor, ...]:
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        _heads_first(q), _heads_first(k), _heads_first(v), None, with_lse
    )
