"""Forecasts with borrowed card rows beside published end-to-end times: a plausibility check.

`pytest -s` prints the table. The published times are one run each, of another engine on machines
that are not described further; ours should lie between 0.35 and 1.0 of them.
"""

from __future__ import annotations

import pytest

from lowpeak.engine.geometry import Geometry, frames_for_seconds
from lowpeak.engine.planner.calibration import choose_calibration, published_facts
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.request import Request
from lowpeak.engine.snapshot import snapshot_from_options

# card, VRAM GiB, RAM GiB, width, height, seconds, quality, published seconds
RUNS = [
    ("rtx-5090", 32, 64, 1344, 768, 10, "light", 122),
    ("rtx-5060-ti-16", 16, 32, 1344, 768, 10, "light", 486),
    ("rtx-4060-ti-16", 16, 32, 1344, 768, 10, "light", 558),
    ("rtx-4060-ti-8", 8, 64, 1344, 768, 10, "light", 603),
    ("rtx-4060-ti-16", 16, 32, 1920, 1088, 15, "light", 3306),
    ("rtx-5060", 8, 16, 1344, 768, 15, "light", 1367),
    ("rtx-3070-ti", 8, 96, 1344, 768, 10, "light", 749),
    ("rtx-4060", 8, 32, 768, 1344, 15, "light", 1592),
    ("rtx-5070-laptop", 8, 32, 1344, 768, 5, "light", 555),
    ("rtx-pro-5000-72", 72, 128, 768, 1344, 10, "high", 552),
    ("rtx-4070-laptop", 8, 32, 1344, 768, 8, "light", 1031),
    ("rtx-5080-laptop", 16, 32, 1184, 672, 10, "light", 416),
    ("rtx-5090", 32, 32, 1344, 768, 6.6, "max", 336),
    ("rtx-5070-ti", 16, 48, 576, 928, 12.3, "medium", 472),
    ("rtx-4060-ti-16", 16, 32, 1344, 768, 15, "max", 9829),
    ("rtx-3070", 8, 32, 1344, 768, 10, "light", 899),
    ("rtx-4070", 12, 32, 1344, 768, 10, "light", 1680),
]
# Outside the interval, and why.
EXPLAINED = {
    ("rtx-4060-ti-16", 9829): "the published run paged device memory; its authors expect 2890 s",
    ("rtx-4070", 1680): "published through another front end, settings and version unknown",
}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run[0]}-{run[-1]}")
def test_forecasts_of_cards_are_plausible(run: tuple) -> None:  # type: ignore[type-arg]
    card, vram, ram, width, height, seconds, quality, published = run
    snapshot = snapshot_from_options(vram, ram, "windows", card=card)
    rows = choose_calibration(snapshot)
    clip = Geometry(width, height, frames_for_seconds(seconds))
    plan = plan_request(Request(clip, quality=quality), snapshot, published_facts(rows), rows)
    share = plan.total_seconds / published
    why = EXPLAINED.get((card, published), "")
    print(f"| {card} | {width}x{height} {seconds} s {quality} | {published} | "
          f"{plan.total_seconds:.0f} | {share:.2f} | {why} |")  # fmt: skip
    assert 0.35 <= share <= 1.0 or why
