"""The streamed transformer of each sampling phase: one placement a phase, opened when it begins.

Two passes usually have two placements, because a first pass is a quarter of the size and leaves
room for resident blocks. What is open is kept while the placement stays the same; the host's store
of blocks is kept longer, from pass to pass, as long as every block is pinned in it, and so is what
a pass needs before its first block (prelude.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from .blocks import BlockStore
from .checkpoint.index import Checkpoint
from .errors import CheckpointError
from .kernels_here import default_dtype
from .planner.types import Placement
from .prelude import Prelude
from .streamed import StreamedDenoiser, choose_for, open_store


class StreamedDenoisers:
    """See engine.denoiser.Denoisers. times: distinct times of every step of every pass."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        times: Sequence[Sequence[float]],
        placements: Mapping[str, Placement],
        device: torch.device,
        store: BlockStore | None = None,
        *,
        whole: bool = False,
    ) -> None:
        """store: of the very same blocks, left by an earlier run (`take_store`); owned from now.
        whole: there is host memory for every block, wherever placements have it on the device."""
        self._checkpoint, self._placements, self._device = checkpoint, placements, device
        self._times = tuple(tuple(step) for step in times)
        self._open: StreamedDenoiser | None = None
        self._prelude: Prelude | None = None
        self._store, self._whole = store, whole

    def for_phase(self, phase: str, is_cancelled: Callable[[], bool]) -> StreamedDenoiser:
        """See Denoisers.for_phase. Raises CheckpointError when the plan has no placement for it."""
        placement = self._placements.get(phase)
        if placement is None:
            raise CheckpointError("the plan places no blocks for this phase", found=phase)
        if self._open is None or self._open.placement != placement:
            self.release()
            self._open = self._opened(placement, is_cancelled)
        self._open.is_cancelled = is_cancelled
        return self._open

    def release(self) -> None:
        """See Denoisers.release."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def take_store(self) -> BlockStore | None:
        """The host's store where it pins every block, for a later run; the caller owns it then."""
        self.release()
        store, self._store = self._store, None
        return store

    def close(self) -> None:
        """Give back weights and buffers. Safe to call twice."""
        self.release()
        self._drop_store()
        if self._prelude is not None:
            self._prelude.close()
            self._prelude = None

    def _opened(self, placement: Placement, is_cancelled: Callable[[], bool]) -> StreamedDenoiser:
        checkpoint, device = self._checkpoint, self._device
        if self._whole or placement.pinned_blocks == checkpoint.config.layers:
            # Blocks are read while tables and root are.
            self._store = self._store or open_store(checkpoint, placement, device, whole=True)
        else:
            self._drop_store()
        if self._prelude is None:
            dtype = default_dtype(device)
            choice = choose_for(checkpoint, device, dtype)
            self._prelude = Prelude(checkpoint, self._times, device, choice, dtype)
        opened = StreamedDenoiser(
            checkpoint,
            self._times,
            placement,
            device,
            is_cancelled=is_cancelled,
            open_stream=False,
            prelude=self._prelude,
        )
        opened.open_stream(self._store)
        return opened

    def _drop_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
