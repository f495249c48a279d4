"""Frames from the decoder to the encoder on a thread of its own, through a few fixed buffers.

A clip of 17 frames at 1920x1088 is 106 MB; copied whole, with several under way, it would take more
host memory than everything else in a decode. So frames travel in pieces through a ring of buffers,
and a decoder that is faster than the encoder waits for one to come back.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from typing import Any, Protocol, Self

import torch

from .blocks.memory import HostBuffer
from .units import MIB

PIECE_BYTES = 24 * MIB  # at least one frame
BUFFERS = 6


class FrameSink(Protocol):
    """What takes the frames: a VideoWriter."""

    def write_frames(self, frames: torch.Tensor) -> None:
        """Append uint8 [n, H, W, 3]."""


@dataclass(frozen=True)
class _Piece:
    """Frames for the encoder. copied: an event to wait for; source: lives until the copy is done;
    buffer: goes back into the ring."""

    frames: torch.Tensor
    copied: Any = None
    source: torch.Tensor | None = None
    buffer: HostBuffer | None = None


class BackgroundFrames:
    """Encodes on a thread, so that the next clip decodes while this one is compressed.

    Call it with uint8 [n, H, W, 3] frames, as `on_frames` of the decoder. Frames on a device are
    copied into page-locked buffers without waiting for the device. A failure of the writer is
    raised at the next call, or on leaving the context. copies: None copies what lies on a device.
    """

    def __init__(self, writer: FrameSink, *, copies: bool | None = None) -> None:
        self._writer, self._copies = writer, copies
        self._waiting: queue.Queue[_Piece | None] = queue.Queue(maxsize=BUFFERS)
        self._free: queue.Queue[HostBuffer] = queue.Queue()
        self._buffers: list[HostBuffer] = []
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="lowpeak-encode", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __call__(self, frames: torch.Tensor) -> None:
        step = max(1, PIECE_BYTES // max(1, frames[0].numel())) if len(frames) else 1
        for piece in frames.split(step):
            if self._failure is not None:
                raise self._failure
            copies = frames.is_cuda if self._copies is None else self._copies
            self._waiting.put(self._copied(piece, step) if copies else _Piece(piece))

    def __exit__(self, *exception: object) -> None:
        self._waiting.put(None)
        self._thread.join()
        for buffer in self._buffers:
            buffer.close()
        if self._failure is not None and exception[0] is None:
            raise self._failure

    def _copied(self, piece: torch.Tensor, frames: int) -> _Piece:
        buffer = self._buffer(frames * piece[0].numel(), pin=piece.is_cuda)
        host = buffer.tensor[: piece.numel()].view(piece.shape)
        host.copy_(piece, non_blocking=True)
        copied = None
        if piece.is_cuda:
            copied = torch.cuda.Event()
            copied.record()
        return _Piece(host, copied, piece, buffer)

    def _buffer(self, nbytes: int, *, pin: bool) -> HostBuffer:
        """A free buffer, a new one while there may be more, else the next that comes back."""
        if self._free.empty() and len(self._buffers) < BUFFERS:
            self._buffers.append(HostBuffer(nbytes, pin=pin))
            return self._buffers[-1]
        return self._free.get()

    def _work(self) -> None:
        while (item := self._waiting.get()) is not None:
            try:
                if self._failure is None:  # else only keep the queue moving
                    if item.copied is not None:
                        item.copied.synchronize()
                    self._writer.write_frames(item.frames)
            except Exception as failure:
                self._failure = failure
            if item.buffer is not None:
                self._free.put(item.buffer)
