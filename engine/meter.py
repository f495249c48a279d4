"""What a phase took: seconds, peak device memory, peak host memory of this process.

Device memory is what the allocator reserved plus what the context holds outside it. Host memory is
the resident set's high-water mark, reset at the start of a phase where the system can (Linux);
elsewhere the resident set is read at both ends and the larger one counts. Nothing is sampled from
a thread, so nothing falls between two samples.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pynvml
import torch

from .report import PhaseMeasurement

CLEAR_REFS, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
RESET_PEAK = "5"


class Meter:
    """Measures phases of one session on `device`. One phase at a time."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.context_bytes = 0
        if device.type == "cuda":
            self.context_bytes = _make_context(device)

    @contextmanager
    def phase(self, name: str) -> Iterator[PhaseMeasurement]:
        """Fill in a measurement while the body runs, also when it raises."""
        measured = PhaseMeasurement(name, 0.0, time.time())
        host_reset = _reset_host_peak()
        host_before_bytes = resident_bytes()
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            torch.cuda.reset_peak_memory_stats(self.device)
        began = time.perf_counter()
        try:
            yield measured
        finally:
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
                reserved_bytes = torch.cuda.max_memory_reserved(self.device)
                measured.vram_peak_bytes = reserved_bytes + self.context_bytes
            measured.seconds = time.perf_counter() - began
            peak_bytes = _host_peak_bytes() if host_reset else None
            measured.ram_peak_bytes = (
                max(host_before_bytes, resident_bytes()) if peak_bytes is None else peak_bytes
            )

    def device_bytes(self) -> int | None:
        """Device memory in use now, None without a device of its own."""
        if self.device.type != "cuda":
            return None
        return torch.cuda.memory_reserved(self.device) + self.context_bytes


def resident_bytes() -> int:
    """Resident set of this process now."""
    return int(psutil.Process().memory_info().rss)


def _make_context(device: torch.device) -> int:
    """Create the CUDA context; the device memory it took beside the allocator's."""
    before_bytes = _card_used_bytes(device)
    torch.zeros(1, device=device)
    after_bytes = _card_used_bytes(device)
    if before_bytes is None or after_bytes is None:
        return 0
    return max(0, after_bytes - before_bytes - torch.cuda.memory_reserved(device))


def _card_used_bytes(device: torch.device) -> int | None:
    """Memory in use on the whole card, None when the driver does not tell."""
    try:
        return torch.cuda.device_memory_used(device.index or 0)  # an index asks for no context
    except (RuntimeError, pynvml.NVMLError):
        return None


def _reset_host_peak() -> bool:
    try:
        CLEAR_REFS.write_text(RESET_PEAK)
    except OSError:
        return False
    return True


def _host_peak_bytes() -> int | None:
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None
