"""Captions as rows of the miniature's text encoder, for whole batches on the device."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import Tensor

from lowpeak.engine.text.encoder import TAG_TEXT, TAG_VISION
from lowpeak.engine.text.toy import (
    GRID,
    VISION_END,
    VISION_START,
    ToyTextEncoder,
    pieces,
    write_toy_text_encoder,
)

from . import data
from .models import MODEL, TEXT_SEED


class Words:
    """Rows of every caption the grammar knows, and of a keyframe's vision block."""

    def __init__(self, device: torch.device) -> None:
        with tempfile.TemporaryDirectory() as folder:
            write_toy_text_encoder(Path(folder), text_dim=MODEL.text_dim, seed=TEXT_SEED)
            self.encoder = ToyTextEncoder.open(Path(folder))
        self.device = device
        # as the exported file holds them
        self.encoder._table = self.encoder._table.bfloat16().float()
        self.encoder._colours = self.encoder._colours.bfloat16().float()
        self.table = self.encoder._table.to(device)
        self.colours = self.encoder._colours.to(device)
        axes = (len(data.COLOURS), len(data.SHAPES), len(data.MOTIONS), len(data.BACKGROUNDS))
        grid = torch.cartesian_prod(*(torch.arange(n) for n in axes))
        still = torch.zeros(len(grid))
        scenes = data.Scenes(*grid.unbind(1), still, still)
        self.rows = [
            torch.stack(
                [self.encoder.encode(scenes.caption(i, t)).embeds for i in range(len(grid))]
            ).to(device)
            for t in range(len(data.TEMPLATES))
        ]
        self.axes = axes

    def captions(self, scenes: data.Scenes, template: int) -> Tensor:
        """[N, rows, text_dim] of the scenes' captions."""
        number = scenes.colour
        for axis, part in zip(
            self.axes[1:], (scenes.shape, scenes.motion, scenes.background), strict=True
        ):
            number = number * axis + part
        return self.rows[template][number]

    def pictures(self, grids: Tensor) -> tuple[Tensor, list[int]]:
        """Rows and tags of the vision blocks of K pictures. grids: [N, K, 16, 3] in -1..1."""
        rows, tags = [], []
        for number in range(grids.shape[1]):
            label = [self.encoder._vector(p) for p in pieces(f"Picture {number + 1}: ")]
            ends = [self.encoder._vector(VISION_START), self.encoder._vector(VISION_END)]
            fixed = torch.stack([*label, *ends]).to(self.device).expand(len(grids), -1, -1)
            rows += [fixed[:, :-1], grids[:, number] @ self.colours, fixed[:, -1:]]
            tags += [TAG_TEXT] * len(label) + [TAG_VISION] * (2 + GRID * GRID)
        return torch.cat(rows, 1), tags


def picture_grid(frames: Tensor) -> Tensor:
    """[N, 3, H, W] in 0..1 to the mean colours [N, 16, 3] in -1..1 that the encoder takes."""
    pooled = torch.nn.functional.adaptive_avg_pool2d(frames * 2 - 1, GRID)
    return pooled.flatten(2).transpose(1, 2)
