"""The configurations of `lowpeak bench forecast --cases`, most wanted first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import RequestError

USES = ("step", "calibration", "held-out", "floor")
TEACHING = ("step", "calibration")  # rows of these may become constants; the others never do
ON_DEVICE: Mapping[str, Any] = {
    "keys": "recompute", "residual": "device", "transfer_slots": 3, "half_slots": True,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One configuration.

    vram_gib, ram_gib: caps, None for none; a RAM cap of its own needs `own_process`.
    repeats: measured steps after one that warms up. use: one of USES. floor: also a floor.
    place: a placement that is run instead of the planned one, its blocks all pinned.
    seconds: about what it takes on the H200, the first reading of the shared blocks apart.
    """

    name: str
    width: int
    height: int
    frames: int
    vram_gib: float | None
    ram_gib: float | None
    repeats: int = 1
    use: str = "held-out"
    own_process: bool = False
    seconds: float = 10.0
    floor: bool = False
    place: Mapping[str, Any] | None = None


def _step(name: str, size: tuple[int, int, int], vram: float | None, **other: Any) -> Case:
    return Case(name, *size, vram, **{"ram_gib": None, "repeats": 5, "use": "step", **other})


_REFERENCE, _LONG, _WIDE = (1344, 768, 243), (1344, 768, 345), (1920, 1088, 345)

CASES = (
    _step("uncapped", _REFERENCE, None, seconds=62),  # reads the blocks that later rows share
    _step("vram8", _REFERENCE, 8, seconds=47),
    _step("vram4-ram16", _REFERENCE, 4, ram_gib=16, own_process=True, floor=True, seconds=72),
    _step("vram8-ram8", _REFERENCE, 8, ram_gib=8, own_process=True, floor=True, seconds=56),
    _step("frames345", _LONG, 8, seconds=68),
    _step("first-pass", (672, 384, 243), 8, seconds=12),
    _step("vram4-device", _REFERENCE, 4, repeats=2, own_process=True, place=ON_DEVICE, seconds=38),
    _step("vram6", _REFERENCE, 6, seconds=51),
    _step("vram8-ram16", _REFERENCE, 8, ram_gib=16, own_process=True, seconds=56),
    _step("wide", _WIDE, 8, repeats=1, seconds=72),
    Case("small-320", 320, 320, 22, 24, 64, 2, "calibration", seconds=4),
    Case("small-480", 480, 480, 124, 24, 64, 2, "calibration", seconds=5),
    Case("small-960", 960, 960, 39, 24, 64, 2, "calibration", seconds=6),
    Case("recomputed", 1344, 768, 90, 3.8, 64, 1, "calibration", seconds=9),
    Case("288x480x22", 288, 480, 22, 4, 32, 2, seconds=4),
    Case("512x288x90", 512, 288, 90, 4, 24, 2, seconds=4),
    Case("672x384x362", 672, 384, 362, 4, 32, seconds=8),
    Case("768x768x124", 768, 768, 124, 6, 48, seconds=6),
    Case("480x832x362", 480, 832, 362, 5, 32, seconds=11),
    Case("960x544x243", 960, 544, 243, 12, 48, seconds=9),
    Case("1184x672x192", 1184, 672, 192, 16, 32, seconds=11),
    Case("768x1344x175", 768, 1344, 175, 6, 32, seconds=13),
    Case("1280x704x209", 1280, 704, 209, 4, 32, seconds=14),
    Case("1920x1088x90", 1920, 1088, 90, 8, 64, seconds=18),
    Case("960x544x141", 960, 544, 141, 6, 16, own_process=True, seconds=22),
    Case("1184x672x73", 1184, 672, 73, 10, 10, 2, own_process=True, seconds=22),
    Case("floor-6-16-345", *_LONG, 6, 16, 1, "floor", own_process=True, floor=True, seconds=38),
)  # fmt: skip


def choose_cases(names: str) -> list[Case]:
    """Cases by name, by use (USES) or "all", comma separated, in the order named."""
    found: list[Case] = []
    for name in names.split(","):
        some = [
            case
            for case in CASES
            if name in ("all", case.name, case.use) or (name == "floor" and case.floor)
        ]
        if not some:
            known = ", ".join(["all", *USES, *(case.name for case in CASES)])
            raise RequestError(f"case {name!r} is unknown; known: {known}", field="cases")
        found += [case for case in some if case not in found]
    return found


def teaches(row: Mapping[str, Any]) -> bool:
    """Whether a bench row may become constants: never a held-out one, marked or by its size."""
    held = {(case.width, case.height, case.frames) for case in CASES if case.use == "held-out"}
    size = (row.get("width"), row.get("height"), row.get("frames"))
    return row.get("use", "step") in TEACHING and size not in held
