"""Sizes of a clip, from pixels to packed rows. Pure integers, no torch.

24 frames a second; pixel frames 17n+5 are latent frames 5n+2; one latent is 16 x 16 pixels and one
token 2 x 2 latents, so a canvas lies on a 32-pixel grid. Audio has 40 latents a second and two
channels (facts: model sheet a.4, a.5, a.10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .errors import RequestError

FRAMES_PER_SECOND = 24
AUDIO_LATENTS_PER_SECOND = 40
AUDIO_SAMPLE_RATE_HZ = 32_000
SPATIAL_STRIDE_PX = 16
CANVAS_STEP_PX = 32
CHUNK_FRAMES = 5  # latent frames of a window chunk; part of the model
GROUP_ROWS = 5120  # rows that fill a large card's products
MOST_GROUPED = 4  # 56 matrices of 128 x 128 a frame stand in memory for a whole group
MIN_SIDE_PX = 256
MAX_SIDE_PX = 4096
MAX_ASPECT = 4.0
MIN_FRAMES = 22  # 7 latent frames: the shortest clip the video decoder knows
MAX_FRAMES = 24 * 60 + 10  # a minute, rounded up to the grid: 1450
TRAINED_FRAMES = 362  # 15 s; longer is allowed and marked untrained


def grouped_chunks(tokens_per_frame: int, chunk: int = CHUNK_FRAMES) -> int:
    """Consecutive chunks that row-wise stages take at once, so that small pictures have as many
    rows a launch as large ones. Part of the arithmetic, like the chunk itself: a function of the
    size, never of a plan.
    """
    return max(1, min(MOST_GROUPED, GROUP_ROWS // max(1, chunk * tokens_per_frame)))


@dataclass(frozen=True)
class Geometry:
    """The size of one sampling pass. `frames` counts pixel frames."""

    width_px: int
    height_px: int
    frames: int

    def __post_init__(self) -> None:
        for name, side in (("width", self.width_px), ("height", self.height_px)):
            if side <= 0 or side % CANVAS_STEP_PX:
                raise RequestError(
                    f"{name} {side} px is not a positive multiple of {CANVAS_STEP_PX}", field=name
                )
        if self.frames < MIN_FRAMES or (self.frames - 5) % 17:
            raise RequestError(
                f"{self.frames} frames is not 17n+5 with n >= 1 (22, 39, 56, ...)", field="frames"
            )

    @property
    def latent_frames(self) -> int:
        """F: 5n+2 for 17n+5 pixel frames."""
        return (self.frames - 5) // 17 * 5 + 2

    @property
    def latent_height(self) -> int:
        """Latent rows, before patching."""
        return self.height_px // SPATIAL_STRIDE_PX

    @property
    def latent_width(self) -> int:
        """Latent columns, before patching."""
        return self.width_px // SPATIAL_STRIDE_PX

    @property
    def grid_height(self) -> int:
        """Token rows of a frame."""
        return self.height_px // CANVAS_STEP_PX

    @property
    def grid_width(self) -> int:
        """Token columns of a frame."""
        return self.width_px // CANVAS_STEP_PX

    @property
    def tokens_per_frame(self) -> int:
        """S: video rows of one latent frame."""
        return self.grid_height * self.grid_width

    @property
    def video_tokens(self) -> int:
        """F * S: rows of the target video."""
        return self.latent_frames * self.tokens_per_frame

    @property
    def audio_latents(self) -> int:
        """Audio latents of one channel; the packed sequence holds twice as many rows."""
        return round(self.frames / FRAMES_PER_SECOND * AUDIO_LATENTS_PER_SECOND)

    @property
    def seconds(self) -> float:
        """Duration of the clip."""
        return self.frames / FRAMES_PER_SECOND

    @property
    def chunks(self) -> int:
        """Window chunks of `CHUNK_FRAMES` latent frames; the last may be short."""
        return -(-self.latent_frames // CHUNK_FRAMES)

    @property
    def grouped(self) -> int:
        """Chunks of a row group; a clip may have fewer."""
        return min(self.chunks, grouped_chunks(self.tokens_per_frame))

    def sequence_rows(self, *, text_rows: int, condition_rows: int = 0) -> int:
        """N: packed rows of text, conditions, stereo audio and video."""
        return text_rows + condition_rows + 2 * self.audio_latents + self.video_tokens

    def as_json(self) -> dict[str, int | float]:
        """The geometry object of `plan --json`."""
        return {
            "width": self.width_px,
            "height": self.height_px,
            "frames": self.frames,
            "seconds": self.seconds,
            "latent_frames": self.latent_frames,
            "latent_height": self.latent_height,
            "latent_width": self.latent_width,
            "tokens_per_frame": self.tokens_per_frame,
            "video_tokens": self.video_tokens,
            "audio_latents": self.audio_latents,
            "chunks": self.chunks,
        }


def frames_for_seconds(seconds: float) -> int:
    """Pixel frames that hold `seconds`: ceil(24 s), up to the 17n+5 grid."""
    return snap_frames(math.ceil(round(seconds * FRAMES_PER_SECOND, 6)))


def snap_frames(frames: int) -> int:
    """The next 17n+5 at or above `frames`."""
    return 5 + 17 * max(0, -(-(frames - 5) // 17))


def snap_side(side_px: float) -> int:
    """The nearest multiple of 32 pixels; halves go up."""
    return math.floor(side_px / CANVAS_STEP_PX + 0.5) * CANVAS_STEP_PX


def plan_geometry(
    width_px: float, height_px: float, *, frames: int | None = None, seconds: float | None = None
) -> tuple[Geometry, list[str]]:
    """The geometry of a request and one sentence for each value that had to be snapped.

    Raises RequestError for values that are not finite, below the minimum or absurd, for an aspect
    beyond 4:1, and unless exactly one of `frames` and `seconds` is given.
    """
    notices: list[str] = []
    sides: dict[str, int] = {}
    for name, value in (("width", width_px), ("height", height_px)):
        if not math.isfinite(value):
            raise RequestError(f"{name} {value} is not a finite number of pixels", field=name)
        if not MIN_SIDE_PX <= value <= MAX_SIDE_PX:
            raise RequestError(
                f"{name} {value:g} px is outside {MIN_SIDE_PX}..{MAX_SIDE_PX} px", field=name
            )
        sides[name] = snap_side(value)
        if sides[name] != value:
            notices.append(
                f"{name} {value:g} px is not a multiple of {CANVAS_STEP_PX}: using {sides[name]} px"
            )
    aspect = max(sides.values()) / min(sides.values())
    if aspect > MAX_ASPECT:
        raise RequestError(
            f"aspect {aspect:.2f}:1 is beyond {MAX_ASPECT:g}:1; bring width and height closer",
            field="width",
        )
    count, note = _frame_count(frames, seconds)
    notices += note
    if count > TRAINED_FRAMES:
        notices.append(
            f"{count} frames ({count / FRAMES_PER_SECOND:.1f} s) is longer than the "
            f"{TRAINED_FRAMES} frames the model was trained on: untrained, expect drift"
        )
    return Geometry(sides["width"], sides["height"], count), notices


def _frame_count(frames: int | None, seconds: float | None) -> tuple[int, list[str]]:
    if (frames is None) == (seconds is None):
        raise RequestError("give either frames or seconds, and only one of them", field="frames")
    if seconds is not None:
        if not math.isfinite(seconds) or seconds <= 0:
            raise RequestError(f"{seconds} seconds is not a positive duration", field="seconds")
        if seconds > MAX_FRAMES:
            raise RequestError(f"{seconds:g} s is beyond {MAX_FRAMES / 24:g} s", field="seconds")
        count, asked = frames_for_seconds(seconds), f"{seconds:g} s"
    else:
        assert frames is not None
        count, asked = snap_frames(frames), f"{frames} frames"
    if count < MIN_FRAMES:
        raise RequestError(
            f"{asked} is shorter than {MIN_FRAMES} frames (the shortest clip)",
            field="frames",
        )
    if count > MAX_FRAMES:
        raise RequestError(f"{asked} is longer than {MAX_FRAMES} frames (a minute)", field="frames")
    if frames is not None and count != frames:
        return count, [f"{frames} frames is not 17n+5: using {count} frames"]
    return count, []
