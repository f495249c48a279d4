"""BlockStore: where each block of a stack waits on the host, and who reads it when.

Pinned blocks keep a buffer of their own and are read once. Disk blocks pass through a few staging
buffers, in stack order, wrapping around to the next pass, by one read-ahead thread that keeps
several requests in flight. Bytes go straight from the file into the page-locked buffer they will be
uploaded from.
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
        self.wait_seconds = 0.0
        self._pin = pin
        self._first = list(first)
        self._cycle = [i for i in range(len(sources)) if i not in set(first)]
        self._buffers: list[HostBuffer] = []  # all there are, also one whose reader failed
        self._kept: dict[int, HostBuffer] = {}
        self._ready: dict[int, HostBuffer] = {}
        self._free: list[tuple[HostBuffer, Any]] = []
        self._change = threading.Condition()
        self._failure: BaseException | None = None
        self._closed = False
        streamed = self._first or any(i not in self.pinned for i in self._cycle)
        if streamed:
            size = max(source.buffer_bytes for source in sources)
            self._free = [(self._buffer(size), None) for _ in range(max(1, staging))]
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="lowpeak-read")
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
        self._readers.shutdown()
        for buffer in self._buffers:
            buffer.close()
        self._buffers, self._kept, self._ready, self._free = [], {}, {}, []

    def _buffer(self, nbytes: int) -> HostBuffer:
        buffer = HostBuffer(nbytes, pin=self._pin)
        self._buffers.append(buffer)
        if self._pin and not buffer.pinned:
            self._pin = False  # one refusal is final: the next would only cost time
            self.notices.append(
                f"host memory could not be page-locked after {len(self._kept)} blocks; "
                "the rest is uploaded from pageable memory, which is slower"
            )
        return buffer

    def _read_ahead(self) -> None:
        try:
            for block in self._first:
                self._stage(block)
            todo = list(self._cycle)
            while todo and not self._closed:
                for block in todo:
                    if self._closed:
                        return
                    if block in self.pinned:
                        self._keep(block)
                    else:
                        self._stage(block)
                todo = [block for block in todo if block not in self.pinned]
        except BaseException as failed:  # the border of a thread: whoever waits gets it
            with self._change:
                self._failure = failed
                self._change.notify_all()

    def _keep(self, block: int) -> None:
        source = self.sources[block]
        buffer = self._buffer(source.buffer_bytes)
        self.disk_bytes += source.read(buffer.tensor, self._readers)
        with self._change:
            self._kept[block] = buffer
            self._change.notify_all()

    def _stage(self, block: int) -> None:
        with self._change:
            self._change.wait_for(lambda: self._closed or (self._free and block not in self._ready))
            if self._closed:
                return
            buffer, copied = self._free.pop(0)
        if copied is not None:
            self.device.finish(copied)
        source = self.sources[block]
        self.disk_bytes += source.read(buffer.tensor[: source.buffer_bytes], self._readers)
        with self._change:
            self._ready[block] = buffer
            self._change.notify_all()
