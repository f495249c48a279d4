"""What the nodes ask of the engine, as one small protocol.

Nodes talk to this and to nothing else of the engine, so a test can put a fake in its place and the
engine can move work to another process without a node noticing. Tensors are CPU tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..engine.events import Host
from ..engine.request import Request
from .handles import ModelHandle


@dataclass(frozen=True)
class Conditions:
    """A prompt as the transformer reads it.

    hidden: [L, text width] encoder rows; tags: [L] int64, 1 text, 0 vision.
    keyframes: one mapping a keyframe: `frame` (pixel frame index), `latent` [1, 24, 1, h, w].
    references: one mapping a reference, keys as core's `minimax_refs`.
    """

    hidden: Any
    tags: Any
    keyframes: tuple[Mapping[str, Any], ...] = ()
    references: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Pictures:
    """What stands beside a prompt. Frames are [n, H, W, 3] float32 in 0..1.

    sounds: (waveform [2, samples] float32, sample rate in hertz).
    videos: (frames, sound or None), 24 frames a second.
    """

    first_frame: Any = None
    last_frame: Any = None
    images: tuple[Any, ...] = ()
    videos: tuple[tuple[Any, Any], ...] = ()
    sounds: tuple[tuple[Any, int], ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when there is only text."""
        frames = (self.first_frame, self.last_frame)
        return all(frame is None for frame in frames) and not (
            self.images or self.videos or self.sounds
        )


@dataclass(frozen=True)
class Latents:
    """video: [1, 24, F, h, w] float32, audio: [1, 32, 2, A] float32, normalised as the VAE's."""

    video: Any
    audio: Any


@dataclass(frozen=True)
class Sampled:
    """Result of a sampling node. first_pass is None when there was one pass."""

    latents: Latents
    first_pass: Latents | None = None
    report: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Decoded:
    """A finished file and its sound. waveform: [2, samples] float32 or None."""

    file: Path
    waveform: Any
    sample_rate_hz: int
    report: Mapping[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """The engine as the nodes see it. Every method may raise any LowpeakError."""

    def describe(self, checkpoint: Path) -> Mapping[str, Any]:
        """Facts of a checkpoint from its headers, ready for JSON. Loads no tensor."""

    def bind_lora(self, model: ModelHandle, lora: Path, *, allow_partial: bool) -> Sequence[str]:
        """Lines of the binding report. CheckpointError below 100 % unless `allow_partial`."""

    def machine(self) -> Mapping[str, Any]:
        """This machine now: the snapshot object of `plan --json`."""

    def forecast(
        self, request: Request, model: ModelHandle | None, capacities: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The document of `plan --json`, also when it does not fit. Loads nothing.

        capacities: vram_bytes, ram_bytes, card, system of another machine; without them this one,
        within vram_limit_bytes and ram_limit_bytes. Without a card the speed is this card's.
        brief: leave out what more memory would change.
        """

    def encode(
        self, model: ModelHandle, request: Request, pictures: Pictures, host: Host
    ) -> Conditions:
        """Encode the prompt and what stands beside it."""

    def sample(
        self, model: ModelHandle, request: Request, conditions: Conditions, host: Host,
        keep_first: Callable[[Latents], None],
    ) -> Sampled:  # fmt: skip
        """Plan, then sample. DoesNotFit before anything is loaded.

        keep_first: called with the first pass of two before the second begins.
        """

    def refine(
        self, model: ModelHandle, request: Request, conditions: Conditions, first: Latents,
        host: Host,
    ) -> Sampled:  # fmt: skip
        """The second pass alone."""

    def decode(
        self, model: ModelHandle, latents: Latents, out: Path, host: Host, *, with_sound: bool
    ) -> Decoded:
        """Decode into `out`, an MP4 that does not exist yet."""

    def release(self) -> int:
        """Give up memory kept between runs; returns bytes of device memory given up."""

    def held_bytes(self) -> tuple[int, int]:
        """(device, host) bytes kept between runs."""
