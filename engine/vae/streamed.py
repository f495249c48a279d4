"""The decoder's blocks through a BlockStore and a BlockStream: what `decode_video` iterates over.

A file that holds the computing dtype is read straight into the buffer of the upload, at the disk's
rate, and names and order of its tensors are put right on the device; other files (int8, float32)
are converted while they are read.

The placement is given, not chosen: which blocks stay on the device, which in page-locked memory,
the rest is read again for every group of clips. No placement changes a bit of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial

import torch
from torch import Tensor

from ..blocks import BlockSource, BlockStore, BlockStream, TensorSource
from ..blocks.memory import device_for
from ..text.qwen_source import SpanSource
from .files import VideoVaeFile, check_numbers
from .keys import fuse_qkv
from .shapes import block_shapes


class StreamedBlocks:
    """Blocks of `file` in `dtype` on `device`. A context manager; call it for one pass.

    resident: blocks that stay on the device; pinned: blocks kept in (page-locked) host memory, of
    the others; slots: blocks on the device beside the resident ones.
    """

    def __init__(
        self,
        file: VideoVaeFile,
        device: torch.device,
        dtype: torch.dtype,
        *,
        resident: Sequence[int] = (),
        pinned: Sequence[int] = (),
        slots: int = 2,
        staging: int = 2,
    ) -> None:
        self._blocks = file.config.blocks
        self._resources = ExitStack()
        self._file, self._direct = file, is_direct(file, dtype)
        sources: list[BlockSource]
        if self._direct:
            sources = [StoredBlock(file, index) for index in range(self._blocks)]
        else:
            shapes = block_shapes(file.config).items()
            template = fuse_qkv(
                {name: torch.empty(s, dtype=dtype, device="meta") for name, s in shapes}
            )
            sources = [
                TensorSource(
                    template, partial(_fused_block, file, index, dtype), _stored_bytes(file, index)
                )
                for index in range(self._blocks)
            ]
        calls = device_for(device)
        # Buffers are written by other threads, which are in no inference mode of the caller's.
        with torch.inference_mode(False):
            store = BlockStore(
                sources,
                pinned=sorted(set(pinned) - set(resident)),
                first=tuple(resident),
                staging=staging,
                pin=device.type == "cuda",
                device=calls,
            )
            self._resources.enter_context(store)
            stream = BlockStream(store, calls, resident=resident, slots=slots, owns_store=False)
        self.stream = self._resources.enter_context(stream)
        self.store = store

    def __enter__(self) -> StreamedBlocks:
        return self

    def __exit__(self, *failure: object) -> None:
        self._resources.close()

    def __call__(self) -> Iterator[dict[str, Tensor]]:
        """One pass over the stack; each block's tensors are dead when the next is asked for."""
        for index in range(self._blocks):
            with self.stream.block(index) as handle:
                part = handle.part()
                yield self._file.from_stored(part) if self._direct else part


class StoredBlock(SpanSource):
    """Block `index` of a file as it lies there, checked by its numbers once it is read."""

    def __init__(self, file: VideoVaeFile, index: int) -> None:
        self._tensors = file.stored_block(index)
        super().__init__(self._tensors)

    def read(self, buffer: Tensor, readers: Executor) -> int:
        """See BlockSource. Raises CheckpointError, for wrong bytes in a tensor too."""
        got = super().read(buffer, readers)
        for name, piece in self.pieces.items():
            stored = buffer[piece.start_byte : piece.start_byte + piece.nbytes]
            check_numbers(stored.view(piece.dtype).view(piece.shape), self._tensors[name])
        return got


def is_direct(file: VideoVaeFile, dtype: torch.dtype) -> bool:
    """Whether the blocks of `file` hold `dtype` throughout."""
    stored_block = getattr(file, "stored_block", None)  # synthetic files of benchmarks have none
    if stored_block is None:
        return False
    return all(
        source.span.torch_dtype == dtype
        for index in range(file.config.blocks)
        for source in stored_block(index).values()
    )


def _stored_bytes(file: VideoVaeFile, index: int) -> int | None:
    """Bytes of a block in its file; None for a synthetic file, which does not tell."""
    stored_block = getattr(file, "stored_block", None)
    return stored_block and sum(item.span.nbytes for item in stored_block(index).values())


def _fused_block(file: VideoVaeFile, index: int, dtype: torch.dtype) -> dict[str, Tensor]:
    return fuse_qkv(file.block(index, "cpu", dtype))
