"""Sizes and starting weights of the miniature's parts. All are the published structures, small."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lowpeak.engine.checkpoint.names import ADALN, block_shapes, root_shapes
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.sampling.upscaler_file import UpscalerConfig
from lowpeak.engine.vae.audio import kaiser_sinc
from lowpeak.engine.vae.config import AudioVaeConfig, VideoVaeConfig
from lowpeak.engine.vae.shapes import audio_shapes
from lowpeak.engine.vae.toy import toy_video_state

State = dict[str, Tensor]

VIDEO = VideoVaeConfig(
    (0.0,) * 24,
    (1.0,) * 24,
    encoder_widths=(8, 16, 32, 32, 48, 48),
    encoder_layers=1,
    norm_groups=4,
    blocks=3,
    heads=3,
    ffn_width=384,
)
AUDIO = AudioVaeConfig(
    (0.0,) * 32,
    (1.0,) * 32,
    latent_width=64,
    encoder_width=4,
    heads=4,
    decoder_width=128,
    block_kernels=(3,),
    block_dilations=((1, 3),),
)
MODEL = ModelConfig(
    layers=6,
    refiner_layers=1,
    heads=4,
    head_dim=64,
    hidden=256,
    ffn=448,
    text_dim=64,
    freq_dim=64,
    time_hidden=128,
    time_dim=32,
    rope_freqs=8,
)
UPSCALER = UpscalerConfig(width=64, in_blocks=1, out_blocks=1)
TEXT_SEED = 11


def video_state(seed: int) -> State:
    """A fresh video autoencoder, diffusers' names, float32."""
    state = toy_video_state(seed, VIDEO)
    for name, value in state.items():
        if name.endswith(("scale1", "scale2")):
            value.fill_(0.5)
        elif name.endswith("bias"):
            value.zero_()
        elif value.ndim == 1:
            value.fill_(1.0)
    state["quant_conv.weight"][24:] *= 0.1
    state["quant_conv.bias"][24:] = -4.0  # log variance
    state["decoder.proj_out.weight"] *= 0.1
    return state


def audio_state(seed: int) -> State:
    """A fresh audio autoencoder, folded convolutions, float32."""
    generator = torch.Generator().manual_seed(seed)
    state: State = {}
    for name, shape in sorted(audio_shapes(AUDIO).items()):
        if name.endswith("filter"):
            state[name] = kaiser_sinc(2).reshape(shape)
        elif name.endswith("act.alpha") or name.endswith("act.beta") or name.endswith("bias"):
            state[name] = torch.full(shape, -4.0 if name == "logs_proj.bias" else 0.0)
        elif name.endswith("alpha") or "norm" in name:
            state[name] = torch.ones(shape)
        else:
            fan = shape[0] * shape[2] / 2 if ".ups." in name else math.prod(shape[1:])
            state[name] = torch.randn(shape, generator=generator) / math.sqrt(fan)
            if ".convs2." in name:
                state[name] *= 0.3
            if "logs_proj" in name:
                state[name] *= 0.1
            if "conv_post" in name:  # far from the clamp at +-1, where no gradient passes
                state[name] *= 0.05
    return state


def upscaler_state(seed: int) -> State:
    """A fresh latent upscaler, bare names, float32. Starts near the identity with a resize."""
    generator = torch.Generator().manual_seed(seed)
    state: State = {}
    for name, shape in sorted(UPSCALER.shapes().items()):
        if len(shape) == 1:
            state[name] = torch.ones(shape) if "norm" in name else torch.zeros(shape)
            if name.endswith("bias"):
                state[name] = torch.zeros(shape)
            elif name.endswith("in_layers.0.weight"):
                state[name] = torch.ones(shape)
        else:
            fan = math.prod(shape[1:])
            state[name] = torch.randn(shape, generator=generator) / math.sqrt(fan)
            if "out_layers.2" in name or "pwconv" in name or "emb_layers" in name:
                state[name] *= 0.2
    return state


def model_state(seed: int, config: ModelConfig = MODEL) -> State:
    """A fresh transformer, full names with the branch, float32; blocks start as identities."""
    generator = torch.Generator().manual_seed(seed)
    shapes = root_shapes(config)
    for i in range(config.layers):
        prefix = f"transformer_blocks.{i}."
        shapes |= {prefix + n: s for n, s in block_shapes(config, projection=True).items()}
    return {name: _start(name, shape, generator, config) for name, shape in sorted(shapes.items())}


def _start(name: str, shape: tuple[int, ...], generator: torch.Generator, c: ModelConfig) -> Tensor:
    def normal() -> Tensor:
        return torch.randn(shape, generator=generator)

    def even(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=generator)

    if name.startswith("time_embedder"):
        return _time_start(name, shape, generator)
    if ADALN in name or "norm_out.linear" in name:
        value = torch.zeros(shape)
        if name.endswith(f"{ADALN}.weight"):
            value = normal() * 0.02
        if name.endswith(f"{ADALN}.bias"):  # gates of a tenth: every block takes part at once
            value.view(3, 6, -1)[:, 2::3] = 0.1
        return value
    if name.endswith("A_log"):
        return even(-1.0, 0.7)
    if name.endswith("dt_bias"):
        return torch.log(torch.expm1(even(0.01, 0.2)))
    if name.endswith("alpha.up.weight"):
        return normal() * (0.3 / math.sqrt(shape[1]))
    if ".short_conv." in name:
        value = normal() * 0.05
        value[(slice(None), 0, *(size // 2 for size in shape[2:]))] += 1.0
        return value
    if name.endswith("softmax_gate.up.bias"):
        return torch.full(shape, 3.0)
    if name.endswith("softmax_gate.up.weight"):
        return normal() * 0.02
    if name.endswith(("proj_out.weight", "to_out_linear.weight")):
        return normal() * (0.1 / math.sqrt(shape[1]))
    if name.endswith(".bias"):
        return torch.zeros(shape)
    if len(shape) == 1:
        return torch.ones(shape)
    return normal() / math.sqrt(shape[-1])


def _time_start(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Hidden units that bend at their own time: times crowd near 0, and raw angles barely move.

    Channel half + 0 of the sinusoid is sin(t): unit i is SiLU(a_i (sin t - sin c_i)).
    """
    if "linear_1" in name:
        units = shape[0]
        raw = torch.linspace(0.0, 1.0, units)
        centre = 1 - 12 * (1 - raw) / (1 + 11 * (1 - raw))
        slope = 60 * (1 - raw) + 3
        if name.endswith("bias"):
            return -slope * torch.sin(centre)
        value = 0.02 * torch.randn(shape, generator=generator)
        value[:, shape[1] // 2] = slope
        return value
    if name.endswith("bias"):
        return torch.zeros(shape)
    raw = torch.linspace(0.0, 1.0, shape[1])
    reach = (60 * (1 - raw) + 3) * 0.3
    return torch.randn(shape, generator=generator) / math.sqrt(shape[1]) / reach.clamp_min(1) * 2
