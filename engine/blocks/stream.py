"""BlockStream: device slots that the blocks of a stack pass through, one pass after another.

    compute   | block i      | block i+1    | ...            waits for the upload of what it uses
    link      | upload i+1   | upload i+2   | ...            waits until the slot's reader is done
    disk      | read i+2 ..  | read i+3 ..  | ...            waits for a staging buffer

A unit is a block, or a half of one. An uploader thread takes units in order, wrapping around at the
end of the stack, so the first blocks of the next pass travel while the last are computed. Resident
blocks are slots that are never refilled.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ..errors import LowpeakError
from .layout import PartLayout, plan_parts
from .memory import Device
from .store import BlockStore

Unit = tuple[int, int]  # block, part


@dataclass(frozen=True)
class Traffic:
    """What was moved, and how long compute waited for it. Bytes and seconds."""

    link_bytes: int = 0
    disk_bytes: int = 0
    stall_seconds: Mapping[str, float] = field(default_factory=lambda: {"link": 0.0, "disk": 0.0})


class BlockHandle:
    """A block in use: its parts, as tensors on the device. Dead after the `with` that gave it."""

    def __init__(self, stream: BlockStream, block: int) -> None:
        self._stream, self.block = stream, block
        self._taken: list[Unit] = []

    def part(self, index: int = 0) -> dict[str, Tensor]:
        """Tensors of a part by name, ready for the compute stream. Ask for parts in order."""
        return self._stream._acquire(self, (self.block, index))


class BlockStream:
    """Device side of a stack.

    resident: blocks that stay on the device; the store must list them in `first`.
    owns_store: close the store with the stream. slots: how many units may be on the device beside
    the resident ones. part_of: a tensor's part, None for whole
    blocks. Not reentrant; blocks are used in order, one at a time.
    """

    def __init__(
        self,
        store: BlockStore,
        device: Device,
        *,
        resident: Sequence[int] = (),
        slots: int = 2,
        part_of: Callable[[str], int] | None = None,
        owns_store: bool = True,
    ) -> None:
        self.store, self.device = store, device
        self._owns_store = owns_store
        self.link_bytes = 0
        self._told_bytes = 0  # of them, given by `traffic`
        self._waits: list[tuple[Any, Any, bool]] = []
        self.parts: list[Sequence[PartLayout]] = [
            plan_parts(source.pieces, part_of) for source in store.sources
        ]
        self._resident: dict[Unit, Tensor] = {}
        for block in resident:
            self._load_resident(block)
        self._order: list[Unit] = [
            (block, part)
            for block in range(len(store.sources))
            if block not in set(resident)
            for part in range(len(self.parts[block]))
        ]
        self._slots: list[Tensor] = []
        self._free: deque[tuple[int, Any]] = deque()
        self._loaded: dict[Unit, tuple[int, Any, bool]] = {}  # slot, event, was it read late
        self._change = threading.Condition()
        self._failure: BaseException | None = None
        self._closed = False
        self._thread: threading.Thread | None = None
        if self._order:
            size = max(self.parts[block][part].slot_bytes for block, part in self._order)
            count = min(max(slots, max(len(p) for p in self.parts)), len(self._order))
            self._slots = [device.empty(size) for _ in range(count)]
            self._free = deque((index, None) for index in range(count))
            self._thread = threading.Thread(
                target=self._upload_all, name="lowpeak-upload", daemon=True
            )
            self._thread.start()

    def __enter__(self) -> BlockStream:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @contextmanager
    def block(self, index: int) -> Iterator[BlockHandle]:
        """The block's parts, until the end of the `with`; its slots are refilled behind the
        compute work queued by then."""
        handle = BlockHandle(self, index)
        try:
            yield handle
        finally:
            done = self.device.mark_computed()
            with self._change:
                for unit in handle._taken:
                    if unit not in self._resident:
                        slot, _, _ = self._loaded.pop(unit)
                        self._free.append((slot, done))
                self._change.notify_all()

    def stalls(self) -> dict[str, float]:
        """Seconds the compute stream waited since the last call, for the link and for the disk.

        A wait counts for the disk when its block is read in every pass, or was not read yet when
        its upload could have begun. Call it when the device is idle: it reads passed events.
        """
        total = {"link": 0.0, "disk": 0.0}
        for before, after, disk in self._waits:
            self.device.finish(after)
            total["disk" if disk else "link"] += self.device.elapsed_seconds(before, after)
        self._waits.clear()
        return total

    def traffic(self) -> Traffic:
        """Bytes and stalls since the last call; of the first, since stream and store were opened,
        so that resident blocks and what was read ahead count. Call it when the device is idle."""
        linked, self._told_bytes = self.link_bytes - self._told_bytes, self.link_bytes
        return Traffic(linked, self.store.new_disk_bytes(), self.stalls())

    def close(self) -> None:
        """Stop uploading and drop the slots. Safe to call twice.

        Uploads of the next pass may be under way: slots and host buffers outlive them.
        """
        with self._change:
            self._closed = True
            self._change.notify_all()
        if self._owns_store:
            self.store.stop()  # the uploader may be waiting for a block
        if self._thread is not None:
            self._thread.join()
        with suppress(RuntimeError):  # a broken device has nothing under way
            self.device.finish(self.device.mark_copied())
        if self._owns_store:
            self.store.close()
        self._slots, self._resident, self._loaded = [], {}, {}

    def _acquire(self, handle: BlockHandle, unit: Unit) -> dict[str, Tensor]:
        layout = self.parts[unit[0]][unit[1]]
        kept = self._resident.get(unit)
        if kept is not None:
            return layout.views(kept)
        # Marked before this thread waits: while it does, an idle device waits too.
        before = self.device.mark_time()
        with self._change:
            self._change.wait_for(lambda: self._failure or self._closed or unit in self._loaded)
            if self._failure is not None:
                raise self._failure
            if self._closed:
                raise LowpeakError("the block stream was closed while a block was wanted")
            slot, uploaded, late = self._loaded[unit]
        handle._taken.append(unit)
        self.device.compute_waits(uploaded)
        self._waits.append((before, self.device.mark_time(), late or self.store.is_disk(unit[0])))
        return layout.views(self._slots[slot])

    def _load_resident(self, block: int) -> None:
        host = self.store.take(block)
        for part, layout in enumerate(self.parts[block]):
            target = self.device.empty(layout.slot_bytes)
            self._copy(layout, target, host)
            self._resident[(block, part)] = target
        copied = self.device.mark_copied()
        self.device.compute_waits(copied)
        self.store.give_back(block, copied)

    def _copy(self, layout: PartLayout, target: Tensor, host: Tensor) -> None:
        for source, place, count in layout.copies:
            self.device.copy(target[place : place + count], host[source : source + count])
        self.link_bytes += layout.link_bytes

    def _upload_all(self) -> None:
        try:
            while not self._closed:
                for unit in self._order:
                    if not self._upload(unit):
                        return
        except BaseException as failed:  # the border of a thread: whoever waits gets it
            with self._change:
                self._failure = failed
                self._change.notify_all()

    def _upload(self, unit: Unit) -> bool:
        """Bring one unit into the next free slot; False when the stream is closing."""
        block, part = unit
        with self._change:
            self._change.wait_for(lambda: self._closed or (self._free and unit not in self._loaded))
            if self._closed:
                return False
            slot, computed = self._free.popleft()
        late = not self.store.is_read(block)
        host = self.store.take(block)
        if computed is not None:
            self.device.copy_waits(computed)
        layout = self.parts[block][part]
        self._copy(layout, self._slots[slot], host)
        uploaded = self.device.mark_copied()
        if part == len(self.parts[block]) - 1:
            self.store.give_back(block, uploaded)
        with self._change:
            self._loaded[unit] = (slot, uploaded, late)
            self._change.notify_all()
        return True
