"""`models list`: what a request needs, what is here, what is missing and what it costs to fetch.

Files count by what their headers say, in any of the folders given (ComfyUI's and ours). A
transformer that is here in another format serves too: the least download wins over the best fit,
and the difference is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from ..units import format_gib
from .catalogue import LICENCES, Part, choose_weight_format, parts_for
from .edge_needs import TASKS, saving_of, schedules_for
from .index import Checkpoint, open_checkpoint
from .recognise import FoundModel, find_models

SUBFOLDERS = (
    "lowpeak",
    "diffusion_models",
    "unet",
    "text_encoders",
    "clip",
    "vae",
    "loras",
    "latent_upscale_models",
)
CHECKPOINT_MARKS = (
    "blocks",
    "cache",
    "rowwise",
    "int8-convrot",
    "h3-base",
    "transformer",
    "text_encoder",
    "audio_vae",
)


@dataclass(frozen=True)
class Need:
    """One part of the request. `present` serves it; an empty one means: fetch `part`."""

    part: Part
    present: tuple[FoundModel, ...]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The item object of `models list --json`."""
        licence = LICENCES[self.part.licence]
        return {
            "key": self.part.key,
            "title": self.part.title,
            "kind": self.part.kind,
            "missing": not self.present,
            "present": [found_json(item) for item in self.present],
            "size_bytes": self.part.size_bytes,
            "source": f"https://huggingface.co/{self.part.repo}",
            "revision": self.part.revision,
            "licence": licence.title,
            "licence_url": licence.url,
            "note": self.note,
        }


@dataclass(frozen=True)
class Inventory:
    """The answer of `models list`."""

    quality: str
    weight_format: str
    needs: tuple[Need, ...]
    others: tuple[FoundModel, ...]  # of this family, not used by the request

    @property
    def missing(self) -> tuple[Part, ...]:
        """What `models pull` would fetch."""
        return tuple(need.part for need in self.needs if not need.present)

    def as_json(self) -> dict[str, Any]:
        """The document of `models list --json`."""
        return {
            "quality": self.quality,
            "weight_format": self.weight_format,
            "ready": not self.missing,
            "download_bytes": sum(part.size_bytes or 0 for part in self.missing),
            "items": [need.as_json() for need in self.needs],
            "others": [found_json(item) for item in self.others],
        }

    def text(self) -> str:
        """The same in words, ASCII."""
        lines = []
        for need in self.needs:
            if need.present:
                where = ", ".join(f"{item.path} ({item.detail})" for item in need.present)
                lines.append(f"here     {need.part.title}: {where}")
            else:
                size = need.part.size_bytes
                cost = "size unknown" if size is None else format_gib(size)
                licence = LICENCES[need.part.licence].title
                lines.append(
                    f"missing  {need.part.title}: {cost} from {need.part.repo} ({licence})"
                )
            if need.note:
                lines.append(f"         {need.note}")
        for item in self.others:
            problem = f": {item.problem}" if item.problem else ""
            lines.append(f"also     {item.path} ({item.detail}){problem}")
        total = sum(part.size_bytes or 0 for part in self.missing)
        lines.append("Ready." if not self.missing else f"To fetch: {format_gib(total)}.")
        return "\n".join(lines)


def model_folders(models: Path) -> list[Path]:
    """The folders below one models folder that may hold parts.

    A folder that is a checkpoint itself, or that has none of the usual subfolders, is the answer.
    """
    found = [models / name for name in SUBFOLDERS if (models / name).is_dir()]
    itself = any((models / name).exists() for name in CHECKPOINT_MARKS)
    return [models] if itself or not found else found


def take_inventory(
    folders: Sequence[Path],
    *,
    quality: str = "light",
    capability: tuple[int, int] | None = None,
    system: str = "linux",
) -> Inventory:
    """Compare what a request of `quality` needs on this card with what `folders` hold."""
    found = find_models([folder for folder in folders if folder.exists()])
    best = choose_weight_format(capability, system)
    transformers = [item for item in found if item.kind == "transformer" and not item.problem]
    stages = [item for item in found if item.kind == "vdn_stage"]
    chosen, opened, refusal = _choose_transformer(transformers, stages, best)
    needs = []
    for part in parts_for(quality, best):
        if part.kind == "transformer":
            needs.append(Need(part, chosen, refusal or _format_note(chosen, best, opened)))
        elif part.kind == "tables":
            needs.append(_tables_need(part, chosen, opened, quality))
        else:
            present = [item for item in found if item.kind == part.kind and not item.problem]
            needs.append(Need(part, tuple(present[:1])))
    used = {item.path for need in needs for item in need.present}
    others = tuple(item for item in found if item.path not in used)
    return Inventory(quality, best, tuple(needs), others)


def found_json(item: FoundModel) -> dict[str, Any]:
    """A found model as JSON."""
    return {
        "kind": item.kind,
        "path": str(item.path),
        "detail": item.detail,
        "size_bytes": item.size_bytes,
        "weight_format": item.weight_format,
        "problem": item.problem,
    }


def _choose_transformer(
    transformers: Sequence[FoundModel], stages: Sequence[FoundModel], best: str
) -> tuple[tuple[FoundModel, ...], Checkpoint | None, str]:
    """The transformer to use, opened; what refused the others is the third."""
    refusal = ""
    ordered = sorted(transformers, key=lambda item: item.weight_format != best)
    for item in ordered:
        edge = item.detail.startswith("edge")
        tries = [None] if edge else [stage.path for stage in stages]
        for stage in tries:
            try:
                opened = open_checkpoint(item.path, stage=stage)
            except CheckpointError as refused:
                refusal = str(refused)
                continue
            return (item, *(s for s in stages if s.path == stage)), opened, ""
        if not tries:
            refusal = f"{item.path} is the dense base model; it needs a VDN stage beside it."
    return (), None, refusal


def _format_note(chosen: Sequence[FoundModel], best: str, opened: Checkpoint | None) -> str:
    if opened is None:
        return ""
    if opened.weight_format != best and opened.layout == "edge":
        return f"{opened.weight_format} is here; {best} is the better fit for this card."
    return saving_of(opened) or ""


def _tables_need(
    part: Part, chosen: tuple[FoundModel, ...], opened: Checkpoint | None, quality: str
) -> Need:
    if opened is None:
        return Need(part, ())
    try:
        times = schedules_for([quality], TASKS)
        complete = all(opened.has_times(item) for item in times)
    except CheckpointError as damage:
        return Need(part, (), str(damage))
    return Need(part, chosen[:1] if complete else ())
