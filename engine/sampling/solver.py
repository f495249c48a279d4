"""Euler's method over a rectified flow, as a pure function of a model function.

x_t = t x0 + (1 - t) noise and the model gives v = x0 - noise, so the estimate of the clean rows is
x0 = x + (1 - t) v and the next rows are r x + (1 - r) x0 with r = sigma_next / sigma (facts: model
sheet d.1, l.10: x0 takes the float32 1 - t, the ratio takes the sigma grid; below sigma 0.5 they
differ in the last digit). Both streams step together. The solver knows nothing of packing, text,
condition rows or devices: the model function closes over them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from ..errors import Cancelled
from .schedules import NO_CONDITIONS, ConditionTimes, Schedule, StepTimes

ModelFunction = Callable[[Tensor, Tensor, StepTimes], tuple[Tensor, Tensor]]
"""(target video rows, target audio rows, times) -> velocities of the same rows, same shapes."""


@dataclass(frozen=True)
class StepResult:
    """What `on_step` sees after an evaluation. Tensors are float32 and must not be changed.

    video, audio: rows after the update.  denoised_video: the model's estimate of the clean rows,
    which is what a preview should show.
    """

    times: StepTimes
    video: Tensor
    audio: Tensor
    denoised_video: Tensor


@dataclass(frozen=True)
class HeldAudio:
    """Finished audio that accompanies a refine: re-noised to each step's time, never stepped.

    clean, noise: [2A, 32] float32; one noise for all steps (facts: model sheet d.6).
    """

    clean: Tensor
    noise: Tensor

    def rows_at(self, t_audio: float) -> Tensor:
        """t clean + (1 - t) noise, the rows that the model sees. [2A, 32] float32."""
        return mix(self.clean, self.noise, t_audio)


def mix(clean: Tensor, noise: Tensor, time: float) -> Tensor:
    """time * clean + (1 - time) * noise, with 1 - time taken in float32. Same shape and dtype."""
    return time * clean + complement(time) * noise


def complement(time: float) -> float:
    """1 - time, rounded to float32 as the schedule's own numbers are."""
    return float(np.float32(1) - np.float32(time))


def euler_step(rows: Tensor, velocity: Tensor, time: float, sigmas: tuple[float, float]) -> Tensor:
    """Rows after one step from sigmas[0] to sigmas[1], float32 in the shape of `rows`."""
    return _advance(rows.float(), denoise(rows, velocity, time), sigmas)


def denoise(rows: Tensor, velocity: Tensor, time: float) -> Tensor:
    """The clean estimate x + (1 - t) v, float32 in the shape of `rows`."""
    return rows.float() + complement(time) * velocity.float()


def euler(
    model_fn: ModelFunction,
    video: Tensor,
    audio: Tensor | HeldAudio,
    schedule: Schedule,
    on_step: Callable[[StepResult], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
    *,
    conditions: ConditionTimes = NO_CONDITIONS,
) -> tuple[Tensor, Tensor]:
    """Walk `schedule`; gives the clean (video rows, audio rows), float32.

    model_fn: see ModelFunction; called `schedule.evaluations` times.
    video: [F*S, 96] rows at schedule.video_sigmas[0].
    audio: [2A, 32] rows at schedule.audio_sigmas[0], or HeldAudio, which comes back unchanged.
    on_step: called after every update.  is_cancelled: asked before every evaluation.
    conditions: which condition rows the model function holds; decides the distinct times.
    Raises Cancelled. `video` and `audio` are not written to.
    """
    held = audio if isinstance(audio, HeldAudio) else None
    video_rows = video.float()
    audio_rows = audio.clean.float() if isinstance(audio, HeldAudio) else audio.float()
    for times in schedule.steps(conditions):
        if is_cancelled is not None and is_cancelled():
            raise Cancelled(f"sampling, before step {times.step + 1} of {times.steps}")
        fed = audio_rows if held is None else held.rows_at(times.t_audio)
        video_velocity, audio_velocity = model_fn(video_rows, fed, times)
        denoised = denoise(video_rows, video_velocity, times.t_video)
        span = slice(times.step, times.step + 2)
        video_rows = _advance(video_rows, denoised, schedule.video_sigmas[span])
        if held is None:
            audio_rows = euler_step(
                audio_rows, audio_velocity, times.t_audio, schedule.audio_sigmas[span]
            )
        if on_step is not None:
            on_step(StepResult(times, video_rows, audio_rows, denoised))
    return video_rows, audio_rows


def _advance(rows: Tensor, denoised: Tensor, sigmas: tuple[float, ...]) -> Tensor:
    ratio = np.float32(sigmas[1]) / np.float32(sigmas[0])
    return float(ratio) * rows + float(np.float32(1) - ratio) * denoised
