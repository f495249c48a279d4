"""The text stream before the main stack: embedder, refiner blocks, final norm (facts: a.8).

    x = context_embedder(text);  x += Attn(norm1 x);  x += FF(norm2 x);  ...;  final_norm(x)

No modulation and no rotary embedding; query and key norms as in the main blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from .config import ModelConfig
from .layers import Layers

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def refine_text(
    layers: Layers, text: Tensor, config: ModelConfig, attention: Attention | None = None
) -> Tensor:
    """Text encoder rows [N_t, text_dim] -> rows of the packed sequence [N_t, C].

    layers: knows `context_embedder` and `token_refiner.*`; the result has its compute dtype.
    attention: (q, k, v), each [N_t, H, D], all rows see all; plain PyTorch unless given.
    An empty prompt gives an empty result.
    """
    x = layers.linear("context_embedder", text)
    if not x.shape[0]:
        return x
    for index in range(config.refiner_layers):
        x = refiner_block(
            layers, f"token_refiner.refiner_blocks.{index}.", x, config, attention or _attention
        )
    return rms_norm(layers, "token_refiner.final_norm.weight", x, config.eps)


def refiner_block(
    layers: Layers, prefix: str, x: Tensor, config: ModelConfig, attention: Attention
) -> Tensor:
    """One block [N_t, C] -> [N_t, C]; `prefix` ends with a dot."""
    y = rms_norm(layers, f"{prefix}norm1.weight", x, config.eps)
    q, k, v = (
        layers.linear(f"{prefix}attn.to_{name}", y).unflatten(-1, (config.heads, -1))
        for name in "qkv"
    )
    q = rms_norm(layers, f"{prefix}attn.norm_q.weight", q, config.eps)
    k = rms_norm(layers, f"{prefix}attn.norm_k.weight", k, config.eps)
    x = x + layers.linear(f"{prefix}attn.to_out.0", attention(q, k, v).flatten(-2))
    y = rms_norm(layers, f"{prefix}norm2.weight", x, config.eps)
    return x + feed_forward(layers, f"{prefix}ff.", y)


def feed_forward(layers: Layers, prefix: str, y: Tensor) -> Tensor:
    """SwiGLU: the up projection gives [value | gate]; down(value * SiLU(gate))."""
    value, gate = layers.linear(f"{prefix}net.0.proj", y).chunk(2, dim=-1)
    return layers.linear(f"{prefix}net.2", value * F.silu(gate))


def rms_norm(layers: Layers, name: str, x: Tensor, eps: float) -> Tensor:
    """RMSNorm over the last axis with the weight `name`, in x's dtype."""
    weight = layers.tensor(name).to(x.dtype)
    return F.rms_norm(x, weight.shape, weight, eps)


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    out = F.scaled_dot_product_attention(*(part.transpose(0, 1)[None] for part in (q, k, v)))
    return out[0].transpose(0, 1)
