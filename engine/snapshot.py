"""One machine, read once: GPU, memory, limits. Gives a HardwareSnapshot; decides nothing.

The GPU comes from gpu.py, host memory from hostmemory.py. Whatever cannot be read is None or a
note. Every source can be injected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .errors import RequestError
from .gpu import Gpu, read_gpu
from .hostmemory import HostMemory, current_system, read_memory
from .planner.types import HardwareSnapshot
from .units import GIB, format_gib, gib_to_bytes
from .wddm import WddmBudget, read_wddm

LEAST_GIB, MAX_VRAM_GIB, MAX_RAM_GIB = 0.25, 1024.0, 65536.0
SYSTEMS = ("linux", "windows", "macos")


def read_snapshot(
    *,
    device_index: int = 0,
    gpu: Callable[[int], Gpu | str] = read_gpu,
    memory: Callable[[str], HostMemory] = read_memory,
    wddm: Callable[[], WddmBudget | str] = read_wddm,
    system: str | None = None,
) -> HardwareSnapshot:
    """This machine now. Without a GPU both VRAM figures are zero and a note says why.

    device_index: in CUDA's order, as torch counts.

    On Windows the display system's budgets bound what the driver calls free and what may be pinned.
    """
    system = system or current_system()
    host = memory(system)
    card = gpu(device_index)
    notes = list(host.notes)
    if isinstance(card, str):
        notes.append(card)
        card = Gpu("", None, 0, 0)
    if card.processes:
        notes.append(f"{card.processes} other process(es) compute on the GPU")
    if card.thermal:
        notes.append("the GPU is slowing down because it is hot: times will be longer")
    if card.cards > 1:
        notes.append(f"{card.cards} GPUs: one is used, the others are not")
    free_bytes, pin_bytes = card.free_bytes, host.pin_limit_bytes
    budget = WddmBudget(None, None)
    if system == "windows" and card.total_bytes:
        told = wddm()
        if isinstance(told, WddmBudget):
            budget = told
        else:
            notes.append(told)
    if budget.local_bytes is not None and budget.local_bytes < free_bytes:
        notes.append(
            f"Windows lets one process use {format_gib(budget.local_bytes)} of the card, although "
            f"{format_gib(free_bytes)} is free"
        )
        free_bytes = budget.local_bytes
    if budget.nonlocal_bytes is not None and pin_bytes is not None:
        pin_bytes = min(pin_bytes, budget.nonlocal_bytes)
    return HardwareSnapshot(
        system=system,
        device_name=card.name,
        capability=card.capability,
        vram_total_bytes=card.total_bytes,
        vram_free_bytes=free_bytes,
        ram_total_bytes=host.total_bytes,
        ram_available_bytes=host.available_bytes,
        pin_limit_bytes=pin_bytes,
        notes=tuple(notes),
        commit_available_bytes=host.commit_available_bytes,
        wddm_local_bytes=budget.local_bytes,
        wddm_nonlocal_bytes=budget.nonlocal_bytes,
        gpu_busy_percent=card.busy_percent,
        gpu_hot=card.thermal,
    )


def cap_snapshot(
    snapshot: HardwareSnapshot, *, vram_gib: float | None = None, ram_gib: float | None = None
) -> HardwareSnapshot:
    """The same machine with less memory, as `--vram-gib` and `--ram-gib` ask. Never more."""
    capped = snapshot
    if vram_gib is not None:
        limit = gib_to_bytes(_capacity("vram_gib", vram_gib, MAX_VRAM_GIB))
        capped = replace(
            capped,
            vram_total_bytes=min(limit, snapshot.vram_total_bytes),
            vram_free_bytes=min(limit, snapshot.vram_free_bytes),
        )
    if ram_gib is not None:
        limit = gib_to_bytes(_capacity("ram_gib", ram_gib, MAX_RAM_GIB))
        capped = replace(
            capped,
            ram_total_bytes=min(limit, snapshot.ram_total_bytes),
            ram_available_bytes=min(limit, snapshot.ram_available_bytes),
        )
    return capped


def snapshot_from_options(
    vram_gib: float | None = None,
    ram_gib: float | None = None,
    system: str | None = None,
    capability: str | None = None,
    link_gbps: float | None = None,
    disk_gbps: float | None = None,
    card: str | None = None,
    *,
    cards: Mapping[str, Mapping[str, Any]] | None = None,
    here: Callable[[], HardwareSnapshot] = read_snapshot,
) -> HardwareSnapshot:
    """The machine that the options of `plan` describe; this machine fills what they leave open.

    link_gbps, disk_gbps: 10^9 bytes a second. `capability` like "8.9". A card brings its memory and
    capability along: a measured one from its own file, others from `cards`, which is
    calibration/cards.toml unless given. RequestError for values that are zero, absurd or contradict
    the card.
    """
    if system is not None and system not in SYSTEMS:
        raise RequestError(f"system {system!r} is none of {', '.join(SYSTEMS)}", field="system")
    own_capability = _capability(capability)
    rates = {
        name: None if value is None else _rate(name, value) * 1e9
        for name, value in (("link_gbps", link_gbps), ("disk_gbps", disk_gbps))
    }
    if vram_gib is not None:
        _capacity("vram_gib", vram_gib, MAX_VRAM_GIB)
    if ram_gib is not None:
        _capacity("ram_gib", ram_gib, MAX_RAM_GIB)
    key, row = _card_row(card, vram_gib, cards)
    if row is not None:
        own_capability = _check_card(key, row, vram_gib, own_capability)
        vram_gib = row["vram_gib"] if vram_gib is None else vram_gib
    local = here() if vram_gib is None or ram_gib is None else None
    base = local or HardwareSnapshot(system or "linux", "", None, 0, 0, 0, 0)
    hypothetical = vram_gib is not None
    vram = gib_to_bytes(vram_gib) if vram_gib is not None else None
    ram = gib_to_bytes(ram_gib) if ram_gib is not None else None
    return replace(
        base,
        system=system or base.system,
        device_name="" if hypothetical else base.device_name,
        capability=own_capability or (None if hypothetical else base.capability),
        vram_total_bytes=base.vram_total_bytes if vram is None else vram,
        vram_free_bytes=base.vram_free_bytes if vram is None else vram,
        ram_total_bytes=base.ram_total_bytes if ram is None else ram,
        ram_available_bytes=base.ram_available_bytes if ram is None else ram,
        pin_limit_bytes=None if ram is not None else base.pin_limit_bytes,
        link_bytes_per_second=rates["link_gbps"] or base.link_bytes_per_second,
        disk_bytes_per_second=rates["disk_gbps"] or base.disk_bytes_per_second,
        card=key or base.card,
    )


def _capacity(name: str, value_gib: float, most_gib: float) -> float:
    if not math.isfinite(value_gib) or not LEAST_GIB <= value_gib <= most_gib:
        raise RequestError(
            f"{name} {value_gib:g} is outside {LEAST_GIB:g}..{most_gib:g} GiB", field=name
        )
    return value_gib


def _rate(name: str, value: float) -> float:
    if not math.isfinite(value) or not 0.001 <= value <= 10_000:
        raise RequestError(f"{name} {value} is outside 0.001..10000 GB/s", field=name)
    return value


def _capability(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    major, _, minor = text.partition(".")
    if not (major.isdigit() and minor.isdigit()) or not 5 <= int(major) <= 20:
        raise RequestError(f"capability {text!r} is not like 8.9", field="capability")
    if int(major) < 8:
        raise RequestError(f"capability {text}: bf16 units need 8.0", field="capability")
    return int(major), int(minor)


def _card_row(
    card: str | None, vram_gib: float | None, cards: Mapping[str, Mapping[str, Any]] | None
) -> tuple[str | None, Mapping[str, Any] | None]:
    """The key of a card and its row; of a measured machine the head of its own file."""
    if card is None:
        return None, None
    from .planner.calibration import find_card, measured_cards, normalise_card, read_cards

    measured = measured_cards().get(normalise_card(card))
    if measured is not None:
        return str(measured["name"]), measured
    table = read_cards() if cards is None else cards
    key = find_card(card, int((vram_gib or 0) * GIB), table)
    if key is None:
        known = ", ".join(("h200", *sorted(table)))
        raise RequestError(f"card {card!r} is unknown; known: {known}", field="card")
    return key, table[key]


def _check_card(
    key: str | None,
    row: Mapping[str, Any],
    vram_gib: float | None,
    capability: tuple[int, int] | None,
) -> tuple[int, int]:
    """The card's capability. RequestError when an option contradicts the card."""
    own = _capability(row["capability"])
    assert own is not None
    if capability is not None and capability != own:
        raise RequestError(
            f"card {key} has capability {row['capability']}, not {capability[0]}.{capability[1]}",
            field="capability",
        )
    if vram_gib is not None and vram_gib > row["vram_gib"] + 0.5:
        raise RequestError(
            f"card {key} has {row['vram_gib']} GiB of VRAM, not {vram_gib:g}", field="vram_gib"
        )
    return own
