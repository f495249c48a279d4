"""Forecasts with borrowed card rows beside published end-to-end times: a plausibility check.

The published times are one run each, submit to saved, of another engine on machines that are not
described further; it takes attention in 8 bits wherever that can be had. Like beside like, ours
should lie between 0.35 and 1.0 of them with attention in 8 bits too: below, a card's row promises
too much; above, we would be the slower engine. Outside, a row says why. What we do unless told
otherwise is exact attention, which is slower, and stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .geometry import Geometry, frames_for_seconds
from .planner.calibration import Calibration, choose_calibration, published_facts
from .planner.calibration import with_quantised_attention as quantised
from .planner.plan import plan_request
from .request import Request
from .snapshot import snapshot_from_options

LEAST, MOST = 0.35, 1.0


@dataclass(frozen=True)
class PublishedRun:
    """One published time. `why` explains a share outside the interval; thermal runs are shown."""

    card: str
    vram_gib: float
    ram_gib: float
    width: int
    height: int
    seconds: float
    quality: str
    published_seconds: float
    why: str = ""


RUNS = (
    PublishedRun("rtx-5090", 32, 64, 1344, 768, 10, "light", 122),
    PublishedRun("rtx-5060-ti-16", 16, 32, 1344, 768, 10, "light", 486),
    PublishedRun("rtx-4060-ti-16", 16, 32, 1344, 768, 10, "light", 558),
    PublishedRun("rtx-4060-ti-8", 8, 64, 1344, 768, 10, "light", 603),
    PublishedRun("rtx-4060-ti-16", 16, 32, 1920, 1088, 15, "light", 3306),
    PublishedRun("rtx-5060", 8, 16, 1344, 768, 15, "light", 1367),
    PublishedRun("rtx-3070-ti", 8, 96, 1344, 768, 10, "light", 749),
    PublishedRun("rtx-4060", 8, 32, 768, 1344, 15, "light", 1592),
    PublishedRun("rtx-5070-laptop", 8, 32, 1344, 768, 5, "light", 555),
    PublishedRun("rtx-pro-5000-72", 72, 128, 768, 1344, 10, "high", 552),
    PublishedRun("rtx-4070-laptop", 8, 32, 1344, 768, 8, "light", 1031),
    PublishedRun("rtx-5080-laptop", 16, 32, 1184, 672, 10, "light", 416),
    PublishedRun("rtx-5090", 32, 32, 1344, 768, 6.6, "max", 336),
    PublishedRun("rtx-5070-ti", 16, 48, 576, 928, 12.3, "medium", 472),
    PublishedRun(
        "rtx-4060-ti-16", 16, 32, 1344, 768, 15, "max", 9829,
        "the published run paged device memory; its authors expect 2890 s",
    ),
    PublishedRun("rtx-3070", 8, 32, 1344, 768, 10, "light", 899),
    PublishedRun(
        "rtx-4070", 12, 32, 1344, 768, 10, "light", 1680,
        "published through another front end, settings and version unknown",
    ),
    PublishedRun(
        "rtx-3070-laptop", 8, 32, 1344, 768, 5, "light", 3821, "hot: a mean clock of 229 MHz"
    ),
    PublishedRun("rtx-a5000-laptop", 16, 128, 1344, 768, 10, "light", 1108, "hot: 882 MHz"),
)  # fmt: skip
NOT_PLANNED = "not planned: two cards of other makers (R9700, Mac M5), which run no CUDA"


def plausibility_row(run: PublishedRun) -> dict[str, Any]:
    """Forecasts of one run on a Windows machine with all of its memory free, exact and in 8 bits,
    and the latter's share of the published time."""
    snapshot = snapshot_from_options(run.vram_gib, run.ram_gib, "windows", card=run.card)
    rows = choose_calibration(snapshot)
    clip = Geometry(run.width, run.height, frames_for_seconds(run.seconds))
    request = Request(clip, quality=run.quality)

    def seconds(known: Calibration) -> float:
        return plan_request(request, snapshot, published_facts(known), known).total_seconds

    exact, alike = seconds(rows), seconds(quantised(rows))
    share = alike / run.published_seconds
    return {
        **vars(run),
        "exact_seconds": exact,
        "exact_share": exact / run.published_seconds,
        "forecast_seconds": alike,
        "share": share,
        "plausible": LEAST <= share <= MOST,
    }


def plausibility_rows(runs: Iterable[PublishedRun] = RUNS) -> list[dict[str, Any]]:
    """All of them."""
    return [plausibility_row(run) for run in runs]


def plausibility_table(rows: Iterable[dict[str, Any]]) -> str:
    """A Markdown line a run."""
    lines = [
        "| card, VRAM/RAM GiB | request | published s | 8-bit attention: forecast s | share | "
        "exact: forecast s | share | |",
        "|---" * 8 + "|",
    ]
    for row in rows:
        note = row["why"] or ("" if row["plausible"] else "outside, unexplained")
        lines.append(
            f"| {row['card']}, {row['vram_gib']:g}/{row['ram_gib']:g} | {row['width']}x"
            f"{row['height']}, {row['seconds']:g} s, {row['quality']} | "
            f"{row['published_seconds']:g} | {row['forecast_seconds']:.0f} | {row['share']:.2f} | "
            f"{row['exact_seconds']:.0f} | {row['exact_share']:.2f} | "
            f"{note} |"
        )
    return "\n".join([*lines, "", NOT_PLANNED])
