"""The decoder's blocks through a BlockStore and a BlockStream: what `decode_video` iterates over.

The placement is given, not chosen: which blocks stay on the device, which in page-locked memory,
the rest is read again for every group of clips. No placement changes a bit of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import torch
from torch import Tensor

from ..blocks import BlockStore, BlockStream, TensorSource
from ..blocks.memory import device_for
from .files import VideoVaeFile
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
        shapes = block_shapes(file.config).items()
        template = fuse_qkv(
            {name: torch.empty(s, dtype=dtype, device="meta") for name, s in shapes}
        )
        sources = [
            TensorSource(template, partial(_fused_block, file, index, dtype))
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
                yield handle.part()


def _fused_block(file: VideoVaeFile, index: int, dtype: torch.dtype) -> dict[str, Tensor]:
    return fuse_qkv(file.block(index, "cpu", dtype))
