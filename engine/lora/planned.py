"""The plan of a request with its LoRAs: how they are applied is part of it, and named in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DoesNotFit
from ..planner.adapters import AdapterSizes, choose_adapter_mode, with_adapters
from ..planner.calibration import Calibration
from ..planner.types import ModelFacts
from ..request import Request
from .loraset import LoraSet
from .modules import block_index

BF16 = 2


def sizes_of(loras: LoraSet) -> AdapterSizes:
    """What the adapters of a request add, for the planner. A block's largest figures count."""
    online = loras.online_sizes().values()
    merged: dict[int, int] = {}
    for name, items in loras.differences.items():
        block = block_index(name)
        if block is not None and len(items[0].part.size) == 2:
            rows, columns = items[0].part.size
            merged[block] = merged.get(block, 0) + rows * columns
    return AdapterSizes(
        slot_bytes=loras.slot_bytes(),
        host_bytes=loras.host_bytes,
        row_flops=sum(2.0 * rank * (rows + columns) for rows, columns, rank in online),
        # Outputs are read and written once more; inputs are written unquantised and read again.
        row_bytes=sum(2.0 * BF16 * (rows + columns) for rows, columns, _ in online),
        merge_bytes=max(merged.values(), default=0),
    )


def plan_with_loras(
    loras: LoraSet,
    wanted: str,
    request: Request,
    facts: ModelFacts,
    calibration: Calibration,
    plan: Callable[[ModelFacts], dict[str, Any]],
    *,
    timed: bool,
) -> dict[str, Any]:
    """The document of `plan`, made for the model with its LoRAs, with a `lora` object and a reason.

    wanted: auto, merged or online. A request that fits only when merged is merged, unless online
    was asked for. Raises what `plan` raises, RequestError for an unknown mode.
    """
    if not loras:
        return plan(facts)
    sizes = sizes_of(loras)
    choice = choose_adapter_mode(wanted, sizes, request, facts, calibration, timed=timed)
    try:
        document = plan(with_adapters(facts, sizes, choice.mode))
    except DoesNotFit:
        if choice.mode != "online" or wanted == "online":
            raise
        choice = choose_adapter_mode("merged", sizes, request, facts, calibration, timed=timed)
        document = plan(with_adapters(facts, sizes, choice.mode))
    bytes_named = {
        "block_bytes": sizes.slot_bytes if choice.mode == "online" else 0,
        "host_bytes": sizes.host_bytes,
    }
    reasons = [*document["reasons"], choice.reason]
    return {**document, "reasons": reasons, "lora": {**choice.as_json(), **bytes_named}}
