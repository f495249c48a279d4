"""Threads that carry bytes between files and tensors, on the host or a device.

Each thread has a page-locked buffer of its own, so a piece of a file is read and sent to the
device, or fetched from it and written, while other threads do the same with other pieces. Nothing
else on the host holds what passes to a device: memory is some buffers of 8 MiB, whatever the model.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..blocks.memory import HostBuffer
from ..errors import CheckpointError
from ..units import MIB
from .arena import Arena
from .disk import PAGE_BYTES, InputFile, OutputFile
from .header import layout_of, part_path
from .sources import Source

PIECE_BYTES = 8 * MIB
READERS, WRITERS = 8, 4
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class Meter:
    """Seconds and bytes by name, counted by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.values: dict[str, float] = {}

    def add(self, name: str, value: float) -> None:
        """Add to a name's sum."""
        with self._lock:
            self.values[name] = self.values.get(name, 0) + value

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds that the body takes."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - begin)


@dataclass(frozen=True)
class _Lane:
    """What one thread has for itself."""

    buffer: HostBuffer
    stream: torch.cuda.Stream | None

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copy, and wait until it is done."""
        with nullcontext() if self.stream is None else torch.cuda.stream(self.stream):
            target.copy_(source)  # a copy that blocks waits for its own stream alone


class Lanes:
    """Reading and writing threads around a device; None is the CPU. `meter` counts both."""

    def __init__(self, device: str | None = None) -> None:
        kind = torch.device(device or "cpu")
        self.device = kind if kind.type == "cuda" else None
        self.staged = self.device is not None  # what is read passes through a thread's own buffer
        self.meter = Meter()
        self._readers = ThreadPoolExecutor(READERS, "lowpeak-read")
        self._writers = ThreadPoolExecutor(WRITERS, "lowpeak-write")
        self._own = threading.local()
        self._beside = None if self.device is None else torch.cuda.Stream(self.device)
        self._buffers: list[HostBuffer] = []
        self._stopped = False

    def load(self, sources: Mapping[str, Source], arena: Arena) -> dict[str, Tensor]:
        """Tensors by local name, in `arena`, whose device is that of these lanes.

        Raises CheckpointError naming file and tensor for a changed, cut or unreadable file.
        """
        with self.meter.timed("read.waiting_seconds"):
            arena.begin([source.span.nbytes for source in sources.values()])
        found = {name: arena.take(source.span.nbytes) for name, source in sources.items()}
        with ExitStack() as opened:
            files: dict[Path, InputFile] = {}
            jobs: list[Future[None]] = []
            try:
                for name, source in sorted(sources.items(), key=_place):
                    path = source.file.path
                    if path not in files:
                        files[path] = opened.enter_context(closing(_opened(source)))
                    for start in range(0, source.span.nbytes, PIECE_BYTES):
                        piece = found[name][start : start + PIECE_BYTES]
                        jobs.append(
                            self._readers.submit(self._read, files[path], source, start, piece)
                        )
                _finish(jobs)
            finally:
                _cancel(jobs)  # no piece may be on its way when its file is closed
        return {
            name: found[name].view(source.span.torch_dtype).reshape(source.span.shape)
            for name, source in sources.items()
        }

    def store(
        self,
        path: Path,
        tensors: Mapping[str, Tensor],
        metadata: Mapping[str, str] | None = None,
    ) -> int:
        """`header.write_tensors` by these lanes: the same bytes. Returns them.

        The file has its name only when the disk has all of it. No work on the tensors may be
        queued. Raises CheckpointError naming file and tensor when the disk takes no more.
        """
        begin, places, size = layout_of(tensors, metadata)
        head = torch.frombuffer(bytearray(begin), dtype=torch.uint8)
        parts = {"": head} | {name: _flat(tensors[name]) for name in places}
        content = _Content([0, *places.values()], list(parts), list(parts.values()))
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = part_path(path)
        jobs: list[Future[None]] = []
        try:
            with self._refusals(path), closing(OutputFile(temporary)) as file:
                try:
                    jobs += [
                        self._writers.submit(self._write, file, content, start, size, path)
                        for start in range(0, size, PIECE_BYTES)
                    ]
                    _finish(jobs)
                    with self.meter.timed("write.flush_thread_seconds"):
                        file.finish(size)
                finally:
                    _cancel(jobs)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        self.meter.add("write.bytes", size)
        return size

    def beside(self) -> AbstractContextManager[Any]:
        """Within it, small copies from the device do not wait for the work queued there."""
        return nullcontext() if self._beside is None else torch.cuda.stream(self._beside)

    def stop_reading(self) -> None:
        """Let `load` end early with a CheckpointError; what is being written is still written."""
        self._stopped = True

    def close(self) -> None:
        """End the threads and give their buffers back."""
        self._readers.shutdown()
        self._writers.shutdown()
        for buffer in self._buffers:
            buffer.close()
        self._buffers.clear()

    def __enter__(self) -> Lanes:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _lane(self) -> _Lane:
        """This thread's."""
        lane: _Lane | None = getattr(self._own, "lane", None)
        if lane is None:
            buffer = HostBuffer(PIECE_BYTES + PAGE_BYTES, pin=self.device is not None)
            self._buffers.append(buffer)
            stream = None if self.device is None else torch.cuda.Stream(self.device)
            self._own.lane = lane = _Lane(buffer, stream)
        return lane

    def _read(self, file: InputFile, source: Source, start: int, target: Tensor) -> None:
        """One piece of a tensor, `start` bytes from its begin."""
        if self._stopped:
            raise CheckpointError("reading was stopped", file=file.path, tensor=source.name)
        lane = self._lane()
        first, count = source.span.start_byte + start, len(target)
        shift = first % PAGE_BYTES  # where it lies in the buffer, so that whole pages fit
        own = lane.buffer.tensor[shift : shift + count]
        place = own if self.staged else target
        view = memoryview(place.numpy())
        with self.meter.timed("read.file_thread_seconds"):
            try:
                done = 0
                if not file.is_cached(first, first + count):
                    buffer = memoryview(lane.buffer.tensor.numpy())
                    done = max(file.direct(buffer, first - shift, first + count) - shift, 0)
                    if place is target:
                        place[:done] = own[:done]
                    self.meter.add("read.disk_bytes", done)
                done += file.ordinary(view[done:], first + done)
            except OSError as failed:
                raise CheckpointError(
                    f"cannot read: {failed.strerror}", file=file.path, tensor=source.name
                ) from failed
        if done < count:
            raise CheckpointError(
                "file ended while a tensor was read",
                file=file.path,
                tensor=source.name,
                expected=f"{source.span.nbytes} bytes",
                found=f"{start + done} bytes",
            )
        if place is not target:
            with self.meter.timed("read.copy_thread_seconds"):
                lane.copy(target, place)
        self.meter.add("read.bytes", count)

    def _write(
        self, file: OutputFile, content: _Content, start: int, size: int, path: Path
    ) -> None:
        """One piece of a file, from byte `start`."""
        lane = self._lane()
        count = min(PIECE_BYTES, size - start)
        with self.meter.timed("write.copy_thread_seconds"):
            for place, part in content.between(start, start + count):
                lane.copy(lane.buffer.tensor[place : place + len(part)], part)
        view = memoryview(lane.buffer.tensor.numpy())
        with (
            self.meter.timed("write.file_thread_seconds"),
            self._refusals(path, content.name_at(start)),
        ):
            file.write(view, start, count)

    @contextmanager
    def _refusals(self, path: Path, tensor: str = "") -> Iterator[None]:
        try:
            yield
        except OSError as failed:
            full = failed.errno in _DISK_FULL
            raise CheckpointError(
                f"cannot write: {failed.strerror}",
                file=path,
                tensor=tensor,
                remedy="Make room and call again: finished blocks are kept." if full else "",
            ) from failed


@dataclass(frozen=True)
class _Content:
    """What a file will hold: bytes of each tensor, with its first byte's place and its name."""

    starts: list[int]
    names: list[str]
    parts: list[Tensor]

    def between(self, first: int, stop: int) -> Iterator[tuple[int, Tensor]]:
        """(place from `first`, bytes) of everything in a range."""
        index = bisect_right(self.starts, first) - 1
        while index < len(self.starts) and self.starts[index] < stop:
            start = self.starts[index]
            part = self.parts[index][max(first - start, 0) : stop - start]
            if len(part):
                yield max(start - first, 0), part
            index += 1

    def name_at(self, byte: int) -> str:
        """The tensor that holds a byte; the first one for the header."""
        return self.names[max(bisect_right(self.starts, byte) - 1, 1)]


def _place(item: tuple[str, Source]) -> tuple[str, int]:
    return str(item[1].file.path), item[1].span.start_byte


def _opened(source: Source) -> InputFile:
    try:
        return InputFile(source.file)
    except OSError as failed:
        raise CheckpointError(
            f"cannot read: {failed.strerror}", file=source.file.path, tensor=source.name
        ) from failed


def _flat(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _finish(jobs: Iterable[Future[Any]]) -> None:
    """Wait for all; the first failure comes out at once."""
    for job in jobs:
        job.result()


def _cancel(jobs: Iterable[Future[Any]]) -> None:
    """What has not begun does not begin; what has, is waited for."""
    running = [job for job in jobs if not job.cancel()]
    for job in running:
        job.exception()
