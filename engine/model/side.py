"""A stream beside the main one, for work that waits for nothing queued after it began."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ..blocks.memory import named_stream


class SideStream:
    """used: False runs everything on the main stream. A kernel's last wave leaves most of a card
    idle; work from the other stream fills it. Order of execution only, never what is computed.
    """

    def __init__(self, device: torch.device, name: str, *, used: bool) -> None:
        self._device = device
        self._stream = named_stream(device, name) if used else None

    @property
    def used(self) -> bool:
        """Whether there is a stream of its own."""
        return self._stream is not None

    @contextmanager
    def beside(self) -> Iterator[None]:
        """On the side stream, behind what is queued on the main one so far."""
        if self._stream is None:
            yield
            return
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            yield

    def mark(self) -> torch.cuda.Event | None:
        """The end of what is queued on the side stream so far, for `reach`."""
        return None if self._stream is None else self._stream.record_event()

    def reach(self, mark: torch.cuda.Event | None) -> None:
        """What is queued on the main stream from now on waits for a mark, not for what is behind
        it."""
        if mark is not None:
            torch.cuda.current_stream(self._device).wait_event(mark)

    def join(self) -> None:
        """What is queued on the main stream from now on waits for the side stream."""
        if self._stream is not None:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)
