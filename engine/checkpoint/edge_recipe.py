"""What an edge cache is written from, and where its files stand while it is not finished."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..model.config import ModelConfig
from .parts import Part
from .tables import Times

STATE_FILE = ".convert.json"
Progress = Callable[[int, int, str], None]  # done, all, what


class SourceModel(Protocol):
    """A model to write. Tensors unquantised, names local, on any device."""

    config: ModelConfig

    def parts(self, block: int | None) -> Iterator[Part]:
        """A block in a few parts, `adaln_proj.linear.weight` and `.bias` together in one.

        None is the root, under diffusers names; its time embedder comes whole, in one part.
        """
        ...

    def projection_digest(self, block: int) -> str | None:
        """A name for the block's AdaLN projection, where one is known without hashing it."""
        ...


@dataclass(frozen=True)
class EdgeRecipe:
    """What to write.

    weight_format: 'fp8-rowwise' | 'fp8-tensor' | 'int8-convrot'.
    tables: times of each schedule that gets prepared AdaLN tables.
    source_id: names the input in the manifest; a resumed attempt must have the same.
    device: where to quantise; None leaves tensors where the source puts them.
    resume_key: whatever else must be equal for an attempt to be resumed; not in the manifest.
    """

    weight_format: str
    tables: Sequence[Times]
    source_id: str
    projections: bool = False
    device: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    resume_key: str = ""

    def as_json(self) -> dict[str, Any]:
        """What must be equal for an attempt to be resumed."""
        return {
            "weight_format": self.weight_format,
            "tables": [[list(step) for step in times] for times in self.tables],
            "source_id": self.source_id,
            "projections": self.projections,
            "resume_key": self.resume_key,
        }


def block_path(folder: Path, block: int) -> Path:
    """A block's file."""
    return folder / "blocks" / f"{block:02d}.safetensors"


def table_folder(folder: Path, index: int) -> Path:
    """Where tables wait until the digest of all projections gives their folder a name."""
    return folder / f".tables-{index}"


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """The whole file or none of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(path)
