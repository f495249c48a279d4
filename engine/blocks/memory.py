"""Host buffers of exact size, page-locked in place, and the device calls a stream needs.

PyTorch's own pinned allocator rounds to powers of two, which would cost a fifth of the RAM here.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from contextlib import suppress
from functools import cache
from typing import Any, Protocol

import torch
from torch import Tensor


class HostBuffer:
    """A page-aligned uint8 tensor, page-locked if asked and if the system allows it."""

    def __init__(self, nbytes: int, *, pin: bool) -> None:
        self._memory: mmap.mmap | None = mmap.mmap(-1, nbytes)
        self.tensor: Tensor = torch.frombuffer(self._memory, dtype=torch.uint8)
        self.pinned = bool(pin and _register(self.tensor))
        self.refused = pin and not self.pinned

    def close(self) -> None:
        """Unlock and give the pages back. Safe to call twice."""
        if self.pinned:
            torch.cuda.cudart().cudaHostUnregister(self.tensor.data_ptr())
            self.pinned = False
        self.tensor = torch.empty(0, dtype=torch.uint8)
        self._memory = None  # unmapped when the last view is gone


class Device(Protocol):
    """What BlockStream asks of a device. Events order work; on a CPU everything is in order."""

    def empty(self, nbytes: int) -> Tensor:
        """An uninitialised uint8 slot."""

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Queue a copy on the copy stream."""

    def mark_copied(self) -> Any:
        """An event behind the copies queued so far."""

    def mark_computed(self) -> Any:
        """An event behind the compute work queued so far."""

    def copy_waits(self, event: Any) -> None:
        """Copies queued from now on wait for a compute event."""

    def mark_time(self) -> Any:
        """A timing event behind the compute work queued so far; of an idle device, it is now."""

    def compute_waits(self, event: Any) -> None:
        """Compute queued from now on waits for a copy event."""

    def finish(self, event: Any) -> None:
        """Block the calling thread until the event has passed."""

    def elapsed_seconds(self, before: Any, after: Any) -> float:
        """Time between two passed timing events."""


class CpuDevice:
    """Everything happens at once, in program order."""

    def empty(self, nbytes: int) -> Tensor:
        """See Device."""
        return torch.empty(nbytes, dtype=torch.uint8)

    def copy(self, target: Tensor, source: Tensor) -> None:
        """See Device."""
        target.copy_(source)

    def mark_copied(self) -> None:
        """See Device."""

    def mark_computed(self) -> None:
        """See Device."""

    def copy_waits(self, event: Any) -> None:
        """See Device."""

    def mark_time(self) -> float:
        """See Device."""
        return time.perf_counter()

    def compute_waits(self, event: Any) -> None:
        """See Device."""

    def finish(self, event: Any) -> None:
        """See Device."""

    def elapsed_seconds(self, before: float, after: float) -> float:
        """See Device."""
        return after - before


class CudaDevice:
    """One copy stream beside the compute stream: the current one unless another is given."""

    def __init__(self, device: torch.device, compute: torch.cuda.Stream | None = None) -> None:
        self.device = device
        self.compute = compute or torch.cuda.current_stream(device)
        self.link = named_stream(device, "link")

    def empty(self, nbytes: int) -> Tensor:
        """See Device. Queued work may still read what the memory held before: copies wait."""
        slot = torch.empty(nbytes, dtype=torch.uint8, device=self.device)
        self.link.wait_stream(torch.cuda.current_stream(self.device))
        return slot

    def copy(self, target: Tensor, source: Tensor) -> None:
        """See Device."""
        with torch.cuda.stream(self.link):
            target.copy_(source, non_blocking=True)

    def mark_copied(self) -> torch.cuda.Event:
        """See Device."""
        return _recorded(self.link)

    def mark_computed(self) -> torch.cuda.Event:
        """See Device."""
        return _recorded(self.compute)

    def copy_waits(self, event: Any) -> None:
        """See Device."""
        self.link.wait_event(event)

    def mark_time(self) -> torch.cuda.Event:
        """See Device."""
        return _recorded(self.compute, timing=True)

    def compute_waits(self, event: Any) -> None:
        """See Device."""
        self.compute.wait_event(event)

    def finish(self, event: Any) -> None:
        """See Device."""
        event.synchronize()

    def elapsed_seconds(self, before: Any, after: Any) -> float:
        """See Device."""
        return float(before.elapsed_time(after)) / 1e3


@cache
def named_stream(device: torch.device, name: str) -> torch.cuda.Stream:
    """One stream a name for the life of the process: libraries keep a workspace for every stream
    they have seen, so new ones for every request would pile up."""
    return torch.cuda.Stream(device)


def device_for(device: torch.device, compute: torch.cuda.Stream | None = None) -> Device:
    """The calls for a PyTorch device."""
    return CudaDevice(device, compute) if device.type == "cuda" else CpuDevice()


def _recorded(stream: torch.cuda.Stream, *, timing: bool = False) -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=timing, blocking=True)
    event.record(stream)
    return event


def _register(tensor: Tensor) -> bool:
    if not torch.cuda.is_available():
        return False
    result = torch.cuda.cudart().cudaHostRegister(tensor.data_ptr(), tensor.numel(), 0)
    if int(result) != 0:
        _forget_last_error()
        return False
    return True


def _forget_last_error() -> None:
    """Take back this thread's last CUDA error: the next kernel that it starts would raise it.

    PyTorch has no call for that. Its CUDA library is loaded for the whole process (Linux); where it
    is not found, the error stays.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).cudaGetLastError()
