"""Does a clip show what its caption says? Simple vision and hearing on decoded frames and sound."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .data import (
    COLOURS,
    MOTIONS,
    NIGHT,
    SAMPLE_RATE_HZ,
    SHAPES,
    TONES_HZ,
    distance,
)

SATURATED = 0.3  # max - min of a pixel's channels that counts as the object
LEAST_SHARE, MOST_SHARE = 0.01, 0.35  # of the picture that an object may cover
LEAST_TRAVEL = 0.15  # of the canvas, for a motion to count
PITCH_TOLERANCE = 0.03


@dataclass(frozen=True)
class Seen:
    """What was found; None where nothing was."""

    colour: str | None
    shape: str | None
    motion: str | None
    tone_hz: float | None

    def against(self, words: dict[str, str]) -> dict[str, bool]:
        """Which of colour, shape, motion, pitch agree with a caption's words."""
        wanted = TONES_HZ[words["shape"]]
        return {
            "colour": self.colour == words["colour"],
            "shape": self.shape == words["shape"],
            "motion": self.motion == words["motion"],
            "pitch": self.tone_hz is not None and abs(self.tone_hz / wanted - 1) <= PITCH_TOLERANCE,
        }


def look(frames: Tensor, wave: Tensor | None) -> Seen:
    """frames: uint8 [n, H, W, 3]; wave: [2, samples] or None."""
    pixels = frames.float().cpu() / 255
    mask = (pixels.amax(-1) - pixels.amin(-1)) > SATURATED
    share = mask.float().mean((1, 2))
    good = ((share > LEAST_SHARE) & (share < MOST_SHARE)).nonzero().flatten().tolist()
    tone = None if wave is None else pitch(wave)
    if len(good) < len(frames) // 2:
        return Seen(None, None, None, tone)
    chosen = [good[i * (len(good) - 1) // 4] for i in range(5)]
    votes = [_shape(mask[i]) for i in chosen]
    return Seen(
        _colour(pixels[chosen][mask[chosen]]),
        max(set(votes), key=votes.count),
        _motion(mask, good),
        tone,
    )


def pitch(wave: Tensor) -> float | None:
    """The strongest frequency of a sound in Hz, None for near silence."""
    mono = wave.float().cpu().mean(0)
    if float(mono.square().mean().sqrt()) < 0.02:
        return None
    spectrum = torch.fft.rfft(mono * torch.hann_window(len(mono)), n=4 * SAMPLE_RATE_HZ).abs()
    spectrum[: 4 * 60] = 0
    return float(spectrum.argmax()) / 4


def psnr(a: Tensor, b: Tensor) -> float:
    """Of two uint8 pictures, in dB."""
    error = (a.float() - b.float()).square().mean().clamp_min(1e-9)
    return float(10 * torch.log10(255**2 / error))


def has_style(frames: Tensor, style: str) -> bool:
    """Whether a clip carries the mark of a style: a violet ground, or a rim around the shape."""
    pixels = frames[len(frames) // 2].float().cpu() / 255
    ground = torch.cat([pixels[:8].reshape(-1, 3), pixels[-8:].reshape(-1, 3)]).median(0).values
    if style == "night":
        return bool((ground - torch.tensor(NIGHT)).abs().amax() < 0.1)
    mask = (pixels.amax(-1) - pixels.amin(-1)) > SATURATED
    if not bool(mask.any()):
        return False
    grey = pixels.mean(-1)
    rim = ((grey - ground.mean()).abs() > 0.25) & ~mask  # neither ground nor paint
    return float(rim.sum()) > 0.25 * float(mask.sum())


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Shares of true values by name, in percent; mean and least of decibels; how many rows."""
    names = rows[0] if rows else {}
    found: dict[str, Any] = {}
    for name in names:
        values = [row[name] for row in rows]
        if name.endswith("_db"):
            found[name] = round(sum(values) / len(values), 1)
            found[f"{name}_least"] = round(min(values), 1)
        else:
            found[name] = round(100 * sum(values) / len(values), 1)
    if rows:
        both = sum(r["colour"] and r["shape"] for r in rows)
        found["colour_and_shape"] = round(100 * both / len(rows), 1)
    return found | {"clips": len(rows)}


def _colour(pixels: Tensor) -> str:
    """The palette colour of nearest hue. pixels: [n, 3]."""
    hue = colorsys.rgb_to_hsv(*pixels.median(0).values.tolist())[0]

    def off(name: str) -> float:
        other = colorsys.rgb_to_hsv(*COLOURS[name])[0]
        return min(abs(hue - other), 1 - abs(hue - other))

    return min(COLOURS, key=off)


def _centre(mask: Tensor) -> tuple[float, float]:
    y, x = mask.nonzero().float().mean(0).tolist()
    return x + 0.5, y + 0.5


def _motion(mask: Tensor, good: list[int]) -> str | None:
    height, width = mask.shape[1:]
    (x0, y0), (x1, y1) = _centre(mask[good[0]]), _centre(mask[good[-1]])
    dx, dy = (x1 - x0) / width, (y1 - y0) / height
    if max(abs(dx), abs(dy)) < LEAST_TRAVEL:
        return None
    step = (int(dx > 0) * 2 - 1, 0) if abs(dx) > abs(dy) else (0, int(dy > 0) * 2 - 1)
    return next(name for name, way in MOTIONS.items() if way == step)


def _shape(mask: Tensor) -> str:
    """The shape whose silhouette of equal area overlaps best."""
    x0, y0 = _centre(mask)
    y = torch.arange(mask.shape[0]).float()[:, None] + 0.5 - y0
    x = torch.arange(mask.shape[1]).float() + 0.5 - x0
    best, found = -1.0, SHAPES[0]
    for index, name in enumerate(SHAPES):
        unit = distance(x / 16, y / 16, torch.tensor(1.0), torch.tensor(index)) < 0
        scale = 16 * (float(mask.sum()) / max(1.0, float(unit.sum()))) ** 0.5
        there = distance(x / scale, y / scale, torch.tensor(1.0), torch.tensor(index)) < 0
        overlap = float((there & mask).sum()) / max(1.0, float((there | mask).sum()))
        if overlap > best:
            best, found = overlap, name
    return found
