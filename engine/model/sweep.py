"""What both sweeps of a block share: sizes, operations, and tables that live for a whole pass.

Two partitions of the video rows. A chunk has one window, so attention and states go by chunks. A
group is some consecutive chunks, about as many rows as fill a card's products whatever the picture:
norms, products, convolutions, statistics and scans go by groups. Both are part of the model's
arithmetic (engine.geometry.grouped_chunks).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

from ..geometry import CHUNK_FRAMES, grouped_chunks
from .config import ModelConfig, VdnConfig

# Rows of a feed-forward tile. Part of the model's arithmetic, not of a plan: a plan that changed
# GEMM shapes would change the last bits (design: chunk-major.md, the rule).
FFN_TILE_ROWS = 2560
FOLD_CHUNKS = 3  # chunks whose keys the dense rows attend to at once, where a group has fewer


@dataclass(frozen=True)
class SweepContext:
    """One pass over one sequence.

    global_rows: G, rows before the target video. text: the text rows. frames F, grid (h, w).
    rows: int32 [N], AdaLN table row of each packed row. cos, sin: float32 [N, R/2].
    ops: kernels.reference or kernels.triton. dtype: of x, keys and values. beside: work that waits
    for nothing on the main stream runs on streams of its own, for more memory; order only.
    """

    config: ModelConfig
    ops: ModuleType
    device: torch.device
    dtype: torch.dtype
    global_rows: int
    text: slice
    frames: int
    grid: tuple[int, int]
    rows: Tensor
    cos: Tensor
    sin: Tensor
    beside: bool = False

    @property
    def tokens(self) -> int:
        """S."""
        return self.grid[0] * self.grid[1]

    @property
    def total_rows(self) -> int:
        """N."""
        return self.global_rows + self.frames * self.tokens

    @property
    def heads(self) -> int:
        """H."""
        return self.config.heads

    @property
    def head_dim(self) -> int:
        """D."""
        return self.config.head_dim

    @property
    def vdn(self) -> VdnConfig:
        """The hybrid attention's switches."""
        assert self.config.vdn is not None
        return self.config.vdn

    @property
    def chunk(self) -> int:
        """Latent frames of a chunk."""
        return CHUNK_FRAMES if self.config.vdn is None else self.config.vdn.chunk

    @property
    def chunks(self) -> int:
        """How many chunks the clip has."""
        return -(-self.frames // self.chunk)

    @property
    def full_cover(self) -> bool:
        """True when every window covers the clip: plain attention, no linear branch (sheet b.3)."""
        return self.config.vdn is None or self.frames <= 2 * self.chunk

    def chunk_frames(self, index: int) -> tuple[int, int]:
        """First frame of a chunk and the one after its last."""
        return index * self.chunk, min(self.frames, (index + 1) * self.chunk)

    def chunk_rows(self, index: int) -> slice:
        """Packed rows of a chunk."""
        low, high = self.chunk_frames(index)
        return slice(self.global_rows + low * self.tokens, self.global_rows + high * self.tokens)

    @property
    def grouped(self) -> int:
        """Chunks of a group."""
        return min(self.chunks, grouped_chunks(self.tokens, self.chunk))

    @property
    def groups(self) -> int:
        """How many groups the clip has; the last may be short."""
        return -(-self.chunks // self.grouped)

    @property
    def fold_groups(self) -> int:
        """Groups whose keys the dense rows attend to at once in the write sweep."""
        return max(1, FOLD_CHUNKS // self.grouped)

    def group_chunks(self, index: int) -> range:
        """The chunks of a group."""
        return range(index * self.grouped, min(self.chunks, (index + 1) * self.grouped))

    def group_frames(self, index: int) -> tuple[int, int]:
        """First frame of a group and the one after its last."""
        chunks = self.group_chunks(index)
        return self.chunk_frames(chunks[0])[0], self.chunk_frames(chunks[-1])[1]

    def group_rows(self, index: int) -> slice:
        """Packed rows of a group."""
        chunks = self.group_chunks(index)
        return slice(self.chunk_rows(chunks[0]).start, self.chunk_rows(chunks[-1]).stop)

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> Tensor:
        """An uninitialised buffer on the pass's device."""
        return torch.empty(shape, dtype=dtype or self.dtype, device=self.device)
