"""What issue 9 wants of the check table, and which of it a table does not reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

TARGETS = {"colour_and_shape": 90.0, "motion": 85.0, "pitch": 85.0, "first_psnr_db": 22.0}
TARGETS |= {"last_psnr_db": 22.0, "style": 90.0}  # percent, decibels; of every row that has them
SAME_WITHIN = 3.0  # points of percent, of rows whose pictures should be the same
PAIRS = (  # rows that should agree
    ("bf16", "fp8-rowwise"),
    ("bf16", "fp8-tensor"),
    ("bf16", "int8"),
    ("39-frames", "39-frames-fp8-rowwise"),  # windows and the linear branch
    ("39-frames", "39-frames-fp8-tensor"),
    ("39-frames", "39-frames-int8"),
    ("single-pass-512", "two-pass-light-512"),
    ("night-merged", "night-online"),
    ("outline-merged", "outline-online"),
)


def missed(rows: Sequence[dict[str, Any]]) -> set[tuple[str, str]]:
    """(variant, name) of every target that a row does not reach.

    A name `x as in y` says that share x is not within `SAME_WITHIN` of the one of row y; a row that
    a pair needs and that is not there is missed as `not measured`.
    """
    held = {row["variant"]: row for row in rows}
    found = {
        (variant, name)
        for variant, row in held.items()
        for name, least in TARGETS.items()
        if name in row and row[name] < least
    }
    found |= {(name, "not measured") for pair in PAIRS for name in pair if name not in held}
    for one, other in PAIRS:
        if one in held and other in held:
            found |= {
                (other, f"{name} as in {one}")
                for name in ("colour_and_shape", "motion", "pitch", "style")
                if name in held[one] and name in held[other]
                and abs(held[one][name] - held[other][name]) > SAME_WITHIN
            }  # fmt: skip
    return found
