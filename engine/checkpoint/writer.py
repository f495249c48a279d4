"""Write a model in the edge layout, block by block, and resume where an earlier attempt stopped.

The input is any model that gives unquantised blocks (a toy, or an opened checkpoint). Work for a
block: quantise its linears in tiles of rows, evaluate its AdaLN tables, write both, forget it. A
block comes in parts; the next part is read, and the block before is written, beside that work.
Every file appears under its final name only when it is whole; the manifest comes last, so a folder
with a manifest is a finished one. The same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from ...kernels.reference.quantise import (
    convrot_group,
    quantise_fp8_rowwise,
    quantise_fp8_tensor,
    quantise_int8_convrot,
)
from ...kernels.weights import FP8_MAX
from ..errors import CheckpointError
from ..model.config import ModelConfig
from ..sampling.schedules import table_directory, table_identity
from .ahead import read_ahead
from .edge import FORMAT_IDS
from .header import read_header, write_tensors
from .names import (
    ADALN,
    COMPONENTS,
    MODALITIES,
    block_linears,
    linear_shapes,
    root_linears,
    root_shapes,
)
from .sources import read_json
from .tables import Times, block_table, time_features

STATE_FILE = ".convert.json"
TILE_ROWS = 256  # a tile of float32 stays in the caches
DIGEST_STRIDE = 61
Progress = Callable[[int, int, str], None]  # done, all, what


class SourceModel(Protocol):
    """A model to write. Tensors unquantised, names local, on any device."""

    config: ModelConfig

    def root_tensors(self) -> dict[str, Tensor]:
        """The root's tensors under diffusers names."""
        ...

    def block_parts(self, block: int) -> Iterator[dict[str, Tensor]]:
        """A block's tensors, `adaln_proj.linear.weight` and `.bias` included, in a few parts.

        A part's tensors need to last only until the part after next is asked for.
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


def write_edge(
    folder: Path, model: SourceModel, recipe: EdgeRecipe, progress: Progress | None = None
) -> None:
    """Write (or finish) an edge cache in `folder`. Raises CheckpointError for other leftovers."""
    config = model.config
    folder.mkdir(parents=True, exist_ok=True)
    state = _open_state(folder, recipe)

    def report(done: int, what: str) -> None:
        if progress is not None:
            progress(done, config.layers, what)

    report(0, "root")
    moments = sorted({t for times in recipe.tables for step in times for t in step})
    features = _write_root(folder, model, recipe, moments, state)
    todo = [
        block
        for block in range(config.layers)
        if str(block) not in state["projections"] or not _whole(folder, block, recipe)
    ]
    _write_blocks(folder, model, recipe, todo, (moments, features), state, report)
    report(config.layers, "manifest")
    _finish(folder, config, recipe, state)


def _write_blocks(
    folder: Path,
    model: SourceModel,
    recipe: EdgeRecipe,
    todo: Sequence[int],
    timing: tuple[Sequence[float], Tensor],
    state: dict[str, Any],
    report: Callable[[int, str], None],
) -> None:
    """Write the blocks of `todo`: one part is read ahead, one block is written behind."""

    def parts() -> Iterator[tuple[int, dict[str, Tensor]]]:
        for block in todo:
            for tensors in model.block_parts(block):
                yield block, {name: _to(tensor, recipe.device) for name, tensor in tensors.items()}

    behind: Future[None] | None = None
    with ThreadPoolExecutor(1, "lowpeak-write") as writer, read_ahead(parts()) as ahead:
        for block, group in groupby(ahead, key=itemgetter(0)):
            report(block, f"block {block}")
            made = _made(model, recipe, block, (tensors for _, tensors in group), timing)
            if behind is not None:
                behind.result()
            behind = writer.submit(_keep_block, folder, recipe, block, made, state)
            del made
        if behind is not None:
            behind.result()


def _write_root(
    folder: Path,
    model: SourceModel,
    recipe: EdgeRecipe,
    moments: Sequence[float],
    state: dict[str, Any],
) -> Tensor:
    """Write the root; gives what the AdaLN projections read at `moments`.

    It comes first and is let go: the root of the full model takes two gigabytes.
    """
    root = {name: _to(tensor, recipe.device) for name, tensor in model.root_tensors().items()}
    features = time_features(root, model.config, moments)
    embedding = {k: v for k, v in root.items() if k.startswith("time_embedder.")}
    state["embedding"] = digest_of(embedding)
    stored = quantise_tensors(root, root_linears(model.config), recipe.weight_format)
    write_tensors(folder / "root.safetensors", stored)
    _write_json(folder / STATE_FILE, state)
    return features


@dataclass(frozen=True)
class _Block:
    """A block ready to be written. digest: a name for its AdaLN projection."""

    stored: dict[str, Tensor]
    tables: list[dict[str, Tensor]]
    projection: dict[str, Tensor]
    digest: str


def _made(
    model: SourceModel,
    recipe: EdgeRecipe,
    block: int,
    parts: Iterable[dict[str, Tensor]],
    timing: tuple[Sequence[float], Tensor],
) -> _Block:
    """Quantise a block and evaluate its tables. timing: moments and features."""
    moments, features = timing
    linears = block_linears(model.config)
    stored: dict[str, Tensor] = {}
    tables: list[dict[str, Tensor]] = []
    projection: dict[str, Tensor] = {}
    digest = model.projection_digest(block)
    for tensors in parts:
        if f"{ADALN}.weight" in tensors:
            weight, bias = tensors.pop(f"{ADALN}.weight"), tensors.pop(f"{ADALN}.bias")
            # All times in one product: a time then has the same row in every schedule's table.
            table = block_table(weight, bias, features, pruned=False)
            table = table.reshape(len(moments), MODALITIES, COMPONENTS * model.config.hidden)
            for times in recipe.tables:
                places = [[moments.index(t) for t in step] for step in times]
                rows = {f"step_{k}": table[place].flatten(0, 1) for k, place in enumerate(places)}
                tables.append(rows)
            # Adapters change all rows, so a few of them tell projections apart (26 GB otherwise).
            digest = digest or digest_of({"weight": weight[::DIGEST_STRIDE], "bias": bias})
            if recipe.projections:
                projection = {f"{ADALN}.weight": weight.clone(), f"{ADALN}.bias": bias.clone()}
            del weight, bias, table
        here = [name for name in linears if f"{name}.weight" in tensors]
        made = quantise_tensors(tensors, here, recipe.weight_format)
        # What was not made new lies in memory that the part after next is read into.
        stored |= {k: t.clone() if t is tensors.get(k) else t for k, t in made.items()}
    assert digest is not None and len(tables) == len(recipe.tables)
    return _Block(stored, tables, projection, digest)


def _keep_block(
    folder: Path, recipe: EdgeRecipe, block: int, made: _Block, state: dict[str, Any]
) -> None:
    """Write a block, its tables, and its projection if asked for; then note that it is done."""
    prefix = f"transformer_blocks.{block}."
    for i, rows in enumerate(made.tables):
        write_tensors(_table_folder(folder, i) / f"{block:02d}.safetensors", rows)
    if recipe.projections:
        write_tensors(
            folder / "adaln" / f"{block:02d}.safetensors",
            {f"{prefix}{name}": tensor for name, tensor in made.projection.items()},
        )
    write_tensors(
        _block_path(folder, block), {f"{prefix}{name}": t for name, t in made.stored.items()}
    )
    state["projections"][str(block)] = made.digest
    _write_json(folder / STATE_FILE, state)


def quantise_tensors(
    tensors: dict[str, Tensor], linears: Sequence[str], weight_format: str
) -> dict[str, Tensor]:
    """Replace the linears' weights by codes and scales, as an edge file stores them.

    Weights are taken out of `tensors` one by one, so that the peak stays at one weight's workspace.
    A linear that is quantised already in this format keeps its codes.
    """
    suffix = "weight_int8" if weight_format == "int8-convrot" else "weight_fp8"
    found: dict[str, Tensor] = {}
    for name in linears:
        if f"{name}.{suffix}" in tensors:
            continue
        codes, scale = quantise_tiles(tensors.pop(f"{name}.weight"), weight_format)
        found[f"{name}.{suffix}"], found[f"{name}.weight_scale"] = codes, scale
    return found | tensors


def quantise_tiles(weight: Tensor, weight_format: str) -> tuple[Tensor, Tensor]:
    """Codes and scale of one weight [N, K], in tiles of rows: equal to quantising it at once."""
    tiles = weight.split(TILE_ROWS)
    if weight_format == "fp8-tensor":
        # The reference takes one scale from the tile it sees: give it the largest value's row.
        largest = torch.stack([tile.abs().amax() for tile in tiles]).amax()
        _, scale = quantise_fp8_tensor(largest.reshape(1, 1))
        parts = [_codes_at(tile, scale) for tile in tiles]
        return torch.cat([part.view(torch.uint8) for part in parts]).view(parts[0].dtype), scale
    quantise = quantise_int8_convrot if weight_format == "int8-convrot" else quantise_fp8_rowwise
    pairs = [quantise(tile) for tile in tiles]
    codes = torch.cat([codes.view(torch.uint8) for codes, _ in pairs]).view(pairs[0][0].dtype)
    return codes, torch.cat([scale for _, scale in pairs], 0 if codes.dtype == torch.int8 else 1)


def digest_of(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, dtypes, shapes and bytes, in order of names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        data = tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8)
        digest.update(memoryview(data.numpy()))
    return digest.hexdigest()


def _codes_at(tile: Tensor, scale: Tensor) -> Tensor:
    return (tile / scale.to(tile.dtype)).clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn)


def _finish(
    folder: Path, config: ModelConfig, recipe: EdgeRecipe, state: Mapping[str, Any]
) -> None:
    """Names of the tables, config and, last, the manifest."""
    parts = {
        "embedding": state["embedding"],
        "projections": [state["projections"][str(i)] for i in range(config.layers)],
    }
    weights = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    tables = []
    for i, times in enumerate(recipe.tables):
        name = table_directory(times, weights, channels=config.hidden)
        if _table_folder(folder, i).is_dir() and not (folder / name).is_dir():
            _table_folder(folder, i).rename(folder / name)
        identity = table_identity(times, weights, channels=config.hidden)
        tables.append({"directory": name, "identity": identity})
    root = root_shapes(config)
    shapes = {name: list(root[f"{name}.weight"]) for name in root_linears(config)}
    _write_json(folder / "config" / "base_transformer.json", config.as_json())
    transform = None if config.vdn is None else config.vdn.as_json()
    _write_json(folder / "config" / "stage_model_spec.json", {"transform": transform})
    for block in range(config.layers):
        shapes |= {
            f"transformer_blocks.{block}.{name}": list(shape)
            for name, shape in linear_shapes(config).items()
        }
    _write_json(
        folder / "manifest.json",
        {
            "format": FORMAT_IDS[recipe.weight_format],
            "precision": "int8" if recipe.weight_format == "int8-convrot" else "fp8",
            "scale_granularity": "tensor" if recipe.weight_format == "fp8-tensor" else "row",
            **_rotation(recipe.weight_format, shapes),
            "groups": [
                {"name": f"transformer_blocks.{i}", "file": f"blocks/{i:02d}.safetensors"}
                for i in range(config.layers)
            ],
            "linears": {
                name: {"weight_shape": shape, "input_dtype": "bfloat16"}
                for name, shape in shapes.items()
            },
            "source_id": recipe.source_id,
            "adaln_sources": {"weights": weights, **parts},
            "adaln_tables": tables,
            **recipe.extra,
        },
    )
    (folder / STATE_FILE).unlink(missing_ok=True)


def _rotation(weight_format: str, shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """The rotation that int8 codes are in; widths whose group is not 256 are named."""
    if weight_format != "int8-convrot":
        return {}
    groups = {str(shape[1]): convrot_group(shape[1]) for shape in shapes.values()}
    unusual = {width: group for width, group in groups.items() if group != 256}
    rotation: dict[str, Any] = {"kind": "convrot", "group": 256}
    return {"rotation": rotation | ({"groups": unusual} if unusual else {})}


def _open_state(folder: Path, recipe: EdgeRecipe) -> dict[str, Any]:
    path = folder / STATE_FILE
    if (folder / "manifest.json").is_file():
        raise CheckpointError(
            "the target folder already holds a finished checkpoint",
            file=folder,
            remedy="Choose another folder.",
        )
    # A round trip through JSON: floats and tuples compare as they will be read back.
    wanted = json.loads(json.dumps(recipe.as_json()))
    if path.is_file():
        state: dict[str, Any] = read_json(path)
        if state.get("recipe") != wanted:
            raise CheckpointError(
                "the target folder holds an unfinished conversion of something else",
                file=folder,
                expected=wanted["source_id"],
                found=state.get("recipe", {}).get("source_id"),
                remedy="Choose another folder, or delete this one.",
            )
        return state
    if any(folder.glob("blocks/*")):
        raise CheckpointError(
            "the target folder holds blocks of unknown origin", file=folder,
            remedy="Choose another folder, or delete this one.",
        )  # fmt: skip
    return {"recipe": wanted, "projections": {}}


def _whole(folder: Path, block: int, recipe: EdgeRecipe) -> bool:
    """Whether every file of a block is there and has a sound header."""
    paths = [_block_path(folder, block)]
    paths += [
        _table_folder(folder, i) / f"{block:02d}.safetensors" for i in range(len(recipe.tables))
    ]
    try:
        for path in paths:
            read_header(path)
    except CheckpointError:
        return False
    return True


def _block_path(folder: Path, block: int) -> Path:
    return folder / "blocks" / f"{block:02d}.safetensors"


def _table_folder(folder: Path, index: int) -> Path:
    """Where tables wait until the digest of all projections gives their folder a name."""
    return folder / f".tables-{index}"


def _to(tensor: Tensor, device: str | None) -> Tensor:
    return tensor if device is None else tensor.to(device)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(path)
