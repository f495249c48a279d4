"""Where the residual stream x [N, C] waits: on the device, or in host memory a chunk at a time."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Residual(Protocol):
    """Rows of x. `load` gives device rows; `save` puts the changed rows back."""

    def load(self, start: int, stop: int) -> Tensor:
        """Rows start..stop on the device."""

    def save(self, start: int, rows: Tensor) -> None:
        """Put rows back; `rows` is what `load` gave, changed in place."""


class DeviceResidual:
    """x on the device: loads are views, saves are nothing."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def load(self, start: int, stop: int) -> Tensor:
        """A view."""
        return self.x[start:stop]

    def save(self, start: int, rows: Tensor) -> None:
        """The rows were changed in place."""


class HostResidual:
    """x in host memory. Copies run on the compute stream, so order needs no event.

    x: [N, C], page-locked where the platform allows it. `link_bytes` counts both directions.
    """

    def __init__(self, x: Tensor, device: torch.device) -> None:
        self.x, self.device = x, device
        self.link_bytes = 0

    def load(self, start: int, stop: int) -> Tensor:
        """A device copy of the rows."""
        rows = self.x[start:stop]
        self.link_bytes += rows.numel() * rows.element_size()
        return rows.to(self.device, non_blocking=True, copy=True)

    def save(self, start: int, rows: Tensor) -> None:
        """Copy the rows back."""
        self.x[start : start + rows.shape[0]].copy_(rows, non_blocking=True)
        self.link_bytes += rows.numel() * rows.element_size()
