"""Quality levels: how many evaluations a request gets, on which canvas, in one pass or two.

light is 8 evaluations on the small canvas, a latent lift and 3 at full size; medium, high and max
are 12, 16 and 20 at full size (facts: model sheet d.3). Base steps, refine steps and the number of
passes can each be set by hand for any level. The result is a plain value; nothing is loaded here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import RequestError
from ..geometry import Geometry
from ..request import Request, no_second_pass
from .canvas import HALVING_FLOOR_PX, TwoPassCanvas, plan_two_pass_canvas
from .schedules import Schedule, refine_schedule, schedule

BASE_STEPS = range(1, 33)
REFINE_STEPS = range(1, 32)
DEFAULT_REFINE_STEPS = 3
PHASE_LOW = "sample_low"
PHASE_HIGH = "sample_high"


@dataclass(frozen=True)
class Quality:
    """What a level means when nothing is set by hand."""

    base_steps: int
    two_pass: bool


LEVELS: dict[str, Quality] = {
    "light": Quality(8, True),
    "medium": Quality(12, False),
    "high": Quality(16, False),
    "max": Quality(20, False),
}


@dataclass(frozen=True)
class PassPlan:
    """One sampling pass. `phase` is the name used by plans, events and reports."""

    phase: str
    geometry: Geometry
    schedule: Schedule
    seed_offset: int = 0
    holds_audio: bool = False  # a refine re-noises the finished audio and never steps it

    @property
    def evaluations(self) -> int:
        """Model evaluations of the pass."""
        return self.schedule.evaluations


@dataclass(frozen=True)
class SamplingPlan:
    """The passes of a request and what lies between them. `canvas` is None for a single pass."""

    passes: tuple[PassPlan, ...]
    canvas: TwoPassCanvas | None = None

    @property
    def two_pass(self) -> bool:
        """Whether a second pass follows the first."""
        return len(self.passes) == 2

    @property
    def first(self) -> PassPlan:
        """The pass that starts from noise."""
        return self.passes[0]

    @property
    def refine(self) -> PassPlan | None:
        """The second pass, or None."""
        return self.passes[1] if self.two_pass else None

    @property
    def evaluations(self) -> int:
        """Model evaluations of all passes."""
        return sum(item.evaluations for item in self.passes)

    @property
    def upscaling(self) -> bool:
        """Whether the latent upscaler runs between the passes."""
        return self.canvas is not None and self.canvas.upscaling

    def as_json(self) -> dict[str, Any]:
        """Passes, canvases and schedules for reports."""
        data: dict[str, Any] = {
            "evaluations": self.evaluations,
            "passes": [
                {
                    "phase": item.phase,
                    "width": item.geometry.width_px,
                    "height": item.geometry.height_px,
                    "steps": item.evaluations,
                    "schedule": item.schedule.name,
                    "seed_offset": item.seed_offset,
                }
                for item in self.passes
            ],
        }
        if self.canvas is not None:
            data["lift"] = {
                "width": self.canvas.lift_width_px,
                "height": self.canvas.lift_height_px,
                "crop_left": self.canvas.crop_left_px,
                "crop_top": self.canvas.crop_top_px,
                "upscaling": self.canvas.upscaling,
            }
        return data


def plan_sampling(
    geometry: Geometry,
    quality: str = "light",
    *,
    base_steps: int | None = None,
    refine_steps: int | None = None,
    two_pass: bool | None = None,
    refine_name: str | None = None,
    halving_floor_px: int = HALVING_FLOOR_PX,
) -> SamplingPlan:
    """The passes of a request; None keeps what the level says.

    refine_name: one of schedules.COMMUNITY_SIGMAS, else the rule of schedules.refine_schedule.
    halving_floor_px: see canvas.plan_two_pass_canvas.
    Raises RequestError for an unknown level, steps out of range, a refine as long as its base
    (three steps excepted), and refine settings without a second pass.
    """
    if quality not in LEVELS:
        raise RequestError(f"quality {quality!r} is none of {', '.join(LEVELS)}", field="quality")
    level = LEVELS[quality]
    base = level.base_steps if base_steps is None else base_steps
    _check("base_steps", base, BASE_STEPS)
    if two_pass is None:
        two_pass = level.two_pass
    if not two_pass:
        if refine_steps is not None or refine_name is not None:
            raise no_second_pass(quality)
        return SamplingPlan((PassPlan(PHASE_HIGH, geometry, schedule(base)),))
    refine = DEFAULT_REFINE_STEPS if refine_steps is None else refine_steps
    _check("refine_steps", refine, REFINE_STEPS)
    second = refine_schedule(refine, base, refine_name)
    canvas = plan_two_pass_canvas(
        geometry.width_px, geometry.height_px, halving_floor_px=halving_floor_px
    )
    small = Geometry(canvas.first_width_px, canvas.first_height_px, geometry.frames)
    return SamplingPlan(
        (
            PassPlan(PHASE_LOW, small, schedule(base)),
            PassPlan(PHASE_HIGH, geometry, second, seed_offset=1, holds_audio=True),
        ),
        canvas,
    )


def plan_request(request: Request) -> SamplingPlan:
    """`plan_sampling` of a Request."""
    return plan_sampling(
        request.geometry,
        request.quality,
        base_steps=request.base_steps,
        refine_steps=request.refine_steps,
        two_pass=request.two_pass,
    )


def _check(name: str, value: int, allowed: range) -> None:
    if value not in allowed:
        raise RequestError(
            f"{name} {value} is outside {allowed.start}..{allowed.stop - 1}", field=name
        )
