"""Where a block comes from: a range of a file, or tensors that somebody makes on demand."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, wait
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from ..errors import CheckpointError
from ..units import round_up
from .files import PAGE_BYTES, READ_BYTES, BlockFile
from .layout import Piece


class BlockSource(Protocol):
    """One block's bytes."""

    buffer_bytes: int  # size of the host buffer `read` fills
    pieces: Mapping[str, Piece]  # offsets are into that buffer
    beside: bool  # whether it may be read while another is: takes no memory but the buffer

    def read(self, buffer: Tensor, readers: Executor) -> int:
        """Fill `buffer` (uint8, page aligned). Returns the bytes read from disk."""


class FileSource:
    """A whole safetensors file, read past the page cache where the file system allows it.

    pieces: tensor offsets in the file. identity: (size, mtime_ns, inode) seen when the header was
    read; a file that changed since is a CheckpointError, never a different picture.
    """

    beside = True

    def __init__(self, path: Path, pieces: Mapping[str, Piece], identity: tuple[int, int, int]):
        self.path, self.pieces, self.identity = path, pieces, identity
        self.buffer_bytes = round_up(identity[0], PAGE_BYTES)

    def read(self, buffer: Tensor, readers: Executor) -> int:
        """See BlockSource. Raises CheckpointError for a changed, vanished or short file."""
        size = self.identity[0]
        try:
            file = BlockFile(self.path, self._check)
        except OSError as failed:
            raise CheckpointError(f"cannot open: {failed.strerror}", file=self.path) from failed
        try:
            view = memoryview(buffer.numpy())
            jobs = [
                readers.submit(file.read, view[start:], start, min(start + READ_BYTES, size))
                for start in range(0, size, READ_BYTES)
            ]
            wait(jobs)
            got = sum(job.result() for job in jobs)
        except OSError as failed:
            raise CheckpointError(f"read failed: {failed.strerror}", file=self.path) from failed
        finally:
            file.close()
        if got != size:
            raise CheckpointError("short read", file=self.path, expected=size, found=got)
        return size

    def _check(self, status: os.stat_result) -> None:
        found = (status.st_size, status.st_mtime_ns, status.st_ino)
        if found != self.identity:
            raise CheckpointError(
                "the file changed while the model was in use",
                file=self.path,
                expected=f"{self.identity[0]} bytes, unchanged",
                found=f"{found[0]} bytes",
                remedy="Start the run again.",
            )


class TensorSource:
    """Tensors that `make` gives, packed into the host buffer; for layouts that must be converted.

    template: the same names, dtypes and shapes `make` will give. disk_bytes: what `make` reads for
    it; None for as many bytes as the tensors have.
    """

    beside = False

    def __init__(
        self,
        template: Mapping[str, Tensor],
        make: Callable[[], Mapping[str, Tensor]],
        disk_bytes: int | None = None,
    ):
        self.make = make
        pieces, cursor = {}, 0
        for name, tensor in template.items():
            count = tensor.numel() * tensor.element_size()
            pieces[name] = Piece(tensor.dtype, tuple(tensor.shape), cursor, count)
            cursor = round_up(cursor + count, 256)
        self.pieces: Mapping[str, Piece] = pieces
        self.buffer_bytes = round_up(max(cursor, 1), PAGE_BYTES)
        held = sum(piece.nbytes for piece in pieces.values())
        self.disk_bytes = held if disk_bytes is None else disk_bytes

    def read(self, buffer: Tensor, readers: Executor) -> int:
        """See BlockSource."""
        for name, tensor in self.make().items():
            piece = self.pieces[name]
            flat = tensor.contiguous().view(-1).view(torch.uint8)
            buffer[piece.start_byte : piece.start_byte + piece.nbytes].copy_(flat)
        return self.disk_bytes
