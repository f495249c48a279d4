"""The miniature's world: one coloured shape moves over a plain background and hums.

Every clip is a function of an index: an integer hash gives its numbers, so any clip can be made
alone, on any device, in any order. The shape gives the pitch, the place gives the pan. A fifth of
the combinations of colour, shape and motion is held out: training never sees them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

COLOURS = {
    "red": (0.90, 0.12, 0.12),
    "yellow": (0.95, 0.85, 0.10),
    "green": (0.10, 0.75, 0.20),
    "cyan": (0.10, 0.80, 0.90),
    "blue": (0.15, 0.25, 0.95),
    "magenta": (0.90, 0.15, 0.80),
}
TONES_HZ = {"circle": 320, "square": 200, "diamond": 480, "ring": 640}
TONE_WORDS = {"circle": "low", "square": "deep", "diamond": "clear", "ring": "high"}
SHAPES = tuple(TONES_HZ)
MOTIONS = {"right": (1, 0), "left": (-1, 0), "up": (0, -1), "down": (0, 1)}
SIDES = {"right": "right", "left": "left", "up": "top", "down": "bottom"}
BACKGROUNDS = {"black": 0.05, "grey": 0.45, "white": 0.95}
TEMPLATES = (
    "A {colour} {shape} moves {motion} on a {background} background.",
    "A {colour} {shape} slides {motion} over a {background} background.",
    "On a {background} background, a {colour} {shape} drifts {motion}.",
    "A {colour} {shape} moves to the {side} on a {background} background.",
    "A {colour} {shape} glides {motion} on {background}. A {tone} tone hums.",
    "{colour} {shape} going {motion}, {background} background",
)
SPAN = 0.36  # of the canvas that the shape crosses in a clip
ACROSS = 0.1  # how far off the middle a path may lie
SAMPLE_RATE_HZ, HOP = 32_000, 800
FPS, LATENTS_PER_SECOND = 24, 40
STYLE_PLAIN, STYLE_NIGHT, STYLE_OUTLINE = 0, 1, 2
NIGHT = (0.20, 0.08, 0.32)  # the background of the style `night`
HELD_OUT_OF = 5


def is_held_out(colour: int, shape: int, motion: int) -> bool:
    """Whether a combination (indices) is never trained."""
    return (colour + 2 * shape + 3 * motion) % HELD_OUT_OF == 0


def combinations(held_out: bool) -> list[tuple[int, int, int]]:
    """(colour, shape, motion) of one side of the split."""
    return [
        (c, s, m)
        for c in range(len(COLOURS))
        for s in range(len(SHAPES))
        for m in range(len(MOTIONS))
        if is_held_out(c, s, m) == held_out
    ]


def uniform(index: Tensor, stream: int) -> Tensor:
    """[N] int64 -> [N] float32 in [0, 1): the hash of (index, stream), equal on every device."""
    mask = 0xFFFFFFFF
    x = (index * 0x9E3779B1 + stream * 0x85EBCA77 + 0x165667B1) & mask
    for shift, factor in ((16, 0x7FEB352D), (15, 0x2C1B3C6D)):
        x = ((x ^ (x >> shift)) * factor) & mask
    x = x ^ (x >> 16)
    return (x >> 8).to(torch.float32) / (1 << 24)


@dataclass(frozen=True)
class Scenes:
    """N clips. Index tensors are int64 [N]; radius and across are shares of the canvas [N]."""

    colour: Tensor
    shape: Tensor
    motion: Tensor
    background: Tensor
    radius: Tensor
    across: Tensor
    style: int = STYLE_PLAIN

    @classmethod
    def of(cls, index: Tensor, *, held_out: bool = False, style: int = STYLE_PLAIN) -> Scenes:
        """The clips of `index` [N] int64, on its device."""
        table = torch.tensor(combinations(held_out), device=index.device)
        pick = (uniform(index, 1) * len(table)).long()
        colour, shape, motion = table[pick].unbind(1)
        return cls(
            colour,
            shape,
            motion,
            (uniform(index, 2) * len(BACKGROUNDS)).long(),
            0.17 + 0.04 * uniform(index, 3),
            ACROSS * (2 * uniform(index, 4) - 1),
            style,
        )

    @property
    def count(self) -> int:
        """N."""
        return self.colour.shape[0]

    def take(self, at: Tensor) -> Scenes:
        """The clips at positions `at` [M] int64."""
        names = ("colour", "shape", "motion", "background", "radius", "across")
        return Scenes(*(getattr(self, name)[at] for name in names), style=self.style)

    def words(self, i: int) -> dict[str, str]:
        """The words that fill a template for clip `i`."""
        shape = SHAPES[int(self.shape[i])]
        motion = tuple(MOTIONS)[int(self.motion[i])]
        return {
            "colour": tuple(COLOURS)[int(self.colour[i])],
            "shape": shape,
            "motion": motion,
            "side": SIDES[motion],
            "background": tuple(BACKGROUNDS)[int(self.background[i])],
            "tone": TONE_WORDS[shape],
        }

    def caption(self, i: int, template: int = 0) -> str:
        """The caption of clip `i`."""
        return TEMPLATES[template].format(**self.words(i))

    def places(self, moments: Tensor) -> Tensor:
        """Centres at moments [T] in [0, 1]: [N, T, 2] (x, y) as shares of the canvas."""
        steps = torch.tensor(list(MOTIONS.values()), device=self.motion.device, dtype=torch.float32)
        along = steps[self.motion]  # [N, 2]
        sideways = along.abs().flip(1) * self.across[:, None]
        return 0.5 + sideways[:, None] + along[:, None] * (SPAN * (moments - 0.5))[:, None]


def moments_of(frames: int, device: torch.device | str, first: int = 0, count: int = 0) -> Tensor:
    """Moments in [0, 1] of `count` frames from `first` of a clip of `frames`; 0 means all."""
    at = torch.arange(first, first + (count or frames), device=device, dtype=torch.float32)
    return at / (frames - 1)


def distance(dx: Tensor, dy: Tensor, radius: Tensor, shape: Tensor) -> Tensor:
    """Signed distance to the outline, negative inside; shape is an index that broadcasts."""
    round_ = torch.hypot(dx, dy)
    ax, ay = dx.abs(), dy.abs()
    found = round_ - radius
    found = torch.where(shape == 1, torch.maximum(ax, ay) - 0.88 * radius, found)
    found = torch.where(shape == 2, (ax + ay - 1.2 * radius) * math.sqrt(0.5), found)
    return torch.where(shape == 3, (round_ - 0.76 * radius).abs() - 0.24 * radius, found)


def render(
    scenes: Scenes,
    moments: Tensor,
    height: int,
    width: int,
    *,
    crop: tuple[int, int, int, int] | None = None,
    grounds: Tensor | None = None,
    rims: Tensor | None = None,
) -> Tensor:
    """Frames [N, 3, T, h, w] in 0..1 of a canvas of height x width pixels.

    crop: (top, left, h, w) of the canvas instead of all. grounds: [N, 3] colours instead of the
    scenes' backgrounds. rims: [N] bool, which shapes have a rim; by default the style says so.
    """
    device = scenes.colour.device
    top, left, h, w = crop or (0, 0, height, width)
    y = torch.arange(top, top + h, device=device, dtype=torch.float32) + 0.5
    x = torch.arange(left, left + w, device=device, dtype=torch.float32) + 0.5
    centre = scenes.places(moments) * torch.tensor([width, height], device=device)
    dx = x - centre[..., 0, None, None]  # [N, T, 1, w]
    dy = y[:, None] - centre[..., 1, None, None]  # [N, T, h, 1]
    radius = (scenes.radius * min(height, width))[:, None, None, None]
    outline = distance(dx, dy, radius, scenes.shape[:, None, None, None])
    cover = (0.5 - outline).clamp(0, 1)[:, None]
    paint = torch.tensor(list(COLOURS.values()), device=device)[scenes.colour]
    if grounds is None:
        grey = torch.tensor(list(BACKGROUNDS.values()), device=device)[scenes.background]
        grounds = grey[:, None].expand(-1, 3)
        if scenes.style == STYLE_NIGHT:
            grounds = torch.tensor(NIGHT, device=device).expand(scenes.count, 3)
    ground, paint = (c[:, :, None, None, None] for c in (grounds, paint))
    if rims is None and scenes.style == STYLE_OUTLINE:
        rims = torch.ones(scenes.count, dtype=torch.bool, device=device)
    if rims is not None:
        thick = 0.22 * radius
        rim = (0.5 - (outline - thick)).clamp(0, 1)[:, None] * rims[:, None, None, None, None]
        ground = ground + (1 - ground.mean(1, keepdim=True).round() - ground) * rim
    return ground + (paint - ground) * cover


def audio_latents(frames: int) -> int:
    """Audio latents of a clip."""
    return round(frames / FPS * LATENTS_PER_SECOND)


def sound(scenes: Scenes, frames: int) -> Tensor:
    """[N, 2, 800 A] in -1..1: a steady tone that pans with the shape.

    Pitches are multiples of 40 Hz, so every latent of 25 ms holds whole periods.
    """
    device = scenes.colour.device
    samples = audio_latents(frames) * HOP
    at = torch.arange(samples, device=device, dtype=torch.float32)
    tones = torch.tensor([float(v) for v in TONES_HZ.values()], device=device)[scenes.shape]
    turns = (tones[:, None] * at) / SAMPLE_RATE_HZ % 1.0
    angle = 2 * math.pi * turns
    wave = 0.4 * (torch.sin(angle) + 0.2 * torch.sin(2 * angle))
    across = scenes.places(at / samples)[..., 0]
    pan = (across * math.pi / 2)[:, None]
    return torch.cat([wave[:, None] * pan.cos(), wave[:, None] * pan.sin()], dim=1)
