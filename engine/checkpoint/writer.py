"""Write a model in the edge layout, block by block, and resume where an earlier attempt stopped.

The input is any model that gives unquantised blocks (a toy, or an opened checkpoint); the work
itself is conveyor.py's. Every file appears under its final name only when it is whole; the manifest
comes last, so a folder with a manifest is a finished one. The same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...kernels.weights import convrot_group
from ..errors import CheckpointError
from ..model.config import ModelConfig
from ..sampling.schedules import table_directory, table_identity
from .conveyor import Conveyor
from .edge import FORMAT_IDS
from .edge_recipe import (
    STATE_FILE,
    EdgeRecipe,
    Progress,
    SourceModel,
    block_path,
    table_folder,
    write_json,
)
from .header import read_header
from .lanes import Lanes
from .names import linear_shapes, root_linears, root_shapes
from .sources import read_json


def write_edge(
    folder: Path, model: SourceModel, recipe: EdgeRecipe, progress: Progress | None = None
) -> dict[str, float]:
    """Write (or finish) an edge cache in `folder`. Raises CheckpointError for other leftovers.

    Returns seconds and bytes of each stage by name: busy and waiting of `read`, `compute` and
    `write`; those of their threads are sums over all of them.
    """
    config = model.config
    folder.mkdir(parents=True, exist_ok=True)
    state = _open_state(folder, recipe)
    write_json(folder / STATE_FILE, state)
    for left in folder.rglob(".*.part"):  # of an attempt that was killed
        left.unlink()
    todo = [
        block
        for block in range(config.layers)
        if str(block) not in state["projections"] or not _whole(folder, block, recipe)
    ]

    def report(block: int | None) -> None:
        if progress is not None:
            what = "root" if block is None else f"block {block}"
            progress(block or 0, config.layers, what)

    with Lanes(recipe.device) as lanes:
        Conveyor(folder, model, recipe, lanes, state).run([None, *todo], report)
    if progress is not None:
        progress(config.layers, config.layers, "manifest")
    _finish(folder, config, recipe, state)
    return lanes.meter.values


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
        if table_folder(folder, i).is_dir() and not (folder / name).is_dir():
            table_folder(folder, i).rename(folder / name)
        identity = table_identity(times, weights, channels=config.hidden)
        tables.append({"directory": name, "identity": identity})
    root = root_shapes(config)
    shapes = {name: list(root[f"{name}.weight"]) for name in root_linears(config)}
    write_json(folder / "config" / "base_transformer.json", config.as_json())
    transform = None if config.vdn is None else config.vdn.as_json()
    write_json(folder / "config" / "stage_model_spec.json", {"transform": transform})
    for block in range(config.layers):
        shapes |= {
            f"transformer_blocks.{block}.{name}": list(shape)
            for name, shape in linear_shapes(config).items()
        }
    write_json(
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
    paths = [block_path(folder, block)]
    paths += [
        table_folder(folder, i) / f"{block:02d}.safetensors" for i in range(len(recipe.tables))
    ]
    try:
        for path in paths:
            read_header(path)
    except CheckpointError:
        return False
    return True
