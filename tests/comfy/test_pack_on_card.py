"""The benchmark of the memory split: what it compares, and that it ends quietly without a card."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lowpeak.engine import meter
from lowpeak.engine.meter import Meter, process_card_bytes

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "pack_on_card.py"
CARD = torch.device("cuda", 0)


def test_figures_agree_within_the_tolerance_or_say_by_how_much_they_do_not() -> None:
    differences = runpy.run_path(str(SCRIPT))["differences"]
    found = differences({"ours": 100, "others": 40}, {"ours": 90, "others": 10, "evictable": 5}, 10)
    assert {name: item["agrees"] for name, item in found.items()} == {
        "ours": True, "others": False, "evictable": False,
    }  # fmt: skip
    assert found["others"]["off_bytes"] == 30 and found["evictable"]["off_bytes"] is None


def test_without_a_card_it_says_so_and_writes_its_row(tmp_path: Path) -> None:
    out = tmp_path / "row.json"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--out", str(out)], capture_output=True, text=True,
        check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    row = json.loads(out.read_text())
    assert row["skipped"] == "no CUDA device" and row["agrees"] is None
    assert "no CUDA device" in done.stdout


def fake_driver(monkeypatch: pytest.MonkeyPatch, processes: list[tuple[int, int | None]]) -> None:
    found = [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in processes]
    fakes = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda uuid: uuid,
        "nvmlDeviceGetComputeRunningProcesses": lambda card: found,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(meter.pynvml, name, fake)
    about = SimpleNamespace(uuid="0")
    monkeypatch.setattr(meter.torch.cuda, "get_device_properties", lambda device: about)


@pytest.mark.parametrize(
    ("processes", "told"),
    [
        ([(1, 5), (os.getpid(), 70)], 70),
        ([(1, 5)], None),  # a container: the driver knows us by another number
        ([(os.getpid(), None)], None),  # Windows: it does not say
    ],
)
def test_the_drivers_own_figure_counts_where_it_tells_processes_apart(
    monkeypatch: pytest.MonkeyPatch, processes: list[tuple[int, int | None]], told: int | None
) -> None:
    fake_driver(monkeypatch, processes)
    assert process_card_bytes(CARD) == told
    ours = Meter(torch.device("cpu"))
    assert ours.device_bytes() is None
    # As on a card: 100 reserved, 30 of context at first, 20 of graphs since; others held 50.
    ours.device, ours.context_bytes, ours._others_bytes = CARD, 30, 50
    monkeypatch.setattr(meter.torch.cuda, "memory_reserved", lambda device: 100)
    monkeypatch.setattr(meter, "_card_used_bytes", lambda device: 200)
    assert ours.device_bytes() == (told if told is not None else 150)


def test_a_later_session_of_a_process_knows_its_own_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that stays: its context is there before the second session begins."""
    card = {"used": 50, "reserved": 0}
    monkeypatch.setattr(meter, "_OUTSIDE", {})
    monkeypatch.setattr(meter, "_card_used_bytes", lambda device: card["used"])
    monkeypatch.setattr(meter, "process_card_bytes", lambda device: None)
    monkeypatch.setattr(meter.torch.cuda, "memory_reserved", lambda device: card["reserved"])

    def make_context(self: Meter) -> int:
        card["used"] += 30
        return 30

    monkeypatch.setattr(Meter, "_make_context", make_context)
    first = Meter(CARD)
    card.update(used=50 + 30 + 20 + 100, reserved=100)  # 20: libraries and graphs
    assert first.device_bytes() == 150
    card.update(used=50 + 30 + 20 + 40, reserved=0)  # another program took 40 between the two
    second = Meter(CARD)
    assert second.context_bytes == 30
    card.update(used=50 + 30 + 20 + 40 + 60, reserved=60)
    assert second.device_bytes() == 110
