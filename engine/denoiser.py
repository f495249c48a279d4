"""The transformer as the sampler sees it: bound to one packed sequence, then called once a step.

This is the seam between sampling and the model. Whoever runs the transformer (the plain form on
any device, the streamed chunk-major engine) answers `bind` with a function of target rows and
times; condition rows and text stay inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from .model.layout import PackedLayout, RowTimes
from .model.plain import PlainModel
from .report import Moved
from .sampling.schedules import StepTimes
from .sampling.solver import ModelFunction


class Denoiser(Protocol):
    """A transformer ready to sample."""

    def bind(
        self,
        layout: PackedLayout,
        text: Tensor,
        condition_rows: Tensor,
        condition_sounds: Tensor | None = None,
    ) -> ModelFunction:
        """A model function of one pass.

        text: [N_t, text_dim] encoder rows; condition_rows: [K, 96] noised visual condition rows
        in packed order, K may be 0; condition_sounds: [J, 32] clean rows of reference sound, in
        packed order. Rows given and returned are float32 on the CPU.
        """

    @property
    def telemetry(self) -> Sequence[StepFigures]:
        """Figures of every step of the pass bound last; empty where nothing is counted."""

    @property
    def notices(self) -> Sequence[str]:
        """What the user should know about the way weights are held."""


class StepFigures(Moved, Protocol):
    """What one step moved, waited for and held. The first one counts what opening moved too."""

    @property
    def vram_peak_bytes(self) -> int | None:
        """What the allocator reserved at most; None without a card."""


class Denoisers(Protocol):
    """Gives the transformer of each sampling phase, which may differ in where its bytes wait."""

    def for_phase(self, phase: str, is_cancelled: Callable[[], bool]) -> Denoiser:
        """The transformer of `phase`; what an earlier phase held is reused or given back.

        is_cancelled: asked at block borders, where the implementation can.
        """

    def release(self) -> None:
        """Give back device memory between phases; `for_phase` takes it again."""

    def close(self) -> None:
        """Give back weights and buffers. Safe to call twice."""


def row_times(layout: PackedLayout, times: StepTimes) -> RowTimes:
    """The times of every packed row at one step."""
    return layout.at(times.t_video, times.t_audio, t_condition=times.t_condition)


class PlainDenoiser:
    """The whole-sequence reference: every weight loaded, every row at once. For small sizes."""

    telemetry: Sequence[StepFigures] = ()
    notices: Sequence[str] = ()

    def __init__(self, model: PlainModel, device: torch.device) -> None:
        self._model, self._device = model, device

    def bind(
        self,
        layout: PackedLayout,
        text: Tensor,
        condition_rows: Tensor,
        condition_sounds: Tensor | None = None,
    ) -> ModelFunction:
        """See Denoiser.bind."""
        here = layout.to(self._device)
        text = text.to(self._device)
        conditions = condition_rows.to(self._device)
        sounds = None if condition_sounds is None else condition_sounds.to(self._device)
        held = 0 if sounds is None else len(sounds)

        def velocity(video: Tensor, audio: Tensor, times: StepTimes) -> tuple[Tensor, Tensor]:
            """Of the target rows, on the CPU; conditions stand in front of them on the way in."""
            rows = torch.cat([conditions, video.to(self._device)])
            heard = audio.to(self._device)
            heard = heard if sounds is None else torch.cat([sounds, heard])
            with torch.inference_mode():
                found_video, found_audio = self._model.forward(
                    rows, heard, text, row_times(here, times), here
                )
            return found_video[len(conditions) :].cpu(), found_audio[held:].cpu()

        return velocity

    def for_phase(self, phase: str, is_cancelled: Callable[[], bool]) -> PlainDenoiser:
        """See Denoisers.for_phase: the same model serves every phase."""
        return self

    def release(self) -> None:
        """See Denoisers.release: a small model stays where it is."""

    def close(self) -> None:
        """The weights go with the object."""
