"""The video encoder: a causal 3D CNN, clip by clip and tile by tile (facts: model sheet e.1, e.4).

17 frames give 5 latents; the last 3 latents of a video are dropped, so 17n+5 frames give 5n+2. A
single picture goes through alone and gives one latent. Statistics of a group norm never cross a
frame; convolutions look back in time, never ahead. Float32 throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import Cancelled, RequestError
from .config import VideoVaeConfig
from .space import normalise, pixels_to_model
from .stitch import stitch_tiles
from .tiles import TILE_OVERLAP_PX, TILE_PX, Axis, split_axis

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Posterior:
    """Mean and log variance of the latents: [1, 24, F, H/16, W/16] float32, not normalised."""

    mean: Tensor
    log_variance: Tensor

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """mean + deviation * noise; noise is drawn on the generator's device (facts g: CPU, 42)."""
        device = self.mean.device if generator is None else generator.device
        noise = torch.randn(self.mean.shape, generator=generator, device=device)
        deviation = torch.exp(0.5 * self.log_variance)
        return self.mean + deviation * noise.to(self.mean.device)


def encode_video(
    pixels: Tensor,
    tensors: Tensors,
    config: VideoVaeConfig,
    *,
    tile_px: int | tuple[int, int] = TILE_PX,
    overlap_px: int | tuple[int, int] = TILE_OVERLAP_PX,
    tiled: bool = True,
    is_cancelled: Callable[[], bool] | None = None,
) -> Posterior:
    """Encode frames in the model's colours.

    pixels: [1, 3, frames, H, W], ImageNet-normalised (`pixels_to_model`); H and W multiples of 16.
    tensors: the encoder's, with `quant_conv.*`, float32 on the device that does the work; clips
    are moved there one at a time. Frames that fill no clip are completed with the last one.
    Raises RequestError for another shape, Cancelled("encode") between tiles.
    """
    if pixels.ndim != 5 or pixels.shape[:2] != (1, config.pixel_channels) or not pixels.shape[2]:
        raise RequestError(f"pixels have shape {tuple(pixels.shape)}, need [1, 3, frames, H, W]")
    sides = pixels.shape[3:]
    grid = split_sides(
        (sides[0], sides[1]),
        config,
        _pair(tile_px) if tiled else (sides[0], sides[1]),
        _pair(overlap_px) if tiled else (0, 0),
    )

    def clip_of(start: int, stop: int) -> Tensor:
        return pixels[:, :, start:stop].to(tensors["conv_in.weight"].device)

    return _encode(clip_of, pixels.shape[2], grid, tensors, config, is_cancelled)


def encode_frames(
    frames: Tensor,
    tensors: Tensors,
    config: VideoVaeConfig,
    *,
    generator: torch.Generator | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Tensor:
    """Normalised latents of a picture or a video: uint8 [n, H, W, 3] to float32 [1, 24, F, h, w].

    Frames become floating numbers a clip at a time. With a generator the posterior is sampled and
    rounded to float16 before it is normalised, as visual conditions are (facts g); without, its
    mean is taken.
    """
    if frames.ndim != 4 or frames.shape[3] != 3 or frames.dtype != torch.uint8 or not len(frames):
        raise RequestError(f"frames are {frames.dtype} {tuple(frames.shape)}, need [n, H, W, 3]")
    device = tensors["conv_in.weight"].device
    sides = int(frames.shape[1]), int(frames.shape[2])
    grid = split_sides(sides, config, _pair(TILE_PX), _pair(TILE_OVERLAP_PX))

    def clip_of(start: int, stop: int) -> Tensor:
        return pixels_to_model(frames[start:stop].to(device))

    posterior = _encode(clip_of, len(frames), grid, tensors, config, is_cancelled)
    raw = posterior.mean if generator is None else posterior.sample(generator).half().float()
    return normalise(raw, config)


def split_sides(
    sides: tuple[int, int],
    config: VideoVaeConfig,
    tile_px: tuple[int, int],
    overlap_px: tuple[int, int],
) -> tuple[Axis, Axis]:
    """Tiles along height and width."""
    tall, wide = (
        split_axis(*item, config.stride_px) for item in zip(sides, tile_px, overlap_px, strict=True)
    )
    return tall, wide


def _encode(
    clip_of: Callable[[int, int], Tensor],
    frames: int,
    grid: tuple[Axis, Axis],
    tensors: Tensors,
    config: VideoVaeConfig,
    is_cancelled: Callable[[], bool] | None,
) -> Posterior:
    """clip_of: frames start..stop in the model's colours, on the device, fewer at the end."""
    step, rule = config.stride_px, config.clip_rule
    tall, wide = grid
    clip = 1 if frames == 1 else rule.clip_frames
    moments = []
    for start in range(0, frames, clip):
        part = clip_of(start, start + clip)
        short = clip - part.shape[2]
        if short:
            part = torch.cat([part, part[:, :, -1:].expand(-1, -1, short, -1, -1)], dim=2)
        tiles = []
        for top in tall.starts:
            for left in wide.starts:
                if is_cancelled is not None and is_cancelled():
                    raise Cancelled("encode")
                tile = part[..., top : top + tall.size, left : left + wide.size].float()
                tiles.append(encode_tile(tile, tensors, config))
        moments.append(
            stitch_tiles(torch.cat(tiles), tall.scaled_down(step), wide.scaled_down(step))
        )
    whole = torch.cat(moments, dim=1).unsqueeze(0)
    if frames > 1 and rule.latents_dropped:
        whole = whole[:, :, : -rule.latents_dropped]
    mean, log_variance = whole.chunk(2, dim=1)
    return Posterior(mean, log_variance.clamp(-30.0, 20.0))


def encode_keyframe(
    picture: Tensor,
    tensors: Tensors,
    config: VideoVaeConfig,
    *,
    generator: torch.Generator | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Tensor:
    """Normalised latents of one picture: uint8 [H, W, 3] to float32 [1, 24, 1, H/16, W/16].

    With a generator the posterior is sampled and rounded to float16 before it is normalised, as
    keyframes are (facts g); without, its mean is taken.
    """
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != torch.uint8:
        raise RequestError(
            f"a keyframe is {picture.dtype} {tuple(picture.shape)}, need uint8 [H, W, 3]"
        )
    return encode_frames(
        picture[None], tensors, config, generator=generator, is_cancelled=is_cancelled
    )


def encode_tile(x: Tensor, tensors: Tensors, config: VideoVaeConfig) -> Tensor:
    """Moments of one tile of one clip: [1, 3, t, h, w] to [1, 48, ceil(t/4), h/16, w/16]."""
    x = _conv(x, tensors, "conv_in", space=1)
    strides = zip(config.time_strides, config.space_strides, strict=True)
    for level, (time, space) in enumerate(strides):
        for layer in range(config.encoder_layers):
            x = _residual(x, tensors, f"down_blocks.{level}.resnets.{layer}", config)
        if time * space > 1:
            if space == 2:  # one row and one column after the last, so that sizes halve exactly
                x = F.pad(x, (0, 1, 0, 1, 0, 0), mode="reflect")
            name = f"down_blocks.{level}.downsamplers.0.conv"
            x = _conv(x, tensors, name, stride=(time, space, space))
    x = _conv(F.silu(_norm(x, tensors, "norm_out", config)), tensors, "conv_out", space=1)
    return F.conv3d(x, tensors["quant_conv.weight"], tensors["quant_conv.bias"])


def _residual(x: Tensor, tensors: Tensors, at: str, config: VideoVaeConfig) -> Tensor:
    y = F.silu(_norm(x, tensors, f"{at}.norm1", config))
    y = F.silu(_norm(_conv(y, tensors, f"{at}.conv1", space=1), tensors, f"{at}.norm2", config))
    y = _conv(y, tensors, f"{at}.conv2", space=1)
    shortcut = f"{at}.conv_shortcut"
    if f"{shortcut}.weight" in tensors:
        x = F.conv3d(x, tensors[f"{shortcut}.weight"], tensors[f"{shortcut}.bias"])
    return x + y


def _conv(
    x: Tensor,
    tensors: Tensors,
    name: str,
    *,
    space: int = 0,
    stride: tuple[int, int, int] = (1, 1, 1),
) -> Tensor:
    """3x3x3 convolution: space reflected by `space`, two empty frames in front in time."""
    if space:
        x = F.pad(x, (space, space, space, space, 0, 0), mode="reflect")
    weight = tensors[f"{name}.weight"]
    x = F.pad(x, (0, 0, 0, 0, weight.shape[2] - 1, 0))
    return F.conv3d(x, weight, tensors[f"{name}.bias"], stride)


def _norm(x: Tensor, tensors: Tensors, name: str, config: VideoVaeConfig) -> Tensor:
    """Group norm over one frame at a time."""
    frames = x.shape[2]
    x = x.transpose(1, 2).flatten(0, 1)
    weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    x = F.group_norm(x, config.norm_groups, weight, bias, config.encoder_eps)
    return x.unflatten(0, (-1, frames)).transpose(1, 2)


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value
