"""Frames from the decoder to the encoder on a thread of its own."""

from __future__ import annotations

import queue
import threading
from typing import Any, Protocol, Self

import torch


class FrameSink(Protocol):
    """What takes the frames: a VideoWriter."""

    def write_frames(self, frames: torch.Tensor) -> None:
        """Append uint8 [n, H, W, 3]."""


class BackgroundFrames:
    """Encodes on a thread, so that the next clip decodes while this one is compressed.

    Call it with uint8 [n, H, W, 3] frames, as `on_frames` of the decoder: a copy from the device is
    started and the call returns; at most `depth` clips wait. A failure of the writer is raised at
    the next call, or on leaving the context.
    """

    def __init__(self, writer: FrameSink, depth: int = 2) -> None:
        self._writer = writer
        self._waiting: queue.Queue[tuple[torch.Tensor, Any, torch.Tensor] | None]
        self._waiting = queue.Queue(maxsize=depth)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="lowpeak-encode", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __call__(self, frames: torch.Tensor) -> None:
        if self._failure is not None:
            raise self._failure
        if frames.is_cuda:
            host = torch.empty(frames.shape, dtype=frames.dtype, pin_memory=True)
            host.copy_(frames, non_blocking=True)
            copied = torch.cuda.Event()
            copied.record()
            self._waiting.put((host, copied, frames))  # frames live until the copy is done
        else:
            self._waiting.put((frames, None, frames))

    def __exit__(self, *exception: object) -> None:
        self._waiting.put(None)
        self._thread.join()
        if self._failure is not None and exception[0] is None:
            raise self._failure

    def _work(self) -> None:
        while (item := self._waiting.get()) is not None:
            if self._failure is not None:
                continue  # keep the queue empty until the caller notices
            host, copied, _ = item
            try:
                if copied is not None:
                    copied.synchronize()
                self._writer.write_frames(host)
            except Exception as failure:
                self._failure = failure
