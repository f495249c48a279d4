"""AdaLN tables for the passes of a request: found, or refused with what this checkpoint can run.

A slim checkpoint has tables for a few schedules and no projections to make others from. That is
known from headers, so a run says it before it encodes anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import CheckpointError
from ..sampling.quality import BASE_STEPS, DEFAULT_REFINE_STEPS, SamplingPlan
from ..sampling.schedules import (
    CONDITION_TIME,
    REFERENCE_AUDIO_TIME,
    ConditionTimes,
    community_schedule,
    schedule,
)
from .index import Checkpoint
from .tables import Tables, hold_times

Times = Sequence[Sequence[float]]
REMEDY = (
    "Ask for a number of steps that has tables, or put the AdaLN projections beside the blocks "
    "(adaln/NN.safetensors, one file a block, 26 GB in all; `lowpeak models convert "
    "--keep-projections` writes them)."
)


def find_tables(checkpoint: Checkpoint, times: Times) -> Tables:
    """Prepared or computed AdaLN tables for `times`. Raises CheckpointError saying what to do."""
    tables = checkpoint.tables_for(times)
    if tables is None:
        raise _no_tables(checkpoint, times, f"the times of {len(times)} evaluations")
    return tables


def check_tables(checkpoint: Checkpoint, plan: SamplingPlan, conditions: ConditionTimes) -> None:
    """Raise the same for the first pass of `plan` without tables. Reads headers alone."""
    for item in plan.passes:
        times = item.schedule.table_times(conditions)
        if not checkpoint.has_times(times):
            steps = f"{item.evaluations} steps ({item.schedule.name})"
            raise _no_tables(checkpoint, times, steps)


def _no_tables(checkpoint: Checkpoint, times: Times, wanted: str) -> CheckpointError:
    # These two times stand in every step, and the times of the target never reach them in the first
    conditions = ConditionTimes(CONDITION_TIME in times[0], REFERENCE_AUDIO_TIME in times[0])

    def held(moments: Times) -> bool:
        return hold_times(checkpoint.table_sets, moments)

    counts = [str(n) for n in BASE_STEPS if held(schedule(n).table_times(conditions))]
    found = f"tables for {', '.join(counts)} steps" if counts else "tables for no number of steps"
    if counts and not held(community_schedule().table_times(conditions)):
        found += f", and none for a second pass of {DEFAULT_REFINE_STEPS}"
    return CheckpointError(
        "no AdaLN tables for this schedule, and no projections to compute them from",
        file=checkpoint.path,
        expected=f"tables for {wanted}",
        found=found,
        remedy=REMEDY,
    )
