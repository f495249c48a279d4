"""Which frames see which: windows of the softmax branch (facts: model sheet b.3). Pure integers.

Frames come in chunks of `chunk`; a frame sees its own chunk and `radius` chunks on each side.
With chunk 0 (frame mode) every frame is its own group and sees `radius` frames on each side.
Anchors are the first and the last frame: as columns they are seen by everybody, as rows they see
everything. Rows outside the target video are global and take no part here.
"""

from __future__ import annotations

from dataclasses import dataclass

from .config import VdnConfig


@dataclass(frozen=True)
class KeySet:
    """What the queries of one group see, besides the global rows. Frame numbers, ends included.

    queries, window: (first, last). first_anchor, last_anchor: whether frame 0 or F-1 has to be
    added, because it is a column and lies outside the window.
    """

    queries: tuple[int, int]
    window: tuple[int, int]
    first_anchor: bool
    last_anchor: bool


@dataclass(frozen=True)
class Windows:
    """The windows of a clip of `frames` latent frames. anchors: both, none, columns or rows."""

    frames: int
    chunk: int = 5
    radius: int = 1
    anchors: str = "both"

    @classmethod
    def of(cls, config: VdnConfig, frames: int) -> Windows:
        """The windows a configuration gives a clip of `frames` latent frames."""
        return cls(frames, config.chunk, config.radius, config.anchors)

    @property
    def group(self) -> int:
        """Frames which share a window."""
        return self.chunk or 1

    @property
    def groups(self) -> int:
        """How many groups there are; the last may be short."""
        return -(-self.frames // self.group)

    @property
    def anchor_frames(self) -> frozenset[int]:
        """First and last frame."""
        return frozenset({0, self.frames - 1})

    @property
    def columns(self) -> frozenset[int]:
        """Frames that every frame sees."""
        return self.anchor_frames if self.anchors in ("both", "columns") else frozenset()

    @property
    def dense(self) -> frozenset[int]:
        """Frames that see everything."""
        return self.anchor_frames if self.anchors in ("both", "rows") else frozenset()

    @property
    def full_cover(self) -> bool:
        """Every window covers the whole clip, anchors not counted: then attention is plain."""
        bounds = [self.raw_bounds(frame) for frame in range(self.frames)]
        return all(low <= 0 and high >= self.frames - 1 for low, high in bounds)

    def raw_bounds(self, frame: int) -> tuple[int, int]:
        """First and last frame of a window, possibly outside the clip."""
        index = frame // self.group
        low = self.group * (index - self.radius)
        return low, self.group * (index + self.radius + 1) - 1

    def bounds(self, frame: int) -> tuple[int, int]:
        """First and last frame of a window, clamped to the clip."""
        low, high = self.raw_bounds(frame)
        return max(0, low), min(self.frames - 1, high)

    def key_set(self, index: int) -> KeySet:
        """What the frames of group `index` see. Frames in `dense` see everything instead."""
        first = index * self.group
        low, high = self.bounds(first)
        return KeySet(
            queries=(first, min(self.frames, first + self.group) - 1),
            window=(low, high),
            first_anchor=0 in self.columns and low > 0,
            last_anchor=self.frames - 1 in self.columns and high < self.frames - 1,
        )

    def sees(self, query: int, key: int) -> bool:
        """Whether a row of frame `query` attends to a row of frame `key`."""
        low, high = self.bounds(query)
        return low <= key <= high or query in self.dense or key in self.columns

    def mask(self) -> list[list[bool]]:
        """`sees` as a table [F][F], queries first."""
        frames = range(self.frames)
        return [[self.sees(query, key) for key in frames] for query in frames]
