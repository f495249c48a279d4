"""Synthetic autoencoders in the published layouts, at a size that runs on two CPU cores.

Weights are random with the variance that keeps activations finite: pictures have structure, sound
is audible and mostly below full scale. They mean nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from ...kernels.reference.quantise import convrot_group, quantise_int8_convrot
from ..checkpoint.header import write_tensors
from ..errors import RequestError
from .audio import kaiser_sinc
from .config import (
    PUBLISHED_VIDEO_MEAN,
    PUBLISHED_VIDEO_STD,
    AudioVaeConfig,
    Shape,
    VideoVaeConfig,
)
from .keys import BLOCK_PREFIX, comfy_video_state
from .shapes import audio_shapes, block_shapes, encoder_shapes, root_shapes

TOY_VIDEO = VideoVaeConfig(
    PUBLISHED_VIDEO_MEAN,
    PUBLISHED_VIDEO_STD,
    encoder_widths=(8, 8, 16, 16, 16, 16),
    encoder_layers=1,
    norm_groups=4,
    blocks=3,
    heads=2,
    ffn_width=256,
)
TOY_AUDIO = AudioVaeConfig(
    (0.0,) * 32,
    (1.0,) * 32,
    latent_width=64,
    encoder_width=2,
    heads=4,
    decoder_width=128,
    block_kernels=(3, 5),
    block_dilations=((1, 3), (1, 3)),
)
FILE = "diffusion_pytorch_model.safetensors"


def toy_video_state(seed: int, config: VideoVaeConfig = TOY_VIDEO) -> dict[str, Tensor]:
    """A random video autoencoder in diffusers' names, float32."""
    shapes: dict[str, Shape] = {}
    for name, shape in root_shapes(config).items():
        shapes[name if name.startswith("post_quant_conv.") else f"decoder.{name}"] = shape
    for index in range(config.blocks):
        prefix = f"{BLOCK_PREFIX}{index}."
        shapes |= {prefix + name: shape for name, shape in block_shapes(config).items()}
    for name, shape in encoder_shapes(config).items():
        shapes[name if name.startswith("quant_conv.") else f"encoder.{name}"] = shape
    return _random(shapes, seed)


def toy_audio_state(seed: int, config: AudioVaeConfig = TOY_AUDIO) -> dict[str, Tensor]:
    """A random audio autoencoder in diffusers' names, convolutions weight-normalised, float32."""
    state = _random(audio_shapes(config), seed)
    for name in tuple(state):
        if name.endswith(".filter"):
            state[name] = kaiser_sinc(2)
        elif name.endswith("zero_k_bias"):
            state[name].zero_()
        elif name.endswith((".act.alpha", ".act.beta")):
            state[name].mul_(0.1)
        elif name.startswith(("encoder.", "decoder.")) and name.endswith(".weight"):
            value = state.pop(name)
            axes = tuple(range(1, value.ndim))
            state[f"{name}_v"] = value
            state[f"{name}_g"] = torch.linalg.vector_norm(value, dim=axes, keepdim=True)
    state["decoder.conv_post.weight_g"].mul_(0.02)
    return state


def write_toy_video_vae(folder: str | Path, seed: int = 0, *, layout: str = "diffusers") -> Path:
    """Write a toy video autoencoder and return what `open_video_vae` opens.

    layout: diffusers (a folder with config.json), comfy (one float16 file), comfy-int8 (one file,
    the blocks' linears as int8 ConvRot).
    """
    folder, config = Path(folder), TOY_VIDEO
    state = toy_video_state(seed, config)
    if layout == "diffusers":
        write_tensors(folder / FILE, state, {"format": "pt"})
        _write_config(folder, video_settings(config))
        return folder
    if layout not in ("comfy", "comfy-int8"):
        raise RequestError(f"layout {layout!r} is none of diffusers, comfy, comfy-int8")
    stored = comfy_video_state(state, config.heads)
    stored["decoder.mask_token"] = torch.zeros(1, 1, config.width)
    stored = {name: value.half() for name, value in stored.items()}
    stored["latents_mean"] = torch.tensor(config.latents_mean)
    stored["latents_std"] = torch.tensor(config.latents_std)
    if layout == "comfy-int8":
        stored = _quantised(stored)
    path = folder / "minimax_h3_toy_video_vae.safetensors"
    write_tensors(path, stored, {"format": "pt"})
    return path


def write_toy_audio_vae(folder: str | Path, seed: int = 0) -> Path:
    """Write a toy audio autoencoder (a folder in diffusers' layout) and return the folder."""
    folder = Path(folder)
    write_tensors(folder / FILE, toy_audio_state(seed), {"format": "pt"})
    _write_config(folder, audio_settings(TOY_AUDIO))
    return folder


def video_settings(config: VideoVaeConfig) -> dict[str, object]:
    """config.json of a video autoencoder, as diffusers names things."""
    return {
        "_class_name": "AutoencoderKLMiniMaxH3",
        "in_channels": config.pixel_channels,
        "out_channels": config.pixel_channels,
        "latent_channels": config.latent_channels,
        "block_out_channels": config.encoder_widths,
        "layers_per_block": config.encoder_layers,
        "spatial_downsample_factors": config.space_strides,
        "temporal_downsample_factors": config.time_strides,
        "norm_num_groups": config.norm_groups,
        "norm_eps": config.encoder_eps,
        "decoder_num_layers": config.blocks,
        "decoder_num_attention_heads": config.heads,
        "decoder_attention_head_dim": config.head_width,
        "decoder_num_register_tokens": config.register_tokens,
        "decoder_ffn_mult": config.ffn_width // config.width,
        "decoder_rope_theta": config.rope_theta,
        "decoder_rope_dim_ratio": config.rope_share,
        "decoder_norm_eps": config.decoder_eps,
        "clip_length": config.clip_frames,
        "token_drop": config.latents_dropped,
        "latents_mean": config.latents_mean,
        "latents_std": config.latents_std,
    }


def audio_settings(config: AudioVaeConfig) -> dict[str, object]:
    """config.json of an audio autoencoder, as diffusers names things."""
    return {
        "_class_name": "AutoencoderKLMiniMaxH3Audio",
        "encoder_dim": config.encoder_width,
        "encoder_rates": config.encoder_strides,
        "latent_dim": config.latent_width,
        "latent_channels": config.latent_channels,
        "num_attention_heads": config.heads,
        "decoder_dim": config.decoder_width,
        "decoder_rates": config.decoder_strides,
        "decoder_kernel_sizes": config.decoder_kernels,
        "resblock_kernel_sizes": config.block_kernels,
        "resblock_dilation_sizes": config.block_dilations,
        "sampling_rate": config.sample_rate_hz,
        "latents_mean": config.latents_mean,
        "latents_std": config.latents_std,
    }


def _write_config(folder: Path, settings: Mapping[str, object]) -> None:
    (folder / "config.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")


def _random(shapes: Mapping[str, Shape], seed: int) -> dict[str, Tensor]:
    """Linear and convolution weights of unit gain, norms near one, everything else small."""
    generator = torch.Generator().manual_seed(seed)
    state: dict[str, Tensor] = {}
    for name in sorted(shapes):
        shape = shapes[name]
        noise = torch.randn(shape, generator=generator)
        if name.endswith("weight") and len(shape) > 1:
            # a transposed convolution sums over its first axis
            inputs = shape[0] * shape[2] / 2 if ".ups." in name else math.prod(shape[1:])
            state[name] = noise / math.sqrt(inputs)
        elif name.endswith("weight") or (name.endswith("alpha") and len(shape) == 3):
            state[name] = 1 + 0.1 * noise
        elif name.endswith("register_tokens"):
            state[name] = noise
        elif name.endswith(("scale1", "scale2")):
            state[name] = 0.5 + 0.1 * noise
        else:
            state[name] = 0.1 * noise
    return state


def _quantised(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    out: dict[str, Tensor] = {}
    for name, value in stored.items():
        if not (name.startswith(BLOCK_PREFIX) and name.endswith("weight") and value.ndim == 2):
            out[name] = value
            continue
        codes, scale = quantise_int8_convrot(value.float())
        rule = {
            "format": "int8_tensorwise",
            "convrot": True,
            "convrot_groupsize": convrot_group(value.shape[1]),
        }
        out[name], out[f"{name}_scale"] = codes, scale
        text = json.dumps(rule).encode()
        out[f"{name.removesuffix('weight')}comfy_quant"] = torch.tensor(list(text)).to(torch.uint8)
    return out
