"""What a resumed run is given again, held against what was saved.

Nothing of a saved run is exchanged without a word: what went into its latents is either given again
as it was, or left out where it is no longer needed. Nothing is loaded here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .errors import RequestError
from .request import Request


def acting_loras(bound: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """SHA-256 and strength of each LoRA that does something, in an order that is not the user's.

    bound: binding reports, as a run's report holds them.
    """
    acting = [
        {"sha256": str(item.get("identity", "")), "strength": float(item["strength"])}
        for item in bound
        if item.get("strength")
    ]
    return sorted(acting, key=lambda item: (item["sha256"], item["strength"]))


def check_loras(request: Request, saved: Iterable[Mapping[str, Any]]) -> None:
    """Raise RequestError when `request` gives LoRAs that are not those of the saved run.

    saved: binding reports of the saved run. Reads the files; they may have other names now.
    """
    given = [_read(item.file, item.strength) for item in request.loras]
    if given and acting_loras(given) != acting_loras(saved):
        raise RequestError(
            f"the saved run has {_named(saved)}, now given is {_named(given)} (compared by content "
            "and strength): give each --lora again as it was, or start anew without --resume",
            field="lora",
        )


def require_loras(request: Request, saved: Iterable[Mapping[str, Any]]) -> None:
    """Raise RequestError when the saved run has LoRAs and `request` none: files are not kept."""
    if not request.loras and acting_loras(saved):
        raise RequestError(
            f"the saved run has {_named(saved)}, and no file of a LoRA is kept: give each --lora "
            "again",
            field="lora",
        )


def _read(file: str, strength: float) -> dict[str, Any]:
    from .lora.values import file_identity

    try:
        identity = file_identity(file)
    except OSError as refused:
        raise RequestError(f"{file} cannot be read: {refused.strerror}", field="lora") from refused
    return {"file": Path(file).name, "identity": identity, "strength": strength}


def _named(loras: Iterable[Mapping[str, Any]]) -> str:
    """'the LoRA a.safetensors at strength 1', 'no LoRA'."""
    acting = [item for item in loras if item.get("strength")]
    each = [f"{item.get('file', '?')} at strength {item['strength']:g}" for item in acting]
    return f"the LoRA {' and '.join(each)}" if each else "no LoRA"
