"""Times of a schedule, matched by value."""

from __future__ import annotations

from collections.abc import Sequence

TIME_TOLERANCE = 1e-6  # schedules are float32; orders of operation differ by an ulp or two


def position_of(held: Sequence[float], time: float) -> int | None:
    """Index of the nearest held time within the tolerance, None when there is none."""
    nearest = min(range(len(held)), key=lambda index: abs(held[index] - time), default=None)
    if nearest is None or abs(held[nearest] - time) > TIME_TOLERANCE:
        return None
    return nearest
