"""Whose memory it is while a run goes on: ours, other programs', and what would be freed on demand.

Evictable is, on the card, ComfyUI's own models and its allocator's cache, which it gives up when
asked; in RAM, clean file cache, which the system drops by itself. What cannot be read is left out:
unknown is unknown, not zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from ..engine.events import Event
from ..engine.hostmemory import current_system, read_memory

INTERVAL_SECONDS = 0.4  # the panel is told twice a second at most


class Memory(NamedTuple):
    """One memory now. Bytes; free is without evictable, None is unknown."""

    total_bytes: int
    free_bytes: int
    evictable_bytes: int | None


class Gauges:
    """Reads both memories, at most one time an interval."""

    def __init__(
        self,
        device: Callable[[], Memory | None],
        host: Callable[[], Memory | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = {"vram": device, "ram": host or read_host}
        self._clock = clock
        self._read = float("-inf")
        self._known: dict[str, Memory | None] = {}

    def others(self, event: Event) -> dict[str, int]:
        """{axis}_other_bytes and {axis}_evictable_bytes beside what `event` says is ours."""
        now = self._clock()
        if now - self._read >= INTERVAL_SECONDS:
            self._read = now
            self._known = {axis: source() for axis, source in self._sources.items()}
        found: dict[str, int] = {}
        for axis, memory in self._known.items():
            ours = getattr(event, f"{axis}_bytes")
            if memory is None or memory.evictable_bytes is None:
                continue
            found[f"{axis}_evictable_bytes"] = memory.evictable_bytes
            if ours is not None:
                rest = memory.total_bytes - memory.free_bytes - memory.evictable_bytes - ours
                found[f"{axis}_other_bytes"] = max(0, rest)
        return found


def read_host() -> Memory | None:
    """RAM; below a container's limit what is evictable cannot be told from here."""
    import psutil

    whole, allowed = psutil.virtual_memory(), read_memory(current_system())
    if allowed.total_bytes < whole.total:
        return None
    return Memory(whole.total, whole.free, max(0, whole.available - whole.free))


def read_device(ours: Any) -> Memory | None:
    """The card that ComfyUI uses; None on a CPU. ours: our patcher, whose memory is no model's."""
    import torch
    from comfy import model_management as manager

    device = manager.get_torch_device()
    if device.type != "cuda":
        return None
    free, total = torch.cuda.mem_get_info(device)
    idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    models = sum(
        item.model_loaded_memory()
        for item in list(manager.current_loaded_models)
        if item.model is not None and item.model is not ours and item.device == device
    )
    return Memory(total, free, int(idle + models))
