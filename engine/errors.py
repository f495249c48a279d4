"""Every error Lowpeak raises on purpose, as one tree.

    LowpeakError
    +-- RequestError        the request is wrong, or the options contradict each other
    |   +-- SilentSound     a reference in which nothing is heard
    +-- CheckpointError     a model file is missing, damaged, or of another kind
    +-- DoesNotFit          the plan needs more memory or disk than there is
    +-- KernelUnavailable   no implementation of an operation can run here
    +-- MeasuredOverrun     the run used more memory than its plan said
    +-- WorkerDied          a worker process ended without a result
    +-- SaveFailed          the video could not be written; what was kept is named
    +-- Cancelled           the user, or ComfyUI, asked to stop

An error says what, how much, against what, and the way out. The numbers are fields, so that a
panel or a script need not read the sentence. `exit_code` is what the command line returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .units import format_gib


class LowpeakError(Exception):
    """Root of the tree. Never raised itself."""

    exit_code = 1

    def as_json(self) -> dict[str, Any]:
        """The error as a JSON object: its type, its sentence, and its fields."""
        fields = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        return {"error": type(self).__name__, "message": str(self), **_plain(fields)}


class RequestError(LowpeakError):
    """A request that cannot be right on any machine. `field` names the offending option."""

    exit_code = 2

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class SilentSound(RequestError):
    """A reference sound without any sample but zero; a video goes on without it."""


class CheckpointError(LowpeakError):
    """A model file that cannot be used. Names file, tensor, expected and found."""

    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        file: str | Path = "",
        tensor: str = "",
        expected: object = None,
        found: object = None,
        remedy: str = "",
    ) -> None:
        parts = [message]
        if file:
            parts.append(f"file {file}")
        if tensor:
            parts.append(f"tensor {tensor}")
        if expected is not None or found is not None:
            parts.append(f"expected {expected}, found {found}")
        text = "; ".join(parts)
        super().__init__(f"{text}. {remedy}" if remedy else text)
        self.file, self.tensor = str(file), tensor
        self.expected, self.found, self.remedy = expected, found, remedy


@dataclass(frozen=True)
class Shortage:
    """One axis on which a request does not fit. Bytes.

    Where less is free than the margin that must stay free, nothing is usable, and what the margin
    itself lacks is part of the need: have_bytes is never negative, the shortfall stays the same.
    """

    axis: str  # "vram" | "ram" | "disk"
    phase: str
    need_bytes: int
    have_bytes: int

    def __post_init__(self) -> None:
        if self.have_bytes < 0:
            object.__setattr__(self, "need_bytes", self.need_bytes - self.have_bytes)
            object.__setattr__(self, "have_bytes", 0)

    @property
    def shortfall_bytes(self) -> int:
        """How many bytes are missing."""
        return self.need_bytes - self.have_bytes

    def __str__(self) -> str:
        return (
            f"{self.axis.upper()}: phase {self.phase} needs {format_gib(self.need_bytes)}, "
            f"{format_gib(self.have_bytes)} is usable, short by {format_gib(self.shortfall_bytes)}"
        )


class DoesNotFit(LowpeakError):
    """No placement of this request fits. `fits_instead` lists requests that were planned and do."""

    exit_code = 3

    def __init__(self, short: Sequence[Shortage], fits_instead: Sequence[Mapping[str, Any]] = ()):
        self.short = tuple(short)
        self.fits_instead = tuple(dict(item) for item in fits_instead)
        text = "; ".join(str(item) for item in self.short)
        if self.fits_instead:
            sizes = ", ".join(
                f"{i['width']}x{i['height']} with {i['frames']} frames" for i in self.fits_instead
            )
            text += f". Would fit: {sizes}"
        super().__init__(text)


class KernelUnavailable(LowpeakError):
    """No implementation of `op` can run. `reasons` maps each candidate to why it is out."""

    def __init__(self, op: str, reasons: Mapping[str, str]) -> None:
        self.op, self.reasons = op, dict(reasons)
        listed = "; ".join(f"{name} - {why}" for name, why in self.reasons.items())
        super().__init__(f"{op}: no usable implementation: {listed or 'none is registered'}")


class MeasuredOverrun(LowpeakError):
    """The run needed more than its plan. Bytes."""

    exit_code = 5

    def __init__(self, phase: str, axis: str, forecast_bytes: int, measured_bytes: int) -> None:
        super().__init__(
            f"phase {phase} used {format_gib(measured_bytes)} of {axis.upper()}, "
            f"{format_gib(forecast_bytes)} was planned. "
            "Close other programs or plan with a smaller budget."
        )
        self.phase, self.axis = phase, axis
        self.forecast_bytes, self.measured_bytes = forecast_bytes, measured_bytes


class WorkerDied(LowpeakError):
    """A worker ended without a result. `kind` is the exit class, `saved` what can be resumed."""

    exit_code = 5

    def __init__(self, kind: str, detail: str, *, saved: Sequence[str] = ()) -> None:
        kept = f" Kept: {', '.join(saved)}." if saved else ""
        super().__init__(f"worker died ({kind}): {detail}.{kept}")
        self.kind, self.detail, self.saved = kind, detail, tuple(saved)


class SaveFailed(LowpeakError):
    """The encoder, the muxer or the disk failed. `saved` names the files that were kept, and
    `can_repeat` is true when saving alone can be repeated from them."""

    def __init__(
        self,
        path: str | Path,
        detail: str,
        *,
        frames: int,
        saved: Sequence[str] = (),
        can_repeat: bool = False,
    ) -> None:
        kept = (
            f" Kept {frames} frames: {', '.join(saved)}." if saved else " None of it could be kept."
        )
        way_out = " Saving alone can be repeated." if can_repeat else ""
        super().__init__(f"{path} was not written: {detail}.{kept}{way_out}")
        self.path, self.detail, self.frames = str(path), detail, frames
        self.saved, self.can_repeat = tuple(saved), can_repeat


class Cancelled(LowpeakError):
    """The run was stopped on request. `saved` names what can be resumed."""

    exit_code = 130

    def __init__(self, where: str, *, saved: Sequence[str] = ()) -> None:
        kept = f" Kept: {', '.join(saved)}." if saved else ""
        super().__init__(f"cancelled during {where}.{kept}")
        self.where, self.saved = where, tuple(saved)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, Shortage):
        return {**vars(value), "shortfall_bytes": value.shortfall_bytes}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)
