"""Frames to one video stream, and that stream plus sound to a finished file. PyAV only.

The first stage writes a container that stays readable when it is cut short (fragmented MP4,
Matroska). The second copies its packets beside the sound into the final container, so that an MP4
gets its index in front without holding the clip in memory.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin

from .errors import KernelUnavailable, RequestError
from .thread_priority import ordinary_threads

log = logging.getLogger(__name__)
Frames = NDArray[np.uint8]
BT709 = 1  # the code of matrix, primaries and transfer alike (ITU-T H.273)
LIMITED_RANGE = 1
AUDIO_BLOCK_SAMPLES = 1024


@dataclass(frozen=True)
class Format:
    """What an output option means. `encoders` are tried in order; options belong to an encoder."""

    name: str
    suffix: str
    container: str
    encoders: tuple[str, ...]
    audio_encoder: str = "aac"
    audio_rate_hz: int | None = None  # None: the sound's own rate
    stage_options: Mapping[str, str] = field(default_factory=dict)
    final_options: Mapping[str, str] = field(default_factory=dict)
    pixel_format: str = "yuv420p"


_FRAGMENTS = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}
# use_metadata_tags: free keys (workflow, prompt) are written as they are.
_INDEX_IN_FRONT = {"movflags": "faststart+use_metadata_tags"}
FORMATS = {
    "h264": Format("h264", ".mp4", "mp4", ("libx264",), "aac", None, _FRAGMENTS, _INDEX_IN_FRONT),
    "h264_nvenc": Format(
        "h264_nvenc", ".mp4", "mp4", ("h264_nvenc",), "aac", None, _FRAGMENTS, _INDEX_IN_FRONT
    ),
    "webm": Format("webm", ".webm", "webm", ("libsvtav1", "libvpx-vp9"), "libopus", 48_000),
    "png": Format("png", "", "", ()),
    "lossless": Format("lossless", ".mkv", "matroska", ("ffv1",), "pcm_f32le", pixel_format="bgr0"),
}
_OPTIONS = {
    "libx264": {"crf": "16", "preset": "fast", "rc-lookahead": "10"},
    "h264_nvenc": {"preset": "p5", "rc": "vbr", "cq": "18"},
    "libsvtav1": {"crf": "24", "preset": "8"},
    "libvpx-vp9": {"crf": "22", "b": "0", "cpu-used": "5", "row-mt": "1"},
    "ffv1": {"level": "3", "slicecrc": "1"},
}


def choose_encoder(form: Format) -> str:
    """The first encoder of `form` that opens and encodes a frame here, or KernelUnavailable."""
    reasons: dict[str, str] = {}
    for name in form.encoders:
        try:
            context = av.CodecContext.create(name, "w")
            context.width, context.height, context.pix_fmt = 256, 256, form.pixel_format
            context.time_base = Fraction(1, 24)
            context.options = dict(_OPTIONS[name])
            frame = av.VideoFrame(256, 256, form.pixel_format)
            frame.pts = 0
            with quiet_encoders(), ordinary_threads():
                context.encode(frame)
                context.encode(None)
        except (av.FFmpegError, ValueError, OSError) as refused:
            reasons[name] = f"{type(refused).__name__}: {refused}"
        else:
            return name
    raise KernelUnavailable(f"video encoder {form.name}", reasons)


@contextmanager
def quiet_encoders() -> Iterator[None]:
    """SVT-AV1 prints its settings on standard error unless SVT_LOG says otherwise."""
    if "SVT_LOG" in os.environ:
        yield
        return
    os.environ["SVT_LOG"] = "1"
    try:
        yield
    finally:
        os.environ.pop("SVT_LOG", None)


class VideoTrack:
    """Encodes frames into one stream. `pending` holds the frames which are not in the file yet."""

    def __init__(
        self, path: Path, width_px: int, height_px: int, fps: Fraction, form: Format, encoder: str
    ) -> None:
        self.path, self.encoder = path, encoder
        self.pending: deque[tuple[int, Frames]] = deque()
        self.frames = 0
        self._written: set[int] = set()
        self._begun = False  # a packet, and so the header before it, is in the file
        self._form, self._fps = form, fps
        self._container = av.open(
            str(path), "w", format=form.container, options=dict(form.stage_options)
        )
        stream = self._container.add_stream(encoder, rate=fps, options=dict(_OPTIONS[encoder]))
        stream.width, stream.height, stream.pix_fmt = width_px, height_px, form.pixel_format
        stream.codec_context.time_base = 1 / fps
        if form.pixel_format.startswith("yuv"):
            context = stream.codec_context
            context.color_primaries = context.color_trc = context.colorspace = BT709
            context.color_range = LIMITED_RANGE
        self._stream = stream

    def write(self, frames: Frames) -> None:
        """Encode [n, H, W, 3] uint8. Raises what PyAV raises; `pending` then holds the rest."""
        start = self.frames
        self.frames += len(frames)
        self.pending.extend((start + i, frame) for i, frame in enumerate(frames))
        with quiet_encoders():
            for index in range(start, self.frames):
                picture = self._picture(frames[index - start], index)
                # the first picture opens the encoder, which starts its threads
                with nullcontext() if index else ordinary_threads():
                    packets = self._stream.encode(picture)
                self._mux(packets)

    def close(self) -> None:
        """Flush the encoder and end the file."""
        self._mux(self._stream.encode(None))
        self._container.close()

    def abandon(self) -> None:
        """End the file as far as it goes; an encoder or a disk that failed may fail again."""
        attempts = [self._container.close]
        if self._begun:  # libav crashes over a packet whose file's header was refused
            attempts.insert(0, lambda: self._mux(self._stream.encode(None)))
        for attempt in attempts:
            try:
                attempt()
            except (av.FFmpegError, OSError, ValueError) as failure:
                log.debug("closing %s: %s", self.path, failure)

    def encoded_frames(self) -> Iterator[Frames]:
        """The frames that are in the closed or abandoned file, as far as it can be read."""
        try:
            with av.open(str(self.path)) as container:
                for frame in container.decode(video=0):
                    yield frame.to_ndarray(format="rgb24")
        except (av.FFmpegError, OSError) as failure:
            log.debug("reading %s back: %s", self.path, failure)

    def _picture(self, frame: Frames, index: int) -> av.VideoFrame:
        picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
        if self._form.pixel_format.startswith("yuv"):
            # the converter's own default is BT.601, which would contradict the tags
            picture = picture.reformat(
                format=self._form.pixel_format,
                dst_colorspace=Colorspace.ITU709,
                dst_color_range=ColorRange.MPEG,
            )
        else:
            picture = picture.reformat(format=self._form.pixel_format)
        picture.pts, picture.time_base = index, 1 / self._fps
        return picture

    def _mux(self, packets: list[av.Packet]) -> None:
        for packet in packets:
            index = round(packet.pts * packet.time_base * self._fps)
            self._container.mux(packet)
            self._begun = True
            self._written.add(index)
        while self.pending and self.pending[0][0] in self._written:
            self._written.discard(self.pending.popleft()[0])


def finish_file(
    stage: Path,
    target: Path,
    form: Format,
    fps: Fraction,
    audio: NDArray[np.float32] | None,
    audio_rate_hz: int,
    metadata: Mapping[str, str],
) -> None:
    """Copy the video packets of `stage` and encode `audio` [2, n] beside them into `target`."""
    with (
        av.open(str(stage)) as source,
        av.open(
            str(target), "w", format=form.container, options=dict(form.final_options)
        ) as container,
    ):
        container.metadata.update(metadata)
        video_in = source.streams.video[0]
        # opaque: parameters are copied without asking for an encoder of the decoder's name
        video = container.add_stream_from_template(video_in, opaque=True)
        sound = None
        if audio is not None:
            rate = form.audio_rate_hz or audio_rate_hz
            sound = container.add_stream(form.audio_encoder, rate=rate, layout="stereo")
            if form.audio_encoder != "pcm_f32le":
                sound.bit_rate = 192_000
        packets = iter(()) if sound is None else _sound_packets(audio, audio_rate_hz, sound)
        waiting = next(packets, None)
        first_pts: int | None = None
        for packet in source.demux(video_in):
            if packet.dts is None or packet.pts is None:
                continue
            # A fragmented file has no edit list: its pictures start late by the encoder's delay.
            first_pts = packet.pts if first_pts is None else first_pts
            packet.pts, packet.dts = packet.pts - first_pts, packet.dts - first_pts
            at = packet.dts * packet.time_base
            while waiting is not None and waiting.dts * waiting.time_base <= at:
                container.mux(waiting)
                waiting = next(packets, None)
            packet.stream = video
            container.mux(packet)
        while waiting is not None:
            container.mux(waiting)
            waiting = next(packets, None)


def write_wav(path: Path, audio: NDArray[np.float32], rate_hz: int) -> None:
    """Sound [2, n] as a WAV file of 32-bit floats: nothing is lost."""
    with av.open(str(path), "w", format="wav") as container:
        sound = container.add_stream("pcm_f32le", rate=rate_hz, layout="stereo")
        for packet in _sound_packets(audio, rate_hz, sound):
            container.mux(packet)


def _sound_packets(
    audio: NDArray[np.float32], rate_hz: int, stream: av.AudioStream
) -> Iterator[av.Packet]:
    context = stream.codec_context
    resampler = av.AudioResampler(
        format=context.format, layout="stereo", rate=stream.rate, frame_size=context.frame_size or 0
    )
    for start in range(0, audio.shape[1], AUDIO_BLOCK_SAMPLES):
        block = np.ascontiguousarray(audio[:, start : start + AUDIO_BLOCK_SAMPLES])
        frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="stereo")
        frame.sample_rate, frame.pts = rate_hz, start
        frame.time_base = Fraction(1, rate_hz)
        for ready in resampler.resample(frame):
            yield from stream.encode(ready)
    for ready in resampler.resample(None):
        yield from stream.encode(ready)
    yield from stream.encode(None)


def check_size(width_px: int, height_px: int) -> None:
    """RequestError unless both sides are positive and even (4:2:0 halves the colour planes)."""
    for name, side in (("width", width_px), ("height", height_px)):
        if side <= 0 or side % 2:
            raise RequestError(f"video {name} {side} px is not positive and even", field=name)


class PictureFolder:
    """The PNG sequence behind the same face as a VideoTrack."""

    def __init__(self, path: Path, metadata: Mapping[str, str]) -> None:
        self.path, self.frames, self.pending = path, 0, []
        self._metadata = metadata
        path.mkdir()

    def write(self, frames: Frames) -> None:
        for frame in frames:
            info = PngImagePlugin.PngInfo()
            for key, value in self._metadata.items() if not self.frames else ():
                info.add_text(key, value)
            name = self.path / f"{self.frames + 1:06d}.png"
            try:
                Image.fromarray(frame).save(name, pnginfo=info, compress_level=4)
            except OSError:
                name.unlink(missing_ok=True)  # half a picture is none
                raise
            self.frames += 1

    def finish(self, audio: NDArray[np.float32] | None, rate_hz: int) -> None:
        if audio is not None:
            write_wav(self.path / "sound.wav", audio, rate_hz)

    def encoded_frames(self) -> Iterator[Frames]:
        for name in sorted(self.path.glob("*.png")):
            with Image.open(name) as picture:
                yield np.asarray(picture)

    def close(self) -> None:
        """Nothing is open."""

    abandon = close
