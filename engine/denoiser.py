"""The transformer as the sampler sees it: bound to one packed sequence, then called once a step.

This is the seam between sampling and the model. Whoever runs the transformer (the plain form on
any device, the streamed chunk-major engine) answers `bind` with a function of target rows and
times; condition rows and text stay inside it.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from .model.layout import PackedLayout, RowTimes
from .model.plain import PlainModel
from .sampling.schedules import StepTimes
from .sampling.solver import ModelFunction


class Denoiser(Protocol):
    """A transformer ready to sample."""

    def bind(self, layout: PackedLayout, text: Tensor, condition_rows: Tensor) -> ModelFunction:
        """A model function of one pass.

        text: [N_t, text_dim] encoder rows; condition_rows: [K, 96] noised visual condition rows
        in packed order, K may be 0. Rows given and returned are float32 on the CPU.
        """

    def close(self) -> None:
        """Give back weights and buffers. Safe to call twice."""


def row_times(layout: PackedLayout, times: StepTimes) -> RowTimes:
    """The times of every packed row at one step."""
    return layout.at(times.t_video, times.t_audio, t_condition=times.t_condition)


class PlainDenoiser:
    """The whole-sequence reference: every weight loaded, every row at once. For small sizes."""

    def __init__(self, model: PlainModel, device: torch.device) -> None:
        self._model, self._device = model, device

    def bind(self, layout: PackedLayout, text: Tensor, condition_rows: Tensor) -> ModelFunction:
        """See Denoiser.bind."""
        here = layout.to(self._device)
        text = text.to(self._device)
        conditions = condition_rows.to(self._device)

        def velocity(video: Tensor, audio: Tensor, times: StepTimes) -> tuple[Tensor, Tensor]:
            rows = torch.cat([conditions, video.to(self._device)])
            with torch.inference_mode():
                found_video, found_audio = self._model.forward(
                    rows, audio.to(self._device), text, row_times(here, times), here
                )
            return found_video[len(conditions) :].cpu(), found_audio.cpu()

        return velocity

    def close(self) -> None:
        """The weights go with the object."""
