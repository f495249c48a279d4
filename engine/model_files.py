"""`lowpeak models ...` as plain functions: options in, (JSON document, text, exit code) out.

The folders are ComfyUI's and ours: those given, else LOWPEAK_MODELS (several with the path
separator), else `models` in the working folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .checkpoint.catalogue import PARTS, Part
from .checkpoint.edge_needs import EDGE_FORMATS, schedules_for
from .checkpoint.hub import plan_pull, pull
from .checkpoint.inventory import Inventory, model_folders, take_inventory
from .errors import CheckpointError, RequestError
from .options import check_device_name
from .request import QUALITIES

FOLDERS_VARIABLE = "LOWPEAK_MODELS"
Answer = tuple[dict[str, Any], str, int]
Progress = Callable[[int, int, str], None]  # done, all, what


def models_roots(folder: Path | None) -> list[Path]:
    """The models folders to look in; the first is where `pull` puts things."""
    if folder is not None:
        return [folder]
    named = os.environ.get(FOLDERS_VARIABLE)
    if named:
        return [Path(item) for item in named.split(os.pathsep) if item]
    return [Path("models")]


def list_files(
    folder: Path | None = None,
    *,
    quality: str = "light",
    capability: tuple[int, int] | None = None,
    system: str = "linux",
) -> Answer:
    """`models list`: exit 0 when nothing is missing, 4 otherwise."""
    found = _inventory(folder, quality, capability, system)
    absent = [str(root) for root in models_roots(folder) if not root.exists()]
    text = "".join(f"note     {root} is not there, so nothing in it was found\n" for root in absent)
    document = {**found.as_json(), "folders_not_there": absent}
    return document, text + found.text(), 0 if not found.missing else 4


def pull_files(
    folder: Path | None = None,
    *,
    only: Sequence[str] = (),
    quality: str = "light",
    capability: tuple[int, int] | None = None,
    system: str = "linux",
    accept_licence: bool = False,
    dry_run: bool = False,
    show_plan: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    endpoint: str | None = None,
    token: str | None = None,
) -> Answer:
    """`models pull`: what is missing, or the parts named in `only` (keys of `models list`).

    show_plan: gets the plan in words before anything starts. dry_run: stop there. Raises
    RequestError for an unknown part or unaccepted licence, CheckpointError, DoesNotFit.
    """
    root = models_roots(folder)[0]
    parts = _named_parts(only) or _inventory(folder, quality, capability, system).missing
    if not parts:
        return {"fetched": [], "bytes": 0, "present": []}, "Nothing is missing.", 0
    plan = plan_pull(parts, root, endpoint=endpoint, token=token)
    if show_plan is not None:
        show_plan(plan.text())
    if dry_run:
        return plan.as_json(), plan.text(), 0
    done = pull(
        plan, accept_licence=accept_licence, endpoint=endpoint, token=token, progress=progress
    )
    text = f"Fetched {len(done['fetched'])} files, {done['bytes'] / 1e9:.2f} GB, to {root}."
    return {**done, "plan": plan.as_json()}, text, 0


def verify_files(
    folder: Path | None = None, *, hashes: bool = False, progress: Progress | None = None
) -> Answer:
    """`models verify`: exit 0 for sound files, 4 for any error. Several folders: all of them."""
    from .checkpoint.verify import verify

    answers = [verify(item, hashes=hashes, progress=progress) for item in models_roots(folder)]
    document = answers[0].as_json() if len(answers) == 1 else {
        "sound": all(item.sound for item in answers),
        "folders": [item.as_json() for item in answers],
    }  # fmt: skip
    sound = all(item.sound for item in answers)
    return document, "\n".join(item.text() for item in answers), 0 if sound else 4


def convert_files(
    source: Path,
    target: Path,
    *,
    format: str = "edge-fp8-rowwise",
    qualities: Sequence[str] = ("light",),
    stage: Path | None = None,
    projections: bool = False,
    device: str | None = None,
    progress: Progress | None = None,
) -> Answer:
    """`models convert`. qualities: levels that get prepared AdaLN tables."""
    if format not in EDGE_FORMATS:  # said before PyTorch is imported, as is the next one
        known = ", ".join(EDGE_FORMATS)
        raise RequestError(f"format {format!r} is none of {known}", field="format")
    for given in (source, stage):
        if given is not None and not given.exists():
            raise CheckpointError("checkpoint is not there", file=given)
    if target.exists() and target.samefile(source):
        raise RequestError(
            f"{target} is the checkpoint itself: a conversion beside its files would be taken for "
            "it from then on. Give another folder",
            field="target",
        )
    times = schedules_for(qualities)
    if device is not None:
        check_device_name(device)
        from .device import choose_device

        device = choose_device(device).type
    from .checkpoint.convert import convert, describe

    result = convert(
        source,
        target,
        format=format,
        tables=times,
        stage=stage,
        projections=projections,
        device=device,
        progress=progress,
    )
    return result, describe(result), 0


def _inventory(
    folder: Path | None, quality: str, capability: tuple[int, int] | None, system: str
) -> Inventory:
    if quality not in QUALITIES:
        raise RequestError(
            f"quality {quality!r} is none of {', '.join(QUALITIES)}", field="quality"
        )
    folders = [item for root in models_roots(folder) for item in model_folders(root)]
    return take_inventory(folders, quality=quality, capability=capability, system=system)


def _named_parts(only: Sequence[str]) -> tuple[Part, ...]:
    known = {part.key: part for part in PARTS}
    for key in only:
        if key not in known:
            raise RequestError(f"part {key!r} is none of {', '.join(known)}", field="only")
    return tuple(known[key] for key in only)
