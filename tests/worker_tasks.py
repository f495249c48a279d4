"""Tasks that worker tests run in a child process. Standard library only, so that it starts fast."""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def echo(arguments: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Give the arguments back, with noise on standard output that must not disturb."""
    print("noise on standard output")
    sys.stdout.flush()
    os.write(1, b"raw noise\n")
    return {"arguments": dict(arguments), "pid": os.getpid(), "torch": "torch" in sys.modules}


def talk(arguments: Mapping[str, Any], context: Any) -> str:
    """Emit events."""
    from lowpeak.engine.events import Event

    for step in range(3):
        context.emit(Event("progress", "sample_high", step=step, steps=3, terms=({"a": 1},)))
    return "done"


def until_cancelled(arguments: Mapping[str, Any], context: Any) -> None:
    """Work until asked to stop."""
    from lowpeak.engine.errors import Cancelled

    Path(arguments["started"]).touch()
    while not context.is_cancelled():
        time.sleep(0.02)
    raise Cancelled("sample_high")


def hold_at(arguments: Mapping[str, Any], context: Any) -> Any:
    """Run another task, and stand still after its first event of a kind, phase and step.

    arguments: task, arguments, at (kind, phase, step; None fits any). It goes on when it is asked
    to stop, or after a minute: what the test does meanwhile does not race with the task.
    """
    module, name = arguments["task"].split(":")
    at, told, held = arguments["at"], context.emit, []

    def emit(event: Any) -> None:
        told(event)
        now = (event.kind, event.phase, event.step)
        if not held and all(want in (None, is_) for want, is_ in zip(at, now, strict=True)):
            held.append(now)
            until = time.monotonic() + 60
            while not context.is_cancelled() and time.monotonic() < until:
                time.sleep(0.02)

    context.emit = emit
    try:
        run = getattr(importlib.import_module(module, "lowpeak"), name)
        return run(arguments["arguments"], context)
    finally:
        context.emit = told


def deaf(arguments: Mapping[str, Any], context: Any) -> None:
    """Never look at a cancel; a child of the worker must end with it."""
    Path(arguments["started"]).touch()
    time.sleep(600)


def stuck(arguments: Mapping[str, Any], context: Any) -> None:
    """Hold the interpreter's lock: not even a heartbeat gets out."""
    ctypes.PyDLL(None).sleep(600)


def fail(arguments: Mapping[str, Any], context: Any) -> None:
    """End in the way that is asked for."""
    from lowpeak.engine import errors

    class OutOfMemoryError(RuntimeError):
        """Named like torch's."""

    way = arguments["way"]
    if way == "refused":
        raise errors.DoesNotFit(
            [errors.Shortage("ram", "decode", 9, 4)],
            [{"width": 256, "height": 256, "frames": 22}],
        )
    if way == "overrun":
        raise errors.MeasuredOverrun("decode", "ram", 5, 7)
    if way == "device":
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
    if way == "host":
        raise MemoryError
    if way == "cuda":
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    if way == "bug":
        raise KeyError("missing")
    if way == "exit":
        os._exit(7)
    if way == "bad_alloc":
        os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
        os.abort()
    os.kill(os.getpid(), getattr(signal, way))
    time.sleep(60)


def keep(arguments: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Keep something between tasks, and say what is kept."""
    before = sorted(context.kept)
    if arguments.get("name"):
        closed = Path(arguments["closed"])
        context.keep(arguments["name"], object(), closed.touch)
    return {"before": before, "pid": os.getpid()}


def eat(arguments: Mapping[str, Any], context: Any) -> None:
    """Take memory until something gives."""
    taken = []
    while True:
        taken.append(bytearray(16 << 20))


def memory(arguments: Mapping[str, Any], context: Any) -> dict[str, int]:
    """What the snapshot makes of this process's memory."""
    from lowpeak.engine.hostmemory import read_linux_memory

    found = read_linux_memory()
    return {"total": found.total_bytes, "available": found.available_bytes}
