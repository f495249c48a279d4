"""Why a plan is what it is: sentences for people, and what more memory would change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..errors import DoesNotFit
from ..request import Request
from ..units import GIB, format_gib, format_seconds
from .calibration import Calibration
from .passes import Pass
from .search import TIE, Budget, PassChoice
from .types import HardwareSnapshot, Placement, Plan

_KEYS = {
    "store": "keys and values of the whole clip stay on the device",
    "recompute": "keys and values are computed again for each window instead of kept",
    "host": "keys and values wait in host memory",
}


def request_reasons(
    request: Request, snapshot: HardwareSnapshot, calibration: Calibration, budget: Budget
) -> list[str]:
    """Where the rates and the budgets come from."""
    return [
        *calibration.notes,
        f"VRAM: {format_gib(snapshot.vram_free_bytes)} free, "
        f"{format_gib(budget.vram_margin_bytes)} margin kept",
        f"RAM: {format_gib(snapshot.ram_available_bytes)} available, "
        f"{format_gib(budget.ram_margin_bytes)} margin kept",
    ]


def pass_reasons(item: Pass, choice: PassChoice, vram_peak_bytes: int) -> list[str]:
    """One sentence a decision of a sampling pass. vram_peak_bytes: the phase's, as it is shown."""
    place, step = choice.candidate.placement, choice.step
    where = f"{item.phase} {item.geometry.width_px}x{item.geometry.height_px}"
    blocks = choice.work.facts.blocks
    found = [
        f"{where}: {place.resident_blocks} of {blocks} blocks resident, {place.pinned_blocks} in "
        f"pinned memory, {place.disk_blocks} read from disk at every step",
        f"{where}: {_KEYS[place.keys]}",
    ]
    if place.residual == "host":
        found.append(f"{where}: the residual stream waits in host memory, a chunk at a time")
    if place.transfer_slots:
        kind = "half a block" if place.half_slots else "a block"
        found.append(f"{where}: {place.transfer_slots} transfer slot(s) of {kind}")
    found.append(f"{where}: limited by {_limit(choice)}")
    if step.total > choice.best_seconds:
        loss = 100 * (step.total / choice.best_seconds - 1)
        found.append(
            f"{where}: the fastest placement would be {loss:.2f} % faster; within "
            f"{100 * (TIE - 1):.0f} % the smallest VRAM peak is kept "
            f"({format_gib(vram_peak_bytes)})"
        )
    else:
        found.append(f"{where}: the fastest placement that fits")
    return found


def _limit(choice: PassChoice) -> str:
    step = choice.step
    if step.limited_by == "compute":
        busiest = max(step.link, step.disk) / step.total
        return f"compute; link and disk are at most {100 * busiest:.0f} % busy and hide behind it"
    stall = step.link_stall if step.limited_by == "link" else step.disk_stall
    return f"the {step.limited_by}: {format_seconds(stall)} of {format_seconds(step.total)} waiting"


def place_in_words(place: Placement) -> str:
    """'store, 3 resident, 47 pinned, 2 slots'."""
    words: list[str] = [place.keys]
    if place.residual == "host":
        words.append("x on the host")
    words.append(f"{place.resident_blocks} resident")
    if place.pinned_blocks:
        words.append(f"{place.pinned_blocks} pinned")
    if place.disk_blocks:
        words.append(f"{place.disk_blocks} from disk")
    if place.transfer_slots:
        words.append(f"{place.transfer_slots}{' half' if place.half_slots else ''} slots")
    return ", ".join(words)


def what_more_memory_changes(
    planned: Plan | None,
    snapshot: HardwareSnapshot,
    plan: Callable[[HardwareSnapshot], Plan],
    *,
    more_vram_gib: float = 2,
    more_ram_gib: float = 8,
) -> list[str]:
    """What more VRAM or RAM would buy, by planning it. `planned` of None: the request was refused.

    plan: plans the same request on another snapshot; may raise DoesNotFit.
    """
    sentences = []
    for axis, more_gib in (("VRAM", more_vram_gib), ("RAM", more_ram_gib)):
        more = int(more_gib * GIB)
        if axis == "VRAM":
            bigger = replace(
                snapshot,
                vram_total_bytes=snapshot.vram_total_bytes + more,
                vram_free_bytes=snapshot.vram_free_bytes + more,
            )
        else:
            bigger = replace(
                snapshot,
                ram_total_bytes=snapshot.ram_total_bytes + more,
                ram_available_bytes=snapshot.ram_available_bytes + more,
            )
        label = f"{more_gib:g} GiB more {axis}"
        try:
            other = plan(bigger)
        except DoesNotFit:
            sentences.append(f"{label}: would still not fit")
            continue
        if planned is None:
            sentences.append(f"{label}: would fit, {format_seconds(other.total_seconds)}")
            continue
        gain = planned.total_seconds - other.total_seconds
        if gain < 0.01 * planned.total_seconds:
            sentences.append(f"{label}: changes nothing worth naming")
            continue
        high = other.phase("sample_high")
        words = place_in_words(high.placement) if high and high.placement else ""
        sentences.append(f"{label}: {format_seconds(gain)} faster ({words})")
    return sentences
