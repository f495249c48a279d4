"""Keyframes and references before any model loads: limits, canvases, fits, rates.

    keyframes    the one that leads (first in packed order) is stretched onto the canvas, the
                 follower is scaled to cover it and cropped at the centre; LANCZOS both
    images       short edge 2048 px, sides to the 32-px grid, never cropped
    videos       24 frames a second, at most the target's frames, canvas of their own aspect,
                 down to 17n+5 frames
    sounds       32 kHz stereo, at most the target's length
Facts: model sheet g, and diffusers 0.42.1 where the sheet leaves a rounding open. Every refusal is
a RequestError.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from ..errors import RequestError, SilentSound
from ..geometry import (
    AUDIO_SAMPLE_RATE_HZ,
    CANVAS_STEP_PX,
    FRAMES_PER_SECOND,
    MAX_ASPECT,
    MIN_FRAMES,
)

SHORT_EDGE_PX = 768
MAX_AREA_PX = 768 * 1344
REFERENCE_SHORT_EDGE_PX = 2048
LIMITS = {"image": 9, "video": 3, "audio": 3}
MAX_REFERENCES = 12
ASPECT_TOLERANCE = 0.005  # a difference nobody sees is not worth a notice

Frames = NDArray[np.uint8]


def check_references(kinds: Sequence[str], *, keyframes: int = 0) -> None:
    """Refuse what no machine can run. kinds: "image", "video" or "audio", in packed order.

    keyframes: how many of first and last frame the request has; the two cannot be mixed.
    """
    for kind in kinds:
        if kind not in LIMITS:
            raise RequestError(
                f"reference kind {kind!r} is none of {', '.join(LIMITS)}", field="references"
            )
    for kind, most in LIMITS.items():
        if kinds.count(kind) > most:
            raise RequestError(
                f"{kinds.count(kind)} {kind} references, at most {most} are possible",
                field="references",
            )
    if len(kinds) > MAX_REFERENCES:
        raise RequestError(
            f"{len(kinds)} references, at most {MAX_REFERENCES} are possible together",
            field="references",
        )
    if kinds and set(kinds) == {"audio"}:
        raise RequestError(
            "a sound reference alone is not possible: add a picture or a video reference",
            field="references",
        )
    if kinds and keyframes:
        raise RequestError(
            "keyframes and references need different models: give one or the other",
            field="references",
        )


def canvas_for_aspect(
    width: float,
    height: float,
    *,
    short_edge_px: int = SHORT_EDGE_PX,
    max_area_px: int = MAX_AREA_PX,
) -> tuple[int, int]:
    """(width, height) in pixels for an aspect: short edge 768, area capped, on the 32-px grid.

    Rounding comes last, so the area may end slightly above the cap. Raises RequestError beyond
    4:1 and for sides that are not positive.
    """
    check_aspect(width, height, "picture")
    ratio = width / height
    sides = [short_edge_px * ratio, float(short_edge_px)]
    if ratio < 1:
        sides = [float(short_edge_px), short_edge_px / ratio]
    area = sides[0] * sides[1]
    if area > max_area_px:
        shrink = (max_area_px / area) ** 0.5
        sides = [side * shrink for side in sides]
    return _to_grid(sides[0]), _to_grid(sides[1])


def check_aspect(width: float, height: float, what: str) -> None:
    """Raises RequestError for sides that are not positive or an aspect beyond 4:1."""
    if not (width > 0 and height > 0 and math.isfinite(width) and math.isfinite(height)):
        raise RequestError(f"the {what} has impossible sides {width} x {height}", field="image")
    if max(width / height, height / width) > MAX_ASPECT:
        raise RequestError(
            f"the {what} is {width:g} x {height:g}; aspects beyond {MAX_ASPECT:g}:1 are refused",
            field="image",
        )


def fit_keyframes(
    pictures: Sequence[Image.Image], width_px: int, height_px: int
) -> list[Image.Image]:
    """Pictures, first before last, on the canvas: the leader stretched, the follower cropped.

    A lone last frame leads. A picture that has the canvas's size is returned as it is.
    """
    fitted = []
    for index, picture in enumerate(pictures):
        if picture.size == (width_px, height_px):
            fitted.append(picture)
        elif index == 0:
            fitted.append(picture.resize((width_px, height_px), Image.Resampling.LANCZOS))
        else:
            fitted.append(cover_crop(picture, width_px, height_px))
    return fitted


def cover_crop(picture: Image.Image, width_px: int, height_px: int) -> Image.Image:
    """Scaled until it covers the canvas, then cut at the centre."""
    factor = max(width_px / picture.width, height_px / picture.height)
    width = max(width_px, round(picture.width * factor))
    height = max(height_px, round(picture.height * factor))
    left, top = (width - width_px) // 2, (height - height_px) // 2
    scaled = picture.resize((width, height), Image.Resampling.LANCZOS)
    return scaled.crop((left, top, left + width_px, top + height_px))


def keyframe_notices(
    sizes: Sequence[tuple[int, int]], names: Sequence[str], width_px: int, height_px: int
) -> list[str]:
    """One sentence for each keyframe (width, height) whose aspect is not the canvas's."""
    notices = []
    for index, (name, (width, height)) in enumerate(zip(names, sizes, strict=True)):
        if abs(width / height * height_px / width_px - 1) <= ASPECT_TOLERANCE:
            continue
        fit = "stretched to" if index == 0 else "scaled to cover and cropped at the centre of"
        notices.append(f"{name} frame {width}x{height} is {fit} {width_px}x{height_px}")
    return notices


def reference_image_size(
    width: int,
    height: int,
    *,
    short_edge_px: int = REFERENCE_SHORT_EDGE_PX,
    max_area_px: int | None = None,
) -> tuple[int, int]:
    """(width, height) that a reference picture is encoded at: its own aspect, short edge 2048.

    max_area_px: a cap for small cards; the model's own pipeline has none.
    """
    check_aspect(width, height, "reference picture")
    factor = short_edge_px / min(width, height)
    if max_area_px is not None:
        factor = min(factor, (max_area_px / (width * height)) ** 0.5)
    return _to_grid(width * factor), _to_grid(height * factor)


def fit_reference_image(picture: Image.Image, *, max_area_px: int | None = None) -> Image.Image:
    """A reference picture at the size of `reference_image_size`, LANCZOS."""
    size = reference_image_size(*picture.size, max_area_px=max_area_px)
    return picture if picture.size == size else picture.resize(size, Image.Resampling.LANCZOS)


def fit_reference_video(frames: Frames, fps: float, target_frames: int) -> Frames:
    """Reference video [n, H, W, 3] uint8 -> [17m+5, h, w, 3] at 24 fps on its own canvas.

    target_frames: pixel frames of the target, which the reference may not exceed. Frames are held
    or dropped whole. Raises RequestError for a rate that is not positive and for clips that give
    fewer than 22 frames.
    """
    if frames.ndim != 4 or frames.shape[-1] != 3:
        raise RequestError(f"reference video of shape {frames.shape}, not [n, H, W, 3]")
    frames = frames[frame_indices(len(frames), fps)][:target_frames]
    if len(frames) < MIN_FRAMES:
        raise RequestError(
            f"a reference video of {len(frames)} frames at {FRAMES_PER_SECOND} a second is too "
            f"short: {MIN_FRAMES} are needed",
            field="references",
        )
    frames = frames[: (len(frames) - 5) // 17 * 17 + 5]
    size = canvas_for_aspect(frames.shape[2], frames.shape[1])
    if (frames.shape[2], frames.shape[1]) == size:
        return frames
    resized = [Image.fromarray(f).resize(size, Image.Resampling.LANCZOS) for f in frames]
    return np.stack([np.asarray(item) for item in resized])


def frame_indices(count: int, fps: float) -> NDArray[np.int64]:
    """Which source frame stands in each slot of the 24-fps grid.

    A frame is held from the slot its time rounds to (halves up) until the next one's.
    """
    return np.repeat(np.arange(count), np.diff(slot_starts(0, count, fps)))


def slot_starts(first: int, last: int, fps: float) -> NDArray[np.int64]:
    """The slot of the 24-fps grid at which each of source frames first..last begins, last too."""
    if not fps > 0 or not math.isfinite(fps):
        raise RequestError(f"a reference video cannot have {fps} frames a second")
    times = np.arange(first, last + 1) * (FRAMES_PER_SECOND / fps)
    return np.floor(times + 0.5).astype(np.int64)


def fit_sound(samples: Tensor, target_frames: int) -> Tensor:
    """Reference sound [1 or 2, n] at 32 kHz -> stereo [2, m] float32, at most the target's length.

    Raises RequestError for other shapes and values that are not finite, SilentSound for silence.
    """
    if samples.ndim != 2 or samples.shape[0] not in (1, 2):
        raise RequestError(
            f"reference sound of shape {tuple(samples.shape)}: one or two channels are possible",
            field="references",
        )
    longest = int(target_frames / FRAMES_PER_SECOND * AUDIO_SAMPLE_RATE_HZ)
    samples = samples.to(torch.float32)[:, :longest]
    if not bool(samples.isfinite().all()):
        raise RequestError("reference sound holds values that are not finite", field="references")
    if not samples.numel() or not bool(samples.any()):
        raise SilentSound("a reference sound is silent", field="references")
    return samples.expand(2, -1).contiguous()


def _to_grid(side_px: float) -> int:
    return max(CANVAS_STEP_PX, round(side_px / CANVAS_STEP_PX) * CANVAS_STEP_PX)
