"""Frames and sound to a file: streamed, under a temporary name, renamed when whole.

    with VideoWriter("clip.mp4", 1344, 768, audio_sample_rate_hz=32000) as writer:
        decode_video(..., on_frames=writer.write_frames)
        writer.write_audio(waveform)

After an exception in the block nothing is left. When the encoder, the muxer or the disk fails,
frames are kept and SaveFailed names them: the part already encoded, then every later frame without
loss; `repeat_save` makes the file from them without decoding again.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import av
import numpy as np
import torch
from numpy.typing import NDArray

from .errors import RequestError, SaveFailed
from .geometry import AUDIO_SAMPLE_RATE_HZ, FRAMES_PER_SECOND
from .media_encode import (
    FORMATS,
    Format,
    Frames,
    PictureFolder,
    VideoTrack,
    check_size,
    choose_encoder,
    finish_file,
    write_wav,
)
from .media_queue import BackgroundFrames
from .media_read import iterate_frames, probe, read_audio, read_image, read_video

__all__ = [
    "BackgroundFrames",
    "VideoWriter",
    "kept_frames",
    "probe",
    "read_audio",
    "read_image",
    "read_video",
    "repeat_save",
    "settings_sha256",
]
log = logging.getLogger(__name__)
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
HASH_KEY = "lowpeak_settings_sha256"


class VideoWriter:
    """Writes one video (or PNG sequence). A context manager; not for several threads at once."""

    def __init__(
        self,
        path: str | Path,
        width_px: int,
        height_px: int,
        fps: int | Fraction = FRAMES_PER_SECOND,
        *,
        codec: str = "h264",
        audio_sample_rate_hz: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        identity: str = "",
    ) -> None:
        """codec: h264 (MP4), h264_nvenc (MP4, the card's encoder), webm (AV1, else VP9), png (a
        folder of pictures), lossless (FFV1 in Matroska).

        metadata: values are stored as text, and as JSON where they are no text. The keys `workflow`
        and `prompt` are the ones ComfyUI restores a graph from. A hash over all of them is added.
        identity: what the frames are made of (a hash of the latents), so that frames kept after a
        failure are used for nothing else.

        Raises RequestError for a size, codec or path that cannot work, KernelUnavailable when no
        encoder for `codec` runs here.
        """
        check_size(width_px, height_px)
        if codec not in FORMATS:
            raise RequestError(f"codec {codec!r} is none of {', '.join(FORMATS)}", field="codec")
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise RequestError(f"{self.path.parent} is not a folder", field="out")
        self.width_px, self.height_px, self.fps = width_px, height_px, Fraction(fps)
        self.codec, self.frames, self.identity = codec, 0, identity
        self.audio_sample_rate_hz = audio_sample_rate_hz or AUDIO_SAMPLE_RATE_HZ
        self.metadata = _as_text(metadata or {})
        self.encoder = choose_encoder(FORMATS[codec]) if FORMATS[codec].encoders else codec
        self._sound: list[NDArray[np.float32]] = []
        self._token = secrets.token_hex(4)
        self._track: VideoTrack | PictureFolder | None = None
        self._failure: str | None = None

    def __enter__(self) -> Self:
        try:
            self._track = self._open_track(self._part(), FORMATS[self.codec], self.encoder)
        except (av.FFmpegError, OSError) as failure:
            self._stop_if_disk_is_full(failure)
            self._go_lossless(failure)
        return self

    def write_frames(self, frames: torch.Tensor | Frames) -> None:
        """Append [n, H, W, 3] uint8 frames, from any device.

        Raises RequestError for another shape or dtype, SaveFailed when the disk is full. An
        encoder that fails does not raise here: frames go on being kept without loss, and leaving
        the context raises SaveFailed.
        """
        array = frames.detach().cpu().numpy() if isinstance(frames, torch.Tensor) else frames
        wanted = (self.height_px, self.width_px, 3)
        if array.ndim != 4 or array.shape[1:] != wanted or array.dtype != np.uint8:
            raise RequestError(
                f"frames are {array.dtype} {array.shape}, "
                f"need uint8 [n, {self.height_px}, {self.width_px}, 3]"
            )
        if self._track is None:
            raise RequestError("write_frames outside of the writer's with-block")
        self.frames += len(array)
        try:
            self._track.write(array)
        except (av.FFmpegError, OSError) as failure:
            self._stop_if_disk_is_full(failure)
            if self._failure is not None:
                raise self._give_up(failure, 0, []) from failure
            self._go_lossless(failure)

    def write_audio(self, samples: torch.Tensor | NDArray[np.floating[Any]]) -> None:
        """Append stereo sound [2, n] in -1..1 at `audio_sample_rate_hz`; values beyond are clipped.

        Order against the frames does not matter. Held in memory (4 MB for 15 s at 32 kHz).
        """
        array = samples.detach().cpu().numpy() if isinstance(samples, torch.Tensor) else samples
        if array.ndim != 2 or array.shape[0] != 2:
            raise RequestError(f"sound has shape {array.shape}, need [2, samples]")
        array = np.nan_to_num(np.asarray(array, np.float32), nan=0.0, posinf=1.0, neginf=-1.0)
        self._sound.append(np.clip(array, -1.0, 1.0))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            if self._track is not None:
                self._track.abandon()
            hidden = glob.escape(f".{self.path.name}.{self._token}.")
            for leftover in self.path.parent.glob(hidden + "*"):
                if leftover.is_dir():
                    shutil.rmtree(leftover)
                else:
                    leftover.unlink()

    # ---- the good way

    def _finish(self) -> None:
        track, self._track = self._track, None
        assert track is not None
        if self._failure is not None:
            raise self._keep_lossless(track)
        if not self.frames:
            raise RequestError(f"{self.path}: no frame was written")
        complete = False
        try:
            track.close()
            complete = True
            if isinstance(track, PictureFolder):
                track.finish(self._audio(), self.audio_sample_rate_hz)
                _replace_folder(track.path, self.path)
                return
            final = self._part("final")
            finish_file(
                track.path,
                final,
                FORMATS[self.codec],
                self.fps,
                self._audio(),
                self.audio_sample_rate_hz,
                self.metadata,
            )
            _to_disk(final)
            os.replace(final, self.path)
        except (av.FFmpegError, OSError) as failure:
            track.abandon()
            raise self._keep_encoded(track, failure, complete) from failure

    # ---- the other ways

    def _go_lossless(self, failure: Exception) -> None:
        """Copy what is encoded into a lossless file, add what was pending, and go on there."""
        log.warning("%s: encoder failed (%s); keeping frames without loss", self.path, failure)
        self._failure = f"{type(failure).__name__}: {failure}"
        broken, self._track = self._track, None
        if broken is not None:
            broken.abandon()
        kept = self._kept(".frames.mkv")
        lossless = self._open_track(kept, FORMATS["lossless"], "ffv1")
        self._track = lossless
        try:
            if broken is not None:
                first = broken.pending[0][0] if broken.pending else self.frames
                for index, frame in enumerate(broken.encoded_frames()):
                    if index < first:
                        lossless.write(frame[None])
                for _, frame in broken.pending:
                    lossless.write(frame[None])
        except (av.FFmpegError, OSError) as second:
            raise self._give_up(second, lossless.frames, [kept]) from second

    def _keep_lossless(self, track: VideoTrack | PictureFolder) -> SaveFailed:
        kept = [track.path]
        try:
            track.close()
            kept += self._keep_sound_and_settings(encoded=False)
        except (av.FFmpegError, OSError) as failure:
            return self._give_up(failure, track.frames, kept)
        return self._failed(self._failure or "", track.frames, kept, can_repeat=True)

    def _keep_encoded(
        self, track: VideoTrack | PictureFolder, failure: Exception, complete: bool
    ) -> SaveFailed:
        """The frames are encoded; only the finished file could not be made."""
        kept = [self._keep_stage(track)]
        try:
            kept += self._keep_sound_and_settings(encoded=True)
        except (av.FFmpegError, OSError):
            complete = False
        detail = f"{type(failure).__name__}: {failure}"
        return self._failed(detail, self.frames, kept, can_repeat=complete)

    def _stop_if_disk_is_full(self, failure: Exception) -> None:
        """A full disk takes no lossless copy either: keep what is there and say where."""
        if getattr(failure, "errno", None) not in DISK_FULL:
            return
        track, self._track = self._track, None
        if track is None:
            raise self._give_up(failure, 0, []) from failure
        track.abandon()
        whole = sum(1 for _ in track.encoded_frames())
        kept = [self._keep_stage(track)] if whole else []
        raise self._give_up(failure, whole, kept) from failure

    def _keep_stage(self, track: VideoTrack | PictureFolder) -> Path:
        if isinstance(track, PictureFolder):
            kept = self._kept(".frames")
            _replace_folder(track.path, kept)
        else:
            kept = self._kept(f".frames{FORMATS[self.codec].suffix}")
            os.replace(track.path, kept)
        return kept

    def _keep_sound_and_settings(self, *, encoded: bool) -> list[Path]:
        kept, audio = [], self._audio()
        if audio is not None:
            kept.append(self._kept(".frames.wav"))
            write_wav(kept[-1], audio, self.audio_sample_rate_hz)
        settings = {
            "path": str(self.path),
            "codec": self.codec,
            "fps": str(self.fps),
            "width_px": self.width_px,
            "height_px": self.height_px,
            "audio_sample_rate_hz": self.audio_sample_rate_hz,
            "metadata": self.metadata,
            "identity": self.identity,
            "encoded": encoded,
        }
        kept.append(self._kept(".frames.json"))
        kept[-1].write_text(json.dumps(settings))
        return kept

    def _give_up(self, failure: Exception, frames: int, kept: list[Path]) -> SaveFailed:
        full = getattr(failure, "errno", None) in DISK_FULL
        detail = f"the disk is full ({failure})" if full else f"{type(failure).__name__}: {failure}"
        return self._failed(detail, frames, kept, can_repeat=False)

    def _failed(
        self, detail: str, frames: int, kept: list[Path], *, can_repeat: bool
    ) -> SaveFailed:
        there = [str(path) for path in kept if path.exists()]
        return SaveFailed(self.path, detail, frames=frames, saved=there, can_repeat=can_repeat)

    # ---- small things

    def _open_track(self, path: Path, form: Format, encoder: str) -> VideoTrack | PictureFolder:
        if form.name == "png":
            return PictureFolder(path, self.metadata)
        return VideoTrack(path, self.width_px, self.height_px, self.fps, form, encoder)

    def _part(self, what: str = "part") -> Path:
        """A hidden name beside the target: the rename then stays on one file system."""
        name = f".{self.path.name}.{self._token}.{what}{FORMATS[self.codec].suffix}"
        return self.path.with_name(name)

    def _kept(self, suffix: str) -> Path:
        return self.path.with_name(self.path.stem + suffix)

    def _audio(self) -> NDArray[np.float32] | None:
        return np.concatenate(self._sound, axis=1) if self._sound else None


def repeat_save(kept: str | Path, path: str | Path | None = None) -> Path:
    """Make the video that failed from what SaveFailed named; returns its path.

    kept: the `.frames.json`, or any kept file beside it. path: another target. The kept files are
    removed after success. Raises RequestError when they are not complete.
    """
    kept = Path(kept)
    base = kept.name.rpartition(".frames")[0]
    manifest = kept.with_name(f"{base}.frames.json")
    try:
        settings = json.loads(manifest.read_text())
    except (OSError, json.JSONDecodeError) as failure:
        raise RequestError(f"{manifest} cannot be read: {failure}", field="resume") from failure
    form = FORMATS[settings["codec"]]
    suffix = form.suffix if settings["encoded"] else ".mkv"
    frames = kept.with_name(f"{base}.frames{suffix}")
    sound = kept.with_name(f"{base}.frames.wav")
    if not frames.exists():
        raise RequestError(f"{frames} is missing", field="resume")
    target = Path(path or settings["path"])
    with VideoWriter(
        target,
        settings["width_px"],
        settings["height_px"],
        Fraction(settings["fps"]),
        codec=settings["codec"],
        audio_sample_rate_hz=settings["audio_sample_rate_hz"],
        metadata={k: v for k, v in settings["metadata"].items() if k != HASH_KEY},
    ) as writer:
        for frame in iterate_frames(frames):
            writer.write_frames(frame[None])
        if sound.exists():
            writer.write_audio(read_audio(sound, settings["audio_sample_rate_hz"]))
    for leftover in (frames, sound, manifest):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink(missing_ok=True)
    return target


def kept_frames(path: str | Path, identity: str) -> Path | None:
    """What `repeat_save` makes `path` from, if frames of `identity` were kept beside it."""
    manifest = Path(path).with_name(Path(path).stem + ".frames.json")
    try:
        settings = json.loads(manifest.read_text())
    except (OSError, json.JSONDecodeError):
        return None
    return manifest if identity and settings.get("identity") == identity else None


def settings_sha256(metadata: Mapping[str, Any]) -> str:
    """The settings hash: SHA-256 over the metadata as canonical JSON."""
    text = json.dumps(metadata, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _as_text(metadata: Mapping[str, Any]) -> dict[str, str]:
    text = {k: v if isinstance(v, str) else json.dumps(v) for k, v in metadata.items()}
    return {**text, HASH_KEY: settings_sha256(text)} if text else {}


def _to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _replace_folder(source: Path, target: Path) -> None:
    """Put `source` in the place of `target`; the old folder goes last."""
    old = source.with_name(source.name + ".old")
    with suppress(FileNotFoundError):
        target.rename(old)
    source.rename(target)
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)
