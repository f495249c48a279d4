"""What a graph's stages teach this machine, and that a broken history never costs a result."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lowpeak.engine.errors import Cancelled
from lowpeak.engine.events import QuietHost
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.learning import FILE, home, open_history
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.types import HardwareSnapshot
from lowpeak.engine.request import Request
from lowpeak.engine.toy import write_toy
from lowpeak.engine.units import GIB
from lowpeak.nodes.engine_seam import Pictures
from lowpeak.nodes.handles import ModelHandle
from lowpeak.nodes.local_engine import LocalEngine
from lowpeak.nodes.teaching import teach

SIZE = Geometry(256, 256, 22)
REQUEST = Request(SIZE, prompt="a secret fox", base_steps=1, two_pass=False, seed=7)
MACHINE = HardwareSnapshot(
    "linux", "NVIDIA H200", (9, 0), 16 * GIB, 16 * GIB, 64 * GIB, 64 * GIB
)  # fmt: skip


class LearningEngine(LocalEngine):
    """Learns on a CPU too, as on a card."""

    def _learns(self, device_type: str) -> bool:
        return True


class Quiet(QuietHost):
    """Stops after some events."""

    stop_after = 1 << 30

    def is_cancelled(self) -> bool:
        return len(self.events) >= self.stop_after

    def describe(self, request: Any, plan: Any) -> None:
        pass


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ModelHandle:
    folder = tmp_path_factory.mktemp("toy") / "toy"
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    return ModelHandle(folder, "x")


def rows(query: str) -> list[Any]:
    """From the history's file."""
    with sqlite3.connect(home() / FILE) as database:
        return database.execute(query).fetchall()


def report(*phases: str, overrun_bytes: int = 0) -> dict[str, Any]:
    """Of a finished stage."""
    forecast = {"vram_peak_bytes": 2 * GIB, "ram_peak_bytes": GIB, "seconds": 4.0}
    measured = {**forecast, "vram_peak_bytes": 2 * GIB + overrun_bytes, "steps": 4}
    found = [{"phase": name, "forecast": forecast, "measured": measured} for name in phases]
    return {"attempts": [{"outcome": "done"}], "phases": found, "request": {}}


def test_each_stage_of_a_graph_is_recorded_with_its_phases(
    model: ModelHandle, tmp_path: Path
) -> None:
    engine = LearningEngine(lambda: "cpu")
    given = engine.encode(model, REQUEST, Pictures(), Quiet())
    made = engine.sample(model, REQUEST, given, Quiet(), lambda latents: None)
    engine.decode(model, made.latents, tmp_path / "v.mp4", Quiet(), with_sound=False)
    assert [item["outcome"] for item in open_history().attempts()] == ["done"] * 3
    names = [name for (name,) in rows("SELECT name FROM phase ORDER BY attempt")]
    assert names[0] == "encode" and names[-1] == "decode" and "sample_high" in names[1:-1]
    assert "fox" not in json.dumps(rows("SELECT request FROM attempt"))
    assert "attempts" not in made.report, "the nodes' own attempts would be written over"
    host = Quiet()
    host.stop_after = 2
    with pytest.raises(Cancelled):
        engine.sample(model, REQUEST, given, host, lambda latents: None)
    assert open_history().attempts()[0]["outcome"] == "cancelled"


def test_a_cpu_leaves_no_history(model: ModelHandle) -> None:
    LocalEngine(lambda: "cpu").encode(model, REQUEST, Pictures(), Quiet())
    assert not (home() / FILE).exists()


def test_an_overrun_in_a_graph_raises_the_margin_at_once() -> None:
    def margin() -> int:
        found = open_history().margins_with_basis(MACHINE, choose_calibration(MACHINE))
        return found["vram"][0]

    before = margin()
    assert teach(report("sample_high", overrun_bytes=3 * GIB), REQUEST, MACHINE, 1000.0) == []
    assert margin() == 3 * GIB > before


def test_a_stage_without_forecasts_leaves_no_row() -> None:
    assert teach({"phases": []}, REQUEST, MACHINE, 1000.0) == []
    assert not (home() / FILE).exists()


def test_a_history_that_cannot_be_kept_is_a_notice_and_the_stage_goes_on(
    model: ModelHandle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setenv("LOWPEAK_HOME", str(file))
    engine, host = LearningEngine(lambda: "cpu"), Quiet()
    given = engine.encode(model, REQUEST, Pictures(), host)
    made = engine.sample(model, REQUEST, given, host, lambda latents: None)
    [notice] = [item for item in made.report["notices"] if "nothing is learned" in item]
    assert str(tmp_path) not in notice
    assert [event.message for event in host.events if event.kind == "notice"].count(notice) == 2


def test_what_the_database_refuses_is_a_notice() -> None:
    [notice] = teach(report("decode", "decode"), REQUEST, MACHINE, 1000.0)
    assert "nothing is learned" in notice and "UNIQUE" in notice
    assert open_history().attempts() == []
