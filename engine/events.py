"""What a run tells its host while it goes on: frozen, JSON-ready, at most a few a second."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

PHASES = ("encode", "sample_low", "upscale", "sample_high", "decode")
Phase = Literal["encode", "sample_low", "upscale", "sample_high", "decode"]
Kind = Literal["forecast", "measured", "progress", "notice", "preview"]


@dataclass(frozen=True)
class Event:
    """One message of the `lowpeak.run` stream. Bytes, seconds; None means unknown, never zero.

    picture: of a `preview`, a JPEG in base64.
    """

    kind: Kind
    phase: str
    message: str = ""
    step: int | None = None
    steps: int | None = None
    vram_bytes: int | None = None
    ram_bytes: int | None = None
    vram_peak_bytes: int | None = None
    ram_peak_bytes: int | None = None
    seconds: float | None = None
    terms: tuple[dict[str, Any], ...] = field(default=())
    picture: str = ""

    def as_json(self) -> dict[str, Any]:
        """The event without its unknown fields."""
        return {k: v for k, v in asdict(self).items() if v not in (None, "", ())}


@runtime_checkable
class Host(Protocol):
    """Whoever runs the engine: the command line, a worker process, a ComfyUI node, or a test."""

    def is_cancelled(self) -> bool:
        """True once the user asked to stop. Asked at block borders."""

    def release_memory(self, need_bytes: int) -> None:
        """Ask the host to give up device memory of its own."""

    def emit(self, event: Event) -> None:
        """Take one event. Must return at once."""


class QuietHost:
    """A host that never cancels and keeps the events it was given."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def is_cancelled(self) -> bool:
        """Never."""
        return False

    def release_memory(self, need_bytes: int) -> None:
        """Nothing to give."""

    def emit(self, event: Event) -> None:
        """Keep the event."""
        self.events.append(event)
