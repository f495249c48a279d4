"""Draws the capacity grid beside the published one: docs/benchmarks/capacity.svg and .json.

    .venv/bin/python benchmarks/grid.py [--out DIR]

Forecasts of the planner with the H200's rows, at the size the published grid was measured at.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from lowpeak.engine.capacity_grid import capacity_rows, capacity_svg, cells_of, read_published
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.types import HardwareSnapshot, ModelFacts
from lowpeak.engine.request import Request

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = ROOT / "tests" / "data" / "published_capacity.csv"


def main() -> None:
    """Write both files and print the margin over the published cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    options = parser.parse_args()
    request = Request(Geometry(1344, 768, 243), base_steps=8, two_pass=False)
    calibration = choose_calibration(HardwareSnapshot("linux", "NVIDIA H200", (9, 0), 0, 0, 0, 0))
    rows = capacity_rows(request, ModelFacts(), calibration)
    ours, published = cells_of(rows), read_published(PUBLISHED)
    name = "Seconds a step at 1344x768, 243 frames, one H200 with capped memory"
    panels = [("Lowpeak, forecast", ours), ("another engine, published 2026-09-15", published)]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "capacity.svg").write_text(capacity_svg(name, panels))
    document = {"bench": "grid", "kind": "forecast", "notes": list(calibration.notes), "rows": rows}
    (options.out / "capacity.json").write_text(
        json.dumps(document, separators=(",", ":")).replace("},{", "},\n{") + "\n"
    )
    gains = [
        theirs / mine
        for cell, theirs in published.items()
        if (mine := ours.get(cell)) is not None and theirs is not None
    ]
    print(
        f"{len(gains)} cells; published / forecast: least {min(gains):.3f}, "
        f"mean {sum(gains) / len(gains):.3f}, most {max(gains):.3f}"
    )


if __name__ == "__main__":
    main()
