"""Any full checkpoint -> an edge layout with AdaLN tables, block by block.

The source is opened like any other, so merging, splitting and naming are the loader's; here blocks
are taken out of a foreign quantisation if need be and handed to the edge writer. Parts of two
blocks are in memory at a time. A second call goes on where the first one stopped.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...kernels.reference.quantise import dequantise_fp8, dequantise_int8_convrot
from ..errors import CheckpointError, DoesNotFit, RequestError, Shortage
from ..model.config import ModelConfig
from .edge import CACHES
from .edge_needs import EDGE_FORMATS, output_bytes, schedules_for
from .edge_recipe import EdgeRecipe, Progress
from .index import Checkpoint, open_checkpoint
from .parts import Part
from .tables import Times
from .writer import write_edge

SPARE_BYTES = 256 << 20


@dataclass(frozen=True)
class CheckpointModel:
    """An opened checkpoint as a model to write in `weight_format`."""

    checkpoint: Checkpoint
    weight_format: str

    @property
    def config(self) -> ModelConfig:
        """Sizes of the model."""
        return self.checkpoint.config

    def parts(self, block: int | None) -> Iterator[Part]:
        """See writer.SourceModel. Codes of the wanted format stay as they are."""
        reader: Any = self.checkpoint.reader
        for part in reader.parts(block):
            yield part.then(self._plain)

    def projection_digest(self, block: int) -> str | None:
        """See writer.SourceModel."""
        return None

    def _plain(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.checkpoint.weight_format == self.weight_format:
            return tensors
        found: dict[str, Tensor] = {}
        for name in list(tensors):
            module, _, part = name.rpartition(".")
            if part == "weight_scale":
                continue
            if part in ("weight_fp8", "weight_int8"):
                read = dequantise_fp8 if part == "weight_fp8" else dequantise_int8_convrot
                plain = read(tensors.pop(name), tensors[f"{module}.weight_scale"])
                found[f"{module}.weight"] = plain.to(torch.bfloat16)
            else:
                found[name] = tensors.pop(name)
        return found


def convert(
    source: str | Path,
    target: str | Path,
    *,
    format: str = "edge-fp8-rowwise",
    tables: Sequence[Times] | None = None,
    stage: str | Path | None = None,
    projections: bool = False,
    device: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write `source` as an edge cache below `target`; gives what was written, JSON-ready.

    tables: schedules to prepare, `schedules_for()` by default. projections: keep the AdaLN
    projections too (26 GB), for other schedules and for LoRAs that change AdaLN. device: where to
    merge and quantise ("cuda" is faster; a code may differ by one there, where a sum rounds in
    another order). Raises CheckpointError for a source whose weights cannot be converted,
    DoesNotFit when the disk is too small, RequestError for options.
    """
    if format not in EDGE_FORMATS:
        known = ", ".join(EDGE_FORMATS)
        raise RequestError(f"format {format!r} is none of {known}", field="format")
    kind = EDGE_FORMATS[format]
    checkpoint = open_checkpoint(source, stage=stage)
    if not checkpoint.has_projections:
        raise CheckpointError(
            "this checkpoint has no AdaLN projections, so its tables cannot be made again",
            file=checkpoint.path,
            expected="an OpenVDN folder or a ComfyUI file",
            found=f"{checkpoint.layout} {checkpoint.weight_format}",
            remedy="Fetch the wanted edge cache instead: `lowpeak models pull`.",
        )
    if checkpoint.pruned:
        raise CheckpointError(
            "a pruned file has lost its time embedder, which an edge layout needs for the output",
            file=checkpoint.path,
            expected="time_embedder",
            found="adaln_t_table",
            remedy="Use the file of the same model that is not pruned.",
        )
    folder = Path(target) / CACHES[kind]
    times = schedules_for() if tables is None else tuple(tables)
    need = output_bytes(checkpoint.config, kind, times, projections=projections)
    _check_disk(Path(target), need)
    if device is not None and hasattr(checkpoint.reader, "device"):
        checkpoint = replace(checkpoint, reader=replace(checkpoint.reader, device=device))
    recipe = EdgeRecipe(
        kind,
        times,
        source_id(checkpoint),
        projections=projections,
        device=device,
        extra={"generator": "lowpeak models convert"},
        resume_key=_identity(checkpoint),
    )
    stages = write_edge(folder, CheckpointModel(checkpoint, kind), recipe, progress)
    written = open_checkpoint(folder)
    return {
        "source": str(checkpoint.path),
        "source_layout": checkpoint.layout,
        "target": str(folder),
        "format": format,
        "blocks": written.config.layers,
        "tables": len(written.table_sets),
        "bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        "source_bytes": sum(file.identity.size_bytes for file in checkpoint.files),
        "stages": stages,
    }


def source_id(checkpoint: Checkpoint) -> str:
    """A name for the input that does not depend on where it lies."""
    headers = sorted(file.header_sha256 for file in checkpoint.files)
    digest = hashlib.sha256(json.dumps(headers).encode()).hexdigest()
    return f"{checkpoint.layout}-{digest[:24]}"


def _identity(checkpoint: Checkpoint) -> str:
    """Changes when any source file is replaced: blocks of two sources must not mix."""
    files = [
        (file.path.name, file.identity.size_bytes, file.identity.mtime_ns)
        for file in checkpoint.files
    ]
    return hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()


def _check_disk(target: Path, need_bytes: int) -> None:
    existing = next(folder for folder in (target, *target.parents) if folder.exists())
    there = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    free = shutil.disk_usage(existing).free
    if free + there < need_bytes + SPARE_BYTES:
        raise DoesNotFit([Shortage("disk", "convert", need_bytes + SPARE_BYTES, free + there)])


def describe(result: Mapping[str, Any]) -> str:
    """The result of `convert` in a sentence."""
    return (
        f"Wrote {result['blocks']} blocks and {result['tables']} table sets "
        f"({result['bytes'] / 1e9:.2f} GB) to {result['target']}."
    )
