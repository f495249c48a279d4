"""A synthetic block at any width, made on the device: for kernels and profiles, not for pictures.

Weights are random and scaled so that activations keep a realistic size; zeros would flatter the
timings.
"""

from __future__ import annotations

import torch

from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.sweep import SweepContext
from lowpeak.engine.model.weights import AttentionWeights, FeedForwardWeights
from lowpeak.kernels.reference.quantise import quantise_weight


def block_weights(
    config: ModelConfig, kind: str, device: str, seed: int = 0
) -> tuple[AttentionWeights, FeedForwardWeights]:
    """Random weights of one VDN block; big linears of `kind`, the rest bfloat16."""
    generator = torch.Generator(device).manual_seed(seed)

    def draw(*shape: int, scale: float = 1.0) -> torch.Tensor:
        value = torch.randn(*shape, generator=generator, device=device) * scale
        return value.to(torch.bfloat16)

    c, inner, width = config.hidden, config.inner, config.head_dim
    tensors: dict = {}
    linears = {
        "attn.orig.to_q": (inner, c),
        "attn.orig.to_k": (inner, c),
        "attn.orig.to_v": (inner, c),
        "attn.orig.to_out.0": (c, inner),
        "ff.net.0.proj": (2 * config.ffn, c),
        "ff.net.2": (c, config.ffn),
        "attn.to_out_linear": (c, inner),
    }
    for name, (rows, columns) in linears.items():
        tensors[name] = quantise_weight(draw(rows, columns, scale=columns**-0.5), kind)
    branch = "attn.linear_attention."
    tensors |= {
        "norm1.weight": 1 + draw(c, scale=0.1),
        "norm2.weight": 1 + draw(c, scale=0.1),
        "attn.orig.norm_q.weight": 1 + draw(width, scale=0.1),
        "attn.orig.norm_k.weight": 1 + draw(width, scale=0.1),
        "attn.softmax_gate.up.weight": draw(config.heads, c, scale=0.02),
        "attn.softmax_gate.up.bias": draw(config.heads) + 2,
        f"{branch}beta_proj.weight": draw(config.heads, c, scale=0.02),
        f"{branch}alpha.down.weight": draw(width, c, scale=c**-0.5),
        f"{branch}alpha.up.weight": draw(inner, width, scale=width**-0.5),
        f"{branch}alpha.A_log": draw(config.heads, scale=0.3) - 2,
        f"{branch}alpha.dt_bias": draw(inner),
        f"{branch}norm.weight": 1 + draw(width, scale=0.1),
        f"{branch}output_gate.down.weight": draw(width, c, scale=c**-0.5),
        f"{branch}output_gate.up.weight": draw(inner, width, scale=width**-0.5),
        f"{branch}output_gate.up.bias": draw(inner),
    }
    for target in ("k", "v"):
        tensors[f"{branch}short_conv.{target}_sp.weight"] = draw(inner, 1, 5, 5, scale=0.2)
        tensors[f"{branch}short_conv.{target}_tm.weight"] = draw(inner, 1, 5, scale=0.4)
    return AttentionWeights.from_tensors(tensors), FeedForwardWeights.from_tensors(tensors)


def context(
    config: ModelConfig,
    ops,
    device: str,
    dtype: torch.dtype,
    *,
    frames: int,
    grid: tuple[int, int],
    global_rows: int,
    text_rows: int,
) -> SweepContext:
    """One pass with plausible rows and angles."""
    rows = global_rows + frames * grid[0] * grid[1]
    generator = torch.Generator(device).manual_seed(1)
    angle = torch.rand(rows, config.rotary_dim // 2, generator=generator, device=device) * 6.28
    pick = torch.zeros(rows, dtype=torch.int32, device=device)
    pick[:text_rows], pick[text_rows:global_rows] = 1, 5
    return SweepContext(
        config=config,
        ops=ops,
        device=torch.device(device),
        dtype=dtype,
        global_rows=global_rows,
        text=slice(0, text_rows),
        frames=frames,
        grid=grid,
        rows=pick,
        cos=angle.cos(),
        sin=angle.sin(),
    )


def residual_and_table(config: ModelConfig, rows: int, device: str, dtype: torch.dtype):
    """x [N, C] and an AdaLN table [6, 6C] with small gates."""
    generator = torch.Generator(device).manual_seed(2)
    x = torch.randn(rows, config.hidden, generator=generator, device=device).to(dtype)
    table = torch.randn(6, 6 * config.hidden, generator=generator, device=device) * 0.2
    return x, table.to(dtype)
