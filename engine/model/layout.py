"""The packed sequence: which row is what, where it stands, and which time it has.

    [ text | conditions | target audio | target video ]

One request is one sequence of N rows. Conditions are keyframes (fl2va) or reference blocks in
request order (ref2va). Audio rows are channel-major: all latents of the left channel, then all of
the right. Video rows run frame, row, column. Everything here follows facts: model sheet a.3, a.4,
a.5 and d.4; positions are float64 and are rounded to float32 only when angles are formed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..errors import RequestError

VIDEO_TAG, TEXT_TAG, AUDIO_TAG = 0, 1, 2
MODALITIES = 3
AUDIO_CHANNELS = 2
SPATIAL_SCALE = 32.0
FRAME_SPAN = 5.0 / 3.0  # one pixel frame in audio latents: 40 a second over 24 a second
FRAMES_OF_LATENT = (1, 4, 4, 4, 4)  # pixel frames which one latent frame covers, by index mod 5
CONDITION_TIME = 0.999  # visual conditions are held at this noise level, or cleaner
REFERENCE_AUDIO_TIME = 1.0

# The four clocks a row can follow; see `PackedLayout.at`.
CLOCK_VIDEO, CLOCK_AUDIO, CLOCK_CONDITION, CLOCK_REFERENCE_AUDIO = range(4)


@dataclass(frozen=True)
class Reference:
    """One reference block of a ref2va request, as its latents' sizes.

    kind: "image", "audio" or "video". Visual kinds give latent frames, height and width (before
    patching); sound gives latents of one channel. A video may carry both.
    """

    kind: str
    latent_frames: int = 0
    latent_height: int = 0
    latent_width: int = 0
    audio_latents: int = 0

    def __post_init__(self) -> None:
        visual = self.latent_frames > 0 and self.latent_height > 0 and self.latent_width > 0
        right = {
            "image": visual and self.latent_frames == 1 and not self.audio_latents,
            "video": visual and self.audio_latents >= 0,
            "audio": self.audio_latents > 0 and not self.latent_frames,
        }
        if self.kind not in right:
            raise RequestError(
                f"reference kind {self.kind!r} is none of image, video, audio", field="references"
            )
        if not right[self.kind]:
            raise RequestError(f"a reference has impossible sizes: {self}", field="references")


@dataclass(frozen=True)
class RowTimes:
    """The times of one model evaluation, row by row.

    distinct: [n] float32, sorted. timestep_indices: [N] int64 into `distinct`.
    table_rows: [N] int64 = 3 * timestep_index + tag, the row of an AdaLN table.
    """

    distinct: Tensor
    timestep_indices: Tensor
    table_rows: Tensor


@dataclass(frozen=True)
class PackedLayout:
    """Rows of one packed sequence. Tensors may live on any device; slices count packed rows.

    token_tags: [N] int64, 0 video, 1 text, 2 audio. Text rows of a picture's vision block carry 0.
    row_clocks: [N] int64, which of the four clocks a row follows.
    position_ids: [N, 3] float64, (t, h, w).
    video_indices, audio_indices: int64, condition rows first, as `forward` takes and gives them.
    condition_video_rows, condition_audio_rows: how many of those come before the target rows.
    """

    text: slice
    conditions: slice
    audio: slice
    video: slice
    frames: int
    grid_height: int
    grid_width: int
    token_tags: Tensor
    row_clocks: Tensor
    position_ids: Tensor
    video_indices: Tensor
    audio_indices: Tensor
    condition_video_rows: int
    condition_audio_rows: int

    @property
    def rows(self) -> int:
        """N."""
        return self.video.stop

    @property
    def tokens_per_frame(self) -> int:
        """S."""
        return self.grid_height * self.grid_width

    @property
    def text_rows(self) -> int:
        """Rows that come from the text encoder."""
        return self.text.stop - self.text.start

    @property
    def text_indices(self) -> Tensor:
        """Packed rows of the text, int64."""
        return torch.arange(self.text.start, self.text.stop, device=self.token_tags.device)

    @property
    def global_rows(self) -> int:
        """Rows before the target video: they attend to everything and everything to them."""
        return self.video.start

    def to(self, device: torch.device | str) -> PackedLayout:
        """The same layout with its tensors on `device`."""
        names = ("token_tags", "row_clocks", "position_ids", "video_indices", "audio_indices")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})

    def at(
        self,
        t_video: float,
        t_audio: float,
        *,
        t_condition: float | None = None,
        t_reference_audio: float = REFERENCE_AUDIO_TIME,
    ) -> RowTimes:
        """Times of every row when target video stands at `t_video` and target audio at `t_audio`.

        Text follows the video. Visual conditions default to max(t_video, 0.999). t = 1 is clean.
        """
        if t_condition is None:
            t_condition = max(float(t_video), CONDITION_TIME)
        clocks = torch.tensor(
            [t_video, t_audio, t_condition, t_reference_audio],
            dtype=torch.float32,
            device=self.row_clocks.device,
        )
        distinct, indices = torch.unique(clocks[self.row_clocks], sorted=True, return_inverse=True)
        return RowTimes(distinct, indices, MODALITIES * indices + self.token_tags)


def patchify(latents: Tensor, patch: tuple[int, int, int] = (1, 2, 2)) -> Tensor:
    """Latents [C, F, H, W] or [1, C, F, H, W] as rows [F * H/ph * W/pw, C * ph * pw]; any dtype.

    Rows run frame, row, column; a row's channels run C slowest, then pt, ph, pw.
    """
    pt, ph, pw = patch
    channels, frames, height, width = latents.shape[-4:]
    if frames % pt or height % ph or width % pw:
        raise RequestError(f"latents {tuple(latents.shape)} do not divide by the patch {patch}")
    parts = latents.reshape(channels, frames // pt, pt, height // ph, ph, width // pw, pw)
    return parts.permute(1, 3, 5, 0, 2, 4, 6).reshape(-1, channels * pt * ph * pw)


def unpatchify(
    rows: Tensor, frames: int, height: int, width: int, patch: tuple[int, int, int] = (1, 2, 2)
) -> Tensor:
    """The inverse of `patchify`: rows -> [C, frames, height, width], sizes before patching."""
    pt, ph, pw = patch
    channels = rows.shape[-1] // (pt * ph * pw)
    parts = rows.reshape(frames // pt, height // ph, width // pw, channels, pt, ph, pw)
    return parts.permute(3, 0, 4, 1, 5, 2, 6).reshape(channels, frames, height, width)


def build_layout(
    *,
    latent_frames: int,
    latent_height: int,
    latent_width: int,
    audio_latents: int,
    text_tags: Sequence[int] | Tensor,
    keyframes: Sequence[str] = (),
    references: Sequence[Reference] = (),
    patch: tuple[int, int, int] = (1, 2, 2),
) -> PackedLayout:
    """The layout of a t2va (no conditions), fl2va (`keyframes`) or ref2va (`references`) request.

    latent_*: the target's sizes before patching. audio_latents: of one channel.
    text_tags: one tag a text row, 1 for text, 0 for rows of a vision block; may be empty.
    keyframes: of "first", "last", in packed order. Raises RequestError for other names, for
    keyframes together with references, and for a canvas that the patch does not divide.
    """
    if keyframes and references:
        raise RequestError("keyframes and references cannot be mixed", field="references")
    if patch[0] != 1 or latent_height % patch[1] or latent_width % patch[2]:
        raise RequestError(
            f"{latent_height} x {latent_width} latents do not divide by the patch {patch}"
        )
    tags = torch.as_tensor(text_tags, dtype=torch.int64).reshape(-1)
    rows = _Rows(patch, len(tags))
    text = rows.add_text(tags)
    height, width = latent_height, latent_width
    start = rows.count
    for name in keyframes:
        rows.add_video([_keyframe_time(name, latent_frames)], height, width, CLOCK_CONDITION)
    for reference in references:
        _add_reference(rows, reference, width_axis=_axis(width, patch[2], height, width))
    conditions = slice(start, rows.count)
    extremes = _extremes(_axis(width, patch[2], height, width))
    audio = rows.add_audio(audio_latents, extremes, CLOCK_AUDIO)
    video = rows.add_video(_frame_times(latent_frames), height, width, CLOCK_VIDEO)
    token_tags, clocks = torch.cat(rows.tags), torch.cat(rows.clocks)
    is_video = token_tags.eq(VIDEO_TAG)
    is_video[text] = False  # vision rows are tagged as video but come from the text encoder
    return PackedLayout(
        text=text,
        conditions=conditions,
        audio=audio,
        video=video,
        frames=latent_frames,
        grid_height=height // patch[1],
        grid_width=width // patch[2],
        token_tags=token_tags,
        row_clocks=clocks,
        position_ids=torch.cat(rows.positions),
        video_indices=is_video.nonzero().flatten(),
        audio_indices=token_tags.eq(AUDIO_TAG).nonzero().flatten(),
        condition_video_rows=int(clocks.eq(CLOCK_CONDITION).sum()),
        condition_audio_rows=int(clocks.eq(CLOCK_REFERENCE_AUDIO).sum()),
    )


class _Rows:
    """Rows gathered so far. `clock` is the media time at which the next block starts."""

    def __init__(self, patch: tuple[int, int, int], origin: int) -> None:
        self.patch, self.clock, self.count = patch, float(origin), 0
        self.tags: list[Tensor] = []
        self.clocks: list[Tensor] = []
        self.positions: list[Tensor] = []

    def _add(self, tags: Tensor, clock: int, positions: Tensor) -> slice:
        self.tags.append(tags)
        self.clocks.append(torch.full_like(tags, clock))
        self.positions.append(positions)
        self.count += len(tags)
        return slice(self.count - len(tags), self.count)

    def add_text(self, tags: Tensor) -> slice:
        positions = torch.zeros(len(tags), 3, dtype=torch.float64)
        positions[:, 0] = torch.arange(len(tags))
        return self._add(tags, CLOCK_VIDEO, positions)

    def add_audio(self, latents: int, extremes: tuple[float, float], clock: int) -> slice:
        positions = torch.zeros(AUDIO_CHANNELS, latents, 3, dtype=torch.float64)
        positions[:, :, 0] = self.clock + torch.arange(latents, dtype=torch.float64)
        positions[:, :, 2] = torch.tensor(extremes, dtype=torch.float64)[:, None]
        tags = torch.full((AUDIO_CHANNELS * latents,), AUDIO_TAG, dtype=torch.int64)
        return self._add(tags, clock, positions.reshape(-1, 3))

    def add_video(self, times: Sequence[float], height: int, width: int, clock: int) -> slice:
        rows = torch.tensor(_axis(height, self.patch[1], height, width), dtype=torch.float64)
        columns = torch.tensor(_axis(width, self.patch[2], height, width), dtype=torch.float64)
        positions = torch.zeros(len(times), len(rows), len(columns), 3, dtype=torch.float64)
        starts = torch.tensor(times, dtype=torch.float64)
        positions[..., 0] = (self.clock + starts)[:, None, None]
        positions[..., 1] = rows[None, :, None]
        positions[..., 2] = columns[None, None, :]
        tags = torch.full((positions[..., 0].numel(),), VIDEO_TAG, dtype=torch.int64)
        return self._add(tags, clock, positions.reshape(-1, 3))


def _add_reference(rows: _Rows, reference: Reference, *, width_axis: list[float]) -> None:
    """One reference block: its sound first, then its picture, then the clock moves past both."""
    height, width = reference.latent_height, reference.latent_width
    if reference.kind != "audio":
        width_axis = _axis(width, rows.patch[2], height, width)
    if reference.audio_latents:
        rows.add_audio(reference.audio_latents, _extremes(width_axis), CLOCK_REFERENCE_AUDIO)
    if reference.kind == "image":
        rows.add_video([0.0], height, width, CLOCK_CONDITION)
        rows.clock += 1.0  # a still takes one unit, not the 5/3 of a latent frame
        return
    span = 0.0
    if reference.kind == "video":
        times = _frame_times(reference.latent_frames)
        rows.add_video(times, height, width, CLOCK_CONDITION)
        span = times[-1] + _span(reference.latent_frames - 1)
    rows.clock += max(float(reference.audio_latents), span)


def _span(frame: int) -> float:
    """Audio latents which latent frame `frame` lasts."""
    return FRAME_SPAN * FRAMES_OF_LATENT[frame % len(FRAMES_OF_LATENT)]


def _frame_times(frames: int) -> list[float]:
    """Start of every latent frame after the clip's own start."""
    times = [0.0]
    for frame in range(frames - 1):
        times.append(times[-1] + _span(frame))
    return times


def _keyframe_time(name: str, frames: int) -> float:
    """A keyframe's time: the clip's first, or its last pixel frame."""
    if name == "first":
        return 0.0
    if name == "last":
        return math.fsum(_span(frame) for frame in range(frames)) - FRAME_SPAN
    raise RequestError(f"keyframe {name!r} is neither first nor last", field="keyframes")


def _axis(size: int, patch: int, height: int, width: int) -> list[float]:
    """Coordinates of an axis of `size` latents: centred, scaled to equal area, times 32."""
    ratio = size / math.sqrt(height * width)
    left, count = (1.0 - ratio) / 2.0, size // patch
    step = ((left + ratio) - left) / count
    return [(index * step + left) * SPATIAL_SCALE for index in range(count)]


def _extremes(width_axis: list[float]) -> tuple[float, float]:
    """Left and right channel stand at the ends of the width axis."""
    return width_axis[0], width_axis[-1]
