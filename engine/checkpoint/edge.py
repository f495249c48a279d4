"""The edge layout: a cache folder with one file a block, a root, AdaLN tables and JSON beside them.

    blocks/NN.safetensors   root.safetensors   manifest.json   config/*.json   adaln-tables-*/NN

A repository keeps up to three caches (`cache`, `rowwise/cache`, `int8-convrot/cache`). Which kind
one is, is read from the tensors: `weight_int8`, or `weight_fp8` with one scale or one a row.
Optional `adaln/NN.safetensors` hold the original AdaLN projections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...kernels.weights import convrot_group
from ..errors import CheckpointError
from ..model.config import ModelConfig
from .header import TensorFile, read_header
from .index import Checkpoint
from .names import (
    ADALN,
    block_linears,
    block_shapes,
    linear_shapes,
    part_groups,
    projection_shapes,
    root_linears,
    root_shapes,
    stored_tensors,
)
from .parts import Part
from .sources import (
    Source,
    check_sources,
    find_objects,
    list_missing,
    read_json,
)
from .tables import find_table_sets
from .walk import REFERENCE_FOLDER, subfolders

if TYPE_CHECKING:
    from torch import Tensor

FORMAT_IDS = {
    "fp8-tensor": "freevideo-fp8-slim-v1",
    "fp8-rowwise": "freevideo-fp8-slim-v1",
    "int8-convrot": "freevideo-int8-slim-v1",
}
CACHES = {
    "fp8-tensor": "cache",
    "fp8-rowwise": "rowwise/cache",
    "int8-convrot": "int8-convrot/cache",
}
_SEARCH_DEPTH = 4  # models/<name>/<repository>/rowwise/cache


@dataclass(frozen=True)
class EdgeReader:
    """Reads root, blocks and projections of one cache folder."""

    root_file: TensorFile
    block_files: tuple[TensorFile, ...]
    projection_files: tuple[TensorFile, ...]

    def root_tensors(self) -> dict[str, Tensor]:
        """See index.Reader."""
        return self.root_file.read_many()

    def block_tensors(self, block: int) -> dict[str, Tensor]:
        """See index.Reader."""
        return self.block_files[block].read_many()

    def parts(self, block: int | None) -> Iterator[Part]:
        """What a unit's tensors are, projection included, to be read; the root is None."""
        if block is None:
            yield Part({name: Source(self.root_file, name) for name in self.root_file.tensors})
            return
        for file in (self.block_files[block], self.projection_files[block]):
            for group in part_groups(file.tensors):
                yield Part({name: Source(file, name) for name in group})

    def projection(self, block: int) -> tuple[Tensor, Tensor]:
        """See index.Reader."""
        tensors = self.projection_files[block].read_many()
        return tensors[f"{ADALN}.weight"], tensors[f"{ADALN}.bias"]


def find_caches(folder: Path) -> list[Path]:
    """Every cache folder in or below `folder`, shallow ones first."""
    return sorted(_caches(folder, _SEARCH_DEPTH), key=lambda path: (len(path.parts), str(path)))


def choose_cache(caches: Sequence[Path], prefer: Sequence[str]) -> Path:
    """The cache of the preferred format; the first one when there is no choice."""
    if len(caches) == 1:
        return caches[0]
    formats = {path: _format_of_folder(path) for path in caches}
    for kind in prefer:
        for path in caches:
            if formats[path] == kind:
                return path
    return caches[0]


def open_edge(folder: Path, top: Path) -> Checkpoint:
    """Open one cache folder. top: the folder the user named, where further tables may lie."""
    config, config_found = _read_config(folder)
    missing = [] if config_found else ["config/*.json (sizes of the model and its transform)"]
    manifest = _read_manifest(folder, missing)
    names = [f"blocks/{i:02d}.safetensors" for i in range(config.layers)]
    missing += [name for name in ["root.safetensors", *names] if not (folder / name).is_file()]
    if missing:
        raise list_missing("edge checkpoint", folder, missing)
    raw = [read_header(folder / name) for name in names]
    kind = _format_of_header(raw[0])
    _check_rotation(folder, manifest, kind, config)
    blocks = tuple(_local(file, i) for i, file in enumerate(raw))
    for i, file in enumerate(raw):
        _check_block(file, i, config, kind)
    # Biased FP8 modules may keep their bias one level down.
    root = read_header(folder / "root.safetensors").renamed(
        lambda name: name.replace(".original.bias", ".bias")
    )
    _check_root(root, config, kind)
    projections = _projections(folder, config)
    reader = EdgeReader(root, blocks, projections)
    around = (folder,) if folder.name == REFERENCE_FOLDER else (folder, folder.parent)
    return Checkpoint(
        path=folder,
        layout="edge",
        weight_format=kind,
        config=config,
        files=(root, *raw),
        reader=reader,
        block_files=blocks,
        root_file=root,
        table_sets=find_table_sets(dict.fromkeys((*around, top)), manifest, config),
        has_projections=bool(projections),
        metadata=manifest,
    )


def _caches(folder: Path, depth: int) -> Iterator[Path]:
    marks = [(folder / name).is_file() for name in ("root.safetensors", "manifest.json")]
    blocks = folder / "blocks"  # other programs have folders of this name too
    if all(marks) or (
        blocks.is_dir() and (any(marks) or any(True for _ in blocks.glob("*.safetensors*")))
    ):
        yield folder
        return
    if depth:
        for path in subfolders(folder):
            yield from _caches(path, depth - 1)


def _format_of_folder(folder: Path) -> str:
    first = next(iter(sorted(folder.glob("blocks/*.safetensors"))), None)
    return "" if first is None else _format_of_header(read_header(first))


def _format_of_header(file: TensorFile) -> str:
    for name, span in file.tensors.items():
        if name.endswith(".weight_int8"):
            return "int8-convrot"
        if name.endswith(".weight_fp8"):
            scale = file.tensors.get(name.removesuffix("weight_fp8") + "weight_scale")
            if scale is None:
                raise CheckpointError(
                    "missing scale",
                    file=file.path,
                    tensor=name.removesuffix("weight_fp8") + "weight_scale",
                    expected=f"F32 [1, {span.shape[0]}] or [1, 1]",
                    found="nothing",
                )
            single = scale.shape in ((), (1,), (1, 1)) and span.shape[0] != 1
            return "fp8-tensor" if single else "fp8-rowwise"
    raise CheckpointError(
        "block of an unknown kind",
        file=file.path,
        expected="tensors named *.weight_fp8 or *.weight_int8",
        found=", ".join(list(file.tensors)[:3]) or "no tensors",
    )


def _read_config(folder: Path) -> tuple[ModelConfig, bool]:
    """Sizes and transform from the JSON files of config/, whatever their names."""
    texts = [read_json(path) for path in sorted(folder.glob("config/**/*.json"))]
    base = next(find_objects(texts, {"num_attention_heads", "hidden_size"}), None)
    transform = next(find_objects(texts, {"softmax_attention", "linear_attention"}), None)
    dense = any("transform" in item and item["transform"] is None
                for item in find_objects(texts, {"transform"}))  # fmt: skip
    if base is None or (transform is None and not dense):
        return ModelConfig(), False
    return ModelConfig.from_json(base, transform), True


def _read_manifest(folder: Path, missing: list[str]) -> Mapping[str, Any]:
    path = folder / "manifest.json"
    if not path.is_file():
        missing.append("manifest.json")
        return {}
    manifest = read_json(path)
    if not isinstance(manifest, dict):
        raise CheckpointError("manifest is no JSON object", file=path)
    return manifest


def _local(file: TensorFile, block: int) -> TensorFile:
    prefix = f"transformer_blocks.{block}."
    for name in file.tensors:
        if not name.startswith(prefix):
            raise CheckpointError(
                "tensor of another block or model",
                file=file.path,
                tensor=name,
                expected=f"{prefix}*",
                found=name,
            )
    return file.renamed(lambda name: name.removeprefix(prefix))


def _check_block(file: TensorFile, block: int, config: ModelConfig, kind: str) -> None:
    prefix = f"transformer_blocks.{block}."
    sources = {name.removeprefix(prefix): Source(file, name) for name in file.tensors}
    expected = stored_tensors(block_shapes(config), block_linears(config), kind)
    check_sources(sources, expected, where=file.path, prefix=prefix)


def _check_root(file: TensorFile, config: ModelConfig, kind: str) -> None:
    sources = {name: Source(file, name) for name in file.tensors}
    shapes = root_shapes(config)
    # Which of the root's linears are quantised, and at which granularity, is the file's choice.
    quantised = tuple(name for name in root_linears(config) if f"{name}.weight" not in file.tensors)
    expected = stored_tensors(shapes, quantised, kind)
    for name in quantised:
        scale = file.tensors.get(f"{name}.weight_scale")
        if kind == "fp8-rowwise" and scale is not None and scale.nbytes == 4:
            expected[f"{name}.weight_scale"] = (("F32",), (1,))
    check_sources(sources, expected, where=file.path)


def _check_rotation(
    folder: Path, manifest: Mapping[str, Any], kind: str, config: ModelConfig
) -> None:
    """An int8 file made with another rotation has the same shapes: believe the manifest only."""
    rotation = manifest.get("rotation")
    if kind != "int8-convrot" or not isinstance(rotation, dict):
        return
    groups = rotation.get("groups") or {}
    for name, (_, width) in linear_shapes(config).items():
        found = (rotation.get("kind"), int(groups.get(str(width), rotation.get("group", 0))))
        expected = ("convrot", convrot_group(width))
        if found != expected:
            raise CheckpointError(
                "unknown rotation rule",
                file=folder / "manifest.json",
                tensor=name,
                expected=f"{expected[0]} with groups of {expected[1]}",
                found=f"{found[0]} with groups of {found[1]}",
                remedy="This checkpoint needs a newer Lowpeak.",
            )


def _projections(folder: Path, config: ModelConfig) -> tuple[TensorFile, ...]:
    """The optional projection files: all of them or none, under local names."""
    paths = [folder / "adaln" / f"{i:02d}.safetensors" for i in range(config.layers)]
    present = [path for path in paths if path.is_file()]
    if not present:
        return ()
    if len(present) < len(paths):
        absent = [f"adaln/{path.name}" for path in paths if path not in present]
        raise list_missing("set of AdaLN projections", folder, absent)
    expected = stored_tensors(projection_shapes(config), (), "plain")
    files = []
    for block, path in enumerate(paths):
        file = read_header(path).renamed(
            lambda name, prefix=f"transformer_blocks.{block}.": name.removeprefix(prefix)  # type: ignore[misc]
        )
        check_sources({name: Source(file, name) for name in file.tensors}, expected, where=path)
        files.append(file)
    return tuple(files)
