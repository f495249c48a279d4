"""Decoder layers of Qwen3-VL's language model, as functions over tensors.

    a = x + O attention(rope(norm(Q h)), rope(norm(K h)), V h),   h = norm(x)
    y = a + D (silu(G g) * U g),                                 g = norm(a)

Attention is causal and grouped (several query heads share a key head). Queries go in chunks, and
feed-forward rows too, so memory grows with the length of the prompt and not with its square.
Rotary frequencies are dealt to time, height and width in turn (T H W T H W ... T T T).
Nothing here knows where weights lie: a layer gets `linear(name, rows)` and its norm vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional

from .qwen_config import TextConfig

Linear = Callable[[str, Tensor], Tensor]  # name, [rows, in] -> [rows, out]

MASK_ELEMENTS = 32 << 20  # of one query chunk
QUERY_ROWS = 1024
FFN_ROWS = 4096


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / rms(x) in fp32, rounded to x's dtype, times weight. x: [..., C]; weight: [C]."""
    wide = x.float()
    scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight.to(x.dtype) * scaled.to(x.dtype)


def rotary_tables(positions: Tensor, config: TextConfig, dtype: torch.dtype) -> Tensor:
    """cos and sin of every row: [2, N, head_dim] in `dtype`, angles in fp32.

    positions: [3, N] integer, on the axes time, height, width.
    """
    half = config.head_dim // 2
    steps = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=positions.device)
    frequency = 1.0 / config.rope_base ** (steps / config.head_dim)
    axis = torch.zeros(half, dtype=torch.int64, device=positions.device)
    for number in (1, 2):
        axis[number : config.sections[number] * 3 : 3] = number
    angles = positions.float()[axis].T * frequency
    angles = torch.cat((angles, angles), dim=-1)
    return torch.stack((angles.cos(), angles.sin())).to(dtype)


def rotate(x: Tensor, tables: Tensor) -> Tensor:
    """Rotary embedding of [N, H, D], halves paired. tables: [2, N, D]."""
    cos, sin = tables[:, :, None]
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def causal_attention(q: Tensor, k: Tensor, v: Tensor, *, chunk_rows: int | None = None) -> Tensor:
    """q: [N, H, D]; k, v: [N, K, D], H a multiple of K. Returns [N, H, D].

    The heads that share a key head are folded into query rows, so keys are never copied.
    chunk_rows: queries at once; None takes what keeps a chunk's mask below MASK_ELEMENTS.
    """
    rows, heads, width = q.shape
    shared = heads // k.shape[1]
    if chunk_rows is None:
        chunk_rows = max(16, min(QUERY_ROWS, MASK_ELEMENTS // (rows * shared)))
    keys, values = k.transpose(0, 1)[None], v.transpose(0, 1)[None]
    out = torch.empty_like(q)
    order = torch.arange(rows, device=q.device)
    for start in range(0, rows, chunk_rows):
        stop = min(start + chunk_rows, rows)
        folded = q[start:stop].view(stop - start, -1, shared, width).permute(1, 2, 0, 3)
        mask = (order[:stop] <= order[start:stop, None]).repeat(shared, 1)
        found = functional.scaled_dot_product_attention(
            folded.reshape(1, -1, shared * (stop - start), width),
            keys[:, :, :stop],
            values[:, :, :stop],
            attn_mask=mask,
        )
        found = found.view(-1, shared, stop - start, width).permute(2, 0, 1, 3)
        out[start:stop] = found.reshape(stop - start, heads, width)
    return out


def attention_half(
    x: Tensor, linear: Linear, norms: Mapping[str, Tensor], config: TextConfig, tables: Tensor
) -> Tensor:
    """x plus its attention. x: [N, C]; tables: `rotary_tables`. Returns [N, C]."""
    rows, width = x.shape[0], config.head_dim
    inner = rms_norm(x, norms["input_layernorm.weight"], config.eps)
    q = linear("self_attn.q_proj", inner).view(rows, config.heads, width)
    k = linear("self_attn.k_proj", inner).view(rows, config.kv_heads, width)
    v = linear("self_attn.v_proj", inner).view(rows, config.kv_heads, width)
    q = rotate(rms_norm(q, norms["self_attn.q_norm.weight"], config.eps), tables)
    k = rotate(rms_norm(k, norms["self_attn.k_norm.weight"], config.eps), tables)
    return x + linear("self_attn.o_proj", causal_attention(q, k, v).view(rows, -1))


def feed_forward_half(
    x: Tensor, linear: Linear, norms: Mapping[str, Tensor], config: TextConfig
) -> Tensor:
    """x plus its feed-forward. x: [N, C]. Returns [N, C]."""
    out = torch.empty_like(x)
    for start in range(0, x.shape[0], FFN_ROWS):
        some = x[start : start + FFN_ROWS]
        inner = rms_norm(some, norms["post_attention_layernorm.weight"], config.eps)
        gated = functional.silu(linear("mlp.gate_proj", inner)) * linear("mlp.up_proj", inner)
        out[start : start + FFN_ROWS] = some + linear("mlp.down_proj", gated)
    return out
