"""The retry ladder: what a fresh process does differently after running out of memory.

Pure. At most two retries. Placement first: the budget that the plan gets is cut, so that it plans a
lighter placement; then the lightest placement there is. Compute partitions come last and only when
the engine offers them, because rounding then changes, which is said. Nothing here ever changes the
request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..units import GIB, format_gib
from .exits import Ending

MOST_RETRIES = 2
FIRST_CUT = 0.10
LEAST_CUT_BYTES = GIB // 2


@dataclass(frozen=True)
class Attempted:
    """How an attempt was planned and how it ended. Bytes; a cap of None was none."""

    vram_budget_bytes: int
    ram_budget_bytes: int
    vram_cap_bytes: int | None = None
    ram_cap_bytes: int | None = None
    lightest: bool = False
    partition: int = 0  # rung of compute partitions; 0 is the model's own
    overrun_bytes: int = 0  # measured beyond forecast, when known


@dataclass(frozen=True)
class NextTry:
    """What the next attempt does. `kind`: placement-only or compute-partition."""

    attempt: Attempted
    kind: str
    reason: str

    @property
    def changes_arithmetic(self) -> bool:
        """Whether rounding may differ from the first attempt."""
        return self.kind == "compute-partition"


def next_try(ending: Ending, tries: list[Attempted], *, partitions: int = 0) -> NextTry | str:
    """The next rung after `ending`, or the sentence why there is none.

    tries: all attempts so far, the failed one last. partitions: how many smaller compute partitions
    the engine offers.
    """
    if not ending.retryable:
        return f"{ending.kind} is never retried"
    if len(tries) > MOST_RETRIES:
        return f"{MOST_RETRIES} retries did not help"
    last = tries[-1]
    axis = "vram" if ending.kind == "out_of_device_memory" else "ram"
    if not last.lightest and len(tries) == 1:
        return _cut(last, axis)
    if not last.lightest:
        lightest = replace(last, lightest=True)
        return NextTry(lightest, "placement-only", "retry with the lightest placement there is")
    if axis == "vram" and last.partition < partitions:
        smaller = replace(last, partition=last.partition + 1)
        return NextTry(
            smaller,
            "compute-partition",
            "retry with smaller compute partitions: the last digits of the result may differ",
        )
    return "no lighter placement is left"


def _cut(last: Attempted, axis: str) -> NextTry:
    """A tenth of the budget less, half a GiB at least, and what was seen beyond the forecast."""
    budget = last.vram_budget_bytes if axis == "vram" else last.ram_budget_bytes
    cut = max(LEAST_CUT_BYTES, int(FIRST_CUT * budget), last.overrun_bytes)
    cap = max(0, budget - cut)
    reason = f"retry with {format_gib(cut)} less {axis.upper()}: a lighter placement is planned"
    if axis == "vram":
        return NextTry(
            replace(last, vram_cap_bytes=cap, vram_budget_bytes=cap), "placement-only", reason
        )
    return NextTry(replace(last, ram_cap_bytes=cap, ram_budget_bytes=cap), "placement-only", reason)
