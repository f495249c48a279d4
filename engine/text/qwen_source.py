"""A decoder layer's bytes, read from where they lie straight into the buffer of the upload.

Tensors of a layer lie scattered over a file, or over several: neighbours become one run, and runs
are read in pieces, several at once, past the page cache where the file system allows it. A run
keeps the alignment it has in its file, so direct reads need no second copy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from ..blocks.layout import Piece
from ..checkpoint.header import FileIdentity, TensorFile
from ..checkpoint.sources import Source
from ..errors import CheckpointError
from ..units import MIB, round_up

PAGE_BYTES = 4096
READ_BYTES = 8 * MIB
GAP_BYTES = 256 << 10  # reading this much for nothing is cheaper than another request


@dataclass(frozen=True)
class Run:
    """Bytes start..stop of a file, whole pages but for the file's end, at `place` of the buffer."""

    file: TensorFile
    start: int
    stop: int
    place: int


class SpanSource:
    """See engine.blocks.BlockSource. tensors: where each lies, by the name the block uses."""

    beside = True

    def __init__(self, tensors: Mapping[str, Source]) -> None:
        ordered = sorted(
            tensors.items(), key=lambda item: (str(item[1].file.path), item[1].span.start_byte)
        )
        runs: list[Run] = []
        pieces: dict[str, Piece] = {}
        cursor = 0
        for name, (file, stored) in ordered:
            span = file.tensors[stored]
            last = runs[-1] if runs else None
            if last is None or last.file is not file or span.start_byte > last.stop + GAP_BYTES:
                start = span.start_byte // PAGE_BYTES * PAGE_BYTES
                last = Run(file, start, start, cursor)
                runs.append(last)
            stop = min(round_up(span.end_byte, PAGE_BYTES), file.identity.size_bytes)
            last = Run(file, last.start, max(stop, last.stop), last.place)
            runs[-1] = last
            cursor = last.place + round_up(last.stop - last.start, PAGE_BYTES)
            at = last.place + span.start_byte - last.start
            pieces[name] = Piece(span.torch_dtype, tuple(span.shape), at, span.nbytes)
        self.runs = runs
        self.pieces: Mapping[str, Piece] = pieces
        self.buffer_bytes = max(cursor, PAGE_BYTES)

    def read(self, buffer: Tensor, readers: Executor) -> int:
        """See BlockSource. Raises CheckpointError for a changed, vanished or short file."""
        view = memoryview(buffer.numpy())
        opened: dict[Path, tuple[int, bool]] = {}
        try:
            for run in self.runs:
                if run.file.path not in opened:
                    opened[run.file.path] = _open(run.file)
            jobs = [
                readers.submit(_read, *opened[run.file.path], view, run, start)
                for run in self.runs
                for start in range(run.start, run.stop, READ_BYTES)
            ]
            wait(jobs)
            got = sum(job.result() for job in jobs)
        except OSError as failed:
            path = self.runs[0].file.path
            raise CheckpointError(f"read failed: {failed.strerror}", file=path) from failed
        finally:
            for descriptor, _ in opened.values():
                os.close(descriptor)
        want = sum(run.stop - run.start for run in self.runs)
        if got != want:
            raise CheckpointError(
                "short read", file=self.runs[0].file.path, expected=want, found=got
            )
        return got


def _open(file: TensorFile) -> tuple[int, bool]:
    """A descriptor of the file whose header was read, and whether reads bypass the page cache."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
    direct = getattr(os, "O_DIRECT", 0)
    descriptor, is_direct = None, False
    if direct:
        try:
            descriptor, is_direct = os.open(file.path, flags | direct), True
        except OSError as refused:
            if refused.errno not in (22, 95):  # EINVAL, EOPNOTSUPP: this file system cannot
                raise
    if descriptor is None:
        descriptor = os.open(file.path, flags)
    found = FileIdentity.of(os.fstat(descriptor))
    if found != file.identity:
        os.close(descriptor)
        raise CheckpointError(
            "the file changed while the model was in use",
            file=file.path,
            expected=file.identity,
            found=found,
            remedy="Start the run again.",
        )
    return descriptor, is_direct


def _read(descriptor: int, direct: bool, view: memoryview, run: Run, start: int) -> int:
    """One piece into its place; a direct read asks for whole pages at the file's end too."""
    stop = min(start + READ_BYTES, run.stop)
    shift = run.place - run.start
    done = start
    while done < stop:
        target = round_up(stop, PAGE_BYTES) if direct else stop
        if hasattr(os, "preadv"):
            got = os.preadv(descriptor, [view[done + shift : target + shift]], done)
        else:
            with open(run.file.path, "rb", buffering=0) as file:
                file.seek(done)
                got = file.readinto(view[done + shift : stop + shift]) or 0
        if got <= 0:
            break
        done += got
    if not direct and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, start, stop - start, os.POSIX_FADV_DONTNEED)
    return min(done, stop) - start
