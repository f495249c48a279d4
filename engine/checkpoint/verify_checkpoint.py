"""`models verify` for whole checkpoints: their parts, tables, and samples of their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ...kernels.weights import Weight
from ..errors import CheckpointError
from . import comfy, edge, openvdn
from .adapters import SPEC_FILES
from .findings import Finding, from_error
from .header import TensorFile
from .index import Checkpoint, open_checkpoint
from .walk import Walk

if TYPE_CHECKING:
    from torch import Tensor

SAMPLED_ROWS = 32
# Scales of trained weights lie between 1e-6 and 1e-1; these limits leave two decades to each side.
SCALE_RANGE = (1e-8, 10.0)


def adapter_findings(seen: Walk) -> Iterator[Finding]:
    """Adapter folders without their one weight file or its spec."""
    for path in sorted(here for here in seen.folders if here.parent.name == "adapters"):
        specs = [name for name in SPEC_FILES if (path / name).is_file()]
        weights = list(path.glob("*.safetensors"))
        if specs == [SPEC_FILES[1]]:
            yield Finding(
                "note", f"the adapter's spec is named {SPEC_FILES[1]}", str(path / SPEC_FILES[1]),
                remedy=f"It is read as {SPEC_FILES[0]}; nothing to do.",
            )  # fmt: skip
        if not specs:
            yield Finding(
                "error", "an adapter without its spec", str(path),
                expected=" or ".join(SPEC_FILES), found="neither",
                remedy="Fetch that file alone; the weights are not affected.",
            )  # fmt: skip
        if len(weights) != 1:
            yield Finding(
                "error", "an adapter folder must hold one weight file", str(path),
                expected="1 .safetensors", found=str(len(weights)),
                remedy="Fetch the adapter's weights." if not weights else "Move the others away.",
            )  # fmt: skip


def checkpoint_findings(
    folder: Path, *, samples: bool, progress: Callable[[int, int, str], None] | None
) -> Iterator[Finding]:
    """Every checkpoint in a folder: whether it opens, its tables, samples of its numbers."""
    caches = edge.find_caches(folder)
    targets: list[Path] = list(caches)
    stage = openvdn.stage_folder(folder)
    if not caches and (openvdn.base_folder(folder) or (stage and _has_comfy(folder))):
        targets.append(folder)
    elif not caches and stage is not None:
        yield Finding(
            "note", "a VDN stage without its base model", str(stage),
            expected="h3-base/transformer or a ComfyUI single file", found="neither",
            remedy="It serves a base model that lies in another folder.",
        )  # fmt: skip
    for target in targets:
        yield from _nesting(target, folder)
        try:
            checkpoint = edge.open_edge(target, folder) if caches else open_checkpoint(target)
        except CheckpointError as damage:
            yield from_error(damage, target)
            continue
        yield from _tables(checkpoint)
        if samples:
            yield from _samples(checkpoint, progress)


def _has_comfy(folder: Path) -> bool:
    try:
        return comfy.find_comfy(folder) is not None
    except CheckpointError:
        return False  # damaged headers are reported file by file


def _nesting(cache: Path, folder: Path) -> Iterator[Finding]:
    names = cache.relative_to(folder).parts
    for outer, inner in pairwise(names):
        if outer == inner:
            yield Finding(
                "note",
                "a folder inside a folder of the same name",
                str(cache),
                expected=str(Path(*names[: names.index(outer) + 1])),
                found=str(Path(*names)),
                remedy="It is found where it is; move it up to keep paths short.",
            )


def _tables(checkpoint: Checkpoint) -> Iterator[Finding]:
    for item in checkpoint.table_sets:
        if not item.times:
            yield Finding(
                "note", "AdaLN tables of an unknown schedule", str(item.folder),
                expected="a schedule named in the manifest, or one of the published ones",
                found=item.name,
                remedy="They are not used. Fetch the manifest that belongs to them.",
            )  # fmt: skip
            continue
        try:
            item.check()
        except CheckpointError as damage:
            yield from_error(damage, item.folder)
    if not checkpoint.table_sets and not checkpoint.has_projections:
        yield Finding(
            "error", "neither AdaLN tables nor projections", str(checkpoint.path),
            expected="adaln-tables-v2-* or adaln/NN.safetensors", found="neither",
            remedy="Fetch the tables: `lowpeak models pull`.",
        )  # fmt: skip


def _samples(
    checkpoint: Checkpoint, progress: Callable[[int, int, str], None] | None
) -> Iterator[Finding]:
    """Statistics of a few rows of every big tensor, and of all small ones."""
    for block, file in enumerate(checkpoint.block_files):
        if progress is not None:
            progress(block, len(checkpoint.block_files), file.path.name)
        for name in file.tensors:
            yield from _examine(str(file.path), name, sample_rows(file, name))
    if checkpoint.root_file is not None:
        for name in checkpoint.root_file.tensors:
            rows = sample_rows(checkpoint.root_file, name)
            yield from _examine(str(checkpoint.root_file.path), name, rows)
    if not checkpoint.block_files:
        for name, value in checkpoint.load_block(0).items():
            tensor = value.codes if isinstance(value, Weight) else value
            yield from _examine(str(checkpoint.path), f"transformer_blocks.0.{name}", tensor)


def sample_rows(file: TensorFile, name: str, rows: int = SAMPLED_ROWS) -> Tensor:
    """Up to `rows` rows of a tensor, spread evenly, first and last among them."""
    span = file.tensors[name]
    if len(span.shape) < 2 or span.shape[0] <= rows or name.endswith("_scale"):
        return file.read(name)
    import torch

    row_bytes = span.nbytes // span.shape[0]
    places = [(span.shape[0] - 1) * i // (rows - 1) for i in range(rows)]
    data = bytearray()
    with open(file.path, "rb") as source:
        for place in places:
            source.seek(span.start_byte + place * row_bytes)
            data += source.read(row_bytes)
    flat = torch.frombuffer(data, dtype=torch.uint8).view(span.torch_dtype)
    return flat.reshape(rows, *span.shape[1:])


def _examine(file: str, name: str, tensor: Tensor) -> Iterator[Finding]:
    remedy = "The bytes are wrong although the size is right: delete this file and fetch it again."
    import torch

    values = tensor.float()
    if not torch.isfinite(values).all():
        bad = int((~torch.isfinite(values)).sum())
        yield Finding("error", "values that are no numbers", file, name, "finite values",
                      f"{bad} of {values.numel()} sampled", remedy)  # fmt: skip
        return
    if name.endswith("_scale"):
        low, high = float(values.min()), float(values.max())
        if low < SCALE_RANGE[0] or high > SCALE_RANGE[1]:
            yield Finding(
                "error", "scale out of range", file, name,
                f"{SCALE_RANGE[0]:g}..{SCALE_RANGE[1]:g}", f"{low:g}..{high:g}", remedy,
            )  # fmt: skip
        return
    if tensor.dim() >= 2 and tensor.shape[0] > 1:
        rows = values.reshape(values.shape[0], -1)
        empty = int((rows.abs().amax(dim=1) == 0).sum())
        if empty == rows.shape[0]:
            yield Finding("error", "all zero", file, name, "weights",
                          f"{empty} sampled rows of zeros", remedy)  # fmt: skip
        elif empty * 4 > rows.shape[0]:
            yield Finding("error", "many rows are zero", file, name, "few or none",
                          f"{empty} of {rows.shape[0]} sampled rows", remedy)  # fmt: skip
    elif values.numel() > 1 and name.endswith("norm.weight") and float(values.abs().max()) == 0:
        yield Finding("error", "all zero", file, name, "a norm's weights", "zeros", remedy)
