"""The card that CUDA will use here, asked in a child process that exits at once (gpu_child.py).

So this process owns no CUDA context, and a driver that hangs or crashes is a reason, not our end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .gpu_child import MASK, NO_DEVICE

GPU_TIMEOUT_SECONDS = 20.0
_CHILD = Path(__file__).with_name("gpu_child.py")
_THERMAL_REASONS = 0x20 | 0x40  # software and hardware thermal slowdown of NVML


@dataclass(frozen=True)
class Gpu:
    """One card as NVML reports it. Bytes; None means unknown."""

    name: str
    capability: tuple[int, int] | None
    total_bytes: int
    free_bytes: int
    driver: str = ""
    processes: int | None = None
    temperature_celsius: int | None = None
    thermal: bool = False
    cards: int = 1
    clock_share: float | None = None  # of the highest clock
    busy_percent: int | None = None


def read_gpu(index: int = 0, *, timeout_seconds: float = GPU_TIMEOUT_SECONDS) -> Gpu | str:
    """The card that CUDA calls `index`, or the reason why there is none."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(_CHILD)],
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as why:
        return f"the GPU could not be asked: {why}"
    return parse_gpu(done.stdout, index)


def parse_gpu(output: str, index: int = 0) -> Gpu | str:
    """What the child printed, as a Gpu or a reason."""
    try:
        data = json.loads(output)
    except json.JSONDecodeError:
        return f"the GPU query printed no JSON: {output[:80]!r}"
    if "error" in data:
        return f"no NVIDIA GPU: {data['error']}"
    cards = data.get("cards", [])
    card = _choose(cards, data.get("cuda"), index)
    if isinstance(card, str):
        return card
    capability = card.get("capability")
    return Gpu(
        card["name"],
        (capability[0], capability[1]) if capability else None,
        card["total"],
        card["free"],
        data.get("driver", ""),
        card.get("processes"),
        card.get("temperature"),
        bool((card.get("throttle") or 0) & _THERMAL_REASONS),
        len(cards),
        card["clock"] / card["clock_most"]
        if card.get("clock") and card.get("clock_most")
        else None,
        card.get("busy"),
    )


def _choose(
    cards: Sequence[Mapping[str, Any]], cuda: Sequence[str] | int | None, index: int
) -> Mapping[str, Any] | str:
    """Card `index` of CUDA's order among NVML's cards; NVML's order where CUDA was not asked.

    cuda: identities in its order, or the number of its error.
    """
    if cuda == NO_DEVICE or (isinstance(cuda, list) and not cuda):
        return f"CUDA shows no GPU: {MASK} is {os.environ.get(MASK)!r}, {len(cards)} found"
    if isinstance(cuda, list):
        if index >= len(cuda):
            return f"no GPU with index {index}: CUDA shows {len(cuda)} of {len(cards)}"
        for card in cards:
            if card["uuid"] == cuda[index] or len(cards) == 1:
                return card
        return f"CUDA's GPU {index} ({cuda[index]}) is none of the {len(cards)} that NVML lists"
    if index >= len(cards):
        return f"no GPU with index {index}: {len(cards)} found"
    return cards[index]
