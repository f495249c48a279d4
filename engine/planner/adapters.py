"""LoRAs in a plan: online or merged, decided by what each costs in seconds. Pure.

    merged   blocks x merge of a block, once, while blocks are read
    online   steps x rows x blocks x (products in bf16 + outputs and inputs read once more)

Both are shapes over calibrated rates (lora_seconds.py). Where nothing is low rank, or no time is
known (a CPU), the weights are merged. Before a file is at hand its rank stands in for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import RequestError
from ..request import Request
from ..units import format_seconds
from .calibration import Calibration
from .lora_seconds import branch_seconds, merge_block_seconds
from .passes import sampling_passes
from .types import ModelFacts
from .workload import workload

MODES = ("auto", "merged", "online")
USUAL_RANK = 32  # of a LoRA whose file is not at hand
BF16 = 2
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
        lora_row_flops=sizes.row_flops if online else 0.0,
        lora_row_bytes=sizes.row_bytes if online else 0.0,
        lora_merged_bytes=0 if online else sizes.merge_bytes,
    )


def low_rank_sizes(
    online: Iterable[tuple[int, int, int]], host_bytes: int, merge_bytes: int
) -> AdapterSizes:
    """What branches of a block's linears add. online: (out, in, rank) of each linear with one."""
    online = list(online)
    return AdapterSizes(
        slot_bytes=sum(rank * ((rows + columns) * BF16 + 4) for rows, columns, rank in online),
        host_bytes=host_bytes,
        row_flops=sum(2.0 * rank * (rows + columns) for rows, columns, rank in online),
        # Outputs are read and written once more; inputs are written unquantised and read again.
        row_bytes=sum(2.0 * BF16 * (rows + columns) for rows, columns, _ in online),
        merge_bytes=merge_bytes,
    )


def assumed_sizes(request: Request, facts: ModelFacts) -> AdapterSizes | None:
    """The LoRAs of a request that name a rank and no file: on attention and feed-forward of every
    block. None where none acts.
    """
    ranks = [item.rank for item in request.loras if item.rank and item.strength]
    if not ranks:
        return None
    hidden, width, ffn = facts.hidden, facts.heads * facts.head_dim, facts.ffn
    shapes = [*3 * [(width, hidden)], (hidden, width), (2 * ffn, hidden), (hidden, ffn)]
    online = [(rows, columns, sum(ranks)) for rows, columns in shapes]
    factors = sum(sum(ranks) * (rows + columns) * BF16 for rows, columns in shapes)
    merged = sum(rows * columns for rows, columns in shapes)
    return low_rank_sizes(online, facts.blocks * factors, merged)


def online_seconds(
    sizes: AdapterSizes, request: Request, facts: ModelFacts, calibration: Calibration
) -> float:
    """Seconds that branches add to all steps of a request."""
    rows = sum(
        item.steps * workload(request, item.geometry, facts).rows
        for item in sampling_passes(request)
    )
    return facts.blocks * branch_seconds(sizes.row_flops, sizes.row_bytes, rows, calibration)


def merge_seconds(sizes: AdapterSizes, facts: ModelFacts, calibration: Calibration) -> float:
    """Seconds that merging adds to the first reading of all blocks."""
    return facts.blocks * merge_block_seconds(sizes.merge_bytes, calibration)


def planned_mode(document: Mapping[str, Any]) -> str:
    """The way a plan's document names; merged where it names none."""
    return str((document.get("lora") or {}).get("mode", "merged"))
