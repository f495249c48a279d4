"""Decode a video: tiles and clips through the streamed ViT stack, then to frames.

All tiles of a group of clips pass through block i before block i + 1 is asked for, so weights cross
the link once a group. Work inside a block goes in batches of `TILE_BATCH` tiles of one clip: that
partition belongs to the model, so a larger group changes no bit. Frames leave clip by clip; the
whole video exists nowhere. No placement is decided here (facts: model sheet e.2-e.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import Cancelled, CheckpointError, RequestError
from .config import VideoVaeConfig
from .space import PixelBytes, denormalise
from .stitch import Seams
from .tiles import TILE_OVERLAP_PX, TILE_PX, Axis, split_axis
from .vit import Block, apply_block, embed_tiles, linear, rope_tables

TILE_BATCH = 4
Blocks = Callable[[], Iterable[Block]] | Iterable[Block]


def decode_video(
    latents: Tensor,
    root: Mapping[str, Tensor],
    blocks: Blocks,
    config: VideoVaeConfig,
    *,
    tile_px: int | tuple[int, int] = TILE_PX,
    overlap_px: int | tuple[int, int] = TILE_OVERLAP_PX,
    clips_per_group: int = 1,
    tiled: bool = True,
    compute_dtype: torch.dtype = torch.float32,
    on_frames: Callable[[Tensor], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Tensor | None:
    """Decode normalised latents.

    latents: [1, 24, F, H/16, W/16], F = 5n+2, any float dtype.
    root: `post_quant_conv.*`, `proj_in.*`, `register_tokens`, `norm_out.*`, `proj_out.*`, on the
    device that does the work. blocks: called (or iterated) once a group of clips; gives block i's
    tensors, which may die with the next one. tile_px, overlap_px: (height, width) or one for both.

    With `on_frames`, hands over uint8 [frames, H, W, 3] on the device, clip by clip, 17n+5 frames
    in all, and returns None. Without, returns float32 [1, 3, 17n+5, H, W] in the model's own
    colour space (ImageNet-normalised, not clamped). Raises RequestError for a shape that is no
    video, Cancelled("decode") at a block border.
    """
    layout = _Layout.plan(latents, config, tile_px, overlap_px, tiled)
    device = root["proj_in.weight"].device
    tables = rope_tables(layout.tile_shape, config, device)
    seams = Seams.of(layout.tall, layout.wide, device)
    raw = denormalise(latents.to(device, torch.float32), config)
    parts: list[Tensor] = []
    emit = _RawOutput(parts) if on_frames is None else _PixelOutput(on_frames, device)
    held: list[Tensor] = []
    for first in range(0, layout.clips, clips_per_group):
        group = range(first, min(first + clips_per_group, layout.clips))
        streams = [embed_tiles(layout.clip_tiles(raw, clip), root, config) for clip in group]
        count = 0
        for block in blocks() if callable(blocks) else blocks:
            if is_cancelled is not None and is_cancelled():
                raise Cancelled("decode")
            for stream in streams:
                for rows in stream.split(TILE_BATCH):
                    apply_block(rows, block, tables, config, compute_dtype)
            count += 1
        if count != config.blocks:
            raise CheckpointError(
                "the decoder's stack ended early", expected=f"{config.blocks} blocks", found=count
            )
        for stream in streams:
            held = _finish_clip(stream, held, root, layout, seams, compute_dtype, emit)
        del streams
    for frame in held:
        emit.add(frame)
    emit.flush()
    return torch.cat(parts, dim=1).unsqueeze(0) if on_frames is None else None


@dataclass(frozen=True)
class _Layout:
    """Tiles and clips of one video, in pixels; latents are `stride_px` times coarser."""

    config: VideoVaeConfig
    clips: int
    tall: Axis
    wide: Axis

    @classmethod
    def plan(
        cls,
        latents: Tensor,
        config: VideoVaeConfig,
        tile_px: int | tuple[int, int],
        overlap_px: int | tuple[int, int],
        tiled: bool,
    ) -> _Layout:
        if latents.ndim != 5 or latents.shape[0] != 1 or latents.shape[1] != config.latent_channels:
            raise RequestError(
                f"video latents have shape {tuple(latents.shape)}, "
                f"need [1, {config.latent_channels}, F, H, W]"
            )
        sides = [side * config.stride_px for side in latents.shape[3:]]
        sizes = _pair(tile_px) if tiled else tuple(sides)
        overlaps = _pair(overlap_px) if tiled else (0, 0)
        tall, wide = (
            split_axis(*item, config.stride_px) for item in zip(sides, sizes, overlaps, strict=True)
        )
        return cls(config, config.clip_rule.clips(latents.shape[2]), tall, wide)

    @property
    def tile_shape(self) -> tuple[int, int, int]:
        """Latents of a tile of a clip: time, height, width."""
        step = self.config.stride_px
        return self.config.clip_rule.clip_latents, self.tall.size // step, self.wide.size // step

    def clip_tiles(self, raw: Tensor, clip: int) -> Tensor:
        """The tiles of a clip of raw latents [1, 24, F, H, W]: [tiles, 24, 7, h, w]."""
        rule, step = self.config.clip_rule, self.config.stride_px
        start = clip * rule.stride_latents
        z = raw[0, :, start : start + rule.clip_latents]
        _, high, broad = self.tile_shape
        return torch.stack(
            [
                z[:, :, top // step : top // step + high, left // step : left // step + broad]
                for top in self.tall.starts
                for left in self.wide.starts
            ]
        )


class _RawOutput:
    """Keeps frames as they are: the form of the golden files."""

    def __init__(self, parts: list[Tensor]) -> None:
        self._parts = parts

    def add(self, frame: Tensor) -> None:
        """frame: [3, H, W] float32."""
        self._parts.append(frame[:, None].clone())

    def flush(self) -> None:
        """End of a clip."""


class _PixelOutput:
    """Turns frames into bytes one at a time, and hands them over a clip at a time."""

    def __init__(self, on_frames: Callable[[Tensor], None], device: torch.device) -> None:
        self._on_frames = on_frames
        self._to_bytes = PixelBytes(device)
        self._frames: list[Tensor] = []

    def add(self, frame: Tensor) -> None:
        """frame: [3, H, W] float32."""
        self._frames.append(self._to_bytes(frame[:, None])[0])

    def flush(self) -> None:
        """End of a clip."""
        if self._frames:
            self._on_frames(torch.stack(self._frames))
        self._frames.clear()


def _finish_clip(
    stream: Tensor,
    held: list[Tensor],
    root: Mapping[str, Tensor],
    layout: _Layout,
    seams: Seams,
    compute_dtype: torch.dtype,
    emit: _RawOutput | _PixelOutput,
) -> list[Tensor]:
    """Emit the frames of one clip; returns the frames [3, H, W] to fade into the next clip.

    One latent frame at a time, so that no more than four full frames exist in tiles.
    """
    rule = layout.config.clip_rule
    decoded: Tensor | None = None
    loaded, kept = -1, []
    for item in rule.decoded_frames():
        latent, offset = divmod(item.frame, rule.frames_per_latent)
        if latent != loaded:
            decoded = _latent_frame(stream, latent, root, layout, seams, compute_dtype)
            loaded = latent
        assert decoded is not None
        frame = decoded[:, offset]
        if item.held:
            kept.append(frame.clone())
            continue
        if held and item.position < rule.fade_frames:
            share = item.position / rule.fade_frames
            frame = held[item.position] * (1 - share) + frame * share
        emit.add(frame)
    emit.flush()
    return kept


def _latent_frame(
    stream: Tensor,
    latent: int,
    root: Mapping[str, Tensor],
    layout: _Layout,
    seams: Seams,
    compute_dtype: torch.dtype,
) -> Tensor:
    """The frames of latent frame `latent` of a clip, tiles stitched: [3, 4, H, W] float32."""
    config = layout.config
    _, high, broad = layout.tile_shape
    rows = stream[:, latent * high * broad : (latent + 1) * high * broad]
    y = F.layer_norm(
        rows,
        rows.shape[-1:],
        root["norm_out.weight"].float(),
        root["norm_out.bias"].float(),
        config.decoder_eps,
    ).to(compute_dtype)
    y = linear(y, root, "proj_out")
    step, frames = config.stride_px, config.clip_rule.frames_per_latent
    tiles = (layout.tall.tiles, layout.wide.tiles)
    y = y.view(*tiles, high, broad, config.pixel_channels, frames, step, step)
    # -> channels, frames, (tile row, latent row, pixel row), (the same for columns)
    sheet = y.permute(4, 5, 0, 2, 6, 1, 3, 7).reshape(
        config.pixel_channels, frames, tiles[0] * high * step, tiles[1] * broad * step
    )
    return seams.stitch(sheet)


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value
