"""Reference files of any kind: what a file is by its content, and its frames and sound, fitted.

Frames are put on the 24-fps grid and on the reference's own canvas while they are read, so that a
long clip of a large camera never lies in memory at its own size. Whatever is wrong with a file is a
RequestError that names it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from .errors import RequestError
from .geometry import FRAMES_PER_SECOND, MIN_FRAMES
from .media_read import Frames, _decoded, _opened, read_audio
from .sampling.conditions import canvas_for_aspect, fit_sound, slot_starts

QUARTER_TURN_DEGREES = 90.0
TEXT_FORMATS = ("tty", "bin", "adf", "idf", "xbin")  # text that the library would draw as a video


def kind_of(path: str | Path) -> str:
    """One of image, video, audio, by content. Raises RequestError for anything else."""
    if not Path(path).is_file():
        raise RequestError(f"reference {path} does not exist", field="references")
    try:
        with Image.open(path):
            return "image"
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        pass
    with _opened(path, "picture, video or sound") as container:
        if container.format.name not in TEXT_FORMATS:
            if _pictures(container):
                return "video"
            if container.streams.audio:
                return "audio"
    raise RequestError(f"{path} holds neither picture, video nor sound", field="references")


def read_reference_video(path: str | Path, target_frames: int) -> Tensor:
    """Frames on their own canvas at 24 a second: uint8 [17m+5, h, w, 3], at most `target_frames`.

    Raises RequestError for a single frame, and for fewer than 22 frames at 24 a second.
    """
    kept: list[Frames] = []
    source_frames, size = 0, (0, 0)
    with _opened(path, "video") as container:
        stream = _pictures(container)[0]
        rate = float(stream.average_rate or stream.guessed_rate or FRAMES_PER_SECOND)
        for frame in _decoded(container, stream, path):
            source_frames += 1
            first, after = slot_starts(source_frames - 1, source_frames, rate)
            if first >= target_frames and source_frames > 1:
                break
            if after == first:
                continue
            pixels = _upright(frame)
            size = size if kept else canvas_for_aspect(pixels.shape[1], pixels.shape[0])
            if (pixels.shape[1], pixels.shape[0]) != size:
                picture = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS)
                pixels = np.asarray(picture)
            kept += [pixels] * (min(after, target_frames) - first)
    if source_frames < 2:
        raise RequestError(
            f"{path} holds {source_frames} frame, not a video; give it as a picture",
            field="references",
        )
    if len(kept) < MIN_FRAMES:
        raise RequestError(
            f"{path} has {len(kept)} frames at {FRAMES_PER_SECOND} a second; a reference video "
            f"needs {MIN_FRAMES}",
            field="references",
        )
    whole = (len(kept) - 5) // 17 * 17 + 5
    return torch.from_numpy(np.stack(kept[:whole]))


def read_reference_sound(path: str | Path, target_frames: int) -> Tensor:
    """Sound at 32 kHz, stereo, at most as long as the target. Raises RequestError when silent."""
    return fit_sound(read_audio(path), target_frames)


def has_sound(path: str | Path) -> bool:
    """Whether a video file carries a sound stream."""
    with _opened(path, "video") as container:
        return bool(container.streams.audio)


def _pictures(container: Any) -> list[Any]:
    """Video streams that are no cover of a sound file."""
    cover = av.stream.Disposition.attached_pic
    return [item for item in container.streams.video if not item.disposition & cover]


def _upright(frame: Any) -> Frames:
    """The frame's pixels, turned as the file asks."""
    pixels: Frames = frame.to_ndarray(format="rgb24")
    turns = round(float(getattr(frame, "rotation", 0) or 0) / QUARTER_TURN_DEGREES) % 4
    return np.ascontiguousarray(np.rot90(pixels, k=-turns)) if turns else pixels
