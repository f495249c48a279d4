"""The plan of a request with its LoRAs: how they are applied is part of it, and named in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import DoesNotFit
from ..planner.adapters import AdapterSizes, choose_adapter_mode, with_adapters
from ..planner.calibration import Calibration
from ..planner.types import ModelFacts
from ..request import LoraChoice, Request
from .loading import bound_parts
from .loraset import ONLINE_TAILS, LoraSet
from .modules import block_index
from .shapes import ModelShapes

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
    return _sizes(online, loras.host_bytes, max(merged.values(), default=0))


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
    return _sizes(online, host_bytes, largest)


def _sizes(
    online: Iterable[tuple[int, int, int]], host_bytes: int, merge_bytes: int
) -> AdapterSizes:
    """online: (out, in, rank) of the linears with a branch."""
    online = list(online)
    return AdapterSizes(
        slot_bytes=sum(rank * ((rows + columns) * BF16 + 4) for rows, columns, rank in online),
        host_bytes=host_bytes,
        row_flops=sum(2.0 * rank * (rows + columns) for rows, columns, rank in online),
        # Outputs are read and written once more; inputs are written unquantised and read again.
        row_bytes=sum(2.0 * BF16 * (rows + columns) for rows, columns, _ in online),
        merge_bytes=merge_bytes,
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
    """See plan_with_sizes, for adapters that are bound already."""
    sizes = sizes_of(loras) if loras else None
    return plan_with_sizes(sizes, wanted, request, facts, calibration, plan, timed=timed)


def _sampling_places(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    phases = document.get("phases", ())
    return [p["placement"] for p in phases if p["phase"].startswith("sample") and p["placement"]]


def plan_with_sizes(
    sizes: AdapterSizes | None,
    wanted: str,
    request: Request,
    facts: ModelFacts,
    calibration: Calibration,
    plan: Callable[[ModelFacts], dict[str, Any]],
    *,
    timed: bool,
) -> dict[str, Any]:
    """The document of `plan`, made for the model with its LoRAs, with a `lora` object and a reason.

    sizes: None when no LoRA acts. wanted: auto, merged or online. A request that fits only when
    merged is merged, unless online was asked for. plan: gives a document, of a refusal too, or
    raises DoesNotFit. Raises what `plan` raises, RequestError for an unknown mode.
    """
    if sizes is None:
        return plan(facts)
    choice = choose_adapter_mode(wanted, sizes, request, facts, calibration, timed=timed)
    may_merge = choice.mode == "online" and wanted != "online"
    document = None
    try:
        document = plan(with_adapters(facts, sizes, choice.mode))
    except DoesNotFit:
        if not may_merge:
            raise
    if document is None or (may_merge and not document.get("fits", True)):
        choice = choose_adapter_mode("merged", sizes, request, facts, calibration, timed=timed)
        document = plan(with_adapters(facts, sizes, choice.mode))
    bytes_named = {
        "block_bytes": sizes.slot_bytes if choice.mode == "online" else 0,
        "host_bytes": sizes.host_bytes,
    }
    reasons = [*document.get("reasons", ()), choice.reason]
    again = max((p["disk_blocks"] for p in _sampling_places(document)), default=0)
    if again and choice.mode == "merged":
        size = again * facts.block_bytes / 1e9
        reasons.append(
            f"LoRA merged: {again} blocks that are read at every step are kept merged on the disk, "
            f"{size:.1f} GB in Lowpeak's folder, where it has room"
        )
    return {**document, "reasons": reasons, "lora": {**choice.as_json(), **bytes_named}}
