"""AdaLN rows of a pass: read once from a checkpoint's tables, put together for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from ..blocks.memory import HostBuffer
from .modulation import MODALITIES, ScheduleCursor


class Tables(Protocol):
    """What a checkpoint gives: see engine.checkpoint.tables."""

    name: str
    times: tuple[tuple[float, ...], ...]

    def load_block(self, block: int) -> dict[str, Tensor]:
        """{"step_0": [3 n_0, 6C], ...} of one block."""


class StepTables:
    """All blocks' tables in host memory, a stored step in one piece: its rows go to the device in
    one copy.

    pin: page-lock the pieces. `close` gives the memory back.
    """

    def __init__(self, tables: Tables, blocks: int, *, pin: bool = False) -> None:
        self.cursor = ScheduleCursor(tables.times, source=tables.name)
        self._buffers: list[HostBuffer] = []
        self.steps: list[Tensor] = []  # [blocks, 3n, 6C] each
        for index in range(blocks):
            stored = self.cursor.checked(tables.load_block(index))
            for step, rows in enumerate(stored):
                if index == 0:
                    self.steps.append(self._empty(blocks, rows, pin))
                self.steps[step][index].copy_(rows)

    def at(self, times: Sequence[float], device: torch.device, dtype: torch.dtype) -> Tensor:
        """[blocks, 3n, 6C] at the distinct times of a step.

        Raises CheckpointError for a time the tables do not hold.
        """
        places = self.cursor.locate(times)
        step, count = places[0][0], len(self.cursor.timesteps[places[0][0]])
        if places == [(step, position) for position in range(count)]:
            return self.steps[step].to(device, non_blocking=True).to(dtype)
        parts = [
            self.steps[step][:, MODALITIES * position : MODALITIES * (position + 1)].to(device)
            for step, position in places
        ]
        return torch.cat(parts, dim=1).to(dtype)

    def own_times(self, times: Sequence[float]) -> list[float]:
        """The tables' own times that stand for `times`."""
        return self.cursor.own_times(times)

    def close(self) -> None:
        """Give the memory back. Safe to call twice."""
        self.steps = []
        for buffer in self._buffers:
            buffer.close()
        self._buffers = []

    def _empty(self, blocks: int, rows: Tensor, pin: bool) -> Tensor:
        buffer = HostBuffer(blocks * rows.numel() * rows.element_size(), pin=pin)
        self._buffers.append(buffer)
        return buffer.tensor.view(rows.dtype).view(blocks, *rows.shape)
