"""What a phase took: seconds, peak device memory, peak host memory of this process.

Device memory is what the allocator reserved plus what lies outside it: context, libraries, captured
graphs, read at both ends. Host memory is the resident set's high-water mark, reset at the start of
a phase where the system can (Linux); elsewhere the resident set is read at both ends and the larger
one counts. Clean pages of files in it are told apart: they are no need. Nothing is sampled from a
thread, so nothing falls between two samples. What the system says of the whole card, the tree of
processes and the cgroup is read once, at a phase's end, beside that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pynvml
import torch

from .hostmemory import read_cgroup_peak
from .procmemory import read_process_memory, with_children
from .report import PhaseMeasurement

CLEAR_REFS, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
RESET_PEAK = "5"
# Of each card: this process's context, and all it held beside the allocator when last looked. Both
# outlive a session, and a later one could not tell them from other programs'.
_OUTSIDE: dict[int, tuple[int, int]] = {}
MOST_GROWTH_BYTES = 1 << 30  # more than this beside the allocator belongs to another program


class Meter:
    """Measures phases of one session on `device`. One phase at a time."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.context_bytes = 0
        self._others_bytes: int | None = None  # on the card beside this process
        if device.type == "cuda":
            self._others_bytes = _card_used_bytes(device)
            known = _OUTSIDE.get(device.index or 0)
            if known is None:
                self.context_bytes = self._make_context()
                self._outside_bytes()
            elif self._others_bytes is not None:  # a session before left its context here
                self.context_bytes, outside_bytes = known
                ours_bytes = torch.cuda.memory_reserved(device) + outside_bytes
                self._others_bytes = max(0, self._others_bytes - ours_bytes)
            else:
                self.context_bytes = known[0]

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
                measured.vram_outside_bytes = self._outside_bytes()
                measured.vram_peak_bytes = reserved_bytes + measured.vram_outside_bytes
            measured.seconds = time.perf_counter() - began
            if self.device.type == "cuda":  # the allocator holds what it reserved: near the peak
                measured.vram_card_bytes = _card_used_bytes(self.device)
                measured.vram_process_bytes = process_card_bytes(self.device)
            peak_bytes = _host_peak_bytes() if host_reset else None
            measured.ram_peak_bytes = (
                max(host_before_bytes, resident_bytes()) if peak_bytes is None else peak_bytes
            )
            host = read_process_memory()
            measured.ram_clean_bytes = None if host is None else host.clean_bytes
            measured.ram_tree_bytes = None if host is None else with_children(host).total_bytes
            measured.cgroup_peak_bytes = read_cgroup_peak()

    def device_bytes(self) -> int | None:
        """Device memory that this process holds now, None without a device of its own.

        The driver's own figure where it tells processes apart (not in most containers, not on
        Windows); else the allocator's and what lies outside it, libraries and graphs included.
        """
        if self.device.type != "cuda":
            return None
        told = process_card_bytes(self.device)
        if told is not None:
            return told
        return torch.cuda.memory_reserved(self.device) + self._outside_bytes()

    def _make_context(self) -> int:
        """Create the CUDA context and load the matrix library; the device memory they take.

        The library's workspace is allocated here, in a segment of its own: carved out of a later
        one it would keep the rest of that segment from being given back.
        """
        small = torch.ones(256, 256, dtype=torch.bfloat16, device=self.device)
        (small @ small).sum().item()
        del small
        self.context_bytes = 0
        return self._outside_bytes()

    def _outside_bytes(self) -> int:
        """What this process holds beside the allocator now, the context at least."""
        used_bytes = _card_used_bytes(self.device)
        if used_bytes is None or self._others_bytes is None:
            return self.context_bytes
        reserved_bytes = torch.cuda.memory_reserved(self.device)
        outside_bytes = max(0, used_bytes - self._others_bytes - reserved_bytes)
        if self.context_bytes and outside_bytes > self.context_bytes + MOST_GROWTH_BYTES:
            return self.context_bytes
        outside_bytes = max(self.context_bytes, outside_bytes)
        if self.context_bytes:
            _OUTSIDE[self.device.index or 0] = self.context_bytes, outside_bytes
        return outside_bytes


def process_card_bytes(device: torch.device) -> int | None:
    """Device memory of this process as the driver counts it, None when it does not tell."""
    try:
        pynvml.nvmlInit()
        uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
        card = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        for item in pynvml.nvmlDeviceGetComputeRunningProcesses(card):
            if item.pid == os.getpid() and item.usedGpuMemory:
                return int(item.usedGpuMemory)
    except (AttributeError, RuntimeError, pynvml.NVMLError):
        return None
    return None


def resident_bytes() -> int:
    """Resident set of this process now."""
    return int(psutil.Process().memory_info().rss)


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
