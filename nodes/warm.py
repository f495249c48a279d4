"""What a sampling worker keeps between runs, when the user allows it: blocks in page-locked memory.

Both sides of the process border. In the worker `Warm` holds the store of the last run; a run of the
same checkpoint, files and LoRAs begins with it and reads nothing. In ComfyUI's process `WarmWorker`
stands for the process that holds it, until the memory is wanted elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ..engine.planner.types import HardwareSnapshot
from ..engine.units import GIB
from ..engine.worker.supervisor import Worker
from .handles import ModelHandle
from .local_engine import LocalEngine

KEPT = "blocks"  # name in the worker's context
SPARE_BYTES = 4 * GIB  # of host memory beside kept blocks: the rest of the worker, and the host
WARM_SECONDS = 900.0  # an idle worker leaves by itself after this


@dataclass(frozen=True)
class WarmWorker:
    """A process between two runs. key: what it holds; held: bytes of (device, host) memory."""

    worker: Worker
    key: tuple[Any, ...]
    held: tuple[int, int]


def warm_key(model: ModelHandle, device: str) -> tuple[Any, ...]:
    """Equal for runs over the same blocks: checkpoint, its files, LoRAs with strengths, device."""
    return (str(model.checkpoint), model.identity, device, *map(_lora_key, model.loras))


def _lora_key(lora: Any) -> tuple[Any, ...]:
    return (str(lora.file), lora.identity, lora.strength, lora.allow_partial)


class Warm:
    """The store of the last run. Not thread-safe: a worker runs one task at a time."""

    def __init__(self) -> None:
        self._key: Any = None
        self._store: Any = None
        self._context_bytes = 0

    @property
    def held(self) -> tuple[int, int]:
        """Bytes of (device, host) memory that are held between runs."""
        if self._store is None:
            return 0, 0
        sources, pinned = self._store.sources, self._store.pinned
        return self._context_bytes, sum(sources[index].buffer_bytes for index in pinned)

    def take(self, key: Any) -> Any:
        """The store for `key`, which is the caller's then; None when another or none is held."""
        if key != self._key:
            self.close()
        store, self._store, self._key = self._store, None, None
        return store

    def keep(self, key: Any, store: Any, context_bytes: int) -> None:
        """Hold `store` (None: nothing) for the next run."""
        self.close()
        self._key, self._store, self._context_bytes = key, store, context_bytes

    def close(self) -> None:
        """Give the memory back. Safe to call twice."""
        if self._store is not None:
            self._store.close()
        self._store = self._key = None


class KeepingEngine(LocalEngine):
    """The engine inside a worker that may stay: its sampling begins with what `warm` holds."""

    def __init__(self, device: Callable[[], str], warm: Warm, *, keep: bool) -> None:
        super().__init__(device)
        self._warm, self._keep = warm, keep

    @contextmanager
    def _denoiser(
        self, model: ModelHandle, models: Any, times: Any, placed: Mapping[str, Any], loras: Any,
        mode: str,
    ) -> Iterator[Any]:  # fmt: skip
        key = (warm_key(model, models.device.type), str(models.checkpoint.path), mode)
        whole = self._keep and self._has_room(model, models, placed)
        store = self._warm.take(key)
        with models.denoiser(times, placed, loras, mode, store, whole) as denoisers:
            yield denoisers
            if self._keep:  # only a run that went well leaves something
                self._warm.keep(key, denoisers.take_store(), _context_bytes(models.device))

    def _has_room(self, model: ModelHandle, models: Any, placed: Mapping[str, Any]) -> bool:
        """Whether every block can wait in host memory beside a placement's own."""
        facts, room = models.facts(), self._capped(model).ram_available_bytes
        need = facts.blocks * (facts.block_bytes + facts.lora_block_bytes) + SPARE_BYTES
        sampling = [item for phase, item in placed.items() if phase.startswith("sample")]
        return need <= room and not any(item.disk_blocks for item in sampling)

    def _snapshot(self) -> HardwareSnapshot:
        """What is held is this run's to use."""
        return with_held(super()._snapshot(), self._warm.held)


def with_held(machine: HardwareSnapshot, held: Sequence[int]) -> HardwareSnapshot:
    """The machine with memory that is given up or used again, counted as free."""
    device, host = held
    return replace(
        machine,
        vram_free_bytes=min(machine.vram_total_bytes, machine.vram_free_bytes + device),
        ram_available_bytes=min(machine.ram_total_bytes, machine.ram_available_bytes + host),
    )


def _context_bytes(device: Any) -> int:
    """Device memory that the process keeps although it holds no tensor there."""
    if device.type != "cuda":
        return 0
    import torch

    from ..engine.planner.calibration import choose_calibration
    from ..engine.snapshot import read_snapshot

    torch.cuda.empty_cache()
    context = choose_calibration(read_snapshot())["memory.context"]
    return int(context) + torch.cuda.memory_reserved(device)
