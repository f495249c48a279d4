"""A machine's own runs correct the next plan; nothing is written elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from planner_tools import record_faster_trial

from lowpeak.engine.forecast import forecast, forecast_for_run, placements_of, planning_rows
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.gpu import Gpu
from lowpeak.engine.learning import (
    FILE,
    disturbance,
    home,
    keep_calibration,
    learn,
    open_history,
)
from lowpeak.engine.planner.calibration import choose_calibration, published_facts
from lowpeak.engine.planner.types import HardwareSnapshot, ModelFacts
from lowpeak.engine.request import Request
from lowpeak.engine.units import GIB

REQUEST = Request(Geometry(1344, 768, 124))
MACHINE = HardwareSnapshot(
    "linux", "NVIDIA H200", (9, 0), 16 * GIB, 16 * GIB, 64 * GIB, 64 * GIB
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOWPEAK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def cool() -> Gpu:
    return Gpu("NVIDIA H200", (9, 0), 16 * GIB, 16 * GIB)


def planned() -> dict[str, Any]:
    return forecast(REQUEST, MACHINE, ModelFacts(), what_if=False, learned=True)


def report_of(document: dict[str, Any], *, slower: float, more_bytes: int) -> dict[str, Any]:
    phases = [
        {
            "phase": phase["phase"],
            "forecast": phase,
            "measured": {
                "steps": phase["steps"],
                "seconds": slower * phase["seconds"],
                "vram_peak_bytes": phase["vram_peak_bytes"] + more_bytes,
                "ram_peak_bytes": phase["ram_peak_bytes"],
            },
        }
        for phase in document["phases"]
    ]
    return {"attempts": [{"outcome": "done"}], "phases": phases, "request": {}, "versions": {}}


def test_without_runs_the_time_is_the_plans_and_says_so(own_home: Path) -> None:
    document = planned()
    assert document["history"]["seconds"] == pytest.approx(document["total_seconds"])
    assert document["history"]["samples"] == 0
    assert home() == own_home and (own_home / FILE).is_file()


def test_runs_of_the_same_size_give_the_time() -> None:
    document = planned()
    for run in range(3):
        learn(
            report_of(document, slower=2.0, more_bytes=0),
            REQUEST,
            MACHINE,
            1000.0 + run,
            card_now=cool,
        )
    again = planned()["history"]
    assert again["seconds"] == pytest.approx(2 * document["total_seconds"], rel=1e-6)
    assert again["samples"] == 3 and "3 run(s)" in again["basis"]


def test_an_overrun_widens_the_margin_at_once() -> None:
    def margin() -> str:
        return next(item for item in planned()["reasons"] if item.startswith("VRAM:"))

    before = margin()
    learn(
        report_of(planned(), slower=1.0, more_bytes=2 * GIB),
        REQUEST,
        MACHINE,
        1000.0,
        card_now=cool,
    )
    assert margin() != before and "2.00 GiB margin" in margin()


def test_clean_file_pages_in_a_resident_set_are_no_overrun() -> None:
    report = report_of(planned(), slower=1.0, more_bytes=0)
    for phase in report["phases"]:
        phase["measured"]["ram_peak_bytes"] += 3 * GIB
        phase["measured"]["ram_clean_bytes"] = 3 * GIB
    before = planned()["margins"]
    learn(report, REQUEST, MACHINE, 1000.0, card_now=cool)
    after = planned()["margins"]
    assert after["ram"]["bytes"] == before["ram"]["bytes"]
    assert "no run" in before["ram"]["basis"] and "1 run(s)" in after["ram"]["basis"]


def test_a_hot_or_shared_card_is_kept_and_teaches_nothing() -> None:
    hot = Gpu("NVIDIA H200", (9, 0), 1, 1, thermal=True, clock_share=0.3)
    assert disturbance(MACHINE, cool()) == "" and disturbance(MACHINE, "no card") == ""
    assert "hot" in disturbance(replace(MACHINE, gpu_hot=True), hot)
    assert "another program" in disturbance(replace(MACHINE, gpu_busy_percent=80), cool())
    report = report_of(planned(), slower=9.0, more_bytes=4 * GIB)
    learn(report, REQUEST, MACHINE, 1000.0, card_now=lambda: hot)
    assert open_history().attempts()[0]["disturbed"].startswith("hot")
    assert planned()["history"]["samples"] == 0


BORROWED = HardwareSnapshot(
    "linux", "Some Card", (8, 9), 16 * GIB, 16 * GIB, 32 * GIB, 32 * GIB, card="rtx-4060"
)


def for_run(facts: ModelFacts) -> dict[str, Any]:
    return forecast_for_run(REQUEST, BORROWED, facts, "cuda", history=open_history())


def shown(facts: ModelFacts) -> dict[str, Any]:
    return forecast(REQUEST, BORROWED, facts, what_if=False, learned=True)


def test_a_run_takes_the_placement_that_a_forecast_shows() -> None:
    facts = published_facts(planning_rows(BORROWED, learned=True))
    before = shown(facts)
    phases = {phase["phase"]: phase for phase in before["phases"]}
    high = phases["sample_high"]
    tried = record_faster_trial(BORROWED, REQUEST, high)
    after, run_document = shown(facts), for_run(facts)
    assert placements_of(after)["sample_high"] == tried
    assert placements_of(run_document) == placements_of(after)
    assert run_document["reasons"] == after["reasons"]
    assert run_document["margins"] == after["margins"]
    assert run_document["history"] == after["history"]


def test_a_run_keeps_the_margin_that_a_forecast_keeps_after_optimize() -> None:
    rows = choose_calibration(BORROWED)
    assert rows.extrapolated
    own = [rows.rows["memory.context"]]
    keep_calibration(BORROWED, own, "edge-fp8-rowwise", "2026-12-01")
    facts = published_facts(planning_rows(BORROWED, learned=True))
    margins = [document["margins"]["vram"]["bytes"] for document in (shown(facts), for_run(facts))]
    assert margins[0] == margins[1] < rows.margin_bytes("vram", "linux")


def test_a_damaged_history_is_said_with_the_forecast(own_home: Path) -> None:
    assert planned()["notices"] == []
    (own_home / FILE).write_bytes(b"no database" * 99)
    (notice,) = planned()["notices"]
    assert "was damaged" in notice and f"{FILE}.damaged-1" in notice
    assert planned()["notices"] == [], "once: then there is a new one"
    (own_home / FILE).write_bytes(b"no database" * 99)
    tight = replace(MACHINE, vram_total_bytes=GIB, vram_free_bytes=GIB)
    refused = forecast(REQUEST, tight, ModelFacts(), what_if=False, learned=True)
    assert not refused["fits"] and "was damaged" in refused["notices"][0]
