"""Pictures, videos and sound from the user's files, and what a finished file holds. PyAV, Pillow.

Whatever is wrong with a file is a RequestError that names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from .errors import RequestError
from .geometry import AUDIO_SAMPLE_RATE_HZ, FRAMES_PER_SECOND

Frames = NDArray[np.uint8]
ROUNDING = Fraction(1, 4)  # of a frame: Matroska rounds times to milliseconds


def read_image(path: str | Path) -> torch.Tensor:
    """A picture as uint8 [H, W, 3], turned as its EXIF says; transparency goes on black."""
    try:
        with Image.open(path) as picture:
            picture = ImageOps.exif_transpose(picture)
            if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
                picture = picture.convert("RGBA")
                ground = Image.new("RGBA", picture.size, (0, 0, 0, 255))
                picture = Image.alpha_composite(ground, picture)
            return torch.from_numpy(np.array(picture.convert("RGB")))
    except FileNotFoundError as failure:
        raise RequestError(f"{path} does not exist", field="image") from failure
    except (
        UnidentifiedImageError,
        OSError,
        ValueError,
        SyntaxError,
        Image.DecompressionBombError,
    ) as failure:
        raise RequestError(f"{path} is no readable picture: {failure}", field="image") from failure


def read_video(
    path: str | Path, fps: int = FRAMES_PER_SECOND, limit: int | None = None
) -> torch.Tensor:
    """Frames at `fps`, at most `limit`: uint8 [n, H, W, 3]. The frame on show at k/fps is frame k.

    Raises RequestError for a file that is no video, is damaged, or holds a single frame.
    """
    shown: list[Frames] = []
    last: Frames | None = None
    source_frames = 0
    with _opened(path, "video") as container:
        if not container.streams.video:
            raise RequestError(f"{path} has no video stream", field="reference")
        stream = container.streams.video[0]
        length = Fraction(1, 1) / (stream.average_rate or FRAMES_PER_SECOND)
        start = end = None
        for frame in _decoded(container, stream, path):
            source_frames += 1
            at = frame.pts * frame.time_base if frame.pts is not None else Fraction(0)
            start = at if start is None else start
            end = at - start + length
            while last is not None and len(shown) < (at - start) * fps - ROUNDING:
                shown.append(last)
                if limit is not None and len(shown) >= limit:
                    return torch.from_numpy(np.stack(shown))
            last = frame.to_ndarray(format="rgb24")
        if source_frames < 2:
            raise RequestError(
                f"{path} holds {source_frames} frame, not a video; give it as a picture",
                field="reference",
            )
        assert last is not None and end is not None
        while len(shown) < end * fps - ROUNDING and (limit is None or len(shown) < limit):
            shown.append(last)
    return torch.from_numpy(np.stack(shown))


def read_audio(path: str | Path, sample_rate_hz: int = AUDIO_SAMPLE_RATE_HZ) -> torch.Tensor:
    """Sound as float32 [2, n] at `sample_rate_hz`; mono is doubled.

    Raises RequestError for a file without sound, an empty one, or a damaged one.
    """
    with _opened(path, "sound") as container:
        if not container.streams.audio:
            raise RequestError(f"{path} has no sound", field="reference")
        stream = container.streams.audio[0]
        # one channel is doubled here, at full level: the resampler's own upmix loses 3 dB
        layout = "mono" if stream.codec_context.channels == 1 else "stereo"
        resampler = av.AudioResampler(format="fltp", layout=layout, rate=sample_rate_hz)
        parts = []
        for frame in _decoded(container, stream, path):
            parts += [block.to_ndarray() for block in resampler.resample(frame)]
        if parts:
            parts += [block.to_ndarray() for block in resampler.resample(None)]
    if not parts or not sum(part.shape[1] for part in parts):
        raise RequestError(f"{path} has a sound stream without samples", field="reference")
    samples = torch.from_numpy(np.concatenate(parts, axis=1).astype(np.float32))
    return samples.expand(2, -1).contiguous()


def iterate_frames(path: str | Path) -> Iterator[Frames]:
    """Every stored frame of a video, or of a folder of PNG files, as uint8 [H, W, 3]."""
    if Path(path).is_dir():
        for name in sorted(Path(path).glob("*.png")):
            yield read_image(name).numpy()
        return
    with _opened(path, "video") as container:
        for frame in _decoded(container, container.streams.video[0], path):
            yield frame.to_ndarray(format="rgb24")


def probe(path: str | Path) -> dict[str, Any]:
    """What a file holds: format, seconds, metadata, streams, and whether an MP4's index is in
    front. Frame counts are those of the packets."""
    with _opened(path, "file") as container:
        streams = []
        for stream in container.streams:
            context = stream.codec_context
            item: dict[str, Any] = {
                "kind": stream.type,
                "codec": context.codec.canonical_name if context else None,
                "packets": sum(1 for p in container.demux(stream) if p.size),
                "start_seconds": float((stream.start_time or 0) * stream.time_base),
                "seconds": float(stream.duration * stream.time_base) if stream.duration else None,
            }
            container.seek(0)
            if stream.type == "video":
                item |= {
                    "width": context.width,
                    "height": context.height,
                    "pixel_format": context.pix_fmt,
                    "frames_per_second": float(stream.average_rate or 0),
                    "color_space": int(context.colorspace),
                    "color_primaries": int(context.color_primaries),
                    "color_transfer": int(context.color_trc),
                    "color_range": int(context.color_range),
                }
            elif stream.type == "audio":
                item |= {"sample_rate_hz": context.sample_rate, "channels": context.channels}
            streams.append(item)
        return {
            "format": container.format.name,
            "seconds": container.duration / av.time_base if container.duration else None,
            "bytes": Path(path).stat().st_size,
            "metadata": dict(container.metadata),
            "index_in_front": _index_in_front(Path(path)),
            "streams": streams,
        }


def _index_in_front(path: Path) -> bool | None:
    """True when an MP4's `moov` box comes before its `mdat`; None for other files."""
    with path.open("rb") as file:
        while len(head := file.read(8)) == 8:
            size, kind = int.from_bytes(head[:4], "big"), head[4:]
            if kind in (b"moov", b"mdat"):
                return kind == b"moov"
            if kind not in (b"ftyp", b"free", b"skip", b"wide", b"uuid"):
                return None
            used = 8
            if size == 1:
                size, used = int.from_bytes(file.read(8), "big"), 16
            if size < used:
                return None
            file.seek(size - used, 1)
    return None


def _opened(path: str | Path, what: str) -> av.container.InputContainer:
    try:
        return av.open(str(path))
    except (av.FFmpegError, OSError, ValueError) as failure:
        if not Path(path).exists():
            raise RequestError(f"{path} does not exist", field="reference") from failure
        raise RequestError(
            f"{path} is no readable {what}: {failure}", field="reference"
        ) from failure


def _decoded(container: Any, stream: Any, path: str | Path) -> Iterator[Any]:
    frames = container.decode(stream)
    while True:
        try:
            frame = next(frames)
        except StopIteration:
            return
        except (av.FFmpegError, OSError, ValueError) as failure:
            raise RequestError(f"{path} is damaged: {failure}", field="reference") from failure
        yield frame
