"""Frames and sound that media tests write, and encoders that fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lowpeak.engine import media_encode
from lowpeak.engine.media import VideoWriter

WIDTH, HEIGHT, RATE = 96, 64, 32_000


def clip(frames: int = 22, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A moving gradient with some noise: no two frames alike."""
    generator = np.random.default_rng(seed)
    y, x, t = np.mgrid[0:HEIGHT, 0:WIDTH, 0:frames]
    planes = [(x * 2 + t * 5) % 256, (y * 3 + t * 3) % 256, (x + y + t * 7) % 256]
    video = np.stack(planes, -1).transpose(2, 0, 1, 3)
    return (video // 2 + generator.integers(0, 16, video.shape)).astype(np.uint8)


def tone(seconds: float = 22 / 24, rate_hz: int = RATE) -> torch.Tensor:
    t = torch.arange(round(seconds * rate_hz)) / rate_hz
    chirp = torch.sin(2 * torch.pi * (200 + 300 * t) * t)
    return torch.stack([0.5 * chirp, 0.25 * chirp])


def write(path: Path, *, sound: bool = True, frames: Any = None, **options: Any) -> Path:
    with VideoWriter(path, WIDTH, HEIGHT, audio_sample_rate_hz=RATE, **options) as writer:
        for part in np.array_split(clip() if frames is None else frames, 3):
            writer.write_frames(part)
        if sound:
            writer.write_audio(tone())
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fail_after(monkeypatch: pytest.MonkeyPatch, packets: int, failure: Exception) -> None:
    """From packet number `packets` on, the H.264 stage cannot be written."""
    real, count = media_encode.VideoTrack._mux, [0]

    def mux(track: Any, ready: list[Any]) -> None:
        for packet in ready:
            if track.encoder == "libx264" and count[0] >= packets:
                raise failure
            count[0] += track.encoder == "libx264"
            real(track, [packet])

    monkeypatch.setattr(media_encode.VideoTrack, "_mux", mux)


class FakeGeometry:
    """A frame smaller than a request may be."""

    width_px, height_px, frames, seconds = WIDTH, HEIGHT, 22, 22 / 24
