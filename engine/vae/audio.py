"""The mono audio autoencoder, float32: waveform to latents and back (facts: model sheet e.7).

Encoder: strided convolutions with Snake activations (DAC), a causal attention block that narrows
the width to the latents', a linear head for the mean. Decoder: BigVGAN, transposed convolutions
and residual blocks whose SnakeBeta activations run at twice the rate between two low-pass filters.
Stereo is two items of a batch. Pure functions over a dictionary of folded tensors
(`fold_weight_norm`); float32 throughout, because half precision is audible here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import RequestError
from .config import AudioVaeConfig

Tensors = Mapping[str, Tensor]
_NORMED = (("weight_g", "weight_v"), ("parametrizations.weight.original0",
                                      "parametrizations.weight.original1"))  # fmt: skip
SNAKE_FLOOR = 1e-9


def norm_names(name: str) -> tuple[str, str]:
    """("gain" | "direction" | "plain", the name of the folded weight) of a tensor's name."""
    for pair in _NORMED:
        for kind, suffix in zip(("gain", "direction"), pair, strict=True):
            if name.endswith("." + suffix):
                return kind, name.removesuffix(suffix) + "weight"
    return "plain", name


def kaiser_sinc(ratio: int, taps: int = 12) -> Tensor:
    """The low-pass filter of a resampling by `ratio`: [1, 1, taps] float32, sum 1.

    Cutoff 1/(2 ratio), transition 2.4/ratio wide, Kaiser's estimate of beta. Files carry it; this
    is for those that do not.
    """
    cutoff, width = 0.5 / ratio, 4 * 0.6 / ratio
    damping_db = 2.285 * (taps // 2 - 1) * math.pi * width + 7.95
    if damping_db > 50:
        beta = 0.1102 * (damping_db - 8.7)
    elif damping_db >= 21:
        beta = 0.5842 * (damping_db - 21) ** 0.4 + 0.07886 * (damping_db - 21)
    else:
        beta = 0.0
    window = torch.kaiser_window(taps, periodic=False, beta=beta)
    at = torch.arange(taps) - (taps - 1) / 2
    response = window * torch.sinc(2 * cutoff * at)
    return (response / response.sum()).view(1, 1, taps)


def fold_weight_norm(tensors: Tensors) -> dict[str, Tensor]:
    """Plain `.weight` for every weight-normalised convolution: g v / |v|, norm over all axes but
    the first. Accepts `weight_g`/`weight_v`, PyTorch's parametrization names, and folded files."""
    folded = dict(tensors)
    for name in tensors:
        for gain_name, direction_name in _NORMED:
            if not name.endswith("." + gain_name):
                continue
            module = name.removesuffix(gain_name)
            gain = folded.pop(name).float()
            direction = folded.pop(module + direction_name).float()
            axes = tuple(range(1, direction.ndim))
            norm = torch.linalg.vector_norm(direction, dim=axes, keepdim=True)
            folded[module + "weight"] = direction * (gain / norm)
    return folded


def decode_audio(latents: Tensor, tensors: Tensors, config: AudioVaeConfig) -> Tensor:
    """Waveform of normalised latents.

    latents: [channels, 32, A] (stereo: 2 channels). Returns float32 [channels, 800 A] in -1..1.
    """
    if latents.ndim != 3 or latents.shape[1] != config.latent_channels:
        raise RequestError(
            f"audio latents have shape {tuple(latents.shape)}, "
            f"need [channels, {config.latent_channels}, A]"
        )
    device = tensors["dec_in_proj.weight"].device
    mean, std = _statistics(config, device)
    x = latents.to(device, torch.float32) * std + mean
    return decode_raw(x, tensors, config)[:, 0]


def decode_raw(x: Tensor, tensors: Tensors, config: AudioVaeConfig) -> Tensor:
    """x: [batch, 32, A] latents, not normalised. Returns [batch, 1, 800 A]."""
    x = _conv(x, tensors, "dec_in_proj")
    x = _conv(x, tensors, "decoder.conv_pre", padding=3)
    branches = len(config.block_kernels)
    for stage, (stride, kernel) in enumerate(
        zip(config.decoder_strides, config.decoder_kernels, strict=True)
    ):
        name = f"decoder.ups.{stage}.0"
        x = F.conv_transpose1d(
            x,
            tensors[f"{name}.weight"],
            tensors[f"{name}.bias"],
            stride=stride,
            padding=(kernel - stride) // 2,
        )
        total = torch.zeros_like(x)
        for branch in range(branches):
            total += _amp_block(x, tensors, stage * branches + branch, config, branch)
        x = total / branches
    x = _smooth_snake(x, tensors, "decoder.activation_post")
    return _conv(x, tensors, "decoder.conv_post", padding=3).clamp(-1.0, 1.0)


def encode_audio(waveform: Tensor, tensors: Tensors, config: AudioVaeConfig) -> Tensor:
    """Normalised latents (posterior mean) of a waveform.

    waveform: [channels, samples] at 32 kHz in -1..1, padded with silence to whole latents.
    Returns float32 [channels, 32, ceil(samples / 800)].
    """
    if waveform.ndim != 2 or not waveform.shape[1]:
        raise RequestError(f"sound has shape {tuple(waveform.shape)}, need [channels, samples]")
    device = tensors["mean_proj.weight"].device
    x = waveform.to(device, torch.float32)
    x = F.pad(x, (0, -x.shape[1] % config.hop_samples))
    mean, std = _statistics(config, device)
    raw, _ = encode_raw(x[:, None], tensors, config)
    return (raw - mean) / std


def encode_raw(x: Tensor, tensors: Tensors, config: AudioVaeConfig) -> tuple[Tensor, Tensor]:
    """x: [batch, 1, whole latents]. Returns posterior mean and log deviation, [batch, 32, A]."""
    x = _conv(x, tensors, "encoder.block.0", padding=3)
    for stage, stride in enumerate(config.encoder_strides):
        at = f"encoder.block.{stage + 1}.block"
        for unit, dilation in enumerate(config.residual_dilations):
            y = _snake(x, tensors[f"{at}.{unit}.block.0.alpha"])
            y = _conv(y, tensors, f"{at}.{unit}.block.1", padding=3 * dilation, dilation=dilation)
            y = _snake(y, tensors[f"{at}.{unit}.block.2.alpha"])
            x = x + _conv(y, tensors, f"{at}.{unit}.block.3")
        last = len(config.residual_dilations)
        x = _snake(x, tensors[f"{at}.{last}.alpha"])
        x = _conv(x, tensors, f"{at}.{last + 1}", stride=stride, padding=math.ceil(stride / 2))
    end = len(config.encoder_strides) + 1
    x = _snake(x, tensors[f"encoder.block.{end}.alpha"])
    x = _conv(x, tensors, f"encoder.block.{end + 1}", padding=1)
    x = _attention_projection(x.transpose(1, 2), tensors, config).transpose(1, 2)
    return _conv(x, tensors, "mean_proj"), _conv(x, tensors, "logs_proj")


@dataclass(frozen=True)
class AudioHealth:
    """What is worth knowing about a waveform before it is muxed. Shares are 0..1."""

    seconds: float
    expected_seconds: float
    peak: float
    clipped_share: float  # samples at or beyond full scale
    offset: float  # mean, the larger of the channels
    silent_share: float  # of 50 ms windows below -60 dB
    finite: bool
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The `audio_health` object of a run report."""
        return {**asdict(self), "warnings": list(self.warnings)}


def check_audio(
    waveform: Tensor, sample_rate_hz: int, expected_seconds: float | None = None
) -> AudioHealth:
    """Clipping, offset, silence and length of a waveform [channels, samples]."""
    finite = bool(torch.isfinite(waveform).all())
    x = torch.nan_to_num(waveform.detach().float().cpu())
    samples = x.shape[-1]
    seconds = samples / sample_rate_hz
    expected = seconds if expected_seconds is None else expected_seconds
    window = max(1, sample_rate_hz // 20)
    whole = F.pad(x, (0, -samples % window)).unflatten(-1, (-1, window)) if samples else x
    quiet = whole.square().mean(-1).sqrt().amax(0) < 1e-3 if samples else torch.ones(1)
    health: dict[str, Any] = {
        "seconds": seconds,
        "expected_seconds": expected,
        "peak": float(x.abs().max()) if samples else 0.0,
        "clipped_share": float((x.abs() >= 0.999).float().mean()) if samples else 0.0,
        "offset": float(x.mean(-1).abs().max()) if samples else 0.0,
        "silent_share": float(quiet.float().mean()),
        "finite": finite,
    }
    found = (
        (not finite, "some samples are not finite numbers"),
        (health["clipped_share"] > 1e-3, f"{health['clipped_share']:.2%} of samples are clipped"),
        (health["offset"] > 0.02, f"the waveform is off centre by {health['offset']:.3f}"),
        (health["silent_share"] == 1, "the sound is silent throughout"),
        (
            abs(seconds - expected) > 0.05,
            f"the sound lasts {seconds:.2f} s, {expected:.2f} s were expected",
        ),
    )
    return AudioHealth(**health, warnings=tuple(text for wrong, text in found if wrong))


def _amp_block(
    x: Tensor, tensors: Tensors, index: int, config: AudioVaeConfig, branch: int
) -> Tensor:
    """Residual block: per dilation, activation, dilated convolution, activation, convolution."""
    at, kernel = f"decoder.resblocks.{index}", config.block_kernels[branch]
    for pair, dilation in enumerate(config.block_dilations[branch]):
        y = _smooth_snake(x, tensors, f"{at}.activations.{2 * pair}")
        padding = (kernel - 1) * dilation // 2
        y = _conv(y, tensors, f"{at}.convs1.{pair}", padding=padding, dilation=dilation)
        y = _smooth_snake(y, tensors, f"{at}.activations.{2 * pair + 1}")
        x = x + _conv(y, tensors, f"{at}.convs2.{pair}", padding=(kernel - 1) // 2)
    return x


def _smooth_snake(x: Tensor, tensors: Tensors, name: str) -> Tensor:
    """x + sin^2(a x) / b at twice the rate, with a = exp(alpha), b = exp(beta) per channel.

    Up and down go through Kaiser-windowed sinc filters of 12 taps, with repeated ends.
    """
    up, down = tensors[f"{name}.upsample.filter"], tensors[f"{name}.downsample.lowpass.filter"]
    channels, taps = x.shape[1], up.shape[-1]
    reach = taps // 2 - 1
    x = F.pad(x, (reach, reach), mode="replicate")
    x = 2 * F.conv_transpose1d(x, up.expand(channels, -1, -1), stride=2, groups=channels)
    x = x[..., 2 * reach + (taps - 2) // 2 : -(2 * reach + (taps - 1) // 2)]
    a = tensors[f"{name}.act.alpha"].exp()[:, None]
    b = tensors[f"{name}.act.beta"].exp()[:, None]
    x = x + torch.sin(a * x).square() / (b + SNAKE_FLOOR)
    taps = down.shape[-1]
    x = F.pad(x, (taps // 2 - (taps % 2 == 0), taps // 2), mode="replicate")
    return F.conv1d(x, down.expand(channels, -1, -1), stride=2, groups=channels)


def _attention_projection(x: Tensor, tensors: Tensors, config: AudioVaeConfig) -> Tensor:
    """[batch, A, 2048] to [batch, A, 32]: causal attention, heads averaged, then a gated MLP."""
    y = _norm(x, tensors, "pre_block.norm1")
    bias = torch.cat([tensors[f"pre_block.attn.{n}"] for n in ("q_bias", "zero_k_bias", "v_bias")])
    qkv = F.linear(y, tensors["pre_block.attn.qkv.weight"], bias)
    q, k, v = qkv.unflatten(-1, (3, config.heads, -1)).permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True).mean(dim=1)
    y = _linear(F.adaptive_avg_pool1d(y, config.latent_channels), tensors, "pre_block.attn.proj")
    x = _linear(_norm(x, tensors, "pre_block.norm3"), tensors, "pre_block.proj") + y
    y = _norm(_norm(x, tensors, "pre_block.norm2"), tensors, "pre_block.mlp.norm")
    gate = F.gelu(_linear(y, tensors, "pre_block.mlp.w0"), approximate="tanh")
    y = gate * _linear(y, tensors, "pre_block.mlp.w1")
    return x + _linear(y, tensors, "pre_block.mlp.w2")


def _snake(x: Tensor, alpha: Tensor) -> Tensor:
    return x + torch.sin(alpha * x).square() / (alpha + SNAKE_FLOOR)


def _conv(x: Tensor, tensors: Tensors, name: str, **options: int) -> Tensor:
    return F.conv1d(x, tensors[f"{name}.weight"], tensors.get(f"{name}.bias"), **options)


def _linear(x: Tensor, tensors: Tensors, name: str) -> Tensor:
    return F.linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def _norm(x: Tensor, tensors: Tensors, name: str) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def _statistics(config: AudioVaeConfig, device: torch.device) -> tuple[Tensor, Tensor]:
    mean = torch.tensor(config.latents_mean, dtype=torch.float32, device=device)[:, None]
    std = torch.tensor(config.latents_std, dtype=torch.float32, device=device)[:, None]
    return mean, std
