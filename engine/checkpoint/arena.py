"""Memory that parts of a checkpoint are read into, one after another, on the host or a device.

Fresh pages cost the system several times what the copy into them does, so a conversion reads its
gigabytes into the same ones again and again. On a device, an arena spares the allocator's rules for
memory that several streams use: it is taken anew only when the work on it is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..units import round_up

if TYPE_CHECKING:
    from torch import Tensor

ALIGNMENT_BYTES = 64


class Arena:
    """Tensors taken from it are gone when it begins anew. Used by one thread at a time."""

    def __init__(self, device: str | None = None) -> None:
        import torch

        self._device = torch.device(device or "cpu")
        self._memory = torch.empty(0, dtype=torch.uint8, device=self._device)
        self._used = 0
        self._last_work: Any = None

    def begin(self, sizes_bytes: list[int]) -> None:
        """Make room for tensors of these sizes; what was taken before may be overwritten.

        Waits for the work that `release` marked.
        """
        import torch

        if self._last_work is not None:
            self._last_work.synchronize()
            self._last_work = None
        need = sum(round_up(size, ALIGNMENT_BYTES) for size in sizes_bytes)
        if need > len(self._memory):
            self._memory = torch.empty(0, dtype=torch.uint8)  # first give back, then ask for more
            self._memory = torch.empty(need, dtype=torch.uint8, device=self._device)
            if self._device.type == "cuda":  # queued work may still use what the memory held
                torch.cuda.current_stream(self._device).synchronize()
        self._used = 0

    def take(self, nbytes: int) -> Tensor:
        """Bytes, uint8 and aligned."""
        start, self._used = self._used, self._used + round_up(nbytes, ALIGNMENT_BYTES)
        assert start + nbytes <= len(self._memory), "more was taken than was announced"
        return self._memory[start : start + nbytes]

    def release(self) -> None:
        """All work on the tensors is queued; `begin` waits until it is done."""
        if self._device.type == "cuda":
            import torch

            self._last_work = torch.cuda.Event(blocking=True)
            self._last_work.record(torch.cuda.current_stream(self._device))
