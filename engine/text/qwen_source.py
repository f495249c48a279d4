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
from functools import partial
from pathlib import Path

from torch import Tensor

from ..blocks.files import PAGE_BYTES, READ_BYTES, BlockFile
from ..blocks.layout import Piece
from ..checkpoint.header import FileIdentity, TensorFile
from ..checkpoint.sources import Source
from ..errors import CheckpointError
from ..units import round_up

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
        opened: dict[Path, BlockFile] = {}
        try:
            for run in self.runs:
                if run.file.path not in opened:
                    opened[run.file.path] = BlockFile(run.file.path, partial(_check, run.file))
            jobs = [
                readers.submit(
                    opened[run.file.path].read,
                    view[run.place + start - run.start :],
                    start,
                    min(start + READ_BYTES, run.stop),
                )
                for run in self.runs
                for start in range(run.start, run.stop, READ_BYTES)
            ]
            wait(jobs)
            got = sum(job.result() for job in jobs)
        except OSError as failed:
            path = self.runs[0].file.path
            raise CheckpointError(f"read failed: {failed.strerror}", file=path) from failed
        finally:
            for file in opened.values():
                file.close()
        want = sum(run.stop - run.start for run in self.runs)
        if got != want:
            raise CheckpointError(
                "short read", file=self.runs[0].file.path, expected=want, found=got
            )
        return got


def _check(file: TensorFile, status: os.stat_result) -> None:
    """Raise CheckpointError for another file than the one whose header was read."""
    found = FileIdentity.of(status)
    if found != file.identity:
        raise CheckpointError(
            "the file changed while the model was in use",
            file=file.path,
            expected=file.identity,
            found=found,
            remedy="Start the run again.",
        )
