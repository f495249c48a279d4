"""Forecasts with borrowed card rows beside published end-to-end times (engine/published.py)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lowpeak.engine.published import (
    RUNS,
    PublishedRun,
    plausibility_row,
    plausibility_rows,
    plausibility_table,
)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.card}-{run.published_seconds:g}")
def test_forecasts_of_cards_are_plausible(run: PublishedRun) -> None:
    row = plausibility_row(run)
    print(plausibility_table([row]).splitlines()[2])
    assert row["plausible"] or run.why


def test_a_share_outside_the_interval_is_marked() -> None:
    fast = replace(RUNS[0], published_seconds=10.0)
    rows = plausibility_rows([RUNS[0], fast])
    assert [row["plausible"] for row in rows] == [True, False]
    lines = plausibility_table(rows).splitlines()
    assert "unexplained" not in lines[2] and "unexplained" in lines[3]
