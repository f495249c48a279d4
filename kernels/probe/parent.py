"""Children run the candidates; a crash, a hang or a device error is one candidate's verdict.

One child takes as many tasks as it survives. When it dies or falls silent, the task it had begun is
lost and named, and another child takes the rest. After a failed kernel on a card the child is
replaced too: a device error can poison the process for everything after it.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

BOOT = Path(__file__).with_name("boot.py")
START_SECONDS = 180.0
CANDIDATE_SECONDS = 90.0
SAID_BYTES = 300

Result = dict[str, Any]


class ProbeFailed(Exception):
    """The probing process could not be started; the message says how it ended."""


def run_tasks(
    tasks: Sequence[Mapping[str, Any]],
    *,
    candidate_seconds: float = CANDIDATE_SECONDS,
    start_seconds: float = START_SECONDS,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[str], None] = lambda line: None,
    keep: Callable[[Mapping[str, Any], Result], None] = lambda task, result: None,
) -> dict[str, Result]:
    """Results by task id: {"status", "detail", "figures", ...}; every task gets one.

    keep: takes each task and its result at once, so that what was found outlives a stop. Raises
    ProbeFailed when a process does not even begin: that is no candidate's fault.
    """
    results: dict[str, Result] = {}
    waiting = list(tasks)
    while waiting:
        with _Child(environment) as child:
            for task in list(waiting):
                result, alive = child.run(task, start_seconds, candidate_seconds)
                results[task["id"]] = result
                waiting.remove(task)
                progress(_line(task, result))
                keep(task, result)
                poisoned = result["status"] == "failed" and task["device"] != "cpu"
                if not alive or poisoned:
                    break
    return results


class _Child:
    """One process. `run` gives the result and whether the process can take more."""

    def __init__(self, environment: Mapping[str, str] | None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(BOOT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, **(environment or {})},
        )
        self.lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.said: list[str] = []
        self.ready = False
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._read_answers, self._read_prints)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
            self.process.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(5)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def run(
        self, task: Mapping[str, Any], start_seconds: float, candidate_seconds: float
    ) -> tuple[Result, bool]:
        """Send a task and wait for its answer."""
        if not self.ready:
            self._begin(start_seconds)
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
            while True:
                message = self._next(candidate_seconds)
                if message is None:
                    return self._dead("the candidate"), False
                if message.get("done") == task["id"]:
                    return {k: v for k, v in message.items() if k != "done"}, True
        except queue.Empty:
            self.process.kill()
            return {
                "status": "hung",
                "detail": f"no answer within {candidate_seconds:.0f} s",
            }, False
        except OSError:
            return self._dead("the candidate"), False

    def _begin(self, seconds: float) -> None:
        try:
            self.ready = self._next(seconds) is not None
        except queue.Empty:
            self.process.kill()
            raise ProbeFailed(f"the probing process was not ready within {seconds:.0f} s") from None
        if not self.ready:
            raise ProbeFailed(self._dead("the probing process")["detail"])

    def _next(self, seconds: float) -> dict[str, Any] | None:
        return self.lines.get(timeout=seconds)

    def _dead(self, who: str) -> Result:
        code = self.process.wait()
        self._threads[1].join(5)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        last = " ".join("".join(self.said).split())[-SAID_BYTES:]
        return {"status": "crashed", "detail": f"{who} ended with {how}" + (last and f": {last}")}

    def _read_answers(self) -> None:
        for message in _messages(self.process.stdout):
            self.lines.put(message)
        self.lines.put(None)

    def _read_prints(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            del self.said[:-20]


def _messages(stream: Any) -> Iterator[dict[str, Any]]:
    for line in stream:
        try:
            message = json.loads(line)
        except ValueError:
            continue  # a library that prints to the protocol's channel
        if isinstance(message, dict):
            yield message


def _line(task: Mapping[str, Any], result: Result) -> str:
    kind = f" {task['kind']}" if task["kind"] else ""
    text = f"{task['op']}{kind}: {task['name']} {result['status']}"
    seconds = result.get("figures", {}).get("seconds")
    if seconds is not None:
        text += f", {seconds * 1e3:.2f} ms"
    return f"{text}, {result['detail']}" if result.get("detail") else text
