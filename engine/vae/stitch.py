"""Tiles to a whole frame: linear fade against the raw neighbour (facts: model sheet e.5, k.8).

A tile is faded in over its overlap with the tile above, then with the tile to its left, always
against that neighbour's raw values, and written where it is the one to keep. Shares add up to one
everywhere, corners included, so equal tiles compose to themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .tiles import Axis


def stitch_tiles(tiles: Tensor, tall: Axis, wide: Axis) -> Tensor:
    """tiles: [rows * columns, ..., tile height, tile width], row by row. Returns [..., H, W]."""
    if tall.tiles == wide.tiles == 1:
        return tiles[0]
    down, across = _shares(tall, tiles), _shares(wide, tiles)
    result = tiles.new_empty(*tiles.shape[1:-2], tall.length, wide.length)
    for row in range(tall.tiles):
        top, bottom = tall.kept(row)
        for column in range(wide.tiles):
            left, right = wide.kept(column)
            tile = tiles[row * wide.tiles + column]
            part = tile[..., : bottom - top, : right - left]
            fade = min(tall.fade(row), bottom - top)
            if fade:
                above = tiles[(row - 1) * wide.tiles + column]
                above = above[..., top - tall.starts[row - 1] :, : right - left][..., :fade, :]
                share = down[row][:fade, None]
                part = torch.cat(
                    [above * (1 - share) + part[..., :fade, :] * share, part[..., fade:, :]], dim=-2
                )
            fade = min(wide.fade(column), right - left)
            if fade:
                beside = tiles[row * wide.tiles + column - 1]
                beside = beside[..., : bottom - top, left - wide.starts[column - 1] :][..., :fade]
                share = across[column][:fade]
                part = torch.cat(
                    [beside * (1 - share) + part[..., :fade] * share, part[..., fade:]], dim=-1
                )
            result[..., top:bottom, left:right] = part
    return result


def _shares(axis: Axis, like: Tensor) -> list[Tensor]:
    """A tile's own share at every position of its fade-in."""
    return [
        torch.arange(axis.fade(tile), device=like.device, dtype=like.dtype)
        / max(axis.fade(tile), 1)
        for tile in range(axis.tiles)
    ]
