"""What a run leaves behind: V.request.json. Forecast and measurement stand side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Moved(Protocol):
    """Bytes that were moved, and seconds that compute waited for link and disk."""

    @property
    def link_bytes(self) -> int:
        """Over the link, both directions."""

    @property
    def disk_bytes(self) -> int:
        """From the disk."""

    @property
    def stall_seconds(self) -> Mapping[str, float]:
        """By what was waited for."""


@dataclass
class PhaseMeasurement:
    """Measured figures of one phase. Bytes and seconds; None means it was not measured."""

    phase: str
    seconds: float
    started_unix: float = 0.0
    vram_peak_bytes: int | None = None
    ram_peak_bytes: int | None = None
    vram_outside_bytes: int | None = None  # of the peak: context, libraries, captured graphs
    ram_clean_bytes: int | None = None  # at the end: mapped file pages that could be dropped
    # At the end of the phase, while the allocator still holds what it reserved, as the driver says:
    vram_card_bytes: int | None = None  # in use on the whole card, by other programs too
    vram_process_bytes: int | None = None  # of this process, where the driver tells them apart
    ram_tree_bytes: int | None = None  # this process and all below it at the end, by share (PSS)
    cgroup_peak_bytes: int | None = None  # the kernel's mark, since the group was made
    steps: int = 0
    steps_started_unix: float = 0.0  # of the first step; the others follow without a pause
    step_seconds: list[float] = field(default_factory=list)
    step_vram_peak_bytes: list[int] = field(default_factory=list)  # of the allocator, on a card
    link_bytes: int = 0
    disk_bytes: int = 0
    stall_seconds: dict[str, float] = field(default_factory=lambda: {"link": 0.0, "disk": 0.0})

    def add(self, moved: Moved) -> None:
        """Count what a part of the phase moved and waited for."""
        self.link_bytes += moved.link_bytes
        self.disk_bytes += moved.disk_bytes
        for kind, seconds in moved.stall_seconds.items():
            self.stall_seconds[kind] = self.stall_seconds.get(kind, 0.0) + seconds

    def as_json(self) -> dict[str, Any]:
        """The measurement as a JSON object."""
        return dict(vars(self))


@dataclass
class RunReport:
    """One request, from plan to result. Written beside the video as V.request.json."""

    request: dict[str, Any]
    geometry: dict[str, Any]
    snapshot: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    kernels: dict[str, Any] = field(default_factory=dict)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    phases: list[dict[str, Any]] = field(default_factory=list)
    lora: list[dict[str, Any]] = field(default_factory=list)
    checkpoint: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    audio_health: dict[str, Any] = field(default_factory=dict)
    latents_sha256: str | None = None
    codec: str = "h264"  # what the video was asked in, also where there is none yet
    run_id: str = ""  # also in every file that this run saved
    started_unix: float = 0.0
    spans: list[dict[str, Any]] = field(default_factory=list)  # named work, for the timeline

    def add_phase(self, measured: PhaseMeasurement, forecast: dict[str, Any] | None) -> None:
        """Put a measurement beside its forecast."""
        self.phases.append(
            {"phase": measured.phase, "forecast": forecast, "measured": measured.as_json()}
        )

    def add_span(self, name: str, phase: str, started_unix: float, seconds: float) -> None:
        """Name a stretch of work inside a phase, or between phases (`phase` empty)."""
        self.spans.append(
            {"name": name, "phase": phase, "started_unix": started_unix, "seconds": seconds}
        )

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return dict(vars(self))
