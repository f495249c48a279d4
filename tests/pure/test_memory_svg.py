"""The memory picture draws what the report says."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from lowpeak.engine.memory_svg import memory_svg
from lowpeak.engine.units import GIB

SVG = "{http://www.w3.org/2000/svg}"


def report(*phases: tuple[str, int | None, int | None]) -> dict[str, Any]:
    return {
        "geometry": {"width": 1344, "height": 768, "frames": 243},
        "snapshot": {"device_name": "<card> & co"},
        "phases": [
            {
                "phase": phase,
                "forecast": None if planned is None else {"vram_peak_bytes": planned},
                "measured": {"vram_peak_bytes": used, "ram_peak_bytes": None, "seconds": 2.0},
            }
            for phase, planned, used in phases
        ],
    }


def bars(svg: str, style: str) -> list[int]:
    root = ElementTree.fromstring(svg)
    found = [r for r in root.iter(f"{SVG}rect") if r.get("class") == style]
    return [int(r.get("width", "0")) for r in found][:-1]  # the last is the legend's


def test_bars_are_on_one_scale() -> None:
    svg = memory_svg(report(("encode", 2 * GIB, GIB), ("decode", 4 * GIB, 3 * GIB)))
    plan, real = bars(svg, "plan"), bars(svg, "real")
    assert abs(plan[1] - 2 * plan[0]) <= 1 and abs(real[1] - 3 * real[0]) <= 2
    assert abs(plan[0] - 2 * real[0]) <= 1


def test_more_than_planned_has_its_own_colour() -> None:
    svg = memory_svg(report(("encode", 2 * GIB, GIB), ("decode", 2 * GIB, 3 * GIB)))
    assert len(bars(svg, "over")) == 1 and len(bars(svg, "real")) == 1


def test_an_axis_without_figures_is_left_out_and_unknown_is_not_zero() -> None:
    svg = memory_svg(report(("encode", None, GIB)))
    assert "Device memory" in svg and "Host memory" not in svg
    assert "forecast unknown" in svg and "forecast 0" not in svg


def test_the_picture_is_well_formed_for_any_name_and_serves_both_schemes() -> None:
    svg = memory_svg(report(("encode", GIB, GIB)))
    ElementTree.fromstring(svg)
    assert "&lt;card&gt; &amp; co" in svg and "prefers-color-scheme: dark" in svg
