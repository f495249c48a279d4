"""How fast sources are read when nothing else is to be done: what a store could reach at most."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from .memory import HostBuffer
from .sources import BlockSource
from .store import BLOCKS_AT_ONCE, READERS


def read_alone(sources: Sequence[BlockSource], *, pin: bool) -> tuple[int, float]:
    """(bytes, seconds) of reading every source as a BlockStore does, two at a time where they may
    be, into buffers whose pages exist before the clock starts. pin: page-lock the buffers."""
    at_once = BLOCKS_AT_ONCE if all(source.beside for source in sources) else 1
    size = max(source.buffer_bytes for source in sources)
    buffers = [HostBuffer(size, pin=pin) for _ in range(at_once)]
    try:
        for buffer in buffers:
            buffer.tensor.fill_(0)
        with ThreadPoolExecutor(READERS) as readers, ThreadPoolExecutor(at_once) as lanes:

            def read(lane: int) -> int:
                """Every at_once-th source, so that a buffer has one reader."""
                return sum(
                    source.read(buffers[lane].tensor[: source.buffer_bytes], readers)
                    for source in sources[lane::at_once]
                )

            began = time.perf_counter()
            done = sum(lanes.map(read, range(at_once)))
            return done, max(time.perf_counter() - began, 1e-9)
    finally:
        for buffer in buffers:
            buffer.close()
