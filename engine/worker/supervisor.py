"""The parent's side of a worker process: start it, follow it, stop it, say how it ended.

The worker is a fresh interpreter started by path (boot.py). Its messages arrive through a reader
thread, so that the caller's loop can look at a cancel twenty times a second on every system.
Cancel is cooperative first; after a grace period the process is terminated, then killed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import Cancelled, WorkerDied
from ..events import Event
from .exits import Ending, classify_exit, kernel_kill_count
from .protocol import Message, decode, error_from_json, event_from, log_tail

BOOT = Path(__file__).with_name("boot.py")
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Patience:
    """How long a supervisor waits. Seconds."""

    start: float = 120.0
    silence: float = 120.0  # without heartbeat; a heartbeat needs the interpreter's lock
    cancel: float = 15.0
    terminate: float = 5.0
    sees_end: bool = True  # a task that does not stop in time is waited for until it is gone


class TaskFailed(WorkerDied):
    """A task ended without a result. `ending` is its class; `cause` the typed error, if any."""

    def __init__(self, ending: Ending, *, saved: Sequence[str] = (), trace: str = "") -> None:
        super().__init__(ending.kind, ending.detail, saved=saved)
        self._ending, self._trace = ending, trace

    @property
    def ending(self) -> Ending:
        """How it ended."""
        return self._ending

    @property
    def trace(self) -> str:
        """The worker's traceback, when it had one."""
        return self._trace


class Worker:
    """One worker process. Use as a context manager: the process has ended when the block is left.

    python: interpreter. environment: variables that are added. log: where its standard error goes;
    a temporary file by default.
    """

    def __init__(
        self,
        *,
        python: str = sys.executable,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
        patience: Patience | None = None,
        kill_count: Callable[[], int] = kernel_kill_count,
    ) -> None:
        self.patience = patience or Patience()
        self._kill_count, self._kills_before = kill_count, kill_count()
        if log is None:
            handle, name = tempfile.mkstemp(prefix="lowpeak-worker-", suffix=".log")
            os.close(handle)
            self.log, self._own_log = Path(name), True
        else:
            self.log, self._own_log = log, False
        self._messages: queue.Queue[Message | None] = queue.Queue()
        self.resident_bytes: int | None = None
        self._heard = False
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(
                [python, "-P", str(BOOT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                errors="replace",
                bufsize=1,
                env={**os.environ, **(environment or {})},
                **_own_group(),
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = decode(line)
            if message is not None:
                self._messages.put(message)
        self._messages.put(None)

    def _send(self, message: Message) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(message.encode())
            self.process.stdin.flush()
        except (OSError, ValueError):
            return  # the process is gone; the reader's end says how

    def run(
        self,
        task: str,
        arguments: Mapping[str, Any],
        *,
        on_event: Callable[[Event], None] = lambda event: None,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Run one task and return its JSON result.

        Raises the task's own LowpeakError with its fields, Cancelled, or TaskFailed.
        """
        self._send(Message("start", {"task": task, "arguments": dict(arguments)}))
        heard = time.monotonic()
        limit = self.patience.silence if self._heard else self.patience.start
        asked_at: float | None = None
        while True:
            if asked_at is None and is_cancelled():
                self._send(Message("cancel"))
                asked_at = time.monotonic()
            try:
                message = self._messages.get(timeout=POLL_SECONDS)
            except queue.Empty:
                now = time.monotonic()
                if asked_at is not None and now - asked_at > self.patience.cancel:
                    self._end()
                    raise Cancelled("the worker") from None
                if now - heard > limit:
                    self.stop()
                    raise TaskFailed(self._ending(silent_seconds=now - heard)) from None
                continue
            heard, limit, self._heard = time.monotonic(), self.patience.silence, True
            if asked_at is not None and heard - asked_at > self.patience.cancel:
                self._end()  # it lives and beats, but does not stop
                raise Cancelled("the worker")
            if message is None:
                self.process.wait()
                ending = self._ending(asked_to_stop=asked_at is not None)
                if ending.kind == "cancelled":
                    raise Cancelled("the worker")
                raise TaskFailed(ending)
            if message.kind == "result":
                return message.body["value"]
            if message.kind == "failure":
                raise _failure(message.body)
            if message.kind == "event":
                on_event(event_from(message.body))
            elif message.kind == "beat":
                self.resident_bytes = message.body.get("rss_bytes")

    def _ending(
        self, *, asked_to_stop: bool = False, silent_seconds: float | None = None
    ) -> Ending:
        return classify_exit(
            self.process.returncode or 0,
            log_tail(self.log),
            asked_to_stop=asked_to_stop,
            silent_seconds=silent_seconds,
            kernel_kills=self._kill_count() - self._kills_before,
        )

    def _end(self) -> None:
        if self.patience.sees_end:
            self.stop()
        else:
            _kill(self.process)

    def release(self) -> None:
        """Ask a warm worker to give up what it keeps between tasks."""
        self._send(Message("release"))

    def stop(self) -> None:
        """End the process now: terminate, then kill. Its children go with it."""
        for send_signal in (_terminate, _kill):
            if not self.alive:
                break
            send_signal(self.process)
            try:
                self.process.wait(self.patience.terminate)
            except subprocess.TimeoutExpired:
                continue
        self.process.wait()

    def abandon(self) -> threading.Thread:
        """End the process without waiting; the thread that is given has joined when it is gone.

        Pages of a large process take the system a second or two to take back.
        """
        _kill(self.process)
        thread = threading.Thread(target=self.close, name="lowpeak-reaper", daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """Let the worker leave by itself, or stop it. Safe to call twice."""
        if self.alive:
            self._send(Message("exit"))
            assert self.process.stdin is not None
            with contextlib.suppress(OSError):  # it left before it read the message
                self.process.stdin.close()
            try:
                self.process.wait(self.patience.cancel)
            except subprocess.TimeoutExpired:
                self.stop()
        self._reader.join(timeout=self.patience.terminate)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None and not stream.closed:
                with contextlib.suppress(OSError):  # unsent bytes for a process that is gone
                    stream.close()
        if self._own_log:
            self.log.unlink(missing_ok=True)


def _failure(body: Mapping[str, Any]) -> Exception:
    """What a failure message stands for."""
    kind, error = str(body["kind"]), body["error"]
    own = error_from_json(error)
    if kind == "cancelled":
        return own if isinstance(own, Cancelled) else Cancelled("the worker")
    if own is not None and kind == "refused":
        return own
    failed = TaskFailed(
        Ending(kind, str(error.get("message", ""))), trace=str(error.get("trace", ""))
    )
    failed.__cause__ = own
    return failed


def _own_group() -> dict[str, Any]:
    """A group of its own: a Ctrl-C in the terminal reaches the parent, who cancels in order."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def _terminate(process: subprocess.Popen[str]) -> None:
    _signal_group(process, signal.SIGTERM)


def _kill(process: subprocess.Popen[str]) -> None:
    _signal_group(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _signal_group(process: subprocess.Popen[str], number: int) -> None:
    """To the worker and its children; only the worker where groups do not exist."""
    if sys.platform == "win32":
        process.terminate()
        return
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return  # it has ended in between
