"""What the history keeps: attempts, their phases, what makes two of them alike, what spoils one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..request import Request
from .types import HardwareSnapshot, Placement

MOST_BUSY_PERCENT = 30
OUTCOMES = ("done", "out_of_memory", "cancelled", "failed")


@dataclass(frozen=True)
class PhaseRecord:
    """One phase of an attempt: forecast beside measurement. Bytes, seconds; None is unmeasured."""

    name: str
    steps: int
    vram_forecast_bytes: int | None = None
    vram_measured_bytes: int | None = None
    ram_forecast_bytes: int | None = None
    ram_measured_bytes: int | None = None
    seconds_forecast: float | None = None
    seconds_measured: float | None = None
    placement: Placement | None = None


@dataclass(frozen=True)
class Attempt:
    """One run of a request on a machine.

    disturbed: why it must not teach ("hot", "shared card", ...); empty for a clean run.
    """

    machine: str
    shape: str
    started: float
    outcome: str
    phases: tuple[PhaseRecord, ...]
    disturbed: str = ""
    software: str = ""
    request: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"outcome {self.outcome!r} is none of {OUTCOMES}")


@dataclass(frozen=True)
class TimeForecast:
    """Seconds with a range, and the sentence that says what they stand on."""

    seconds: float
    low_seconds: float
    high_seconds: float
    basis: str
    samples: int


def machine_key(snapshot: HardwareSnapshot) -> str:
    """What makes two machines the same: card, its memory, system. Not the driver, not the load."""
    name = snapshot.card or snapshot.device_name or "unknown"
    return f"{snapshot.system}/{name}/{snapshot.vram_total_bytes >> 28}"


def shape_key(request: Request) -> str:
    """What makes two requests cost the same."""
    clip = request.geometry
    parts = [
        f"{clip.width_px}x{clip.height_px}x{clip.frames}",
        request.quality,
        f"{request.base_steps or ''}+{request.refine_steps or ''}",
        {None: "auto", True: "two", False: "one"}[request.two_pass],
        f"k{request.keyframes}r{len(request.references)}l{len(request.loras)}",
    ]
    return "/".join(parts)


_ENDS = {
    "done": "done",
    "MeasuredOverrun": "out_of_memory",
    "out_of_device_memory": "out_of_memory",
    "out_of_host_memory": "out_of_memory",
    "killed_by_kernel": "out_of_memory",
    "Cancelled": "cancelled",
    "cancelled": "cancelled",
}


def attempt_of(
    report: Mapping[str, Any],
    machine: str,
    shape: str,
    started: float,
    *,
    disturbed: str = "",
    software: str = "",
) -> Attempt:
    """The attempt that a report tells of. Phases without a forecast teach nothing."""
    ends = report.get("attempts") or [{"outcome": "failed"}]
    phases = []
    for item in report.get("phases", ()):
        forecast, measured = item.get("forecast"), item["measured"]
        if forecast is None:
            continue
        place = forecast.get("placement")
        phases.append(
            PhaseRecord(
                item["phase"],
                int(measured.get("steps") or 0),
                forecast.get("vram_peak_bytes"),
                measured.get("vram_peak_bytes"),
                forecast.get("ram_peak_bytes"),
                _needed(measured),
                forecast.get("seconds"),
                measured.get("seconds"),
                None if place is None else Placement(**place),
            )
        )
    return Attempt(
        machine,
        shape,
        started,
        _ENDS.get(str(ends[-1].get("outcome")), "failed"),
        tuple(phases),
        disturbed,
        software,
        {key: value for key, value in report.get("request", {}).items() if key != "prompt"},
    )


def _needed(measured: Mapping[str, Any]) -> int | None:
    """Host peak without the clean file pages in it: those are no need and would raise a margin."""
    peak = measured.get("ram_peak_bytes")
    return None if peak is None else max(0, peak - (measured.get("ram_clean_bytes") or 0))


def is_disturbed(
    *, thermal_share: float = 0.0, clock_share: float = 1.0, busy_percent: float = 0.0
) -> str:
    """Why a run must not teach; empty for a clean run.

    thermal_share: of the moments looked at, how many had thermal reasons; clock_share: clock over
    the highest; busy_percent: how busy others kept the card before the run began.
    """
    if busy_percent >= MOST_BUSY_PERCENT:
        return "another program used the card"
    if thermal_share >= 0.5 and clock_share < 0.7:
        return f"hot: clock at {100 * clock_share:.0f} %"
    return ""
