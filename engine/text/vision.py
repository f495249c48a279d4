"""Qwen3-VL's vision tower: one picture to rows of the language model's width.

A picture is cut into patches; the `merge` x `merge` patches of a cell stand together, because a
cell becomes one row. Positions are twofold: a learned square table, resampled to the picture's
grid, and rotary angles by row and column. Besides the merged output, the output of some blocks
(taps) goes through mergers of their own and is added to the first layers of the language model.
Blocks arrive one at a time: `block(i)` gives a block's linear and norms, dead at the next call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ..errors import RequestError
from .qwen_config import VisionConfig
from .qwen_language import Linear, rotate

MIN_PIXELS, MAX_PIXELS = 3136, 12_845_056  # facts: FreeVideo sheet 9
# Of all frames of a video together: Qwen3-VL's published video preprocessor.
MIN_VIDEO_PIXELS, MAX_VIDEO_PIXELS = 4096, 25_165_824
MAX_ASPECT = 200
QUERY_ROWS = 2048

Part = tuple[Linear, Mapping[str, Tensor]]  # linears by name, and every other tensor


@dataclass(frozen=True)
class Patches:
    """A picture ready for the tower. pixels: [rows*columns, 3*frames*patch*patch] in -1..1, cell by
    cell; rows, columns: patches."""

    pixels: Tensor
    rows: int
    columns: int


@dataclass(frozen=True)
class PictureRows:
    """What a picture becomes. rows: [n, C]; taps: one [n, C] for each of the first layers; height,
    width: cells, n = height * width."""

    rows: Tensor
    taps: tuple[Tensor, ...]
    height: int
    width: int


def fit_size(
    height_px: int, width_px: int, factor: int, *, of_frames: int = 1, temporal: int = 2
) -> tuple[int, int]:
    """The size a picture is resized to: multiples of `factor`, MIN_PIXELS..MAX_PIXELS, aspect kept.

    Canvases are multiples of 32 within the range already, so a keyframe keeps its size. of_frames:
    frames of a video, which share one budget; temporal: how many make a patch.
    """
    least, most = MIN_PIXELS, MAX_PIXELS
    frames = counted = of_frames
    if of_frames > 1:
        least, most = MIN_VIDEO_PIXELS, MAX_VIDEO_PIXELS
        counted = round(of_frames / temporal) * temporal
    if max(height_px, width_px) > MAX_ASPECT * min(height_px, width_px):
        raise RequestError(
            f"a picture of {width_px}x{height_px} is too narrow: one side may be {MAX_ASPECT} "
            "times the other",
            field="first_frame",
        )
    height, width = (round(side / factor) * factor for side in (height_px, width_px))
    if counted * height * width > most:
        shrink = (frames * height_px * width_px / most) ** 0.5
        height, width = (
            max(factor, int(side / shrink / factor) * factor) for side in (height_px, width_px)
        )
    elif counted * height * width < least:
        grow = (least / (frames * height_px * width_px)) ** 0.5
        height, width = (-int(-side * grow // factor) * factor for side in (height_px, width_px))
    return height, width


def fitted(
    image: Tensor, config: VisionConfig, of_frames: int = 1
) -> tuple[Tensor, tuple[int, int]]:
    """Frames [t, height, width, 3] and the size they will be cut at. Raises RequestError."""
    frames = image[None] if image.ndim == 3 else image
    if (
        frames.ndim != 4
        or frames.shape[3] != 3
        or frames.dtype != torch.uint8
        or not frames.numel()
        or frames.shape[0] > config.frames
    ):
        raise RequestError(
            f"a picture must be [height, width, 3] uint8, not {tuple(image.shape)} {image.dtype}",
            field="first_frame",
        )
    sides = int(frames.shape[1]), int(frames.shape[2])
    factor = config.patch * config.merge
    return frames, fit_size(*sides, factor, of_frames=of_frames, temporal=config.frames)


def cut_patches(image: Tensor, config: VisionConfig, *, of_frames: int = 1) -> Patches:
    """image: [height, width, 3] uint8, or [t, height, width, 3] with at most `config.frames`, the
    last of which fills up. of_frames: see `fit_size`. Raises RequestError for anything else."""
    frames, (height, width) = fitted(image, config, of_frames)
    pixels = frames.permute(0, 3, 1, 2)
    if (height, width) != tuple(frames.shape[1:3]):
        pixels = functional.interpolate(pixels, (height, width), mode="bicubic", antialias=True)
    pixels = (pixels.float() / 255 - 0.5) / 0.5
    missing = config.frames - pixels.shape[0]
    pixels = torch.cat([pixels, pixels[-1:].expand(missing, -1, -1, -1)])
    rows, columns, merge = height // config.patch, width // config.patch, config.merge
    cells = pixels.reshape(
        config.frames, 3, rows // merge, merge, config.patch, columns // merge, merge, config.patch
    ).permute(2, 5, 3, 6, 1, 0, 4, 7)
    return Patches(cells.reshape(rows * columns, -1), rows, columns)


def patch_grid(patches: Patches, merge: int) -> Tensor:
    """Row and column of every patch, cell by cell: [2, rows*columns] int64."""
    grid = torch.stack(
        torch.meshgrid(torch.arange(patches.rows), torch.arange(patches.columns), indexing="ij")
    )
    cells = grid.view(2, patches.rows // merge, merge, patches.columns // merge, merge)
    return cells.transpose(2, 3).reshape(2, -1)


def learned_positions(table: Tensor, grid: Tensor, size: tuple[int, int]) -> Tensor:
    """The square table at every patch, linear between its entries, corners on corners.

    table: [side*side, C]; grid: [2, n]; size: patches along each axis. Returns [n, C] fp32.
    """
    side = round(table.shape[0] ** 0.5)
    near, weights = [], []
    for index, count in zip(grid, size, strict=True):
        place = index.float() * (side - 1) / max(count - 1, 1)
        low = place.floor().long()
        share = place - low
        near.append((low, (low + 1).clamp(max=side - 1)))
        weights.append((1 - share, share))
    total = torch.zeros(grid.shape[1], table.shape[1], device=table.device)
    for row, row_weight in zip(near[0], weights[0], strict=True):
        for column, weight in zip(near[1], weights[1], strict=True):
            entries = table[row * side + column].float()
            total += entries * (row_weight * weight)[:, None]
    return total


def vision_rotary(grid: Tensor, config: VisionConfig) -> Tensor:
    """cos and sin: [2, n, head_dim] fp32; a quarter of a head follows rows, a quarter columns."""
    spatial = config.hidden // config.heads // 2
    steps = torch.arange(0, spatial, 2, dtype=torch.float32, device=grid.device)
    frequency = 1.0 / config.rope_base ** (steps / spatial)
    angles = (grid[..., None].float() * frequency).permute(1, 0, 2).flatten(1)
    angles = torch.cat((angles, angles), dim=-1)
    return torch.stack((angles.cos(), angles.sin()))


def layer_norm(x: Tensor, tensors: Mapping[str, Tensor], name: str, eps: float) -> Tensor:
    """LayerNorm over the last axis by `name`.weight and `name`.bias."""
    weight, bias = (tensors[f"{name}.{end}"].to(x.dtype) for end in ("weight", "bias"))
    return functional.layer_norm(x, weight.shape, weight, bias, eps)


def vision_block(x: Tensor, part: Part, config: VisionConfig, tables: Tensor) -> Tensor:
    """One block over the patches of one picture. x: [n, C]; every patch sees every other."""
    linear, tensors = part
    rows = x.shape[0]
    q, k, v = (
        linear("attn.qkv", layer_norm(x, tensors, "norm1", config.eps))
        .view(rows, 3, config.heads, -1)
        .unbind(1)
    )
    q, k = (rotate(side.float(), tables).to(x.dtype) for side in (q, k))
    keys, values = k.transpose(0, 1)[None], v.transpose(0, 1)[None]
    found = torch.empty_like(q)
    for start in range(0, rows, QUERY_ROWS):
        some = q[start : start + QUERY_ROWS].transpose(0, 1)[None]
        out = functional.scaled_dot_product_attention(some, keys, values)
        found[start : start + QUERY_ROWS] = out[0].transpose(0, 1)
    x = x + linear("attn.proj", found.reshape(rows, -1))
    inner = linear("mlp.linear_fc1", layer_norm(x, tensors, "norm2", config.eps))
    return x + linear("mlp.linear_fc2", functional.gelu(inner, approximate="tanh"))


def merge_cells(x: Tensor, part: Part, config: VisionConfig, *, norm_first: bool) -> Tensor:
    """Patches [n*cell, C] to rows [n, out]. norm_first: normalise patches, else whole cells."""
    linear, tensors = part
    wide = x.shape[1] * config.cell
    if norm_first:
        x = layer_norm(x, tensors, "norm", config.eps).view(-1, wide)
    else:
        x = layer_norm(x.view(-1, wide), tensors, "norm", config.eps)
    return linear("linear_fc2", functional.gelu(linear("linear_fc1", x)))


def see(
    patches: Patches,
    part: Callable[[str], Part],
    config: VisionConfig,
    *,
    device: torch.device,
    dtype: torch.dtype,
) -> PictureRows:
    """Rows of one picture, or of one moment of a video, whose frames see no other moment.

    part: what lies behind a prefix: "" for the root, "blocks.3.", "merger.",
    "deepstack_merger_list.0.".
    """
    grid = patch_grid(patches, config.merge).to(device)
    _, root = part("")
    kernel = root["patch_embed.proj.weight"].flatten(1).to(dtype)
    x = functional.linear(
        patches.pixels.to(device, dtype), kernel, root["patch_embed.proj.bias"].to(dtype)
    )
    table = root["pos_embed.weight"]
    x = x + learned_positions(table, grid, (patches.rows, patches.columns)).to(dtype)
    tables = vision_rotary(grid, config)
    taps: list[Tensor] = []
    for index in range(config.blocks):
        x = vision_block(x, part(f"blocks.{index}."), config, tables)
        if index in config.taps:
            merger = part(f"deepstack_merger_list.{config.taps.index(index)}.")
            taps.append(merge_cells(x, merger, config, norm_first=False))
    rows = merge_cells(x, part("merger."), config, norm_first=True)
    return PictureRows(
        rows, tuple(taps), patches.rows // config.merge, patches.columns // config.merge
    )
