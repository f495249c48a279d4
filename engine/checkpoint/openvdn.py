"""The OpenVDN layout and the dense diffusers folder.

    h3-base/transformer/{config.json, *.safetensors}     the base model
    stage-*/model_spec.json                              transform config, list of adapters
    stage-*/linear_branch/{config.json, model.safetensors}
    stage-*/adapters/{default, turbo}/                   low-rank pairs, merged in this order

Blocks are merged as they are read: W = base + default + turbo, then the branch's tensors as they
are. Without a stage the base model is the dense one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError
from ..model.config import ModelConfig
from .adapters import MERGE_ORDER, SPEC_FILES, Adapter, add_low_rank, merge, read_adapter
from .header import TensorFile, read_header
from .index import Checkpoint
from .names import (
    ADALN,
    LINEAR_OUT,
    block_shapes,
    branch_shapes,
    part_groups,
    root_shapes,
    split_block_name,
    stored_tensors,
)
from .parts import Part, Tensors, groups_by_bytes
from .sources import (
    Source,
    Sources,
    check_sources,
    find_objects,
    list_missing,
    read_json,
    read_sources,
    sources_of,
)

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Stage:
    """What an OpenVDN stage adds: transform, branch sources by block, adapters in merge order."""

    folder: Path
    transform: Mapping[str, Any]
    branch: tuple[Sources, ...]
    adapters: tuple[Adapter, ...]
    files: tuple[TensorFile, ...]


@dataclass(frozen=True)
class MergingReader:
    """Reads base tensors, adds adapters, and puts the branch beside them.

    device: where changed weights are merged and left; None is the CPU.
    """

    root: Sources
    blocks: tuple[Sources, ...]
    adapters: tuple[Adapter, ...]
    device: str | None = None

    def root_tensors(self) -> dict[str, Tensor]:
        """See index.Reader."""
        return self._merged(None, self.root)

    def block_tensors(self, block: int) -> dict[str, Tensor]:
        """See index.Reader."""
        return self._merged(block, self.blocks[block])

    def parts(self, block: int | None) -> Iterator[Part]:
        """What `block_tensors`, or `root_tensors` for None, give: to be read in a few parts."""
        sources = self.root if block is None else self.blocks[block]
        groups = part_groups(sources)
        if block is None:
            times = [name for name in sources if name.startswith("time_embedder.")]
            others = [(n, s.span.nbytes) for n, s in sources.items() if n not in times]
            groups = [times, *groups_by_bytes(others)]
        for group in groups:
            yield self._part(block, {name: sources[name] for name in group})

    def projection(self, block: int) -> tuple[Tensor, Tensor]:
        """See index.Reader."""
        names = (f"{ADALN}.weight", f"{ADALN}.bias")
        tensors = self._merged(block, {name: self.blocks[block][name] for name in names})
        return tensors[names[0]], tensors[names[1]]

    def _part(self, block: int | None, sources: Sources) -> Part:
        pairs = [
            (name, pair, f"{adapter.name}/{name}")
            for name in sources
            for adapter in self.adapters
            if (pair := adapter.pairs.get((block, name))) is not None
        ]
        wanted = dict(sources)
        for _, pair, key in pairs:
            wanted[f"{key}.down"], wanted[f"{key}.up"] = pair.down, pair.up

        def merged(tensors: Tensors) -> Tensors:
            for name, pair, key in pairs:
                up, down = tensors.pop(f"{key}.up"), tensors.pop(f"{key}.down")
                add_low_rank(tensors[name], up, down, pair.scale)
            return tensors

        return Part(wanted, merged)

    def _merged(self, block: int | None, sources: Sources) -> dict[str, Tensor]:
        tensors = read_sources(sources)
        for name in list(tensors):
            if self.device and any((block, name) in item.pairs for item in self.adapters):
                tensors[name] = tensors[name].to(self.device)
            merge(tensors[name], (block, name), self.adapters)
        return tensors


def base_folder(path: Path) -> Path | None:
    """The folder with the base model's config.json and weights, or None."""
    names = (".", "transformer", "h3-base/transformer", "h3-base", "base/transformer")
    folders = [path / name for name in names]
    folders += sorted(path.glob("*/h3-base/transformer")) + sorted(path.glob("*/transformer"))
    return next((folder for folder in folders if _is_base(folder)), None)


def stage_folder(path: Path) -> Path | None:
    """The stage to use in or below `path`: the one with a turbo adapter first, else the last."""
    if _is_stage(path):
        return path
    found = [item for depth in ("*", "*/*") for item in sorted(path.glob(depth)) if _is_stage(item)]
    return max(found, key=lambda item: (item / "adapters" / "turbo").is_dir(), default=None)


def open_openvdn(base: Path, stage_path: Path | None) -> Checkpoint:
    """Open a diffusers base, with a stage as VDN or alone as the dense model."""
    config_json = read_json(base / "config.json")
    if not isinstance(config_json, dict):
        raise CheckpointError("config is no JSON object", file=base / "config.json")
    dense = ModelConfig.from_json(config_json, None)
    files = tuple(read_header(path) for path in _weight_files(base))
    stage = None if stage_path is None else read_stage(stage_path, dense)
    config = dense if stage is None else ModelConfig.from_json(config_json, stage.transform)
    root, blocks = _by_block(sources_of(files), dense, base)
    expected = stored_tensors(block_shapes(dense, projection=True), (), "plain")
    for i, sources in enumerate(blocks):
        check_sources(sources, expected, where=f"{base} (transformer_blocks.{i})")
    check_sources(root, stored_tensors(root_shapes(dense), (), "plain"), where=base)
    adapters: tuple[Adapter, ...] = ()
    if stage is not None:
        blocks = tuple({**plain, **stage.branch[i]} for i, plain in enumerate(blocks))
        adapters = stage.adapters
        check_adapters(adapters, config)
    return Checkpoint(
        path=base if stage is None else _common(base, stage.folder),
        layout="diffusers" if stage is None else "openvdn",
        weight_format="plain",
        config=config,
        files=files if stage is None else (*files, *stage.files),
        reader=MergingReader(root, blocks, adapters),
        has_projections=True,
        notes=stage_notes(adapters) if stage is not None else (),
    )


def read_stage(folder: Path, dense: ModelConfig) -> Stage:
    """Headers and specs of a stage folder. Raises CheckpointError; lists every missing file."""
    spec_path, branch_path = folder / "model_spec.json", folder / "linear_branch/model.safetensors"
    missing = [
        p.relative_to(folder).as_posix() for p in (spec_path, branch_path) if not p.is_file()
    ]
    spec = read_json(spec_path) if spec_path.is_file() else {}
    names = _adapter_names(folder, spec)
    for name in names:
        if not (folder / "adapters" / name).is_dir():
            missing.append(f"adapters/{name}/adapter_model.safetensors")
        elif not any((folder / "adapters" / name / item).is_file() for item in SPEC_FILES):
            missing.append(f"adapters/{name}/{SPEC_FILES[0]}")
    if missing:
        raise list_missing("OpenVDN stage", folder, missing)
    texts = [spec, *(read_json(path) for path in sorted(folder.glob("linear_branch/*.json")))]
    transform = next(find_objects(texts, {"softmax_attention", "linear_attention"}), None)
    if transform is None:
        raise CheckpointError(
            "stage names no hybrid attention",
            file=spec_path,
            expected="softmax_attention and linear_attention",
            found=", ".join(spec) if isinstance(spec, dict) else type(spec).__name__,
        )
    config = ModelConfig.from_json(dense.as_json(), transform)
    file = read_header(branch_path)
    branch: list[Sources] = [{} for _ in range(config.layers)]
    for name, source in sources_of([file]).items():
        place = split_block_name(name)
        if place is None or place[0] >= config.layers:
            raise CheckpointError(
                "branch tensor of no block of the base model",
                file=branch_path,
                tensor=name,
                expected=f"transformer_blocks.0..{config.layers - 1}",
                found=name,
            )
        branch[place[0]][place[1]] = source
    expected = stored_tensors(branch_shapes(config), (), "plain")
    for i, sources in enumerate(branch):
        check_sources(sources, expected, where=f"{branch_path} (transformer_blocks.{i})")
    adapters = tuple(read_adapter(folder / "adapters" / name) for name in names)
    files = (file, *(adapter.file for adapter in adapters))
    return Stage(folder, transform, tuple(branch), adapters, files)


def check_adapters(adapters: Sequence[Adapter], config: ModelConfig) -> None:
    """Every adapter pair must fit the base model."""
    shapes: dict[tuple[int | None, str], tuple[int, ...]] = {
        (None, name): shape for name, shape in root_shapes(config).items()
    }
    base = block_shapes(config, projection=True)
    base.pop(f"{LINEAR_OUT}.weight", None)
    for i in range(config.layers):
        shapes |= {(i, name): shape for name, shape in base.items()}
    for adapter in adapters:
        adapter.check(shapes)


def stage_notes(adapters: Iterable[Adapter]) -> tuple[str, ...]:
    """What a user should know about a stage that is merged when read."""
    names = [adapter.name for adapter in adapters]
    notes = ["The stage's adapters are merged while blocks are read."]
    if "turbo" not in names:
        notes.append("No turbo adapter: 8 steps will look unfinished, about 50 are needed.")
    return tuple(notes)


def _is_base(folder: Path) -> bool:
    """Whether a diffusers folder is this model's transformer, not its VAE or text encoder."""
    path = folder / "config.json"
    if not path.is_file() or not any(folder.glob("*.safetensors")):
        return False
    try:
        config = read_json(path)
    except CheckpointError:
        return folder.name == "transformer"  # opening it then says what is wrong
    return isinstance(config, dict) and config.keys() >= {"audio_in_channels", "ffn_dim"}


def _is_stage(folder: Path) -> bool:
    return folder.is_dir() and (
        (folder / "model_spec.json").is_file() or (folder / "linear_branch").is_dir()
    )


def _adapter_names(folder: Path, spec: Any) -> list[str]:
    """The adapters the spec lists, else those that are there; in merge order."""
    listed: list[str] = []
    adapters = spec.get("adapters") if isinstance(spec, dict) else None
    items = list(adapters) if isinstance(adapters, (list, dict)) else []
    for item in items:
        name = item.get("name") if isinstance(item, dict) else item
        if isinstance(name, str) and name:
            listed.append(name)
    if not listed:
        listed = [path.name for path in sorted(folder.glob("adapters/*")) if path.is_dir()]
    known = [name for name in MERGE_ORDER if name in listed]
    return known + [name for name in listed if name not in MERGE_ORDER]


def _weight_files(base: Path) -> list[Path]:
    """All shards; those an index names must be there."""
    for index in sorted(base.glob("*.safetensors.index.json")):
        names = sorted(set(read_json(index).get("weight_map", {}).values()))
        missing = [name for name in names if not (base / name).is_file()]
        if missing:
            raise list_missing("base model", base, missing)
        return [base / name for name in names]
    return sorted(base.glob("*.safetensors"))


def _by_block(
    sources: Mapping[str, Source], config: ModelConfig, base: Path
) -> tuple[Sources, tuple[Sources, ...]]:
    root: Sources = {}
    blocks: list[Sources] = [{} for _ in range(config.layers)]
    for name, source in sources.items():
        place = split_block_name(name)
        if place is None:
            root[name] = source
        elif place[0] < config.layers:
            blocks[place[0]][place[1]] = source
        else:
            raise CheckpointError(
                "more blocks than the config says",
                file=base,
                tensor=name,
                expected=f"{config.layers} blocks",
                found=f"block {place[0]}",
            )
    return root, tuple(blocks)


def _common(base: Path, stage: Path) -> Path:
    for folder in base.parents:
        if stage.is_relative_to(folder):
            return folder
    return base
