"""Why a worker ended: one class for every way, and which of them a lighter plan can help.

    out_of_device_memory   the allocator gave up, or the plan's peak was exceeded on the device
    out_of_host_memory     MemoryError, bad_alloc, or the plan's peak was exceeded on the host
    killed_by_kernel       SIGKILL while the cgroup's or the system's out-of-memory count rose
    cuda_error             illegal access, launch failure, device lost: the context is gone
    crash                  a signal or an access violation without any of the above
    killed                 SIGKILL without an out-of-memory: somebody else ended it
    hung                   no heartbeat for too long
    cancelled              asked to stop
    refused                a typed error: request, checkpoint, plan, kernels
    code_error             any other exception
    unexplained_exit       an exit code without a message

Only the first three are retried. Names and texts are compared, so that no torch is imported here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import Cancelled, LowpeakError, MeasuredOverrun

RETRYABLE = ("out_of_device_memory", "out_of_host_memory", "killed_by_kernel")
KINDS = (
    *RETRYABLE,
    "cuda_error",
    "crash",
    "killed",
    "hung",
    "cancelled",
    "refused",
    "code_error",
    "unexplained_exit",
)
SIGKILL = 9
_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
_WINDOWS_CRASH = {0xC0000005: "access violation", 0xC0000409: "stack check", 0xC00000FD: "stack"}
_WINDOWS_MEMORY = {0xC0000017: "no memory", 0xC000012D: "commit limit"}
_DEVICE_MEMORY = re.compile(
    r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAlloc", re.I
)
_HOST_MEMORY = re.compile(r"std::bad_alloc|cannot allocate memory|DefaultCPUAllocator", re.I)
_CUDA = re.compile(
    r"CUDA error|illegal memory access|device-side assert|unspecified launch failure|"
    r"launch timed out|device.{0,10}(lost|removed)|CUBLAS_STATUS|CUDNN_STATUS",
    re.I,
)


@dataclass(frozen=True)
class Ending:
    """How a worker ended without a result."""

    kind: str
    detail: str

    @property
    def retryable(self) -> bool:
        """Whether a lighter plan in a fresh process can help."""
        return self.kind in RETRYABLE


def classify_error(error: BaseException) -> str:
    """The class of an exception that ended a task."""
    if isinstance(error, Cancelled | KeyboardInterrupt):
        return "cancelled"
    if isinstance(error, MeasuredOverrun):
        return "out_of_host_memory" if error.axis == "ram" else "out_of_device_memory"
    if isinstance(error, LowpeakError):
        return "refused"
    text = str(error)
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"OutOfMemoryError"} or _DEVICE_MEMORY.search(text):
        return "out_of_device_memory"
    if isinstance(error, MemoryError) or _HOST_MEMORY.search(text):
        return "out_of_host_memory"
    if names & {"AcceleratorError"} or (isinstance(error, RuntimeError) and _CUDA.search(text)):
        return "cuda_error"
    return "code_error"


def classify_exit(
    exit_code: int,
    log: str,
    *,
    asked_to_stop: bool = False,
    silent_seconds: float | None = None,
    kernel_kills: int = 0,
) -> Ending:
    """The class of a process that ended without a message.

    exit_code: negative for signals (POSIX). log: the end of its standard error. silent_seconds: set
    when the supervisor ended it for silence. kernel_kills: how much the out-of-memory counts rose.
    """
    if asked_to_stop:
        return Ending("cancelled", "asked to stop")
    if silent_seconds is not None:
        return Ending("hung", f"no sign of life for {silent_seconds:.0f} s")
    code = exit_code & 0xFFFFFFFF
    signal = -exit_code if exit_code < 0 else exit_code - 128 if 128 < exit_code < 160 else 0
    if signal == SIGKILL:
        if kernel_kills > 0:
            return Ending("killed_by_kernel", "the kernel ended it: host memory was used up")
        return Ending("killed", "ended by SIGKILL, and no out-of-memory was counted")
    if _DEVICE_MEMORY.search(log):
        return Ending("out_of_device_memory", _last_line(log))
    if _HOST_MEMORY.search(log) or code in _WINDOWS_MEMORY:
        return Ending("out_of_host_memory", _WINDOWS_MEMORY.get(code) or _last_line(log))
    if _CUDA.search(log):
        return Ending("cuda_error", _last_line(log))
    if signal in _SIGNALS:
        return Ending("crash", f"{_SIGNALS[signal]}; {_last_line(log)}")
    if code in _WINDOWS_CRASH:
        return Ending("crash", f"{_WINDOWS_CRASH[code]}; {_last_line(log)}")
    return Ending("unexplained_exit", f"exit code {exit_code}; {_last_line(log)}")


def _last_line(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing on standard error"


def kernel_kill_count(root: Path = Path("/")) -> int:
    """How often the kernel ended a process for memory: this cgroup's counts and the system's."""
    count = 0
    for line in _lines(root / "proc/self/cgroup"):
        parts = line.split(":", 2)
        if len(parts) == 3 and not parts[1]:
            folder = root / "sys/fs/cgroup" / parts[2].strip("/")
            count += _counter(folder / "memory.events", "oom_kill")
        elif len(parts) == 3 and "memory" in parts[1].split(","):
            folder = root / "sys/fs/cgroup/memory" / parts[2].strip("/")
            count += _counter(folder / "memory.oom_control", "oom_kill")
    return count + _counter(root / "proc/vmstat", "oom_kill")


def _counter(path: Path, name: str) -> int:
    found: Mapping[str, str] = dict(
        parts for line in _lines(path) if len(parts := line.split()) == 2
    )
    text = found.get(name, "0")
    return int(text) if text.isdigit() else 0


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
