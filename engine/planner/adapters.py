"""LoRAs in a plan: online or merged, decided by what each costs in seconds. Pure.

    merged   blocks x merge of a block, once, while blocks are read
    online   steps x rows x blocks x (products in bf16 + outputs and inputs read once more)

Both are shapes times calibrated rates. A measured row (docs/benchmarks/lora-h200.json) corrects the
branches; merging came out as shaped (61 ms a block, 54 planned). Where nothing is low rank, or no
time is known (a CPU), the weights are merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import RequestError
from ..request import Request
from ..units import format_seconds
from .calibration import Calibration
from .passes import sampling_passes
from .types import ModelFacts
from .workload import workload

MODES = ("auto", "merged", "online")
MERGE_PASSES = 60  # bytes of device traffic for a stored byte: tiles in float32, several kernels
TILE_SECONDS = 200e-6  # launches of one merged tile
TILE_ELEMENTS = 2 << 20
BRANCH_SHARE = 1.49  # measured over shaped seconds of a branch: 10.0 ms a block at rank 64
MERGE_BYTES = 256_000_000  # of the allocator, measured: docs/benchmarks/lora-h200.json


@dataclass(frozen=True)
class AdapterSizes:
    """What adapters add, from shapes alone.

    slot_bytes: factors that travel with every block when online. host_bytes: factors on the host
    while the model runs. row_flops, row_bytes: of one row through one block's branches.
    merge_bytes: stored bytes of the weights that change in a block.
    """

    slot_bytes: int = 0
    host_bytes: int = 0
    row_flops: float = 0.0
    row_bytes: float = 0.0
    merge_bytes: int = 0


@dataclass(frozen=True)
class AdapterChoice:
    """The way that was chosen, and why in a sentence. Seconds of a whole request."""

    mode: str
    reason: str
    online_seconds: float
    merge_seconds: float

    def as_json(self) -> dict[str, Any]:
        """The `lora` object of a plan."""
        return dict(vars(self))


def choose_adapter_mode(
    wanted: str,
    sizes: AdapterSizes,
    request: Request,
    facts: ModelFacts,
    calibration: Calibration,
    *,
    timed: bool = True,
) -> AdapterChoice:
    """How a request's LoRAs are applied. wanted: auto, merged or online. timed: on a card.

    Raises RequestError for another word.
    """
    if wanted not in MODES:
        raise RequestError(f"LoRA mode {wanted!r} is none of {', '.join(MODES)}", field="lora_mode")
    online = online_seconds(sizes, request, facts, calibration)
    merged = merge_seconds(sizes, facts, calibration)
    costs = f"online about {format_seconds(online)} in all steps, merging {format_seconds(merged)}"
    if not sizes.slot_bytes:
        mode, why = "merged", "nothing in them is of low rank on a large linear"
    elif wanted != "auto":
        mode, why = wanted, "as asked" + (f" ({costs})" if timed else "")
    elif not timed:
        mode, why = "merged", "times on a CPU are unknown"
    else:
        mode, why = ("online" if online < merged else "merged"), costs
    return AdapterChoice(mode, f"LoRA {mode}: {why}", online, merged)


def with_adapters(facts: ModelFacts, sizes: AdapterSizes, mode: str) -> ModelFacts:
    """The model's sizes with what its LoRAs add."""
    online = mode == "online"
    return replace(
        facts,
        lora_block_bytes=sizes.slot_bytes if online else 0,
        lora_host_bytes=sizes.host_bytes,
        lora_merge_bytes=MERGE_BYTES if sizes.merge_bytes else 0,
    )


def online_seconds(
    sizes: AdapterSizes, request: Request, facts: ModelFacts, calibration: Calibration
) -> float:
    """Seconds that branches add to all steps of a request."""
    row = sizes.row_flops / calibration["rates.gemm_bf16"]
    row += sizes.row_bytes / calibration["rates.copy"]
    rows = sum(
        item.steps * workload(request, item.geometry, facts).rows
        for item in sampling_passes(request)
    )
    return BRANCH_SHARE * facts.blocks * rows * row


def merge_seconds(sizes: AdapterSizes, facts: ModelFacts, calibration: Calibration) -> float:
    """Seconds that merging adds to the first reading of all blocks."""
    tiles = sizes.merge_bytes / TILE_ELEMENTS
    moved = MERGE_PASSES * sizes.merge_bytes / calibration["rates.copy"]
    link = 2 * sizes.merge_bytes / calibration["rates.link"]
    return facts.blocks * (moved + link + tiles * TILE_SECONDS)


def planned_mode(document: Mapping[str, Any]) -> str:
    """The way a plan's document names; merged where it names none."""
    return str((document.get("lora") or {}).get("mode", "merged"))
