"""Sizes and constants of the two autoencoders, read from tensor shapes and config.json.

Whatever a shape tells is taken from the shape; what no shape tells (head width, strides, the
latents' mean and std) comes from config.json, else from the published files' values (facts: model
sheet e.1-e.3, e.7). Names of settings in config.json are the published ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import CheckpointError
from .tiles import ClipRule

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]

# Facts e.3: values of the published video autoencoder, used when no config.json gives others.
PUBLISHED_VIDEO_MEAN = (
    0.858090341091156, -0.9606591463088989, 1.0661640167236328, -0.5090325474739075,
    -0.2727581858634949, -1.3675414323806763, -0.2553254961967468, -0.26907554268836975,
    -0.5376840829849243, -0.0464097298681736, 0.6657370328903198, 0.19690127670764923,
    -0.5460608005523682, -0.4035342037677765, -0.23683024942874908, 0.25928452610969543,
    -0.30133944749832153, 0.211341992020607, -1.1206848621368408, 0.3581933379173279,
    -0.04225143790245056, 0.2604829967021942, 0.22864092886447906, 0.7056031823158264,
)  # fmt: skip
PUBLISHED_VIDEO_STD = (
    1.2223774194717407, 1.2767263650894165, 1.6831774711608887, 1.7549455165863037,
    1.5636216402053833, 2.194143533706665, 0.9653137922286987, 1.0569885969161987,
    0.841948926448822, 0.7729952931404114, 1.8955937623977661, 0.946841835975647,
    0.7996809482574463, 0.44988900423049925, 0.7197399735450745, 0.6936293244361877,
    2.961095094680786, 2.7694199085235596, 3.0496184825897217, 2.1088054180145264,
    3.276226282119751, 3.1627357006073, 2.2816812992095947, 2.6127843856811523,
)  # fmt: skip
# The pictures' colour space: ImageNet mean and std of values in 0..1 (facts e.3).
PIXEL_MEAN = (0.485, 0.456, 0.406)
PIXEL_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class VideoVaeConfig:
    """The video autoencoder: a causal 3D CNN encoder and a ViT decoder of equal blocks."""

    latents_mean: tuple[float, ...]
    latents_std: tuple[float, ...]
    latent_channels: int = 24
    pixel_channels: int = 3
    encoder_widths: tuple[int, ...] = (128, 256, 256, 512, 512, 1024)
    encoder_layers: int = 2
    space_strides: tuple[int, ...] = (2, 2, 2, 2, 1, 1)
    time_strides: tuple[int, ...] = (1, 2, 2, 1, 1, 1)
    norm_groups: int = 32
    encoder_eps: float = 1e-6
    blocks: int = 36
    heads: int = 32
    head_width: int = 64
    ffn_width: int = 8192
    register_tokens: int = 4
    rope_theta: float = 100.0
    rope_share: float = 0.75
    decoder_eps: float = 1e-5
    clip_frames: int = 17
    latents_dropped: int = 3

    def __post_init__(self) -> None:
        for name in ("latents_mean", "latents_std"):
            if len(getattr(self, name)) != self.latent_channels:
                raise CheckpointError(
                    f"{name} does not fit the latents",
                    expected=f"{self.latent_channels} values",
                    found=len(getattr(self, name)),
                )
        if min(self.latents_std) <= 0:
            raise CheckpointError("latents_std has a value that is not positive")
        if self.rope_width % 6:
            raise CheckpointError(
                "the rotary width is not a multiple of 6", expected="6n", found=self.rope_width
            )

    @property
    def width(self) -> int:
        """C: channels of the decoder's residual stream."""
        return self.heads * self.head_width

    @property
    def rope_width(self) -> int:
        """Channels of a head that are rotated."""
        return int(self.head_width * self.rope_share)

    @property
    def stride_px(self) -> int:
        """Pixels of a latent, along each side."""
        return math.prod(self.space_strides)

    @property
    def clip_rule(self) -> ClipRule:
        """How time is cut into clips."""
        return ClipRule(self.clip_frames, self.latents_dropped, math.prod(self.time_strides))

    @property
    def patch_values(self) -> int:
        """Values that one latent becomes: channels x frames x pixels x pixels."""
        return self.pixel_channels * self.clip_rule.frames_per_latent * self.stride_px**2

    @classmethod
    def infer(cls, shapes: Shapes, settings: Mapping[str, Any] | None = None) -> VideoVaeConfig:
        """The configuration of a decoder (and encoder, where present) from its tensors' shapes.

        shapes: diffusers names -> shape. settings: config.json. Raises CheckpointError naming the
        first tensor without which nothing can be inferred.
        """
        given = dict(settings or {})
        block = "decoder.transformer_blocks."
        width, channels = need(shapes, "decoder.proj_in.weight", 2)
        head_width = int(given.get("decoder_attention_head_dim", 64))
        if width % head_width:
            raise CheckpointError(
                "heads do not divide the decoder's width",
                tensor="decoder.proj_in.weight",
                expected=f"a multiple of {head_width}",
                found=width,
            )
        values: dict[str, Any] = {
            "latent_channels": channels,
            "heads": width // head_width,
            "head_width": head_width,
            "blocks": count_indexed(shapes, block),
            "ffn_width": need(shapes, f"{block}0.ff.net.2.weight", 2)[1],
            "register_tokens": need(shapes, "decoder.register_tokens", 3)[1],
            "latents_mean": tuple(given.get("latents_mean") or PUBLISHED_VIDEO_MEAN),
            "latents_std": tuple(given.get("latents_std") or PUBLISHED_VIDEO_STD),
        }
        if "encoder.conv_in.weight" in shapes:
            levels = count_indexed(shapes, "encoder.down_blocks.")
            conv = "encoder.down_blocks.{}.resnets.0.conv1.weight"
            values["encoder_widths"] = tuple(
                need(shapes, conv.format(level), 5)[0] for level in range(levels)
            )
            values["encoder_layers"] = count_indexed(shapes, "encoder.down_blocks.0.resnets.")
        for setting, name in _VIDEO_SETTINGS.items():
            if setting in given:
                value = given[setting]
                values[name] = tuple(value) if isinstance(value, list) else value
        return cls(**values)


_VIDEO_SETTINGS = {
    "out_channels": "pixel_channels",
    "spatial_downsample_factors": "space_strides",
    "temporal_downsample_factors": "time_strides",
    "norm_num_groups": "norm_groups",
    "norm_eps": "encoder_eps",
    "decoder_rope_theta": "rope_theta",
    "decoder_rope_dim_ratio": "rope_share",
    "decoder_norm_eps": "decoder_eps",
    "clip_length": "clip_frames",
    "token_drop": "latents_dropped",
}


@dataclass(frozen=True)
class AudioVaeConfig:
    """The mono audio autoencoder (facts e.7): DAC encoder, attention, BigVGAN decoder."""

    latents_mean: tuple[float, ...]
    latents_std: tuple[float, ...]
    latent_channels: int = 32
    latent_width: int = 2048
    encoder_width: int = 64
    encoder_strides: tuple[int, ...] = (2, 4, 4, 5, 5)
    heads: int = 8
    decoder_width: int = 1024
    decoder_strides: tuple[int, ...] = (5, 5, 2, 2, 2, 2, 2)
    decoder_kernels: tuple[int, ...] = (9, 9, 4, 4, 4, 4, 4)
    block_kernels: tuple[int, ...] = (3, 7, 11)
    block_dilations: tuple[tuple[int, ...], ...] = ((1, 3, 5), (1, 3, 5), (1, 3, 5))
    sample_rate_hz: int = 32_000
    residual_dilations: tuple[int, ...] = field(default=(1, 3, 9))

    def __post_init__(self) -> None:
        if math.prod(self.encoder_strides) != math.prod(self.decoder_strides):
            raise CheckpointError(
                "the audio decoder does not undo the encoder's stride",
                expected=math.prod(self.encoder_strides),
                found=math.prod(self.decoder_strides),
            )
        for name in ("latents_mean", "latents_std"):
            if len(getattr(self, name)) != self.latent_channels:
                raise CheckpointError(
                    f"{name} does not fit the audio latents",
                    expected=f"{self.latent_channels} values",
                    found=len(getattr(self, name)),
                )
        if min(self.latents_std) <= 0:
            raise CheckpointError("the audio latents_std has a value that is not positive")
        if self.latent_width % self.heads:
            raise CheckpointError(
                "heads do not divide the width", expected=self.heads, found=self.latent_width
            )

    @property
    def hop_samples(self) -> int:
        """Samples of one latent."""
        return math.prod(self.encoder_strides)

    @classmethod
    def infer(cls, shapes: Shapes, settings: Mapping[str, Any] | None = None) -> AudioVaeConfig:
        """The configuration from folded tensors' shapes (one `.weight` a convolution).

        Strides of the encoder follow from its kernels (twice the stride); those of the decoder
        come from config.json. Mean and std are 0 and 1 where nothing gives them.
        """
        given = dict(settings or {})
        kernels = need(shapes, "encoder.block.0.weight", 3)
        stages = count_indexed(shapes, "encoder.block.") - 3
        channels = need(shapes, "mean_proj.weight", 3)[0]
        ups, per_stage = count_indexed(shapes, "decoder.ups."), 0
        blocks = count_indexed(shapes, "decoder.resblocks.")
        per_stage = blocks // ups if ups else 0
        values: dict[str, Any] = {
            "latent_channels": channels,
            "latent_width": need(shapes, "dec_in_proj.weight", 3)[0],
            "encoder_width": kernels[0],
            "encoder_strides": tuple(
                need(shapes, f"encoder.block.{stage + 1}.block.4.weight", 3)[2] // 2
                for stage in range(stages)
            ),
            "decoder_width": need(shapes, "decoder.conv_pre.weight", 3)[0],
            "decoder_kernels": tuple(
                need(shapes, f"decoder.ups.{stage}.0.weight", 3)[2] for stage in range(ups)
            ),
            "block_kernels": tuple(
                need(shapes, f"decoder.resblocks.{i}.convs1.0.weight", 3)[2]
                for i in range(per_stage)
            ),
            "latents_mean": tuple(given.get("latents_mean") or (0.0,) * channels),
            "latents_std": tuple(given.get("latents_std") or (1.0,) * channels),
        }
        for setting, name in _AUDIO_SETTINGS.items():
            if setting in given:
                values[name] = _tuples(given[setting])
        return cls(**values)


_AUDIO_SETTINGS = {
    "num_attention_heads": "heads",
    "decoder_rates": "decoder_strides",
    "resblock_dilation_sizes": "block_dilations",
    "sampling_rate": "sample_rate_hz",
}


def need(shapes: Shapes, name: str, rank: int) -> Shape:
    """The shape of a tensor that must be there with `rank` axes, or a CheckpointError."""
    if name not in shapes:
        raise CheckpointError("a tensor is missing", tensor=name, expected=f"rank {rank}")
    shape = tuple(shapes[name])
    if len(shape) != rank:
        raise CheckpointError(
            "a tensor has the wrong rank", tensor=name, expected=f"rank {rank}", found=shape
        )
    return shape


def count_indexed(shapes: Shapes, prefix: str) -> int:
    """One more than the highest index which follows `prefix` in a name."""
    pattern = re.compile(re.escape(prefix) + r"(\d+)\.")
    found = [int(match[1]) for match in map(pattern.match, shapes) if match]
    return max(found, default=-1) + 1


def _tuples(value: Any) -> Any:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_tuples(item) for item in value)
    return value
