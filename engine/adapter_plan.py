"""A plan's document for a model with LoRAs: which way they are applied is part of it. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .errors import DoesNotFit
from .planner.adapters import AdapterSizes, choose_adapter_mode, with_adapters
from .planner.calibration import Calibration
from .planner.types import ModelFacts
from .request import Request


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
