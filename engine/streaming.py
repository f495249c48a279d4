"""The streamed transformer of each sampling phase: one placement a phase, opened when it begins.

Two passes usually have two placements, because a first pass is a quarter of the size and leaves
room for resident blocks. What is open is kept while the placement stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from .checkpoint.index import Checkpoint
from .errors import CheckpointError
from .planner.types import Placement
from .streamed import StreamedDenoiser


class StreamedDenoisers:
    """See engine.denoiser.Denoisers. times: distinct times of every step of every pass."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        times: Sequence[Sequence[float]],
        placements: Mapping[str, Placement],
        device: torch.device,
    ) -> None:
        self._checkpoint, self._placements, self._device = checkpoint, placements, device
        self._times = tuple(tuple(step) for step in times)
        self._open: StreamedDenoiser | None = None

    def for_phase(self, phase: str, is_cancelled: Callable[[], bool]) -> StreamedDenoiser:
        """See Denoisers.for_phase. Raises CheckpointError when the plan has no placement for it."""
        placement = self._placements.get(phase)
        if placement is None:
            raise CheckpointError("the plan places no blocks for this phase", found=phase)
        if self._open is None or self._open.placement != placement:
            self.release()
            self._open = StreamedDenoiser(
                self._checkpoint, self._times, placement, self._device, is_cancelled=is_cancelled
            )
        self._open.is_cancelled = is_cancelled
        return self._open

    def release(self) -> None:
        """See Denoisers.release."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def close(self) -> None:
        """Give back weights and buffers. Safe to call twice."""
        self.release()
