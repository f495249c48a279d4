"""The timeline of a run: where the time between steps and phases went."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from lowpeak.engine.timeline import timeline, timeline_svg


def phase(name: str, start: float, seconds: float, steps: list[float], lead: float = 0.0) -> dict:
    measured = {
        "seconds": seconds,
        "started_unix": start,
        "step_seconds": steps,
        "steps_started_unix": start + lead if steps else 0.0,
        "vram_peak_bytes": 3 << 30,
        "ram_peak_bytes": 2 << 30,
    }
    return {"phase": name, "forecast": {"vram_peak_bytes": 4 << 30}, "measured": measured}


REPORT: dict[str, Any] = {
    "geometry": {"width": 64, "height": 32, "frames": 22},
    "request": {"quality": "light"},
    "snapshot": {"device_name": "a card"},
    "phases": [
        phase("encode", 1002.0, 3.0, []),
        phase("sample_low", 1006.0, 5.0, [1.0, 1.0, 2.0], lead=1.0),
        phase("upscale", 1011.2, 0.5, []),
        phase("sample_high", 1011.9, 2.1, [1.0, 1.0], lead=0.1),
    ],
    "spans": [
        {"name": "worker starts", "phase": "", "started_unix": 1000.0, "seconds": 2.0},
        {"name": "save", "phase": "", "started_unix": 1005.0, "seconds": 0.4},
        {"name": "bind", "phase": "sample_low", "started_unix": 1006.0, "seconds": 1.0},
    ],
}


def test_gaps_are_what_no_step_and_no_plain_phase_covers() -> None:
    found = timeline(REPORT)
    assert [(round(g["start"], 3), round(g["seconds"], 3)) for g in found["gaps"]] == [
        (0.0, 2.0), (5.0, 2.0),
    ]  # fmt: skip
    assert found["gaps"][0]["spent_on"] == {"worker starts": 2.0}
    spent = {name: round(value, 3) for name, value in found["gaps"][1]["spent_on"].items()}
    assert spent == {"save": 0.4, "bind": 1.0, "unnamed": 0.6}
    assert round(found["sampling_seconds"], 3) == 8.0
    assert round(found["total_seconds"], 3) == 14.0


def test_the_picture_is_xml_and_names_gaps_and_peaks() -> None:
    text = timeline_svg(REPORT)
    ElementTree.fromstring(text)
    assert "gap at 5.0 s, 2.00 s" in text and "planned 4.00 GiB, measured 3.00 GiB" in text
    assert text.count('class="plan"') == 5  # one bar a step
