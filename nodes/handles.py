"""What travels between our nodes: frozen facts and paths, never tensors.

ComfyUI keeps node outputs in its cache, so whatever a handle holds stays in its memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from ..engine.request import LoraChoice, Request


@dataclass(frozen=True)
class LoraHandle:
    """One adapter of a model handle. `identity` changes when the file does."""

    file: Path
    strength: float
    allow_partial: bool
    identity: str


@dataclass(frozen=True)
class ModelHandle:
    """A checkpoint folder, the memory it may use, and its LoRAs. Budgets in bytes; None: all free.

    `facts` is what the checkpoint's headers say, ready for JSON. keep_warm: blocks may stay in host
    memory between runs.
    """

    checkpoint: Path
    identity: str
    vram_bytes: int | None = None
    ram_bytes: int | None = None
    loras: tuple[LoraHandle, ...] = ()
    keep_warm: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    def with_lora(self, lora: LoraHandle) -> ModelHandle:
        """The same model with one more LoRA."""
        return replace(self, loras=(*self.loras, lora))

    @property
    def lora_choices(self) -> tuple[LoraChoice, ...]:
        """The LoRAs as a request lists them."""
        return tuple(LoraChoice(str(item.file), item.strength) for item in self.loras)


@dataclass(frozen=True)
class PlanHandle:
    """A request and the plan made for it. `document` is the JSON of `lowpeak plan`."""

    request: Request
    document: Mapping[str, Any]


@dataclass(frozen=True)
class RunHandle:
    """Names a run of the run book."""

    run_id: str


def model_to_json(model: ModelHandle) -> dict[str, Any]:
    """A model handle for a worker process; facts are read again there."""
    loras = [{**vars(item), "file": str(item.file)} for item in model.loras]
    return {**vars(model), "checkpoint": str(model.checkpoint), "loras": loras, "facts": {}}


def model_from_json(data: Mapping[str, Any]) -> ModelHandle:
    """The handle of `model_to_json`."""
    loras = tuple(LoraHandle(**{**item, "file": Path(item["file"])}) for item in data["loras"])
    return ModelHandle(**{**data, "checkpoint": Path(data["checkpoint"]), "loras": loras})


def file_identity(path: Path) -> str:
    """Digest of names, sizes and times of change of a file, or of every file below a folder.

    Cheap enough to ask before every prompt; the engine checks contents when it opens a file.
    """
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for item in files:
        stat = item.stat()
        if not S_ISDIR(stat.st_mode):
            name = item.relative_to(path.parent).as_posix()
            digest.update(f"{name}:{stat.st_size}:{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()
