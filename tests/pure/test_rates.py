"""Rates of link and disk: kept per machine and device, with the date; damaged files are as none."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest
from planner_tools import machine

from lowpeak.engine import rates
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.rates import disk_key, keep_rates, known_rates, made_file_rate, with_known_rates

LINK = {"bytes_per_second": 21e9, "date": "2026-11-01"}


def test_kept_rates_fill_what_a_snapshot_lacks_and_say_when(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    keep_rates({"link": {"Card": LINK}, "disk": {}}, path)
    disk = {"bytes_per_second": 3e9, "date": "2026-11-02"}
    keep_rates({"link": {}, "disk": {disk_key(tmp_path): disk}}, path)
    found = with_known_rates(machine(8, 16, device_name="Card"), tmp_path / "not" / "yet", path)
    assert (found.link_bytes_per_second, found.disk_bytes_per_second) == (21e9, 3e9)
    assert any("21.00 GB/s, measured 2026-11-01" in note for note in found.notes)
    rows = choose_calibration(found)
    assert (rows["rates.link"], rows["rates.disk"]) == (21e9, 3e9)
    other = with_known_rates(machine(8, 16, device_name="Other"), tmp_path, path)
    assert other.link_bytes_per_second is None, "another card has another link"


def test_what_the_user_gave_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    keep_rates({"link": {"Card": LINK}, "disk": {}}, path)
    given = machine(8, 16, device_name="Card", link_bytes_per_second=1e9)
    assert with_known_rates(given, None, path) == given


def test_without_a_folder_the_disk_measured_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    entries = {
        "1": {"bytes_per_second": 1e9, "date": "2026-10-01"},
        "2": {"bytes_per_second": 2e9, "date": "2026-11-01"},
    }
    keep_rates({"link": {}, "disk": entries}, path)
    assert with_known_rates(machine(8, 16), None, path).disk_bytes_per_second == 2e9


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        json.dumps({"version": 99, "machine": platform.node(), "link": {}, "disk": {}}),
        json.dumps({"version": 1, "machine": "another", "link": {"Card": LINK}, "disk": {}}),
        json.dumps({"version": 1, "machine": platform.node(), "link": {"Card": 3}, "disk": {}}),
    ],
)
def test_a_file_that_cannot_be_used_counts_as_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rates.json"
    path.write_text(text)
    assert known_rates(path) == {"link": {}, "disk": {}}


def test_absurd_rates_are_not_used(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    broken = {"bytes_per_second": 1e30, "date": "2026-11-01"}
    keep_rates({"link": {"Card": broken}, "disk": {}}, path)
    assert known_rates(path)["link"] == {}


def test_a_disk_is_measured_with_a_file_that_is_gone_afterwards(tmp_path: Path) -> None:
    rate = made_file_rate(tmp_path, 8 << 20)
    assert rate is not None and rate > 1e5
    assert list(tmp_path.iterdir()) == []


def test_small_files_do_not_stand_for_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("LOWPEAK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(rates, "made_file_rate", lambda folder: 5e9 if folder == tmp_path else None)
    small = tmp_path / "block.safetensors"
    small.write_bytes(bytes(4096))
    found = rates.measure_rates(torch.device("cpu"), "", tmp_path / "elsewhere", [small])
    assert [entry["bytes_per_second"] for entry in found["disk"].values()] == [5e9]
    assert known_rates()["disk"] == found["disk"] and found["link"] == {}


def test_rates_that_cannot_be_kept_are_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    torch = pytest.importorskip("torch")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOWPEAK_HOME", str(tmp_path / "file" / "home"))
    monkeypatch.setattr(rates, "made_file_rate", lambda folder: 5e9)
    found = rates.measure_rates(torch.device("cpu"), "", tmp_path)
    assert [entry["bytes_per_second"] for entry in found["disk"].values()] == [5e9]
    assert "LOWPEAK_HOME" in caplog.text
