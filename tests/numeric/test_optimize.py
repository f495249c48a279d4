"""optimize: the best placements run whole, and are kept unless bits differ."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from lowpeak.engine import optimize_tasks
from lowpeak.engine.errors import MeasuredOverrun, RequestError
from lowpeak.engine.forecast import forecast
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.learning import CALIBRATION, machine_calibration, open_history
from lowpeak.engine.models import open_models
from lowpeak.engine.optimize import Optimizer, choose_trials, optimize_here, optimize_text
from lowpeak.engine.planner.attempts import machine_key
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.types import HardwareSnapshot, ModelFacts
from lowpeak.engine.request import Request
from lowpeak.engine.toy import write_toy
from lowpeak.engine.units import GIB
from lowpeak.engine.worker.child import WorkerContext

CARD = HardwareSnapshot(
    "linux", "Some Card", (8, 9), 8 * GIB, 8 * GIB, 32 * GIB, 32 * GIB, card="rtx-4060"
)  # fmt: skip
REQUEST = Request(Geometry(256, 256, 22), base_steps=2, two_pass=False, text_rows=8)
Change = Any


class InlineWorker:
    """A worker without a process; `change` may alter a result or raise."""

    def __init__(self, change: Change) -> None:
        self.change, self.context = change, WorkerContext(lambda message: None)
        self.process = type("Process", (), {"pid": 0})()

    def __enter__(self) -> InlineWorker:
        return self

    def __exit__(self, *failure: object) -> None:
        self.context.release()

    def run(self, task: str, arguments: dict[str, Any], **calls: Any) -> Any:
        arguments = json.loads(json.dumps(arguments))
        found = getattr(optimize_tasks, task.partition(":")[2])(arguments, self.context)
        # A CPU has no device memory and no rate worth keeping: stand in for a card's figures.
        found |= {"vram_peak_bytes": 3 * GIB, "context_bytes": 400 << 20}
        return self.change(found)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOWPEAK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy") / "checkpoint"
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=0, device="cpu")
    return folder


def optimizer(toy: Path, change: Change = lambda row: row) -> Optimizer:
    return Optimizer(
        toy, "cpu", most=3, snapshot=lambda: CARD, start=lambda: InlineWorker(change)  # type: ignore
    )  # fmt: skip


def facts_of(toy: Path) -> ModelFacts:
    return open_models(toy, "cpu").facts()


def test_placements_of_different_kinds_are_tried_the_planned_one_first() -> None:
    request = Request(Geometry(1344, 768, 243), base_steps=8)
    trials = choose_trials(request, CARD, ModelFacts(), machine_calibration(CARD), most=3)
    assert {trial.phase for trial in trials} == {"sample_low", "sample_high"}
    low = [trial for trial in trials if trial.phase == "sample_low"]
    assert 2 <= len(low) <= 3
    places = [(t.placement.keys, t.placement.residual, t.placement.half_slots,
               t.placement.transfer_slots) for t in low]  # fmt: skip
    assert len(set(places)) == len(places)
    document = forecast(request, replace(CARD), ModelFacts(), what_if=False)
    planned = next(p for p in document["phases"] if p["phase"] == "sample_low")
    assert low[0].placement.as_json() == planned["placement"]


def test_agreeing_runs_are_kept_and_the_next_plan_stands_on_them(toy: Path, own_home: Path) -> None:
    document = optimizer(toy).run(REQUEST, facts_of(toy))
    assert document["stored"] and document["bit_identical"]
    assert len(document["trials"]) >= 2
    assert len({row["sha256"] for row in document["trials"]}) == 1
    for row in document["trials"]:
        laps = row["step_seconds"]
        assert len(laps) > 1 and row["seconds"] == pytest.approx(sum(laps))
        assert row["seconds_per_step"] == pytest.approx(median(laps[1:])), "the first one reads"
        assert row["grouped"] == Geometry(row["width"], row["height"], row["frames"]).grouped
    assert "sample_high" in document["best"] and "fastest" in optimize_text(document)
    before, after = choose_calibration(CARD), machine_calibration(CARD)
    assert before.extrapolated and not after.extrapolated
    assert after["memory.context"] == 400 << 20 != before["memory.context"]
    assert any("measured on this machine" in note for note in after.notes)
    assert machine_calibration(replace(CARD, card="rtx-4090")).extrapolated, "another machine"
    assert len(open_history().attempts(machine_key(CARD))) == len(document["trials"])
    (own_home / CALIBRATION).write_text("[meta\n")
    assert any("passed over" in note for note in machine_calibration(CARD).notes)


def test_one_bit_of_difference_and_nothing_is_kept(toy: Path, own_home: Path) -> None:
    runs = []

    def differ(row: dict[str, Any]) -> dict[str, Any]:
        runs.append(row)
        return row if len(runs) > 1 else {**row, "sha256": "0" * 64}

    document = optimizer(toy, differ).run(REQUEST, facts_of(toy))
    assert not document["stored"] and not document["bit_identical"]
    assert "differ" in optimize_text(document)
    assert not (own_home / CALIBRATION).exists() and not open_history().attempts()


def test_a_placement_that_runs_out_of_memory_is_passed_over(toy: Path) -> None:
    runs = []

    def first_fails(row: dict[str, Any]) -> dict[str, Any]:
        runs.append(row)
        if len(runs) == 1:
            raise MeasuredOverrun("sample_high", "vram", 1, 2)
        return row

    document = optimizer(toy, first_fails).run(REQUEST, facts_of(toy))
    assert document["stored"] and "MeasuredOverrun" in document["trials"][0]["error"]
    assert document["best"]["sample_high"] != document["trials"][0]["placement"]

    def all_fail(row: dict[str, Any]) -> dict[str, Any]:
        raise MeasuredOverrun("sample_high", "vram", 1, 2)

    nothing = optimizer(toy, all_fail).run(REQUEST, facts_of(toy))
    assert not nothing["stored"] and "no placement ran" in nothing["message"]
    assert nothing["bit_identical"] is None


def test_one_placement_alone_is_kept_without_a_word_about_bits(toy: Path) -> None:
    single = optimizer(toy)
    single.most = 1
    document = single.run(REQUEST, facts_of(toy))
    assert len(document["trials"]) == 1
    assert document["stored"] and document["bit_identical"] is None
    assert "sample_high: one placement ran, nothing to compare" in optimize_text(document)
    assert len(open_history().attempts(machine_key(CARD))) == 1


def test_a_sole_survivor_has_nothing_to_be_compared_with(toy: Path) -> None:
    runs = []

    def only_the_first(row: dict[str, Any]) -> dict[str, Any]:
        runs.append(row)
        if len(runs) > 1:
            raise MeasuredOverrun("sample_high", "vram", 1, 2)
        return row

    document = optimizer(toy, only_the_first).run(REQUEST, facts_of(toy))
    assert len(document["trials"]) > 1 and document["bit_identical"] is None
    assert document["stored"] and "nothing to compare" in document["message"]


def test_without_a_card_there_is_nothing_to_optimise(toy: Path) -> None:
    with pytest.raises(RequestError, match="CUDA"):
        optimize_here(REQUEST, toy, "cpu")
