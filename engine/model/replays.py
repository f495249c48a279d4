"""A block's kernels as captured CUDA graphs, one per set of addresses.

A block is over a thousand small launches; a small first pass would wait for the host to queue them.
Slots have fixed addresses, so what was captured for a slot serves every block that passes through
it. Captured and uncaptured work are the same kernels on the same data: the bits are the same.

Temporaries of both live in one memory pool of one stream, so capturing does not hold them twice.
Nothing that must outlive a call may be allocated there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import is_dataclass
from typing import Any

import torch
from torch import Tensor

MAX_GRAPHS = 64  # blocks kept on the device have addresses of their own
_BROKEN: list[torch.cuda.CUDAGraph] = []  # the host allocator goes on asking these: see `_abandon`


class Replays:
    """stream: where all work of the pass runs; None (a CPU) runs everything directly."""

    def __init__(self, stream: torch.cuda.Stream | None, *, capture: bool = True) -> None:
        self._stream = stream
        self.notices: list[str] = []
        self._pool = self._new_pool()
        self._capture = capture and self._pool is not None
        self._graphs: dict[Hashable, tuple[torch.cuda.CUDAGraph, int]] = {}
        self._warm: set[Hashable] = set()
        self.link_bytes = 0  # moved by replays; direct runs are counted where they happen

    @contextmanager
    def on_stream(self) -> Iterator[None]:
        """Work on the pass's stream."""
        with nullcontext() if self._stream is None else torch.cuda.stream(self._stream):
            yield

    @contextmanager
    def memory(self) -> Iterator[None]:
        """Temporaries come from the pass's pool. Not around `run`, which sees to it itself."""
        with nullcontext() if self._pool is None else torch.cuda.use_mem_pool(self._pool):
            yield

    def run(
        self, kind: str, key: Hashable, work: Callable[[], None], moved: Callable[[], int]
    ) -> None:
        """Do `work`, by replaying it where it was captured under (kind, key).

        The first call of a kind runs directly: kernels are compiled and libraries choose there.
        moved: bytes the work has moved over the link so far. Call it inside `on_stream()`.
        """
        found = self._graphs.get((kind, key))
        if found is None and self._capture and kind in self._warm:
            found = self._captured(kind, key, work, moved)
        if found is None:
            self._warm.add(kind)
            with self.memory():
                work()
            return
        found[0].replay()
        self.link_bytes += found[1]

    def close(self) -> None:
        """Drop graphs and pool. Safe to call twice."""
        self._graphs.clear()
        self._pool = None

    def _new_pool(self) -> torch.cuda.MemPool | None:
        """None on a CPU, and for an allocator without pools (cudaMallocAsync)."""
        if self._stream is None:
            return None
        try:
            return torch.cuda.MemPool()
        except RuntimeError as refused:
            self.notices.append(f"kernels are queued one by one: {str(refused).splitlines()[0]}")
            return None

    def _captured(
        self, kind: str, key: Hashable, work: Callable[[], None], moved: Callable[[], int]
    ) -> tuple[torch.cuda.CUDAGraph, int] | None:
        if len(self._graphs) >= MAX_GRAPHS:
            return None
        graph, before = torch.cuda.CUDAGraph(), moved()
        try:
            with _capturing(graph, self._pool):
                work()
        except (RuntimeError, torch.OutOfMemoryError) as refused:
            self._capture = False  # the caller runs the same work directly
            self.link_bytes -= moved() - before  # and counts it there
            self.notices.append(f"kernels are queued one by one: {str(refused).splitlines()[0]}")
            return None
        made = graph, moved() - before
        self.link_bytes -= made[1]  # counted while capturing, when nothing moved
        self._graphs[(kind, key)] = made
        return made


@contextmanager
def _capturing(graph: torch.cuda.CUDAGraph, pool: Any) -> Iterator[None]:
    """Capture on the current stream. Other threads may go on uploading (thread-local mode)."""
    users = pool.use_count() if hasattr(pool, "use_count") else None
    try:
        graph.capture_begin(pool=pool.id, capture_error_mode="thread_local")
        yield
        graph.capture_end()
    except BaseException:
        with suppress(RuntimeError):  # already broken: the first error is the one to report
            graph.capture_end()
        _abandon(graph, pool, users)
        raise


def _abandon(graph: torch.cuda.CUDAGraph, pool: Any, users: int | None) -> None:
    """Make the pool usable again. A capture that cannot be ended leaves the device allocator
    recording to it, and recording twice is an error; it also never counts as gone, so the pool's
    memory would be lost to the process. The host allocator keeps a pointer to the graph."""
    device = torch.cuda.current_device()
    with suppress(RuntimeError):  # it was ended after all
        torch._C._cuda_endAllocateToPool(device, pool.id)
    graph.reset()
    while users is not None and pool.use_count() > users:
        torch._C._cuda_releasePool(device, pool.id)
    _BROKEN.append(graph)


def fingerprint(value: object) -> Hashable:
    """What a captured graph depends on: where each tensor lies, its shape, and plain settings."""
    if isinstance(value, Tensor):
        return value.data_ptr(), value.shape, value.stride(), value.dtype
    if isinstance(value, Mapping):
        return tuple((name, fingerprint(item)) for name, item in value.items())
    if is_dataclass(value):
        return tuple(fingerprint(item) for item in vars(value).values())
    assert isinstance(value, Hashable), type(value)
    return value
