"""A model over packed rows as the solver's function of the target rows.

The solver moves only target rows; condition rows stay as they were noised. This closes a forward
pass over layout, text and condition rows: conditions come first in each stream, and the velocities
of their rows are dropped (facts: model sheet a.3, d.4).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..model.layout import PackedLayout, RowTimes
from .schedules import ConditionTimes, StepTimes
from .solver import ModelFunction

Forward = Callable[[Tensor, Tensor, Tensor, RowTimes, PackedLayout], tuple[Tensor, Tensor]]
"""(video rows, audio rows, text, times, layout) -> velocities of all rows; PlainModel.forward."""


def condition_times(layout: PackedLayout) -> ConditionTimes:
    """Which condition rows a layout has; the `conditions` of solver.euler."""
    return ConditionTimes(
        visual=layout.condition_video_rows > 0, reference_audio=layout.condition_audio_rows > 0
    )


def row_times(layout: PackedLayout, times: StepTimes) -> RowTimes:
    """The times of one evaluation, row by row. Raises ValueError when the two disagree.

    They disagree when the schedule was walked with other `conditions` than the layout has.
    """
    found = layout.at(
        times.t_video,
        times.t_audio,
        t_condition=times.t_condition,
        **(
            {}
            if times.t_reference_audio is None
            else {"t_reference_audio": times.t_reference_audio}
        ),
    )
    if tuple(found.distinct.tolist()) != times.distinct:
        raise ValueError(
            f"the layout's rows stand at {found.distinct.tolist()}, the schedule says "
            f"{list(times.distinct)}: pass conditions=condition_times(layout) to the solver"
        )
    return found


def packed_model_fn(
    forward: Forward,
    text: Tensor,
    layout: PackedLayout,
    *,
    condition_rows: Tensor | None = None,
    condition_audio_rows: Tensor | None = None,
) -> ModelFunction:
    """`forward` as a function of the target rows alone.

    text: [N_t, text_dim].  condition_rows: [K, 96], noised visual conditions in packed order.
    condition_audio_rows: [J, 32], clean reference sound rows in packed order.
    Raises ValueError when the layout reserved another number of condition rows.
    """
    for name, rows, reserved in (
        ("visual condition", condition_rows, layout.condition_video_rows),
        ("reference audio", condition_audio_rows, layout.condition_audio_rows),
    ):
        given = 0 if rows is None else rows.shape[0]
        if given != reserved:
            raise ValueError(f"the layout holds {reserved} {name} rows, {given} were given")

    def model(video: Tensor, audio: Tensor, times: StepTimes) -> tuple[Tensor, Tensor]:
        """Velocities of the target rows, with the condition rows in front on the way in."""
        video_velocity, audio_velocity = forward(
            _behind(condition_rows, video),
            _behind(condition_audio_rows, audio),
            text,
            row_times(layout, times),
            layout,
        )
        return (
            video_velocity[layout.condition_video_rows :],
            audio_velocity[layout.condition_audio_rows :],
        )

    return model


def _behind(conditions: Tensor | None, target: Tensor) -> Tensor:
    return target if conditions is None else torch.cat([conditions.to(target), target])
