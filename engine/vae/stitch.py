"""Tiles to a whole frame: linear fade against the raw neighbour (facts: model sheet e.5, k.8).

A tile is faded in over its overlap with the tile above, then with the tile to its left, always
against that neighbour's raw values, and written where it is the one to keep:

    out = share_x (share_y own + (1 - share_y) above) + (1 - share_x) beside

Shares add up to one everywhere, corners included, so equal tiles compose to themselves. Written as
gathers over a whole frame: a loop over tiles would spend more time launching than computing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .tiles import Axis


@dataclass(frozen=True)
class Lines:
    """For every position of one axis, where its values lie in the tiles laid end to end.

    own, neighbour: [length] int64; share: [length] float32, the tile's own part.
    """

    own: Tensor
    neighbour: Tensor
    share: Tensor

    @classmethod
    def of(cls, axis: Axis, device: torch.device) -> Lines:
        """The lines of `axis`, on `device`."""
        own, neighbour, share = [], [], []
        for tile in range(axis.tiles):
            fade = axis.fade(tile)
            for position in range(*axis.kept(tile)):
                inside = position - axis.starts[tile]
                own.append(tile * axis.size + inside)
                fading = inside < fade
                before = (tile - 1) * axis.size + position - axis.starts[tile - 1]
                neighbour.append(before if fading else own[-1])
                share.append(inside / fade if fading else 1.0)
        return cls(
            torch.tensor(own, device=device),
            torch.tensor(neighbour, device=device),
            torch.tensor(share, dtype=torch.float32, device=device),
        )


@dataclass(frozen=True)
class Seams:
    """How the tiles of a frame become the frame."""

    tall: Axis
    wide: Axis
    rows: Lines
    columns: Lines

    @classmethod
    def of(cls, tall: Axis, wide: Axis, device: torch.device) -> Seams:
        """Made once for a layout."""
        return cls(tall, wide, Lines.of(tall, device), Lines.of(wide, device))

    def stitch(self, sheet: Tensor) -> Tensor:
        """sheet: [..., tile rows * tile height, tile columns * tile width], tiles laid end to end.

        Returns [..., H, W] float32.
        """
        if self.tall.tiles == self.wide.tiles == 1:
            return sheet.float()
        lines = sheet.index_select(-2, self.rows.own)
        result = lines.index_select(-1, self.columns.own).float()
        if self.tall.tiles > 1:
            above = sheet.index_select(-2, self.rows.neighbour).index_select(-1, self.columns.own)
            share = self.rows.share[:, None]
            result = above.float().mul_(1 - share).add_(result.mul_(share))
        if self.wide.tiles > 1:
            beside = lines.index_select(-1, self.columns.neighbour)
            share = self.columns.share
            result = beside.float().mul_(1 - share).add_(result.mul_(share))
        return result


def stitch_tiles(tiles: Tensor, tall: Axis, wide: Axis) -> Tensor:
    """tiles: [rows * columns, ..., tile height, tile width], row by row. Returns [..., H, W]."""
    grid = tiles.unflatten(0, (tall.tiles, wide.tiles))
    # [rows, columns, ..., h, w] -> [..., rows, h, columns, w]
    sheet = grid.movedim((0, 1), (-4, -2)).flatten(-4, -3).flatten(-2)
    return Seams.of(tall, wide, tiles.device).stitch(sheet)
