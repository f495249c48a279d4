"""What a resumed run is given again, held against what was saved.

Nothing of a saved run is exchanged without a word: what went into its latents is either given again
as it was, or left out where it is no longer needed. Nothing is loaded here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .errors import RequestError
from .geometry import plan_geometry
from .planner.passes import sampling_passes
from .request import Request

SIZES = ("width", "height", "seconds", "frames")
SETTINGS = (*SIZES, "quality", "two_pass", "base_steps", "seed")  # what a first pass is made with


def check_settings(saved: Request, given: Mapping[str, Any]) -> None:
    """Raise RequestError when options of a resumed run would make another first pass.

    given: values by name, of SETTINGS, only of options that the user has written. One that says
    what was saved is fine: 10 s and the frames that 10 s have are the same.
    """
    size, passes = saved.geometry, sampling_passes(saved)
    own = {
        "width": size.width_px, "height": size.height_px, "seconds": size.seconds,
        "frames": size.frames, "quality": saved.quality, "two_pass": len(passes) == 2,
        "base_steps": passes[0].steps, "seed": saved.seed,
    }  # fmt: skip
    asked = dict(given)
    if any(name in given for name in SIZES):
        length = {name: given[name] for name in ("seconds", "frames") if name in given}
        width, height = (given.get(name, own[name]) for name in ("width", "height"))
        found, _ = plan_geometry(width, height, **(length or {"frames": size.frames}))
        snapped = {"width": found.width_px, "height": found.height_px, "seconds": found.seconds,
                   "frames": found.frames}  # fmt: skip
        asked |= {name: snapped[name] for name in given if name in SIZES}
    other = [name for name in SETTINGS if name in asked and asked[name] != own[name]]
    if other:
        was = ", ".join(_option(name, own[name]) for name in other)
        now = ", ".join(_option(name, given[name]) for name in other)
        raise RequestError(
            f"the saved run has {was}, now asked is {now}: --resume goes on with what was saved. "
            "Leave that out, or start anew without --resume",
            field=other[0],
        )


def _option(name: str, value: Any) -> str:
    """As it is written on the command line."""
    if name == "two_pass":
        return "--two-pass" if value else "--single-pass"
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"--{name.replace('_', '-')} {shown}"


def check_media(request: Request, saved: Mapping[str, Any]) -> None:
    """Raise RequestError for a keyframe or references that the saved run was not made with.

    saved: the request of its report, which holds no file: only whether and how many.
    """
    for name in ("first", "last"):
        if getattr(request, f"{name}_frame") and not saved.get(f"{name}_frame"):
            raise RequestError(
                f"the saved run has no {name} frame: leave --{name}-frame out, or start anew "
                "without --resume",
                field=f"{name}_frame",
            )
    given, count = len(request.references), saved.get("references", 0)
    if given and given != count:
        raise RequestError(
            f"the saved run has {count} references, now given are {given}: give each of them "
            "again, or none, or start anew without --resume",
            field="references",
        )


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
