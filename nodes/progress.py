"""Turning engine events into one progress bar and a calm event stream. Pure; no ComfyUI.

`ProgressScale` weighs phases by their forecast seconds, so that the bar moves evenly.
`Throttle` sends at most one message an interval, keeps only the newest of each kind and phase, and
sends what is left over by a short timer that ends when nothing is left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from ..engine.events import PHASES, Event

BAR_STEPS = 1000
EVENT_INTERVAL_SECONDS = 0.5


class ProgressScale:
    """Position of a bar of BAR_STEPS over all phases a node runs through."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._done: dict[str, float] = {}

    def take(self, event: Event) -> int | None:
        """The new position, or None if this event moves nothing. Never goes back."""
        if event.kind == "forecast" and event.seconds is not None and event.phase in PHASES:
            self._seconds[event.phase] = max(event.seconds, 1e-6)
            return None
        if event.kind == "measured":
            self._done[event.phase] = 1.0
        elif event.kind == "progress" and event.steps:
            share = min(1.0, (event.step or 0) / event.steps)
            self._done[event.phase] = max(share, self._done.get(event.phase, 0.0))
        else:
            return None
        known = {**dict.fromkeys(self._done, 1.0), **self._seconds}
        total = sum(known.values())
        done = sum(known[phase] * share for phase, share in self._done.items())
        return min(BAR_STEPS, round(BAR_STEPS * done / total))


class Throttle:
    """Sends the newest message of each key, at most one an interval."""

    def __init__(
        self,
        send: Callable[[dict[str, Any]], None],
        *,
        interval_seconds: float = EVENT_INTERVAL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        timer: Callable[[float, Callable[[], None]], Any] = threading.Timer,
    ) -> None:
        self._send, self._interval, self._clock, self._timer = send, interval_seconds, clock, timer
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], dict[str, Any]] = {}
        self._last = float("-inf")
        self._armed = False

    def put(self, key: tuple[str, str], message: dict[str, Any]) -> None:
        """Send now if the interval has passed, else keep it until then."""
        with self._lock:
            self._waiting.pop(key, None)
            self._waiting[key] = message
        self._flush()

    def _flush(self) -> None:
        with self._lock:
            wait = self._last + self._interval - self._clock()
            message = None
            if self._waiting and wait <= 0:
                # What happens once goes before progress, which comes again.
                key = next((k for k in self._waiting if k[0] != "progress"), None)
                message = self._waiting.pop(key or next(iter(self._waiting)))
                self._last, wait = self._clock(), self._interval
            arm = bool(self._waiting) and not self._armed
            self._armed = self._armed or arm
        if message is not None:
            self._send(message)
        if arm:
            timer = self._timer(max(wait, 0.0), self._on_timer)
            timer.daemon = True
            timer.start()

    def _on_timer(self) -> None:
        with self._lock:
            self._armed = False
        self._flush()
