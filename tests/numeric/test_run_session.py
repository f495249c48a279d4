"""Phases of a session: forecast and measurement side by side, errors with their phase."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from lowpeak.engine.errors import Cancelled, MeasuredOverrun, RequestError
from lowpeak.engine.events import QuietHost
from lowpeak.engine.files import RunFiles
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.learning import learn
from lowpeak.engine.planner.types import HardwareSnapshot
from lowpeak.engine.report import RunReport
from lowpeak.engine.request import Request
from lowpeak.engine.run import closing_report
from lowpeak.engine.session import Session

MIB = 1 << 20


def open_session(host: QuietHost, forecasts: dict[str, dict[str, object]]) -> Session:
    return Session(torch.device("cpu"), host, RunReport({}, {}), forecasts)


def test_a_phase_leaves_forecast_and_measurement_side_by_side() -> None:
    host = QuietHost()
    forecast = {"phase": "encode", "ram_peak_bytes": 123, "seconds": 4.5, "terms": ()}
    with open_session(host, {"encode": forecast}) as session:
        with session.phase("encode") as measured:
            measured.steps = 3
            session.progress(1, 3)
        with session.phase("decode"):
            pass
    first, second = session.report.phases
    assert first["forecast"] == forecast and first["measured"]["steps"] == 3
    assert first["measured"]["seconds"] > 0 and second["forecast"] is None
    assert [(event.kind, event.phase) for event in host.events] == [
        ("forecast", "encode"),
        ("progress", "encode"),
        ("measured", "encode"),
        ("forecast", "decode"),
        ("measured", "decode"),
    ]
    assert host.events[0].ram_peak_bytes == 123 and host.events[0].seconds == 4.5


def test_the_host_peak_is_that_of_the_phase_alone() -> None:
    with open_session(QuietHost(), {}) as session:
        with session.phase("encode"):
            block = torch.ones(64 * MIB, dtype=torch.uint8)
            del block
        with session.phase("decode"):
            pass
    high, low = (item["measured"]["ram_peak_bytes"] for item in session.report.phases)
    assert high - low > 40 * MIB


@pytest.mark.parametrize(
    ("raised", "axis"), [(torch.OutOfMemoryError(), "vram"), (MemoryError(), "ram")]
)
def test_out_of_memory_names_the_phase_and_what_was_planned(raised: Exception, axis: str) -> None:
    forecast = {"vram_peak_bytes": 7, "ram_peak_bytes": 7}
    session = open_session(QuietHost(), {"decode": forecast})
    with session, pytest.raises(MeasuredOverrun) as caught, session.phase("decode"):
        raise raised
    assert (caught.value.phase, caught.value.axis, caught.value.forecast_bytes) == (
        "decode",
        axis,
        7,
    )
    assert caught.value.exit_code == 5
    assert [item["phase"] for item in session.report.phases] == ["decode"]


def test_resources_are_closed_in_reverse_order_also_after_an_error() -> None:
    closed: list[str] = []
    with pytest.raises(Cancelled), open_session(QuietHost(), {}) as session:
        session.resources.callback(closed.append, "first")
        session.resources.callback(closed.append, "second")
        raise Cancelled("here")
    assert closed == ["second", "first"]


def test_a_notice_is_said_once() -> None:
    host = QuietHost()
    with open_session(host, {}) as session:
        session.notice("snapped")
        session.notice("snapped")
    assert session.report.notices == ["snapped"]
    assert [event.message for event in host.events] == ["snapped"]


class FakeCuda:
    """Answers for the calls a session makes on a card; remembers the fraction."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes, self.fractions = total_bytes, []

    def mem_get_info(self, device: torch.device) -> tuple[int, int]:
        return self.total_bytes, self.total_bytes

    def set_per_process_memory_fraction(self, fraction: float, device: torch.device) -> None:
        self.fractions.append(fraction)


def test_a_device_cap_counts_the_context_and_is_lifted_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuda = FakeCuda(16 << 30)
    for name in ("mem_get_info", "set_per_process_memory_fraction"):
        monkeypatch.setattr(torch.cuda, name, getattr(cuda, name))
    with open_session(QuietHost(), {}) as session:
        session.limit_device(4.0)
        assert cuda.fractions == [], "a CPU has no allocator to cap"
        session.device = torch.device("cuda")
        session._meter.context_bytes = 1 << 30
        session.limit_device(5.0)
        assert cuda.fractions == [0.25]
        with pytest.raises(RequestError, match="context"):
            session.limit_device(0.5)
        term = {"name": "context and libraries", "value": 3 << 30, "unit": "vram_bytes"}
        session._forecasts = {"sample_high": {"terms": [term]}}
        session.limit_device(5.0)
    assert cuda.fractions == [0.25, 0.125, 1.0, 1.0], "graphs come later: the plan's figure counts"


def test_a_report_is_on_disk_before_the_history_learns_from_it(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "v.mp4")

    def fails(report: dict[str, Any]) -> list[str]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), closing_report(RunReport({}, {}), files, fails):
        pass
    assert json.loads(files.report.read_text())["attempts"] == [{"outcome": "done"}]


def test_a_history_that_cannot_be_made_is_a_notice_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LOWPEAK_HOME", str(tmp_path / "file" / "home"))
    files, clip = RunFiles(tmp_path / "v.mp4"), Geometry(256, 256, 22)
    card = HardwareSnapshot("linux", "Card", (8, 9), 1 << 33, 1 << 33, 1 << 35, 1 << 35)

    def teach(report: dict[str, Any]) -> list[str]:
        return learn(report, Request(clip), card, 1.0, card_now=lambda: "no card")

    with closing_report(RunReport({}, {}), files, teach):
        pass
    written = json.loads(files.report.read_text())
    assert written["attempts"] == [{"outcome": "done"}]
    assert len(written["notices"]) == 1 and "cannot be used now" in written["notices"][0]
