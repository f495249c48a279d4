"""The video autoencoder in a form that trains: batched, differentiable, equal to the engine's.

The encoder's causal 3x3x3 convolutions run as 2D convolutions over stacked frames, which a card
does much faster at these widths. Tests hold both halves against engine/vae.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from lowpeak.engine.vae.config import PIXEL_MEAN, PIXEL_STD, VideoVaeConfig
from lowpeak.engine.vae.vit import rope_tables

Weights = Mapping[str, Tensor]
Encode = Callable[[Tensor, Weights, VideoVaeConfig], Tensor]


def to_model(pixels: Tensor) -> Tensor:
    """[B, 3, T, H, W] in 0..1 to the model's colours."""
    mean = pixels.new_tensor(PIXEL_MEAN).view(3, 1, 1, 1)
    return (pixels - mean) / pixels.new_tensor(PIXEL_STD).view(3, 1, 1, 1)


def to_bytes(frames: Tensor) -> Tensor:
    """[3, T, H, W] in the model's colours to uint8 [T, H, W, 3]."""
    mean = frames.new_tensor(PIXEL_MEAN).view(3, 1, 1, 1)
    levels = frames * frames.new_tensor(PIXEL_STD).view(3, 1, 1, 1) + mean
    return (levels.clamp(0, 1) * 255).round().to(torch.uint8).permute(1, 2, 3, 0)


def encode_clip(x: Tensor, w: Weights, config: VideoVaeConfig) -> Tensor:
    """Moments [B, 48, ceil(T/4), H/16, W/16] of a clip [B, 3, T, H, W], T <= 17.

    w: full names (`encoder.conv_in.weight`).
    """
    batch = x.shape[0]
    x = x.transpose(1, 2).contiguous()  # [B, T, C, H, W]
    x = _conv(x, w, "encoder.conv_in", space=1)
    strides = zip(config.time_strides, config.space_strides, strict=True)
    for level, (time, space) in enumerate(strides):
        for layer in range(config.encoder_layers):
            x = _residual(x, w, f"encoder.down_blocks.{level}.resnets.{layer}", config)
        if time * space > 1:
            if space == 2:
                x = _pad(x, (0, 1, 0, 1))
            x = _conv(x, w, f"encoder.down_blocks.{level}.downsamplers.0.conv", (time, space))
    x = _conv(F.silu(_norm(x, w, "encoder.norm_out", config)), w, "encoder.conv_out", space=1)
    weight, bias = w["quant_conv.weight"], w["quant_conv.bias"]
    x = F.conv2d(x.flatten(0, 1), weight.flatten(2)[..., None].to(x.dtype), bias.to(x.dtype))
    return x.unflatten(0, (batch, -1)).transpose(1, 2).float()


def encode_video(
    pixels: Tensor, w: Weights, config: VideoVaeConfig, encode: Encode = encode_clip
) -> tuple[Tensor, Tensor]:
    """Mean and log variance [B, 24, 5n+2, h, w] of [B, 3, 17n+5, H, W] in the model's colours.

    A single frame gives one latent frame. encode: of a clip.
    """
    parts = [encode(part, w, config) for part in pixels.split(config.clip_frames, dim=2)]
    mean, log_variance = torch.cat(parts, dim=2).chunk(2, dim=1)
    return mean, log_variance.clamp(-30, 20)


def decode_clip(
    z: Tensor,
    w: Weights,
    config: VideoVaeConfig,
    dtype: torch.dtype,
    window: tuple[int, int, int, int] | None = None,
) -> Tensor:
    """Frames [B, 3, 28, H, W] of raw latents [B, 24, 7, h, w]: the decoder on one clip.

    window: (tile height, tile width, top, left) in latents, where z is a part of a tile.
    """
    batch, _, t, h, width = z.shape
    tall, wide, top, left = window or (h, width, 0, 0)
    tables = tuple(
        torch.cat(
            [
                table[: t * tall * wide]
                .view(t, tall, wide, -1)[:, top : top + h, left : left + width]
                .flatten(0, 2),
                table[t * tall * wide :],
            ]
        ).to(dtype)
        for table in rope_tables((t, tall, wide), config, z.device)
    )
    rows = z.float().flatten(2).transpose(1, 2)
    rows = F.linear(rows, w["post_quant_conv.weight"].flatten(1), w["post_quant_conv.bias"])
    rows = F.linear(rows, w["decoder.proj_in.weight"], w["decoder.proj_in.bias"])
    extra = w["decoder.register_tokens"].expand(batch, -1, -1)
    x = torch.cat([rows, extra, torch.zeros_like(extra[:, :1])], 1)
    for i in range(config.blocks):
        x = _block(x, w, f"decoder.transformer_blocks.{i}.", tables, config, dtype)
    x = x[:, : t * h * width]
    x = F.layer_norm(x, x.shape[-1:], w["decoder.norm_out.weight"], w["decoder.norm_out.bias"])
    y = _linear(x.to(dtype), w, "decoder.proj_out")
    step, frames = config.stride_px, config.clip_rule.frames_per_latent
    y = y.view(batch, t, h, width, config.pixel_channels, frames, step, step)
    return y.permute(0, 4, 1, 5, 2, 6, 3, 7).reshape(batch, 3, t * frames, h * step, width * step)


def shown(decoded: Tensor) -> Tensor:
    """The 22 frames that a lone clip of 28 decoded frames shows: [B, 3, 22, H, W]."""
    return torch.cat([decoded[:, :, 3:20], decoded[:, :, 23:28]], dim=2)


def _block(
    x: Tensor,
    w: Weights,
    at: str,
    tables: tuple[Tensor, ...],
    config: VideoVaeConfig,
    dtype: torch.dtype,
) -> Tensor:
    y = F.rms_norm(x, x.shape[-1:], w[f"{at}norm1.weight"], config.decoder_eps).to(dtype)
    q, k, v = (
        _linear(y, w, f"{at}attn.to_{n}").unflatten(-1, (config.heads, -1)).transpose(1, 2)
        for n in "qkv"
    )
    q, k = (_rotate(part, tables, config) for part in (q, k))
    y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + _linear(y, w, f"{at}attn.to_out.0") * w[f"{at}scale1"]
    y = F.rms_norm(x, x.shape[-1:], w[f"{at}norm2.weight"], config.decoder_eps).to(dtype)
    value, gate = _linear(y, w, f"{at}ff.net.0.proj").chunk(2, -1)
    return x + _linear(value * F.silu(gate), w, f"{at}ff.net.2") * w[f"{at}scale2"]


def _rotate(x: Tensor, tables: tuple[Tensor, ...], config: VideoVaeConfig) -> Tensor:
    x = F.rms_norm(x, x.shape[-1:], None, config.decoder_eps)
    half = config.rope_width // 2
    cos, sin = (table[:, :half] for table in tables)
    a, b = x[..., :half], x[..., half : 2 * half]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., 2 * half :]], -1)


def _linear(x: Tensor, w: Weights, name: str) -> Tensor:
    return F.linear(x, w[f"{name}.weight"].to(x.dtype), w[f"{name}.bias"].to(x.dtype))


def _pad(x: Tensor, sides: tuple[int, int, int, int]) -> Tensor:
    return F.pad(x.flatten(0, 1), sides, mode="reflect").unflatten(0, x.shape[:2])


def _conv(
    x: Tensor, w: Weights, name: str, stride: tuple[int, int] = (1, 1), *, space: int = 0
) -> Tensor:
    """Causal 3x3x3 convolution of [B, T, C, H, W] as one 2D convolution of stacked frames."""
    if space:
        x = _pad(x, (space,) * 4)
    weight = w[f"{name}.weight"].to(x.dtype)  # [out, in, 3, 3, 3]
    x = F.pad(x, (0, 0, 0, 0, 0, 0, 2, 0))
    frames = (x.shape[1] - 3) // stride[0] + 1
    stop = (frames - 1) * stride[0] + 1
    x = torch.cat([x[:, tap : tap + stop : stride[0]] for tap in range(3)], dim=2)
    kernel = weight.transpose(1, 2).flatten(1, 2)
    y = F.conv2d(x.flatten(0, 1), kernel, w[f"{name}.bias"].to(x.dtype), stride[1])
    return y.unflatten(0, (-1, frames))


def _residual(x: Tensor, w: Weights, at: str, config: VideoVaeConfig) -> Tensor:
    y = _conv(F.silu(_norm(x, w, f"{at}.norm1", config)), w, f"{at}.conv1", space=1)
    y = _conv(F.silu(_norm(y, w, f"{at}.norm2", config)), w, f"{at}.conv2", space=1)
    name = f"{at}.conv_shortcut"
    if f"{name}.weight" in w:
        weight = w[f"{name}.weight"].flatten(2)[..., None].to(x.dtype)
        bias = w[f"{name}.bias"].to(x.dtype)
        x = F.conv2d(x.flatten(0, 1), weight, bias).unflatten(0, x.shape[:2])
    return x + y


def _norm(x: Tensor, w: Weights, name: str, config: VideoVaeConfig) -> Tensor:
    weight, bias = (w[f"{name}.{part}"].to(x.dtype) for part in ("weight", "bias"))
    y = F.group_norm(x.flatten(0, 1), config.norm_groups, weight, bias, config.encoder_eps)
    return y.unflatten(0, x.shape[:2])
