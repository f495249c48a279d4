"""Keeps a library from making threads of this process real-time ones.

SVT-AV1 gives itself, and the thread that opens it, the highest real-time priority where it may: as
root, as ComfyUI runs in many containers. Everything else on the machine then waits for the encoder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TASKS = Path("/proc/self/task")


def _policies() -> dict[int, int]:
    """Scheduling policy by thread of this process; empty where there is no such thing."""
    found: dict[int, int] = {}
    if hasattr(os, "sched_getscheduler") and _TASKS.is_dir():
        for name in os.listdir(_TASKS):
            with suppress(OSError):  # a thread that has ended
                found[int(name)] = os.sched_getscheduler(int(name))
    return found


@contextmanager
def ordinary_threads() -> Iterator[None]:
    """Threads that the body made or moved have ordinary priority afterwards, as far as allowed."""
    before = _policies()
    try:
        yield
    finally:
        for thread, policy in _policies().items():
            usual = before.get(thread, 0)  # SCHED_OTHER
            if policy != usual and usual == 0:
                with suppress(OSError):
                    os.sched_setscheduler(thread, usual, os.sched_param(0))
