"""Held-out cases: planned, run and kept one by one; a case that fails leaves a row."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from lowpeak.engine import heldout, heldout_tasks
from lowpeak.engine.errors import MeasuredOverrun, RequestError
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.heldout import Bench, machine_from, machine_json
from lowpeak.engine.heldout_cases import CASES, ON_DEVICE, Case, choose_cases, teaches
from lowpeak.engine.heldout_table import held_out_table, with_ratios
from lowpeak.engine.kernels_here import attention_options
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.types import HardwareSnapshot, ModelFacts
from lowpeak.engine.request import Request
from lowpeak.engine.toy import write_toy
from lowpeak.engine.units import GIB
from lowpeak.engine.worker.child import WorkerContext

ROOT = Path(__file__).resolve().parents[2]
MACHINE = HardwareSnapshot("linux", "", None, 0, 0, 16 * GIB, 12 * GIB)


class InlineWorker:
    """A worker without a process: tasks run here."""

    alive = True

    def __init__(self) -> None:
        self.context = WorkerContext(lambda message: None)
        self.process = type("Process", (), {"pid": os.getpid()})()

    def __enter__(self) -> InlineWorker:
        return self

    def __exit__(self, *failure: object) -> None:
        self.context.release()

    def run(self, task: str, arguments: dict[str, Any], **calls: Any) -> Any:
        if arguments.get("case", {}).get("name") == "broken":
            raise MeasuredOverrun("sample_high", "vram", 1, 2)
        return getattr(heldout_tasks, task.partition(":")[2])(arguments, self.context)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy") / "checkpoint"
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=0, device="cpu")
    return folder


def no_group(*arguments: Any) -> None:
    raise RequestError("no groups here")


def test_cases_are_run_in_order_and_every_one_leaves_a_row(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heldout, "MemoryGroup", no_group)
    out = tmp_path / "rows.json"
    lines: list[str] = []
    bench = Bench(toy, out, "cpu", 60.0, lines.append, snapshot=lambda: MACHINE, start=InlineWorker)  # type: ignore[arg-type]
    cases = [
        Case("a", 256, 256, 22, 4, 32, seconds=1),
        Case("broken", 256, 256, 22, 4, 32, seconds=1),
        Case("alone", 256, 256, 39, 4, 8, own_process=True, seconds=1),
        Case("forced", 256, 256, 39, None, None, own_process=True, place=ON_DEVICE, seconds=1),
        Case("late", 256, 256, 39, 4, 8, own_process=True, seconds=1000),
    ]
    rows = heldout.run_cases(bench, cases)
    assert [row["case"] for row in rows] == ["a", "broken", "alone", "forced", "late"]
    assert json.loads(out.read_text()) == rows
    good, broken, alone, forced, late = rows
    assert "MeasuredOverrun" in broken["error"] and "no time" in late["error"]
    assert forced["placement"]["keys"] == "recompute" and forced["placement"]["half_slots"]
    assert forced["forced"] and not alone["forced"]
    for row in (good, alone, forced):
        assert row["seconds_per_step"] > 0
        shares = row["process"] != "own" and row["placement"]["pinned_blocks"] != row["blocks"]
        assert row["ram_peak_bytes"] is None if shares else row["ram_peak_bytes"] > 0
        assert row["forecast"]["ram_peak_bytes"] > 0 and not row["ram_capped"]
        assert row["disk_bytes_per_second"] if row["placement"]["disk_blocks"] else True
    assert len(held_out_table(rows).splitlines()) == 2 + len(cases)


def test_the_most_wanted_cases_get_the_time_that_is_left(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heldout, "MemoryGroup", no_group)
    bench = Bench(toy, None, "cpu", 60.0, snapshot=lambda: MACHINE, start=InlineWorker)  # type: ignore[arg-type]
    wanted = Case("wanted", 256, 256, 22, 4, 32, own_process=True, seconds=50)
    less = Case("less", 256, 256, 22, 4, 32, seconds=20)
    found = {row["case"]: row for row in heldout.run_cases(bench, [wanted, less])}
    assert "seconds_per_step" in found["wanted"] and "no time" in found["less"]["error"]


def test_a_case_measures_fewer_steps_rather_than_pass_the_time(toy: Path) -> None:
    case = Case("short", 256, 256, 22, 4, 32, 5, own_process=True)
    arguments = {
        "checkpoint": str(toy), "device": "cpu", "case": asdict(case),
        "machine": machine_json(MACHINE, {}), "attention": None, "left_seconds": 0.0,
    }  # fmt: skip
    assert heldout_tasks.measure(arguments, InlineWorker().context)["repeats"] == 1


def test_attention_is_forced_by_name() -> None:
    assert attention_options(None) is None
    both = attention_options("cudnn")
    assert both is not None and both.force == dict.fromkeys(
        ("window attention", "global attention"), "cudnn"
    )
    with pytest.raises(RequestError, match="sage-1"):
        attention_options("nothing")


@pytest.mark.parametrize(
    ("row", "allowed"),
    [
        ({"width": 1344, "height": 768, "frames": 243}, True),
        ({"width": 1344, "height": 768, "frames": 243, "use": "step"}, True),
        ({"width": 1344, "height": 768, "frames": 345, "use": "floor"}, False),
        ({"width": 960, "height": 544, "frames": 243, "use": "held-out"}, False),
        ({"width": 960, "height": 544, "frames": 243, "use": "step"}, False),
    ],
)
def test_only_some_rows_may_teach(row: dict[str, Any], allowed: bool) -> None:
    assert teaches(row) is allowed


def measured(**changes: Any) -> dict[str, Any]:
    row = {
        "case": "a", "use": "held-out", "process": "own", "vram_gib": 4, "ram_gib": 8,
        "placement": {
            "keys": "store", "residual": "device", "resident_blocks": 0, "pinned_blocks": 50,
            "disk_blocks": 0, "transfer_slots": 2, "half_slots": True,
        },
        "seconds_per_step": 10.0, "vram_peak_bytes": 4 * GIB, "ram_peak_bytes": 8 * GIB,
        "forecast": {
            "seconds_per_step": 10.0, "vram_peak_bytes": 4 * GIB, "ram_peak_bytes": 8 * GIB,
        },
    }  # fmt: skip
    row["forecast"] = {**row["forecast"], **changes}
    return with_ratios(row)


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, []),
        ({"vram_peak_bytes": 4 * GIB - 1}, ["vram"]),
        ({"vram_peak_bytes": int(4.25 * GIB)}, ["vram"]),
        ({"ram_peak_bytes": int(8.9 * GIB)}, []),
        ({"ram_peak_bytes": int(9.0 * GIB)}, ["ram"]),
        ({"seconds_per_step": 9.0}, ["seconds"]),
        ({"seconds_per_step": 11.0, "vram_peak_bytes": None}, []),
    ],
)
def test_limits_of_a_forecast(changes: dict[str, Any], missed: list[str]) -> None:
    row = measured(**changes)
    assert [name.split("_")[0] for name, ok in row["within"].items() if ok is False] == missed
    end = held_out_table([row]).splitlines()[-1]
    assert end.endswith("| within |") if not missed else f"missed: {', '.join(missed)}" in end


def test_no_held_out_case_has_taught_anything() -> None:
    files = (ROOT / "docs" / "benchmarks").glob("step-h200*.json")
    taught = [row for file in files for row in json.loads(file.read_text())]
    sizes = {(row["width"], row["height"], row["frames"]) for row in taught}
    held = choose_cases("held-out")
    assert len(held) >= 12
    learning = {(c.width, c.height, c.frames) for c in CASES if c.use == "calibration"}
    for case in held:
        assert (case.width, case.height, case.frames) not in sizes | learning
    floors = {(case.vram_gib, case.ram_gib, case.frames) for case in choose_cases("floor")}
    assert floors == {(4, 16, 243), (8, 8, 243), (6, 16, 345)}
    with pytest.raises(RequestError, match="unknown"):
        choose_cases("held-out,nothing")


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.place is None], ids=lambda case: case.name
)
def test_every_case_is_planned_within_its_caps(case: Case) -> None:
    vram, ram = case.vram_gib or 140, case.ram_gib or 64
    caps = [int(vram * GIB)] * 2, [int(ram * GIB)] * 2
    snapshot = HardwareSnapshot("linux", "NVIDIA H200", (9, 0), *itertools.chain(*caps))
    request = Request(
        Geometry(case.width, case.height, case.frames), base_steps=8, two_pass=False, text_rows=500
    )
    plan = plan_request(request, snapshot, ModelFacts(), choose_calibration(snapshot))
    phase = plan.phase("sample_high")
    assert phase is not None and phase.placement is not None
    assert phase.vram_peak_bytes <= caps[0][0] and phase.ram_peak_bytes <= caps[1][0]
    if not case.own_process:
        assert phase.placement.disk_blocks == 0, "shared cases use the store of all blocks"


def test_a_machine_survives_the_way_to_a_worker() -> None:
    known = replace(MACHINE, capability=(9, 0), notes=("a", "b"))
    data = json.loads(json.dumps(machine_json(known, {"link": 5e10, "disk": None})))
    assert machine_from(data) == replace(known, link_bytes_per_second=5e10)
