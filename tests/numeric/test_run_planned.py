"""A run on a card starts from the plan that a forecast of the same moment shows.

There is no card here: the models say they are on one, and the run is stopped once it has planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from planner_tools import record_faster_trial
from run_parts import SMALL, options

from lowpeak.engine import run
from lowpeak.engine.events import QuietHost
from lowpeak.engine.forecast import forecast, placements_of, planning_rows
from lowpeak.engine.learning import FILE, keep_calibration
from lowpeak.engine.models import open_models
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.types import HardwareSnapshot
from lowpeak.engine.rates import disk_key, keep_rates
from lowpeak.engine.units import GIB
from lowpeak.nodes import local_engine
from lowpeak.nodes.handles import ModelHandle

CARD = HardwareSnapshot(
    "linux", "Some Card", (8, 9), 8 * GIB, 8 * GIB, 32 * GIB, 32 * GIB, card="rtx-4060"
)  # fmt: skip


class Planned(Exception):
    """The run has planned."""


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOWPEAK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def shown(checkpoint: Path) -> dict[str, Any]:
    facts = open_models(checkpoint, "cpu").facts()
    return forecast(SMALL, CARD, facts, what_if=False, learned=True, checkpoint=checkpoint)


def of_command(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plan of `generate`'s stages."""
    found: list[Mapping[str, Any]] = []

    def stop(request: Any, options: Any, plan: Mapping[str, Any], *rest: Any) -> None:
        found.append(plan)
        raise Planned

    on_card = replace(open_models(checkpoint, "cpu"), device=torch.device("cuda", 0))
    monkeypatch.setattr(run, "open_models", lambda folder, device: on_card)
    monkeypatch.setattr(run, "read_snapshot", lambda: CARD)
    monkeypatch.setattr(run, "begin_report", stop)
    with pytest.raises(Planned):
        run.run_request(SMALL, options(checkpoint, tmp_path / "v.mp4"), QuietHost())
    return found[0]


def of_graph(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plan of a node's stage."""
    found: list[Mapping[str, Any]] = []

    class Host(QuietHost):
        def describe(self, request: Any, plan: Mapping[str, Any]) -> None:
            found.append(plan)
            raise Planned

    engine = local_engine.LocalEngine(lambda: "cpu")
    monkeypatch.setattr(engine, "_snapshot", lambda: CARD)
    models = replace(open_models(checkpoint, "cpu"), device=torch.device("cuda", 0))
    monkeypatch.setattr(type(models), "kernels", lambda self: {})
    handle = ModelHandle(checkpoint, "toy")
    with (
        pytest.raises(Planned),
        engine._session(handle, models, SMALL, Host(), must_fit=True),
    ):
        pass
    return found[0]


@pytest.mark.parametrize("planned_by", [of_command, of_graph])
def test_a_placement_that_was_faster_here_is_shown_and_used(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned_by: Any
) -> None:
    before = shown(checkpoint)
    high = next(phase for phase in before["phases"] if phase["phase"] == "sample_high")
    tried = record_faster_trial(CARD, SMALL, high)
    after = shown(checkpoint)
    assert placements_of(after)["sample_high"] == tried
    used = planned_by(checkpoint, tmp_path, monkeypatch)
    assert placements_of(used) == placements_of(after)
    assert used["margins"] == after["margins"]


@pytest.mark.parametrize("planned_by", [of_command, of_graph])
def test_after_optimize_a_run_keeps_no_more_free_than_a_forecast(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned_by: Any
) -> None:
    borrowed = choose_calibration(CARD)
    keep_calibration(CARD, [borrowed.rows["memory.context"]], "fp8-rowwise", "2026-12-01")
    kept = shown(checkpoint)["margins"]
    assert kept["vram"]["bytes"] < borrowed.margin_bytes("vram", "linux"), "no longer doubled"
    assert planned_by(checkpoint, tmp_path, monkeypatch)["margins"] == kept


@pytest.mark.parametrize("planned_by", [of_command, of_graph])
def test_the_disk_that_the_checkpoint_lies_on_sets_the_pace(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned_by: Any
) -> None:
    disks = {
        disk_key(checkpoint): {"bytes_per_second": 2e6, "date": "2026-11-01"},
        "another": {"bytes_per_second": 9e9, "date": "2026-12-01"},
    }
    keep_rates({"link": {}, "disk": disks})
    rows = planning_rows(CARD, learned=True, checkpoint=checkpoint)
    assert rows["rates.disk"] == 2e6 != planning_rows(CARD, learned=True)["rates.disk"]
    told = shown(checkpoint)
    handle, engine = ModelHandle(checkpoint, "toy"), local_engine.LocalEngine(lambda: "cpu")
    monkeypatch.setattr(engine, "_snapshot", lambda: CARD)
    monkeypatch.setattr(engine, "_device_type", lambda: "cuda")
    assert engine.forecast(SMALL, handle, {})["phases"] == told["phases"]
    used = planned_by(checkpoint, tmp_path, monkeypatch)
    seconds = [[phase["seconds"] for phase in document["phases"]] for document in (told, used)]
    assert seconds[0] == seconds[1] and max(seconds[0]) > 1


class Told:
    """A session that keeps what it is told."""

    def __init__(self, *given: Any) -> None:
        self.notices: list[str] = []
        TOLD.append(self)

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *failure: object) -> None:
        pass

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def limit_device(self, gib: float | None) -> None:
        pass


TOLD: list[Told] = []


def command_told(models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*given: Any) -> None:
        raise Planned

    monkeypatch.setattr(run, "open_models", lambda folder, device: models)
    monkeypatch.setattr(run, "read_snapshot", lambda: CARD)
    monkeypatch.setattr(run, "Session", Told)
    monkeypatch.setattr(run, "condition_and_sample", stop)
    with pytest.raises(Planned):
        run.run_request(SMALL, options(models.folder, tmp_path / "v.mp4"), QuietHost())


def graph_told(models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lowpeak.engine.session.Session", Told)
    engine = local_engine.LocalEngine(lambda: "cpu")
    monkeypatch.setattr(engine, "_snapshot", lambda: CARD)
    handle = ModelHandle(models.folder, "toy")
    with engine._session(handle, models, SMALL, QuietHost(), must_fit=False):
        pass


@pytest.mark.parametrize("told", [command_told, graph_told])
def test_a_damaged_history_is_among_a_run_s_notices(
    checkpoint: Path, tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, told: Any
) -> None:
    own_home.mkdir()
    (own_home / FILE).write_bytes(b"no database" * 99)
    models = replace(open_models(checkpoint, "cpu"), device=torch.device("cuda", 0))
    monkeypatch.setattr(type(models), "kernels", lambda self: {})
    told(models, tmp_path, monkeypatch)
    assert any("was damaged" in text for text in TOLD[-1].notices)
