"""Noise schedules: which times a pass visits, bit for bit as the published tables hold them.

A pass of N evaluations walks a raw grid linspace(1, 0, N + 1); each modality bends it with its own
shift, sigma = s raw / (1 + (s - 1) raw), s = 12 for video and 3 for audio; a time is t = 1 - sigma,
and t = 1 is clean (facts: model sheet d.1, d.2). A refine pass starts in the middle: from the
community's sigmas or from the tail of an ordinary grid (d.6).

Prepared AdaLN tables are found by these numbers, so everything is float32 with a fixed order of
operations. Values are kept as Python floats that are exactly float32. No tensors, no device.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import RequestError
from ..request import too_many_refine_steps

VIDEO_SHIFT = 12.0
AUDIO_SHIFT = 3.0
CONDITION_TIME = float(np.float32(0.999))  # keyframes and visual references are almost clean
REFERENCE_AUDIO_TIME = 1.0

COMMUNITY_3 = "community-sigma3-v1"
COMMUNITY_SIGMAS: dict[str, tuple[float, ...]] = {
    COMMUNITY_3: (0.9035, 0.6316, 0.3158, 0.0),
    "community-sigma4": (0.9035, 0.8, 0.6316, 0.3158, 0.0),
    "community-sigma5": (0.9231, 0.8780, 0.8, 0.6316, 0.3158, 0.0),
}

TABLE_FORMAT = "freevideo-adaln-v2"
TABLE_CONTRACT = "minimax-h3-adaln-silu-linear-3x6-v1"
TABLE_PREFIX = "adaln-tables-v2-"


@dataclass(frozen=True)
class ConditionTimes:
    """Which condition rows a request has, as far as times go.

    visual: keyframes, reference images or reference videos: t = max(t_video, 0.999).
    reference_audio: reference sound: t = 1.
    """

    visual: bool = False
    reference_audio: bool = False


NO_CONDITIONS = ConditionTimes()
TASK_CONDITIONS: dict[str, ConditionTimes] = {
    "t2va": NO_CONDITIONS,
    "fl2va": ConditionTimes(visual=True),
    "ref2va_audio": ConditionTimes(reference_audio=True),
    "ref2va_av": ConditionTimes(visual=True, reference_audio=True),
}


@dataclass(frozen=True)
class StepTimes:
    """The times of one model evaluation, exact float32 values in [0, 1].

    step, steps: this evaluation (from 0) and how many the pass has.
    distinct: the sorted distinct values of all rows; AdaLN has one group of rows for each.
    t_video: text rows and target video rows.  t_audio: target audio rows.
    t_condition: keyframe and visual reference rows, None without such rows.
    t_reference_audio: reference sound rows, None without such rows.
    """

    step: int
    steps: int
    distinct: tuple[float, ...]
    t_video: float
    t_audio: float
    t_condition: float | None = None
    t_reference_audio: float | None = None

    @property
    def video_index(self) -> int:
        """Position of t_video in `distinct`."""
        return self.distinct.index(self.t_video)

    @property
    def audio_index(self) -> int:
        """Position of t_audio in `distinct`."""
        return self.distinct.index(self.t_audio)

    @property
    def condition_index(self) -> int:
        """Position of t_condition in `distinct`."""
        return self._index_of(self.t_condition, "visual condition")

    @property
    def reference_audio_index(self) -> int:
        """Position of t_reference_audio in `distinct`."""
        return self._index_of(self.t_reference_audio, "reference audio")

    def _index_of(self, time: float | None, rows: str) -> int:
        if time is None:
            raise LookupError(f"this pass has no {rows} rows")
        return self.distinct.index(time)


@dataclass(frozen=True)
class Schedule:
    """One pass over the noise levels. All tuples hold evaluations + 1 values ending in 0."""

    name: str
    raw: tuple[float, ...]
    video_sigmas: tuple[float, ...]
    audio_sigmas: tuple[float, ...]

    @property
    def evaluations(self) -> int:
        """Model evaluations of the pass."""
        return len(self.video_sigmas) - 1

    @property
    def video_times(self) -> tuple[float, ...]:
        """1 - sigma of every evaluation, float32."""
        return _times(self.video_sigmas)

    @property
    def audio_times(self) -> tuple[float, ...]:
        """1 - sigma of every evaluation, float32."""
        return _times(self.audio_sigmas)

    def steps(self, conditions: ConditionTimes = NO_CONDITIONS) -> tuple[StepTimes, ...]:
        """The times of every evaluation, in order."""
        found = []
        for step, (video, audio) in enumerate(zip(self.video_times, self.audio_times, strict=True)):
            condition = max(video, CONDITION_TIME) if conditions.visual else None
            sound = REFERENCE_AUDIO_TIME if conditions.reference_audio else None
            present = {t for t in (video, audio, condition, sound) if t is not None}
            found.append(
                StepTimes(
                    step, self.evaluations, tuple(sorted(present)), video, audio, condition, sound
                )
            )
        return tuple(found)

    def table_times(
        self, conditions: ConditionTimes = NO_CONDITIONS
    ) -> tuple[tuple[float, ...], ...]:
        """The distinct times of every step: what a prepared AdaLN table must hold."""
        return tuple(item.distinct for item in self.steps(conditions))

    def table_rows(self, conditions: ConditionTimes = NO_CONDITIONS) -> int:
        """Time groups of all steps. Two different schedules can share it: never match by it."""
        return sum(len(times) for times in self.table_times(conditions))


def schedule(evaluations: int) -> Schedule:
    """The ordinary grid of `evaluations` model evaluations. Raises RequestError below 1."""
    if evaluations < 1:
        raise RequestError(f"{evaluations} evaluations: a pass needs at least 1", field="steps")
    raw = _linspace_one_to_zero(evaluations)
    return Schedule(
        f"grid-{evaluations}", _exact(raw), _exact(_bend(raw, 12)), _exact(_bend(raw, 3))
    )


def tail_schedule(evaluations: int, of: int) -> Schedule:
    """The last `evaluations` steps of the ordinary grid of `of`.

    Raises RequestError unless 1 <= evaluations < of: a tail that is the whole grid would throw the
    first pass away.
    """
    if not 1 <= evaluations < of:
        raise too_many_refine_steps(evaluations, of)
    whole, start = schedule(of), of - evaluations
    return Schedule(
        f"tail-{evaluations}-of-{of}",
        whole.raw[start:],
        whole.video_sigmas[start:],
        whole.audio_sigmas[start:],
    )


def community_schedule(name: str = COMMUNITY_3) -> Schedule:
    """A refine schedule given by its video sigmas; the audio follows on the same raw grid."""
    if name not in COMMUNITY_SIGMAS:
        raise RequestError(
            f"refine schedule {name!r} is none of {', '.join(COMMUNITY_SIGMAS)}",
            field="refine_schedule",
        )
    sigmas = np.asarray(COMMUNITY_SIGMAS[name], np.float32)
    raw = sigmas / (12 - 11 * sigmas)  # the inverse of the video shift
    return Schedule(name, _exact(raw), _exact(sigmas), _exact(_bend(raw, 3)))


def refine_schedule(refine_steps: int, base_steps: int, name: str | None = None) -> Schedule:
    """The schedule of a second pass (facts: model sheet d.6, l.12).

    Three steps always mean the community's sigmas, whatever the base count; another count is the
    tail of the base grid and must be below it. `name` asks for a community schedule by name.
    """
    if name is not None:
        found = community_schedule(name)
        if found.evaluations != refine_steps:
            raise RequestError(
                f"refine schedule {name} has {found.evaluations} steps, not {refine_steps}",
                field="refine_steps",
            )
        return found
    if refine_steps == 3:
        return community_schedule(COMMUNITY_3)
    return tail_schedule(refine_steps, base_steps)


def table_identity(
    times: Sequence[Sequence[float]], weights_sha256: str, *, channels: int = 5376
) -> dict[str, Any]:
    """What a set of prepared AdaLN tables was made from (facts: model sheet c.3, l.2).

    times: distinct float32 times of every step.  weights_sha256: digest of embedding and
    projections.  channels: model width.
    """
    return {
        "format": TABLE_FORMAT,
        "contract": TABLE_CONTRACT,
        "weights": weights_sha256,
        "timesteps": [list(step) for step in times],
        "channels": channels,
        "modality_rows": 3,
        "components": 6,
        "dtype": "BF16",
    }


def table_directory(
    times: Sequence[Sequence[float]], weights_sha256: str, *, channels: int = 5376
) -> str:
    """Name of the folder that holds the tables of these times, next to a checkpoint's blocks."""
    identity = table_identity(times, weights_sha256, channels=channels)
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return TABLE_PREFIX + hashlib.sha256(text.encode()).hexdigest()[:24]


def _linspace_one_to_zero(intervals: int) -> np.ndarray:
    # The step is rounded to float32 first; either half is then measured from its own end with one
    # rounding per value (a fused multiply-add: the product is exact in float64). The published
    # tables were made from this grid; a correctly rounded i/N differs from it in the last digit.
    step = np.float64(np.float32(-1) / np.float32(intervals))
    index = np.arange(intervals + 1)
    down = 1 + step * index
    up = -step * (intervals - index)
    return np.where(index < (intervals + 1) // 2, down, up).astype(np.float32)


def _bend(raw: np.ndarray, shift: int) -> np.ndarray:
    return shift * raw / (1 + (shift - 1) * raw)


def _times(sigmas: Sequence[float]) -> tuple[float, ...]:
    return _exact(1 - np.asarray(sigmas[:-1], np.float32))


def _exact(values: np.ndarray) -> tuple[float, ...]:
    assert values.dtype == np.float32
    return tuple(float(value) for value in values)
