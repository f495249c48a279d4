"""A block file with adapters in it, for the store: read as it lies, then changed in the buffer.

A merge keeps names, dtypes and shapes, so the bytes of the file stay the layout: codes and scales
are overwritten where they are. On a card they go through it a tile of rows at a time, straight from
and to page-locked memory. Online factors follow behind the file's bytes.

A block that is read in every pass can be kept merged: the changed buffer is written once, as a
block file of its own, and read from then on. Such files are named by what made them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..blocks.layout import SLOT_ALIGNMENT, Piece
from ..blocks.sources import PAGE_BYTES, FileSource
from ..checkpoint.header import TensorFile, read_header
from ..errors import CheckpointError
from ..units import GIB, round_up
from .apply import Difference
from .merging import merge_raw

if TYPE_CHECKING:
    from .adapted import LoraReader

KEPT_FORMAT = "lowpeak-merged-blocks-2"
KEPT_SETS = 2  # checkpoints with adapters whose merged blocks may lie on the disk at once
KEPT_ROOM_BYTES = 8 * GIB  # left free on the disk


class AdaptedSource:
    """See engine.blocks.BlockSource. kept: the file that holds the block merged, or will."""

    beside = False  # merging takes memory, and one stream of the device

    def __init__(
        self, file: TensorFile, block: int, reader: LoraReader, kept: Path | None = None
    ) -> None:
        self._file, self._block, self._reader, self._kept = file, block, reader, kept
        self._base = _file_source(file, file.tensors)
        self._branch_pieces = dict(_branch_pieces(reader, self._base.buffer_bytes))
        self.pieces: Mapping[str, Piece] = {**self._base.pieces, **self._branch_pieces}
        ends = [piece.start_byte + piece.nbytes for piece in self._branch_pieces.values()]
        self.buffer_bytes = round_up(max(ends, default=self._base.buffer_bytes), PAGE_BYTES)

    def read(self, buffer: Tensor, readers: Executor) -> int:
        """See BlockSource. Raises CheckpointError for a changed, vanished or short file."""
        held = buffer[: self._base.buffer_bytes]
        merges = self._reader.merges(self._block)
        count = self._read_kept(held, readers) if merges and self._kept else 0
        if not count:
            count = self._base.read(held, readers)
            if merges:
                with self._reader.beside():
                    merge_bytes_(
                        held,
                        self._base.pieces,
                        merges,
                        self._reader.weight_format,
                        self._reader.device,
                    )
                self._keep(held)
        if self._branch_pieces:
            for name, tensor in self._reader.branch_tensors(self._block).items():
                _bytes_of(buffer, self._branch_pieces[name]).copy_(_flat_bytes(tensor))
        return count

    def _read_kept(self, held: Tensor, readers: Executor) -> int:
        """Bytes read from the kept file; 0 where there is none that is whole."""
        assert self._kept is not None
        try:
            file = read_header(self._kept)
            if file.header_sha256 != self._file.header_sha256:
                return 0
            return _file_source(file, {}).read(held, readers)
        except CheckpointError:  # cleared away, or cut by a full disk: merge again
            return 0

    def _keep(self, held: Tensor) -> None:
        """Write the merged block, whole or not at all. A disk that refuses costs only speed."""
        if self._kept is None:
            return
        size = self._file.identity.size_bytes
        part = self._kept.with_name(f".{self._kept.name}.{os.getpid()}.part")
        try:
            self._kept.parent.mkdir(parents=True, exist_ok=True)
            with open(part, "wb") as target:
                target.write(memoryview(held[:size].numpy()))
            os.replace(part, self._kept)
        except OSError:
            part.unlink(missing_ok=True)
            self._kept = None


def merge_bytes_(
    buffer: Tensor,
    pieces: Mapping[str, Piece],
    merges: Mapping[str, Sequence[Difference]],
    weight_format: str,
    device: torch.device,
) -> None:
    """Merge into a block's host bytes (uint8), in place. pieces: where its tensors stand."""
    tensors = {name: _tensor_of(buffer, piece) for name, piece in pieces.items()}
    merged = merge_raw(tensors, merges, weight_format, device, in_place=True)
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
    for name, tensor in merged.items():
        if tensor is not tensors[name]:
            _bytes_of(buffer, pieces[name]).copy_(_flat_bytes(tensor))


def kept_files(
    folder: Path, identity: str, files: Sequence[TensorFile], reread: Collection[int]
) -> dict[int, Path]:
    """Where the merged blocks of `reread` are kept, by block; {} when the disk has no room.

    Older sets than the last few are removed first.
    """
    place = folder / identity[:32]
    found = {block: place / f"{block:02d}.safetensors" for block in reread}
    _clear(folder, place)
    missing = sum(files[b].identity.size_bytes for b, path in found.items() if not path.is_file())
    try:
        place.mkdir(parents=True, exist_ok=True)
        os.utime(place)
        room = shutil.disk_usage(place).free
    except OSError:
        return {}
    return found if missing + KEPT_ROOM_BYTES <= room else {}


def kept_identity(parts: Sequence[object]) -> str:
    """A name for merged bytes: `parts` are all that they depend on."""
    return hashlib.sha256("\n".join(map(str, (KEPT_FORMAT, *parts))).encode()).hexdigest()


def _clear(folder: Path, place: Path) -> None:
    try:
        others = [path for path in folder.iterdir() if path.is_dir() and path != place]
        others.sort(key=lambda path: path.stat().st_mtime)
    except OSError:
        return
    for path in others[: max(0, len(others) - KEPT_SETS + 1)]:
        shutil.rmtree(path, ignore_errors=True)


def _file_source(file: TensorFile, tensors: Mapping[str, object]) -> FileSource:
    pieces = {
        name: Piece(span.torch_dtype, tuple(span.shape), span.start_byte, span.nbytes)
        for name, span in file.tensors.items()
        if name in tensors
    }
    identity = (file.identity.size_bytes, file.identity.mtime_ns, file.identity.inode)
    return FileSource(file.path, pieces, identity)


def _branch_pieces(reader: LoraReader, start: int) -> Iterator[tuple[str, Piece]]:
    """Places of the online factors; the same for every block, whichever holds some."""
    cursor = start
    for name, (dtype, shape) in reader.branch_shapes().items():
        count = torch.Size(shape).numel() * dtype.itemsize
        cursor = round_up(cursor, SLOT_ALIGNMENT)
        yield name, Piece(dtype, shape, cursor, count)
        cursor += count


def _tensor_of(buffer: Tensor, piece: Piece) -> Tensor:
    """The tensor as a view of the buffer; a copy where its place has no alignment for that."""
    raw = _bytes_of(buffer, piece)
    if piece.start_byte % piece.dtype.itemsize:
        raw = raw.clone()
    return raw.view(piece.dtype).view(piece.shape)


def _bytes_of(buffer: Tensor, piece: Piece) -> Tensor:
    return buffer[piece.start_byte : piece.start_byte + piece.nbytes]


def _flat_bytes(tensor: Tensor) -> Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)
