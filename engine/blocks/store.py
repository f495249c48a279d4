"""BlockStore: where each block of a stack waits on the host, and who reads it when.

Pinned blocks keep a buffer of their own and are read once. Disk blocks pass through a few staging
buffers, in stack order, wrapping around to the next pass, by a read-ahead thread that keeps
several requests in flight. Bytes go straight from the file into the page-locked buffer they will be
uploaded from. Sources that allow it are read two at a time: the disk stays busy over the end of a
block, and one block's buffer is page-locked while another is read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torch import Tensor

from ..errors import LowpeakError
from .memory import Device, HostBuffer
from .sources import BlockSource

READERS = 8
BLOCKS_AT_ONCE = 2  # read side by side, where their sources allow it


class BlockStore:
    """Host side of a stack. Owns its threads and buffers; close it, or use it as a context manager.

    pinned: blocks that keep a host buffer. first: blocks wanted once before the passes begin (those
    that become resident), in order. staging: buffers for everything else. pin: page-lock buffers.
    Blocks outside `pinned` and `first` are re-read in every pass.
    """

    def __init__(
        self,
        sources: Sequence[BlockSource],
        *,
        pinned: Collection[int],
        first: Sequence[int] = (),
        staging: int = 2,
        pin: bool,
        device: Device,
    ) -> None:
        self.sources = sources
        self.device = device
        self.pinned = frozenset(pinned)
        self.notices: list[str] = []
        self.disk_bytes = 0
        self._told_bytes = 0  # of them, given by `new_disk_bytes`
        self.wait_seconds = 0.0
        self._pin = pin
        self._first = list(first)
        self._cycle = [i for i in range(len(sources)) if i not in set(first)]
        self._buffers: list[HostBuffer] = []  # all there are, also one whose reader failed
        self._kept: dict[int, HostBuffer] = {}
        self._ready: dict[int, HostBuffer] = {}
        self._free: list[tuple[HostBuffer | None, Any]] = []  # None: a buffer not made yet
        self._reading: set[int] = set()
        self._change = threading.Condition()
        self._failure: BaseException | None = None
        self._closed = False
        self._staging_bytes = max((source.buffer_bytes for source in sources), default=0)
        if self._first or any(i not in self.pinned for i in self._cycle):
            self._free = [(None, None)] * max(1, staging)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="lowpeak-read")
        self._lanes = ThreadPoolExecutor(BLOCKS_AT_ONCE, thread_name_prefix="lowpeak-lane")
        self._thread = threading.Thread(target=self._read_ahead, name="lowpeak-store", daemon=True)
        self._thread.start()

    def __enter__(self) -> BlockStore:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def take(self, block: int) -> Tensor:
        """Host bytes of a block (uint8). Blocks until they are read; counts the wait.

        A staged block must be given back. Raises what the reader raised.
        """
        begin = time.perf_counter()
        with self._change:
            self._change.wait_for(
                lambda: self._failure or self._closed or block in self._kept or block in self._ready
            )
            if self._failure is not None:
                raise self._failure
            if self._closed:
                raise LowpeakError("the block store was closed while a block was wanted")
            self.wait_seconds += time.perf_counter() - begin
            kept = self._kept.get(block)
            return (kept or self._ready[block]).tensor

    def give_back(self, block: int, copied: Any) -> None:
        """The block's bytes are not needed once the event `copied` has passed."""
        with self._change:
            buffer = self._ready.pop(block, None)
            if buffer is not None:
                self._free.append((buffer, copied))
                self._change.notify_all()

    def is_disk(self, block: int) -> bool:
        """True for a block that is read again in every pass."""
        return block not in self.pinned and block not in self._first

    def is_read(self, block: int) -> bool:
        """Whether `take` would not have to wait."""
        with self._change:
            return block in self._kept or block in self._ready

    def new_disk_bytes(self) -> int:
        """Bytes read from disk since the last call, or since the store was opened."""
        with self._change:
            new, self._told_bytes = self.disk_bytes - self._told_bytes, self.disk_bytes
            return new

    def stop(self) -> None:
        """Stop reading. Whoever waits in `take` gets an error; buffers stay until `close`."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def close(self) -> None:
        """Stop reading, free every buffer; no copy out of one may be under way. Safe to call
        twice."""
        self.stop()
        self._thread.join()
        self._lanes.shutdown()
        self._readers.shutdown()
        for buffer in self._buffers:
            buffer.close()
        self._buffers, self._kept, self._ready, self._free = [], {}, {}, []

    def _buffer(self, nbytes: int) -> HostBuffer:
        buffer = HostBuffer(nbytes, pin=self._pin)
        with self._change:
            self._buffers.append(buffer)
            if self._pin and not buffer.pinned:
                self._pin = False  # one refusal is final: the next would only cost time
                self.notices.append(
                    f"host memory could not be page-locked after {len(self._kept)} blocks; "
                    "the rest is uploaded from pageable memory, which is slower"
                )
        return buffer

    def _read_ahead(self) -> None:
        """First blocks, then pass after pass while some block is read again."""
        todo = [(block, False) for block in self._first]
        todo += [(block, block in self.pinned) for block in self._cycle]
        while todo:
            for block, keep in todo:
                if not self._begin(block, keep):
                    return
            todo = [(block, False) for block in self._cycle if block not in self.pinned]

    def _begin(self, block: int, keep: bool) -> bool:
        """Start reading a block when its turn has come; False when closing or after a failure."""
        at_once = BLOCKS_AT_ONCE if getattr(self.sources[block], "beside", False) else 1

        def ready() -> bool:
            """A buffer is free and few enough are read, or there is nothing more to begin."""
            if self._closed or self._failure is not None:
                return True
            free = keep or (self._free and block not in self._ready)
            return bool(free) and block not in self._reading and len(self._reading) < at_once

        with self._change:
            self._change.wait_for(ready)
            if self._closed or self._failure is not None:
                return False
            buffer, copied = (None, None) if keep else self._free.pop(0)
            self._reading.add(block)
        self._lanes.submit(self._read, block, keep, buffer, copied)
        return True

    def _read(self, block: int, keep: bool, buffer: HostBuffer | None, copied: Any) -> None:
        """One block into a buffer of its own, or into a staging buffer that was free."""
        source = self.sources[block]
        try:
            if buffer is None:
                buffer = self._buffer(source.buffer_bytes if keep else self._staging_bytes)
            if copied is not None:
                self.device.finish(copied)
            got = source.read(buffer.tensor[: source.buffer_bytes], self._readers)
        except BaseException as failed:  # the border of a thread: whoever waits gets it
            with self._change:
                self._failure = self._failure or failed
                self._change.notify_all()
            return
        with self._change:
            self.disk_bytes += got
            self._reading.discard(block)
            (self._kept if keep else self._ready)[block] = buffer
            self._change.notify_all()
