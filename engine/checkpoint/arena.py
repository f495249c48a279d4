"""Host memory that parts of a checkpoint are read into, one after another.

Fresh pages cost the system several times what the copy into them does, so a conversion reads its
gigabytes into the same ones again and again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..units import round_up

if TYPE_CHECKING:
    from torch import Tensor

ALIGNMENT_BYTES = 64


class Arena:
    """Tensors taken from it are gone when it begins anew. Not thread-safe."""

    def __init__(self) -> None:
        import torch

        self._memory = torch.empty(0, dtype=torch.uint8)
        self._used = 0

    def begin(self, sizes_bytes: list[int]) -> None:
        """Make room for tensors of these sizes; what was taken before may be overwritten."""
        import torch

        need = sum(round_up(size, ALIGNMENT_BYTES) for size in sizes_bytes)
        if need > len(self._memory):
            self._memory = torch.empty(need, dtype=torch.uint8)
        self._used = 0

    def take(self, nbytes: int) -> Tensor:
        """Bytes, uint8 and aligned."""
        start, self._used = self._used, self._used + round_up(nbytes, ALIGNMENT_BYTES)
        assert start + nbytes <= len(self._memory), "more was taken than was announced"
        return self._memory[start : start + nbytes]
