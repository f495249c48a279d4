"""The ViT of the video decoder over one tile of one clip (facts: model sheet e.2).

    tokens = proj_in(post_quant_conv(z)) + registers + one zero token
    x += scale1 * attention(rms(x));  x += scale2 * ff(rms(x))       for every block

The residual stream and the norms are float32; linears and attention run in `compute_dtype`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from .config import VideoVaeConfig

Block = Mapping[str, Tensor]


def rope_tables(
    tile_shape: tuple[int, int, int], config: VideoVaeConfig, device: torch.device
) -> tuple[Tensor, Tensor]:
    """cos and sin of every token of a tile: [t*h*w + registers + 1, rope_width] float32.

    Index i of an axis of n lies at 2(i + 1/2)/n - 1; angles are 2 pi coordinate theta^(-j/J) for
    J = rope_width/6 frequencies an axis; the appended tokens lie at the origin (facts e.2).
    """
    frequencies = 1.0 / config.rope_theta ** torch.arange(
        0, 1, 6 / config.rope_width, dtype=torch.float32, device=device
    )
    axes = [
        2.0 * (torch.arange(0.5, n, dtype=torch.float32, device=device) / n) - 1.0
        for n in tile_shape
    ]
    grid = torch.cartesian_prod(*axes).reshape(-1, 3)
    grid = F.pad(grid, (0, 0, 0, config.register_tokens + 1))
    angles = (2.0 * math.pi * grid[:, :, None] * frequencies).flatten(1)
    angles = torch.cat([angles, angles], dim=1)
    return angles.cos(), angles.sin()


def embed_tiles(tiles: Tensor, root: Mapping[str, Tensor], config: VideoVaeConfig) -> Tensor:
    """Residual stream of raw latents [tiles, 24, t, h, w]: [tiles, t*h*w + registers + 1, C] fp32.

    Rows in (t, h, w) order, then the learned registers, then one zero row.
    """
    rows = tiles.flatten(2).transpose(1, 2)
    quant = root["post_quant_conv.weight"].float().flatten(1)
    rows = F.linear(rows, quant, root["post_quant_conv.bias"].float())
    rows = F.linear(rows, root["proj_in.weight"].float(), root["proj_in.bias"].float())
    stream = rows.new_zeros(rows.shape[0], rows.shape[1] + config.register_tokens + 1, config.width)
    stream[:, : rows.shape[1]] = rows
    stream[:, rows.shape[1] : -1] = root["register_tokens"].float()
    return stream


def apply_block(
    x: Tensor,
    block: Block,
    tables: tuple[Tensor, Tensor],
    config: VideoVaeConfig,
    compute_dtype: torch.dtype,
) -> None:
    """One decoder block, in place. x: [tiles, rows, C] float32, tiles attend to themselves only."""
    eps = config.decoder_eps
    y = F.rms_norm(x, x.shape[-1:], block["norm1.weight"].float(), eps).to(compute_dtype)
    x.addcmul_(_attention(y, block, tables, config), block["scale1"].float())
    y = F.rms_norm(x, x.shape[-1:], block["norm2.weight"].float(), eps).to(compute_dtype)
    y = _gated(y, block)
    x.addcmul_(linear(y, block, "ff.net.2"), block["scale2"].float())


def _gated(y: Tensor, block: Block) -> Tensor:
    """value * SiLU(gate), the halves computed apart: contiguous results cost half the traffic."""
    value_gate = zip(
        block["ff.net.0.proj.weight"].chunk(2), block["ff.net.0.proj.bias"].chunk(2), strict=True
    )
    value, gate = (F.linear(y, w.to(y.dtype), b.to(y.dtype)) for w, b in value_gate)
    return F.silu(gate, inplace=True).mul_(value)


def _attention(
    y: Tensor, block: Block, tables: tuple[Tensor, Tensor], config: VideoVaeConfig
) -> Tensor:
    if "attn.to_qkv.weight" in block:
        q, k, v = linear(y, block, "attn.to_qkv").chunk(3, dim=-1)
    else:
        q, k, v = (linear(y, block, f"attn.to_{letter}") for letter in "qkv")
    q, k, v = (x.unflatten(-1, (config.heads, config.head_width)) for x in (q, k, v))
    # [tiles, rows, heads, head_width] -> heads before rows
    out = F.scaled_dot_product_attention(
        _rotate(q, tables, config).transpose(1, 2),
        _rotate(k, tables, config).transpose(1, 2),
        v.transpose(1, 2),
    )
    return linear(out.transpose(1, 2).flatten(2), block, "attn.to_out.0")


def _rotate(x: Tensor, tables: tuple[Tensor, Tensor], config: VideoVaeConfig) -> Tensor:
    """Head-wise RMS norm without weights, in float32, then rotate-half over `rope_width`.

    x: [tiles, rows, heads, head_width]. The norm is one reduction and one product: PyTorch's own
    is slow on rows this short.
    """
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
    scale = length.square_().mul_(1 / config.head_width).add_(config.decoder_eps).rsqrt_()
    x = torch.mul(x, scale, out=torch.empty(x.shape, dtype=x.dtype, device=x.device))
    half = config.rope_width // 2
    cos, sin = (table[:, None, :half].to(x.dtype) for table in tables)
    first, second = x[..., :half], x[..., half : 2 * half]
    turned = (first * cos).addcmul_(second, sin, value=-1)
    second.mul_(cos).addcmul_(first, sin)
    first.copy_(turned)
    return x


def linear(x: Tensor, block: Block, name: str) -> Tensor:
    """x W^T + b with `name`.weight and `name`.bias, in the dtype of x."""
    return F.linear(x, block[f"{name}.weight"].to(x.dtype), block[f"{name}.bias"].to(x.dtype))
