"""Time embedding and AdaLN: from a time to shifts, scales and gates (facts: model sheet a.7, a.8).

A block's AdaLN table has 3 rows a time (video, text, audio) and six vectors of width C a row. It
comes from the block's projection, or, in slim checkpoints that left the projection out, from tables
prepared for the times of certain schedules; `ScheduleCursor` finds a time there or refuses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import CheckpointError
from .layout import MODALITIES
from .times import position_of

TIME_TABLE = "adaln_t_table"  # of pruned files, in place of the time embedder


class Modulation(NamedTuple):
    """The six vectors of a block's table, each [3n, C], rows (t0 video, t0 text, t0 audio, ...)."""

    shift_msa: Tensor
    scale_msa: Tensor
    gate_msa: Tensor
    shift_mlp: Tensor
    scale_mlp: Tensor
    gate_mlp: Tensor


def time_sinusoid(times: Tensor, width: int) -> Tensor:
    """[n] times in [0, 1] (unscaled, 1 is clean) -> [n, width] float32, cosines then sines."""
    half = width // 2
    order = torch.arange(half, dtype=torch.float32, device=times.device)
    angles = times.to(torch.float32)[:, None] * torch.exp(-math.log(10_000.0) * order / half)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


def time_embedding(weights: Mapping[str, Tensor], times: Tensor, freq_dim: int) -> Tensor:
    """[n] times -> temb [n, time_dim] in the dtype of `time_embedder`, float32 in checkpoints.

    weights: holds `time_embedder.linear_1.*` and `time_embedder.linear_2.*`, or a pruned file's
    TIME_TABLE in their place: then its rows [n, 8], which projections read without a SiLU.
    """
    if TIME_TABLE in weights:
        return time_table_rows(weights[TIME_TABLE], times)
    first = weights["time_embedder.linear_1.weight"]
    x = time_sinusoid(times, freq_dim).to(first.dtype)
    x = F.silu(F.linear(x, first, weights["time_embedder.linear_1.bias"]))
    last = weights["time_embedder.linear_2.weight"]
    return F.linear(x, last, weights["time_embedder.linear_2.bias"])


def time_table_rows(table: Tensor, times: Tensor) -> Tensor:
    """Rows of a pruned file's table [1025, 8] over t in 0..1, linear between (model sheet c.5)."""
    table = table.to(torch.float32)
    place = times.to(torch.float32) * (table.shape[0] - 1)
    below = place.floor().clamp(0, table.shape[0] - 1).long()
    above = (below + 1).clamp(max=table.shape[0] - 1)
    return torch.lerp(table[below], table[above], (place - below)[:, None])


def adaln_table(weight: Tensor, bias: Tensor, temb: Tensor) -> Tensor:
    """temb [n, time_dim] -> table [3n, 6C] in weight's dtype.

    weight: [18C, time_dim], bias: [18C]. SiLU runs in temb's float32 and only its result is rounded
    to the projection's dtype: every block reads the same temb, so rounding first would bias all of
    them alike.
    """
    table = F.linear(F.silu(temb).to(weight.dtype), weight, bias)
    return table.reshape(MODALITIES * temb.shape[0], -1)


def split_table(table: Tensor) -> Modulation:
    """The six [3n, C] parts of a table [3n, 6C], as views."""
    return Modulation(*table.chunk(6, dim=-1))


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """x * (1 + scale) + shift; x is already normalised. All [N, C]."""
    return x * (1.0 + scale) + shift


def norm_out_table(
    weight: Tensor, bias: Tensor, temb: Tensor, *, activate: bool = True
) -> tuple[Tensor, Tensor]:
    """Shift and scale [n, C] of the output norm, one row a time whatever the modality.

    weight: [2C, time_dim], rows of the shift first. activate: False for rows of a pruned table.
    """
    read = F.silu(temb) if activate else temb
    shift, scale = F.linear(read.to(weight.dtype), weight, bias).chunk(2, dim=-1)
    return shift, scale


class ScheduleCursor:
    """Where the rows of a time stand in prepared AdaLN tables.

    A table file holds tensors `step_{i}` [3 n_i, 6C], a block's table at the n_i distinct times of
    step i. Times are matched by value, never by count: different schedules can have equal counts.
    A row depends on its time alone, so a step may be put together from several stored steps.
    """

    def __init__(self, timesteps: Sequence[Sequence[float]], *, source: str = "") -> None:
        """timesteps: the distinct times of every stored step. source: a name for messages."""
        self.timesteps = tuple(tuple(float(t) for t in step) for step in timesteps)
        self.source = source

    def locate(self, times: Tensor | Sequence[float]) -> list[tuple[int, int]]:
        """(step, position) of each time, from one step if one holds them all.

        Raises CheckpointError naming the missing times and those the tables hold.
        """
        wanted = _floats(times)
        for index, held in enumerate(self.timesteps):
            found = [position_of(held, t) for t in wanted]
            if None not in found:
                return [(index, position) for position in found if position is not None]
        anywhere = [self._find(t) for t in wanted]
        missing = [t for t, place in zip(wanted, anywhere, strict=True) if place is None]
        if missing:
            held = sorted({t for step in self.timesteps for t in step})
            raise CheckpointError(
                "the prepared AdaLN tables hold no rows for these times",
                file=self.source,
                expected=", ".join(f"{t:.9g}" for t in missing),
                found=", ".join(f"{t:.9g}" for t in held) or "no times at all",
                remedy="Choose a schedule the tables were made for, or a checkpoint with the "
                "AdaLN projections.",
            )
        return [place for place in anywhere if place is not None]

    def own_times(self, times: Tensor | Sequence[float]) -> list[float]:
        """The stored times that stand for `times`; use these for everything else of the step."""
        return [self.timesteps[step][position] for step, position in self.locate(times)]

    def table(self, tensors: Mapping[str, Tensor], times: Tensor | Sequence[float]) -> Tensor:
        """One block's table [3n, 6C] at `times`, from its `step_{i}` tensors.

        Raises CheckpointError for missing times, a missing tensor, or a wrong number of rows.
        """
        return torch.cat(
            [
                self._stored(tensors, step)[MODALITIES * position : MODALITIES * (position + 1)]
                for step, position in self.locate(times)
            ]
        )

    def checked(self, tensors: Mapping[str, Tensor]) -> list[Tensor]:
        """One block's `step_{i}` tensors in order. Raises CheckpointError as `table` does."""
        return [self._stored(tensors, step) for step in range(len(self.timesteps))]

    def _stored(self, tensors: Mapping[str, Tensor], step: int) -> Tensor:
        name, count = f"step_{step}", MODALITIES * len(self.timesteps[step])
        stored = tensors.get(name)
        if stored is None or stored.shape[0] != count:
            raise CheckpointError(
                "an AdaLN table does not match its list of times",
                file=self.source,
                tensor=name,
                expected=f"{count} rows",
                found="no tensor" if stored is None else f"{stored.shape[0]} rows",
            )
        return stored

    def _find(self, time: float) -> tuple[int, int] | None:
        for index, held in enumerate(self.timesteps):
            position = position_of(held, time)
            if position is not None:
                return index, position
        return None


def _floats(times: Tensor | Sequence[float]) -> list[float]:
    return times.tolist() if isinstance(times, Tensor) else [float(t) for t in times]
