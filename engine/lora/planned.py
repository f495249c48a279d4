"""The plan of a request with its LoRAs: how they are applied is part of it, and named in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..adapter_plan import plan_with_sizes
from ..planner.adapters import AdapterSizes, low_rank_sizes
from ..planner.calibration import Calibration
from ..planner.types import ModelFacts
from ..request import LoraChoice, Request
from .loading import bound_parts
from .loraset import ONLINE_TAILS, LoraSet
from .modules import block_index
from .shapes import ModelShapes


def sizes_of(loras: LoraSet) -> AdapterSizes:
    """What the adapters of a request add, for the planner. A block's largest figures count."""
    online = loras.online_sizes().values()
    merged: dict[int, int] = {}
    for name, items in loras.differences.items():
        block = block_index(name)
        if block is not None and len(items[0].part.size) == 2:
            rows, columns = items[0].part.size
            merged[block] = merged.get(block, 0) + rows * columns
    return low_rank_sizes(online, loras.host_bytes, max(merged.values(), default=0))


def sizes_of_files(choices: Sequence[LoraChoice], model: ModelShapes) -> AdapterSizes | None:
    """The same from headers alone, for a forecast; None when no LoRA does anything.

    A difference that is all zero counts here. Raises what reading and binding a header raises.
    """
    ranks: dict[str, dict[int, int]] = {}
    shapes: dict[str, tuple[int, int]] = {}
    merged: dict[int, dict[str, int]] = {}
    host_bytes = 0
    for choice in choices:
        if not choice.strength:
            continue
        host_bytes += Path(choice.file).stat().st_size
        for part in bound_parts(choice.file, model):
            block = block_index(part.parameter)
            if block is None or len(part.size) != 2:
                continue
            rows, columns = part.size
            merged.setdefault(block, {})[part.parameter] = rows * columns
            layer = part.layer
            branch = layer.kind == "lora" and "magnitude" not in layer.tensors
            if branch and part.module.endswith(ONLINE_TAILS):
                module = part.module.split(".", 2)[2]
                shapes[module] = (rows, columns)
                held = ranks.setdefault(module, {})
                held[block] = held.get(block, 0) + layer.rank
    if not host_bytes:
        return None
    online = [(*shapes[name], max(held.values())) for name, held in ranks.items()]
    largest = max((sum(items.values()) for items in merged.values()), default=0)
    return low_rank_sizes(online, host_bytes, largest)


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
    """See plan_with_sizes, for adapters that are bound already."""
    sizes = sizes_of(loras) if loras else None
    return plan_with_sizes(sizes, wanted, request, facts, calibration, plan, timed=timed)
