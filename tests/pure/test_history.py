"""The history: margins, time forecasts, the 2 % rule."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from planner_tools import machine, plan_on, single_pass

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.attempts import (
    Attempt,
    PhaseRecord,
    attempt_of,
    is_disturbed,
    machine_key,
    shape_key,
)
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.history import History
from lowpeak.engine.planner.predict import predict
from lowpeak.engine.planner.types import ModelFacts, Placement
from lowpeak.engine.request import Request

FLOOR = 250
HERE, SHAPE = "linux/card/32", "1344x768x243"


def run(
    overrun: int = 0,
    *,
    started: float = 0.0,
    outcome: str = "done",
    disturbed: str = "",
    seconds: float = 100.0,
    forecast: float = 100.0,
    shape: str = SHAPE,
    machine_name: str = HERE,
    placement: Placement | None = None,
) -> Attempt:
    """One attempt with two phases; the second one overruns its forecast by `overrun` bytes."""
    quiet = PhaseRecord("encode", 1, 1000, 900, 1000, 900, 10.0, 10.0)
    busy = PhaseRecord(
        "sample_high", 8, 1000, 1000 + overrun, 2000, 2000, forecast - 10, seconds - 10, placement
    )
    return Attempt(machine_name, shape, started, outcome, (quiet, busy), disturbed)


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "deep" / "history.sqlite3")


def fill(history: History, overruns: list[int], **keywords: object) -> None:
    start = len(history.attempts())
    for index, overrun in enumerate(overruns):
        history.record(run(overrun, started=float(start + index), **keywords))  # type: ignore[arg-type]


def test_without_runs_the_margin_is_its_floor(history: History) -> None:
    assert history.margin(HERE, "vram", FLOOR) == (
        FLOOR,
        "VRAM margin 0.00 GiB, from no run on this machine",
    )


def test_an_overrun_raises_the_margin_at_once(history: History) -> None:
    fill(history, [-100, 400])
    assert history.margin(HERE, "vram", FLOOR)[0] == 400
    assert history.margin(HERE, "ram", FLOOR)[0] == FLOOR
    assert history.margin("another", "vram", FLOOR)[0] == FLOOR


def test_five_clean_runs_lower_it_and_four_do_not(history: History) -> None:
    fill(history, [400, 10, 300, 10, 10])
    assert history.margin(HERE, "vram", FLOOR)[0] == 400
    fill(history, [20])
    assert history.margin(HERE, "vram", FLOOR)[0] == 300, "the largest of the five clean ones"
    fill(history, [0, 0])
    assert history.margin(HERE, "vram", FLOOR)[0] == FLOOR


def test_an_overrun_among_clean_runs_starts_the_count_again(history: History) -> None:
    fill(history, [400, 10, 10, 10, 10, 900, 10, 10, 10, 10])
    assert history.margin(HERE, "vram", FLOOR)[0] == 900
    fill(history, [10])
    assert history.margin(HERE, "vram", FLOOR)[0] == FLOOR


def test_hot_and_disturbed_and_cancelled_runs_teach_nothing(history: History) -> None:
    fill(history, [900], disturbed="hot: mean clock 40 %")
    fill(history, [900], outcome="cancelled")
    fill(history, [900], outcome="failed")
    assert history.margin(HERE, "vram", FLOOR)[0] == FLOOR
    plan = plan_on(single_pass(), machine(8, 32))
    assert history.forecast_seconds(HERE, SHAPE, plan).samples == 0
    assert len(history.attempts(HERE)) == 3, "they are kept all the same"


def test_a_run_out_of_memory_raises_the_margin(history: History) -> None:
    fill(history, [700], outcome="out_of_memory")
    assert history.margin(HERE, "vram", FLOOR)[0] == 700


def test_time_forecast_names_its_basis_and_narrows_with_runs(history: History) -> None:
    plan = plan_on(single_pass(), machine(8, 32))
    first = history.forecast_seconds(HERE, SHAPE, plan)
    assert first.seconds == plan.total_seconds and "plan alone" in first.basis
    parts = {phase.phase: phase.seconds for phase in plan.phases}
    history.record(run(seconds=150, forecast=100, shape="another"))
    scaled = history.forecast_seconds(HERE, SHAPE, plan)
    ratio = 140 / 90  # of the busy phase; the other phase took what was forecast
    usual = (1 + ratio) / 2
    expected = parts["encode"] + ratio * parts["sample_high"] + usual * parts["decode"]
    assert scaled.seconds == pytest.approx(expected)
    assert "other sizes" in scaled.basis and scaled.samples == 1
    history.record(run(seconds=200, started=1))
    thin = history.forecast_seconds(HERE, SHAPE, plan)
    known = parts["encode"] + parts["sample_high"]
    total = 200 + 200 / known * parts["decode"]
    assert thin.seconds == pytest.approx(total), "a phase that never ran shares the others' ratio"
    assert (thin.low_seconds, thin.high_seconds) == pytest.approx((0.65 * total, 1.35 * total))
    history.record(run(seconds=210, started=2))
    history.record(run(seconds=190, started=3))
    good = history.forecast_seconds(HERE, SHAPE, plan)
    assert (good.seconds, good.samples) == (pytest.approx(total), 3)
    assert (good.low_seconds, good.high_seconds) == pytest.approx((0.85 * total, 1.15 * total))


def test_an_encoding_that_was_slow_does_not_make_the_rest_slow(history: History) -> None:
    """A graph may have encoded a size that it never sampled."""
    plan = plan_on(single_pass(), machine(8, 32))
    encoded = PhaseRecord("encode", 1, None, None, None, None, 1.0, 60.0)
    history.record(Attempt(HERE, SHAPE, 0.0, "done", (encoded,)))
    parts = {phase.phase: phase.seconds for phase in plan.phases}
    found = history.forecast_seconds(HERE, SHAPE, plan)
    assert found.seconds == pytest.approx(60 + parts["sample_high"] + parts["decode"])


def test_stages_that_ran_in_processes_of_their_own_add_up(history: History) -> None:
    plan = plan_on(single_pass(), machine(8, 32))
    for index, phase in enumerate(plan.phases):
        record = PhaseRecord(phase.phase, 1, None, None, None, None, phase.seconds, 100.0)
        history.record(Attempt(HERE, SHAPE, float(index), "done", (record,)))
    assert history.forecast_seconds(HERE, SHAPE, plan).seconds == pytest.approx(300)


@pytest.mark.parametrize(("tried", "used"), [(88.3, False), (88.1, True)])
def test_a_tried_placement_replaces_the_planned_one_only_for_two_percent(
    history: History, tried: float, used: bool
) -> None:
    planned, other = Placement(resident_blocks=1), Placement(resident_blocks=2)
    history.record(run(seconds=100, placement=planned))  # 90 s in the phase
    history.record(run(seconds=tried + 10, placement=other, started=1))
    found = history.better_placement(HERE, SHAPE, "sample_high", planned, 90.0)
    assert (found is not None) == used
    if found is not None:
        assert found[0] == other and "tried" in found[1]


def test_the_fastest_known_placement_is_never_replaced_by_itself(history: History) -> None:
    planned = Placement(resident_blocks=1)
    history.record(run(seconds=100, placement=planned))
    assert history.better_placement(HERE, SHAPE, "sample_high", planned, 500.0) is None


def test_a_placement_that_another_version_wrote_is_passed_over(history: History) -> None:
    history.record(run(seconds=50, placement=Placement(resident_blocks=2)))
    with closing(sqlite3.connect(history.path)) as database, database:
        database.execute("UPDATE phase SET placement = '{\"unheard_of\": 1}'")
    assert history.better_placement(HERE, SHAPE, "sample_high", Placement(), 90.0) is None


def test_keys_ignore_the_driver_and_the_load() -> None:
    snapshot = machine(8, 16, device_name="Card")
    busy = replace(snapshot, vram_free_bytes=1 << 30, ram_available_bytes=1 << 30, notes=("x",))
    assert machine_key(snapshot) == machine_key(busy)
    assert machine_key(snapshot) != machine_key(replace(snapshot, system="windows"))
    request = Request(Geometry(1344, 768, 243), prompt="a", seed=1)
    assert shape_key(request) == shape_key(replace(request, prompt="b", seed=2))
    assert shape_key(request) != shape_key(replace(request, quality="high"))


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({}, ""),
        ({"thermal_share": 0.6, "clock_share": 0.5}, "hot"),
        ({"thermal_share": 0.6, "clock_share": 0.9}, ""),
        ({"busy_percent": 40}, "another program"),
        ({"busy_percent": 10}, ""),
    ],
)
def test_what_disturbs_a_run(facts: dict[str, float], word: str) -> None:
    found = is_disturbed(**facts)  # type: ignore[arg-type]
    assert word in found and bool(found) == bool(word)


def test_an_unknown_outcome_or_axis_is_refused(history: History) -> None:
    with pytest.raises(ValueError, match="outcome"):
        run(outcome="fine")
    with pytest.raises(ValueError, match="axis"):
        history.overruns(HERE, "disk")


def test_a_report_becomes_an_attempt_without_its_prompt(history: History) -> None:
    place = Placement(resident_blocks=3)
    report = {
        "request": {"width": 1344, "prompt": "secret"},
        "attempts": [{"outcome": "out_of_device_memory"}, {"outcome": "done"}],
        "phases": [
            {"phase": "encode", "forecast": None, "measured": {"seconds": 1.0}},
            {
                "phase": "sample_high",
                "forecast": {
                    "vram_peak_bytes": 1000,
                    "ram_peak_bytes": None,
                    "seconds": 90.0,
                    "placement": place.as_json(),
                },
                "measured": {
                    "vram_peak_bytes": 1700,
                    "ram_peak_bytes": 5,
                    "seconds": 95.0,
                    "steps": 8,
                },
            },
        ],
    }
    attempt = attempt_of(report, HERE, SHAPE, 1.0)
    assert attempt.outcome == "done" and "prompt" not in attempt.request
    assert [item.name for item in attempt.phases] == ["sample_high"]
    assert attempt.phases[0].placement == place
    history.record(attempt)
    assert history.margin(HERE, "vram", FLOOR)[0] == 700
    assert history.margin(HERE, "ram", FLOOR)[0] == FLOOR
    report["attempts"] = [{"outcome": "MeasuredOverrun"}]
    assert attempt_of(report, HERE, SHAPE, 1.0).outcome == "out_of_memory"
    assert attempt_of({}, HERE, SHAPE, 1.0).outcome == "failed"


def test_margins_of_a_machine_go_into_the_plan(history: History) -> None:
    snapshot = machine(8, 32, device_name="Card")
    rows = choose_calibration(snapshot)
    floors = {axis: rows.margin_bytes(axis, "linux") for axis in ("vram", "ram")}
    assert history.margins(snapshot, rows) == floors
    history.record(run(1 << 30, machine_name=machine_key(snapshot)))
    assert history.margins(snapshot, rows) == {**floors, "vram": 1 << 30}


def test_a_prediction_uses_margins_placements_and_times_of_this_machine(history: History) -> None:
    snapshot, request = machine(8, 32, device_name="Card"), single_pass()
    rows = choose_calibration(snapshot)
    first = predict(request, snapshot, ModelFacts(), rows, history)
    phase = first.plan.phase("sample_high")
    assert phase is not None and phase.placement is not None
    assert "no run on this machine" in " ".join(first.plan.reasons)
    place = replace(phase.placement, resident_blocks=1, pinned_blocks=49)
    keys = {"shape": shape_key(request), "machine_name": machine_key(snapshot)}
    history.record(run(seconds=phase.seconds, placement=place, **keys))
    tried = predict(request, snapshot, ModelFacts(), rows, history)
    assert tried.plan.phase("sample_high").placement == phase.placement, "only 2 % or more replaces"
    quick = 0.5 * phase.seconds
    history.record(run(seconds=quick, started=1, placement=place, **keys))
    history.record(run(seconds=quick, started=2, placement=place, **keys))
    history.record(
        run(
            seconds=phase.seconds,
            forecast=phase.seconds,
            started=3,
            placement=phase.placement,
            **keys,
        )
    )
    better = predict(request, snapshot, ModelFacts(), rows, history)
    chosen = better.plan.phase("sample_high")
    assert chosen.placement == place
    assert any("tried here" in reason for reason in better.plan.reasons)
    assert better.time.samples == 4 and better.plan.seconds_range[0] < better.time.seconds
    cramped = machine(5.2, 32, device_name="Card", vram_total_bytes=snapshot.vram_total_bytes)
    fallen = predict(request, cramped, ModelFacts(), rows, history)
    assert fallen.plan.phase("sample_high").placement != place, "a placement that no longer fits"
