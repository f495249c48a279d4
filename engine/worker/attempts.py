"""How a report tells each attempt of a stage: its stage, outcome, message, what was tried next.

One form for the command line's report and the nodes' run book; planner/attempts.py reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import Cancelled, LowpeakError, WorkerDied
from .ladder import NextTry


@contextmanager
def told(attempts: list[dict[str, Any]], stage: str) -> Iterator[None]:
    """Put the body, an attempt of `stage`, behind `attempts` with how it ended. Raises what it
    raises."""
    attempt: dict[str, Any] = {"stage": stage, "outcome": "failed"}
    attempts.append(attempt)
    try:
        yield
    except WorkerDied as died:
        attempt.update(outcome=died.kind, message=died.detail)
        raise
    except Cancelled:
        attempt.update(outcome="cancelled")
        raise
    except LowpeakError as error:
        attempt.update(outcome="refused", message=str(error))
        raise
    attempt.update(outcome="done")


def tell_next(attempts: list[dict[str, Any]], step: NextTry) -> None:
    """What follows the last attempt."""
    attempts[-1]["next"] = {"kind": step.kind, "reason": step.reason}
