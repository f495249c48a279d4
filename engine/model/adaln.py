"""AdaLN rows of a pass: read once from a checkpoint's tables, put together for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from .modulation import ScheduleCursor


class Tables(Protocol):
    """What a checkpoint gives: see engine.checkpoint.tables."""

    name: str
    times: tuple[tuple[float, ...], ...]

    def load_block(self, block: int) -> dict[str, Tensor]:
        """{"step_0": [3 n_0, 6C], ...} of one block."""


class StepTables:
    """All blocks' tables in host memory; a step's rows go to the device in one copy."""

    def __init__(self, tables: Tables, blocks: int) -> None:
        self.cursor = ScheduleCursor(tables.times, source=tables.name)
        self.blocks = [tables.load_block(index) for index in range(blocks)]

    def at(self, times: Sequence[float], device: torch.device, dtype: torch.dtype) -> Tensor:
        """[blocks, 3n, 6C] at the distinct times of a step.

        Raises CheckpointError for a time the tables do not hold.
        """
        rows = [self.cursor.table(tensors, times) for tensors in self.blocks]
        return torch.stack(rows).to(device=device, dtype=dtype)

    def own_times(self, times: Sequence[float]) -> list[float]:
        """The tables' own times that stand for `times`."""
        return self.cursor.own_times(times)
