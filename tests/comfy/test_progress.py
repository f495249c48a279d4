"""The progress bar and the calm event stream."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from lowpeak.engine.events import Event
from lowpeak.nodes.progress import BAR_STEPS, ProgressScale, Throttle


class Clock:
    """Time that moves when told, firing timers on the way."""

    def __init__(self) -> None:
        self.now, self.timers = 0.0, []

    def __call__(self) -> float:
        return self.now

    def timer(self, delay: float, call: Callable[[], None]) -> Any:
        clock, due = self, self.now + delay

        class Timer:
            daemon = False

            def start(self) -> None:
                clock.timers.append((due, call))

        return Timer()

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            ready = [item for item in self.timers if item[0] <= end]
            if not ready:
                break
            first = min(ready, key=lambda item: item[0])
            self.timers.remove(first)
            self.now = max(self.now, first[0])
            first[1]()
        self.now = end


def test_the_bar_weighs_phases_by_their_forecast_and_never_goes_back() -> None:
    scale = ProgressScale()
    scale.take(Event("forecast", "sample_low", seconds=1.0))
    scale.take(Event("forecast", "sample_high", seconds=9.0))
    seen = [scale.take(Event("progress", "sample_low", step=s, steps=4)) for s in (1, 4, 2)]
    seen.append(scale.take(Event("measured", "sample_low", seconds=3.0)))
    seen += [scale.take(Event("progress", "sample_high", step=s, steps=3)) for s in (1, 3)]
    assert seen == [25, 100, 100, 100, 400, BAR_STEPS]


def test_events_without_steps_move_nothing() -> None:
    scale = ProgressScale()
    assert scale.take(Event("notice", "", message="hello")) is None
    assert scale.take(Event("progress", "decode")) is None


def test_at_most_two_events_a_second_and_the_newest_wins() -> None:
    clock, sent = Clock(), []
    throttle = Throttle(lambda m: sent.append((clock.now, m)), clock=clock, timer=clock.timer)
    for step in range(100):
        throttle.put(("progress", "sample_high"), {"step": step})
        clock.run(0.05)
    clock.run(3)
    times = [moment for moment, _ in sent]
    assert all(b - a >= 0.5 - 1e-9 for a, b in itertools.pairwise(times))
    assert 9 <= len(sent) <= 12 and sent[-1][1]["step"] == 99
    assert not clock.timers, "nothing ticks once everything is sent"


def test_what_happens_once_is_not_lost_among_progress() -> None:
    clock, sent = Clock(), []
    throttle = Throttle(sent.append, clock=clock, timer=clock.timer)
    throttle.put(("progress", "decode"), {"n": 0})
    throttle.put(("progress", "decode"), {"n": 1})
    throttle.put(("measured", "sample_high"), {"n": 2})
    throttle.put(("measured", "decode"), {"n": 3})
    throttle.put(("progress", "decode"), {"n": 4})
    clock.run(5)
    assert [message["n"] for message in sent] == [0, 2, 3, 4]
