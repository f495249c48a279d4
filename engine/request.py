"""What the user asked for, as one frozen value. No paths are opened and no tensor is made here."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .errors import RequestError
from .geometry import Geometry

QUALITIES = ("light", "medium", "high", "max")
MAX_SEED = 2**53 - 1
MAX_LORA_STRENGTH = 4.0
MAX_LORA_RANK = 2048


@dataclass(frozen=True)
class LoraChoice:
    """One adapter file and its strength. rank: stands in for the file in a forecast without it."""

    file: str
    strength: float = 1.0
    rank: int | None = None

    def __post_init__(self) -> None:
        if not -MAX_LORA_STRENGTH <= self.strength <= MAX_LORA_STRENGTH:
            raise RequestError(
                f"LoRA strength {self.strength} is outside -4..4 ({self.file})", field="lora"
            )
        if self.rank is not None and not 1 <= self.rank <= MAX_LORA_RANK:
            raise RequestError(
                f"LoRA rank {self.rank} is outside 1..{MAX_LORA_RANK}", field="lora_rank"
            )


@dataclass(frozen=True)
class Request:
    """A text-to-video request. Steps and `two_pass` of None follow `quality`."""

    geometry: Geometry
    prompt: str = ""
    quality: str = "light"
    seed: int = 0
    base_steps: int | None = None
    refine_steps: int | None = None
    two_pass: bool | None = None
    first_frame: str | None = None
    last_frame: str | None = None
    references: tuple[str, ...] = ()
    loras: tuple[LoraChoice, ...] = ()
    text_rows: int | None = None  # known after encoding; the planner assumes a usual prompt before
    reference_rows: int | None = None  # packed rows of the references, once their files are read

    def __post_init__(self) -> None:
        if self.quality not in QUALITIES:
            raise RequestError(
                f"quality {self.quality!r} is none of {', '.join(QUALITIES)}", field="quality"
            )
        if not 0 <= self.seed <= MAX_SEED:
            raise RequestError(f"seed {self.seed} is outside 0..{MAX_SEED}", field="seed")
        _check_steps("base_steps", self.base_steps, 32)
        _check_steps("refine_steps", self.refine_steps, 31)

    @property
    def keyframes(self) -> int:
        """How many of first and last frame are given."""
        return (self.first_frame is not None) + (self.last_frame is not None)

    def as_json(self, *, keep_prompt: bool = False) -> dict[str, Any]:
        """The request object of reports. The prompt and the paths stay out unless asked for."""
        data = asdict(self)
        geometry = data.pop("geometry")
        data["loras"] = [
            {"strength": item.strength} | ({"rank": item.rank} if item.rank else {})
            for item in self.loras
        ]
        data["references"] = len(self.references)
        for key in ("first_frame", "last_frame"):
            data[key] = data[key] is not None
        if not keep_prompt:
            data.pop("prompt")
        data.update(
            width=geometry["width_px"],
            height=geometry["height_px"],
            frames=geometry["frames"],
            seconds=self.geometry.seconds,
        )
        return data


def _check_steps(name: str, value: int | None, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise RequestError(f"{name} {value} is outside 1..{most}", field=name)


def no_second_pass(quality: str) -> RequestError:
    """The refusal of refine settings in a request of one pass; forecasts and runs say the same."""
    return RequestError(
        f"refine steps need a second pass, and quality {quality} has one pass here: turn two "
        "passes on or leave the refine settings out",
        field="refine_steps",
    )


def too_many_refine_steps(refine_steps: int, base_steps: int) -> RequestError:
    """The refusal of a second pass as long as the first one."""
    return RequestError(
        f"{refine_steps} refine steps must be at least 1 and fewer than the {base_steps} base "
        "steps",
        field="refine_steps",
    )
