"""Where the tiles of a frame and the clips of a video lie. Pure integers, standard library only.

The autoencoder was trained on 256-pixel tiles and 17-frame clips, and positions inside its decoder
are relative to the tile, so this layout is part of the model and no memory knob (facts: model
sheet e.4, e.5). A tile keeps the pixels from its start to the next tile's start; over the overlap
with its predecessor it is faded in linearly against that predecessor's raw pixels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import RequestError

TILE_PX = 256
TILE_OVERLAP_PX = 64
TILE_STEP_PX = 16  # one latent: every border lies on the latent grid


@dataclass(frozen=True)
class Axis:
    """Tiles along one axis, in `unit`-free integers: pixels, or latents after `scaled_down`.

    starts: first position of every tile; size: extent of every tile;
    overlaps[i]: shared extent of tile i and tile i + 1.
    """

    length: int
    size: int
    starts: tuple[int, ...]
    overlaps: tuple[int, ...]

    def __post_init__(self) -> None:
        assert self.starts[0] == 0 and self.starts[-1] + self.size == self.length
        assert len(self.overlaps) == len(self.starts) - 1

    @property
    def tiles(self) -> int:
        """How many tiles."""
        return len(self.starts)

    def kept(self, tile: int) -> tuple[int, int]:
        """[first, last) position of the result that `tile` writes."""
        last = self.starts[tile + 1] if tile + 1 < self.tiles else self.length
        return self.starts[tile], last

    def fade(self, tile: int) -> int:
        """Extent, from the tile's start, over which it is faded in; 0 for the first tile."""
        return self.overlaps[tile - 1] if tile else 0

    def scaled_down(self, factor: int) -> Axis:
        """The same tiles on a grid `factor` times coarser."""
        if any(v % factor for v in (self.length, self.size, *self.starts, *self.overlaps)):
            raise RequestError(f"tiles of {self.length} do not lie on a grid of {factor}")
        return Axis(
            self.length // factor,
            self.size // factor,
            tuple(v // factor for v in self.starts),
            tuple(v // factor for v in self.overlaps),
        )


def split_axis(
    length_px: int,
    tile_px: int = TILE_PX,
    overlap_px: int = TILE_OVERLAP_PX,
    step_px: int = TILE_STEP_PX,
) -> Axis:
    """The fewest tiles which cover `length_px` with at least `overlap_px` between neighbours.

    The slack goes to the overlaps in turn, `step_px` at a time (facts e.5). An axis that is not
    longer than a tile is one tile of its own length. Raises RequestError off the grid.
    """
    if length_px <= 0 or length_px % step_px:
        raise RequestError(f"{length_px} px is not a positive multiple of {step_px} px")
    if not 0 <= overlap_px < tile_px or tile_px % step_px or overlap_px % step_px:
        raise RequestError(
            f"tiles of {tile_px} px with {overlap_px} px of overlap are not on a {step_px} px grid"
        )
    if length_px <= tile_px:
        return Axis(length_px, length_px, (0,), ())
    advance_px = tile_px - overlap_px
    joints = -(-(length_px - tile_px) // advance_px)
    slack_steps = (joints * advance_px + tile_px - length_px) // step_px
    each, extra = divmod(slack_steps, joints)
    overlaps = tuple(overlap_px + step_px * (each + (i < extra)) for i in range(joints))
    starts = [0]
    for overlap in overlaps:
        starts.append(starts[-1] + tile_px - overlap)
    return Axis(length_px, tile_px, tuple(starts), overlaps)


@dataclass(frozen=True)
class ClipRule:
    """How time is cut (facts e.4), from the clip length, the latents dropped, and the time stride.

    17 frames, 3 and 4 give: 5 new latents a clip, 2 shared with the next, 3 frames of padding in
    front of a clip's first frame, 5 frames cross-faded between clips.
    """

    clip_frames: int = 17
    latents_dropped: int = 3
    frames_per_latent: int = 4

    @property
    def stride_latents(self) -> int:
        """New latents of a clip."""
        return -(-self.clip_frames // self.frames_per_latent)

    @property
    def shared_latents(self) -> int:
        """Latents which a clip shares with the next."""
        return -self.latents_dropped % self.stride_latents

    @property
    def clip_latents(self) -> int:
        """Latents that the decoder sees at once."""
        return self.stride_latents + self.shared_latents

    @property
    def padding_frames(self) -> int:
        """Frames in front of each stride which stand for no time."""
        return -self.clip_frames % self.frames_per_latent

    @property
    def fade_frames(self) -> int:
        """Frames cross-faded with the next clip."""
        return max(self.shared_latents * self.frames_per_latent - self.padding_frames, 0)

    def clips(self, latent_frames: int) -> int:
        """Clips of a video of `latent_frames`. RequestError unless it is whole clips."""
        clips, rest = divmod(latent_frames - self.shared_latents, self.stride_latents)
        if clips < 1 or rest:
            raise RequestError(
                f"{latent_frames} latent frames are not {self.stride_latents}n"
                f"+{self.shared_latents} with n >= 1",
                field="frames",
            )
        return clips

    def frames(self, latent_frames: int) -> int:
        """Pixel frames decoded from `latent_frames`."""
        return self.clips(latent_frames) * self.clip_frames + self.fade_frames

    def decoded_frames(self) -> Iterator[DecodedFrame]:
        """Which of a clip's decoded frames are used, in order, and as what."""
        stride_frames = self.stride_latents * self.frames_per_latent
        for frame in range(self.clip_latents * self.frames_per_latent):
            part, offset = divmod(frame, stride_frames)
            position = offset - self.padding_frames
            if position >= 0:
                yield DecodedFrame(frame, position, held=part > 0)


@dataclass(frozen=True)
class DecodedFrame:
    """Frame `frame` of a decoded clip is number `position` of the clip's own frames, or, when it
    is `held`, number `position` of those kept to be faded into the next clip."""

    frame: int
    position: int
    held: bool
