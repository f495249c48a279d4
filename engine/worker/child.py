"""Inside a worker process: take tasks, run them, tell what happens.

A heartbeat thread says every second that the process lives, and a reader thread takes `cancel`. The
task itself looks at `is_cancelled` at block borders. When the supervisor is gone, standard input
ends: the task is cancelled, and after a grace period the process ends itself, so that no orphan
holds a device. Between tasks a worker may keep resources, such as pinned blocks, until `release`.
"""

from __future__ import annotations

import importlib
import os
import queue
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, TextIO

from ..errors import Cancelled, LowpeakError
from ..events import Event
from .exits import classify_error
from .protocol import Message, decode

BEAT_SECONDS = 1.0
ORPHAN_GRACE_SECONDS = 20.0
ORPHANED = 3


class WorkerContext:
    """The Host of a task in a worker, and what the worker keeps between tasks.

    kept: name -> anything; `keep` registers how it is closed on `release` or at the end.
    """

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self._cancel = threading.Event()
        self.kept: dict[str, Any] = {}
        self._closers = ExitStack()

    def is_cancelled(self) -> bool:
        """True once the supervisor asked to stop, or is gone."""
        return self._cancel.is_set()

    def release_memory(self, need_bytes: int) -> None:
        """Give up what is kept: it is all that this process could release."""
        self.release()

    def emit(self, event: Event) -> None:
        """Send one event."""
        self._send(Message("event", event.as_json()))

    def keep(self, name: str, value: Any, close: Callable[[], None]) -> None:
        """Keep `value` for the next task."""
        self.kept[name] = value
        self._closers.callback(close)

    def release(self) -> None:
        """Close everything that is kept."""
        self.kept.clear()
        self._closers.close()

    def cancel(self) -> None:
        """Ask the task to stop."""
        self._cancel.set()

    def begin(self) -> None:
        """A new task starts uncancelled."""
        self._cancel.clear()


def serve(commands: TextIO, channel: TextIO) -> int:
    """Take tasks from `commands` until `exit` or its end. Returns the exit code."""
    lock = threading.Lock()

    def send(message: Message) -> None:
        with lock:
            channel.write(message.encode())
            channel.flush()

    context = WorkerContext(send)
    tasks: queue.Queue[Message] = queue.Queue()
    threading.Thread(target=_listen, args=(commands, context, tasks), daemon=True).start()
    threading.Thread(target=_beat, args=(send,), daemon=True).start()
    send(Message("ready", {"pid": os.getpid()}))
    try:
        while True:
            message = tasks.get()
            if message.kind == "exit":
                return 0
            if message.kind == "release":
                context.release()
                continue
            send(_run(message.body, context))
    except BrokenPipeError:
        return ORPHANED
    finally:
        context.release()


def _run(body: Mapping[str, Any], context: WorkerContext) -> Message:
    """One task; its result or its failure as a message."""
    try:
        module, _, name = str(body["task"]).partition(":")
        package = __package__.rsplit(".", 2)[0] if module.startswith(".") else None
        function = getattr(importlib.import_module(module, package), name)
        return Message("result", {"value": function(dict(body["arguments"]), context)})
    except LowpeakError as error:
        kind = classify_error(error)
        return Message("failure", {"kind": kind, "error": error.as_json()})
    except (Exception, KeyboardInterrupt) as error:  # the border of the process
        kind = classify_error(error)
        trace = traceback.format_exc(limit=20)
        plain = {"error": type(error).__name__, "message": str(error), "trace": trace}
        return Message("failure", {"kind": kind, "error": plain})


def _listen(commands: TextIO, context: WorkerContext, tasks: queue.Queue[Message]) -> None:
    """Commands arrive while a task runs; only `cancel` acts at once."""
    for line in commands:
        message = decode(line)
        if message is None:
            continue
        if message.kind == "cancel":
            context.cancel()
            continue
        if message.kind == "start":
            context.begin()
        tasks.put(message)
    context.cancel()
    tasks.put(Message("exit"))
    # If the task does not stop by itself, nobody is left who could end this process.
    timer = threading.Timer(ORPHAN_GRACE_SECONDS, os._exit, (ORPHANED,))
    timer.daemon = True
    timer.start()


def _beat(send: Callable[[Message], None]) -> None:
    pause = threading.Event()
    while not pause.wait(BEAT_SECONDS):
        try:
            send(Message("beat", {"rss_bytes": _resident_bytes()}))
        except (OSError, ValueError):
            return


def _resident_bytes() -> int | None:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def check_cancelled(context: WorkerContext, where: str) -> None:
    """Raise Cancelled when asked to stop."""
    if context.is_cancelled():
        raise Cancelled(where)
