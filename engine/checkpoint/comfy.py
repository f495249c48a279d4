"""ComfyUI's single file: other names, stacked qkv, and the SwiGLU halves the other way round.

    blocks.N.attn.qkv_proj  rows [q; k; v]          blocks.N.mlp.fc1  rows [gate; value]

Linears come plain, as int8 ConvRot (`weight` int8, `weight_scale`, JSON in `comfy_quant`), or as
scaled FP8 (`weight` e4m3fn with one scale). "Pruned" files replace the time embedder by a table of
eight numbers a time (facts: model sheet c.4, c.5). Splitting q, k, v gives views; swapping halves
copies one weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CheckpointError
from ..model.config import ModelConfig
from .adapters import Adapter
from .comfy_names import (
    BLOCK,
    CODES,
    FC1,
    IGNORED,
    PREFIXES,
    QKV,
    ROOT,
    SCALES,
    check_block,
    check_quantisers,
    check_root,
    derive_config,
    modules_of,
    stack_of,
)
from .header import TensorFile, read_header
from .index import Checkpoint
from .names import ADALN, part_groups
from .parts import Part, Tensors
from .sources import Source, Sources, read_sources
from .walk import REFERENCE_FOLDER

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ComfyReader:
    """Reads a single file's modules and gives them this package's names."""

    root: Mapping[str, Sources]  # module in the file -> its tensors by kind (weight, bias, ...)
    refiner: tuple[Mapping[str, Sources], ...]
    blocks: tuple[Mapping[str, Sources], ...]
    branch: tuple[Sources, ...] = ()
    adapters: tuple[Adapter, ...] = field(default=())
    device: str | None = None  # where changed weights are merged and left; None is the CPU

    def root_tensors(self) -> dict[str, Tensor]:
        """See index.Reader."""
        found: dict[str, Tensor] = {}
        for module, parts in self.root.items():
            if module == "":
                found |= read_sources(parts)
            else:
                found |= _root_named({module: _read(parts)})
        for i, modules in enumerate(self.refiner):
            found |= _convert(modules, f"token_refiner.refiner_blocks.{i}.", base="attn.")
        return self._merged(None, found)

    def block_tensors(self, block: int) -> dict[str, Tensor]:
        """See index.Reader."""
        found = self._merged(block, _convert(self.blocks[block], "", base="attn.orig."))
        return {**found, **read_sources(self.branch[block])} if self.branch else found

    def parts(self, block: int | None) -> Iterator[Part]:
        """What `block_tensors`, or `root_tensors` for None, give: to be read in a few parts."""
        if block is not None:
            yield from self._parts(block, self.blocks[block], "", base="attn.orig.")
            if self.branch:
                yield Part(self.branch[block])
            return
        if "" in self.root:
            yield Part(self.root[""])
        plain = {module: parts for module, parts in self.root.items() if module != ""}
        yield Part(
            _flattened(plain),
            lambda tensors: self._merged(None, _root_named(_modules(tensors, plain))),
        )
        for i, modules in enumerate(self.refiner):
            prefix = f"token_refiner.refiner_blocks.{i}."
            yield from self._parts(None, modules, prefix, base="attn.")

    def _parts(
        self, block: int | None, modules: Mapping[str, Sources], prefix: str, *, base: str
    ) -> Iterator[Part]:
        for names in part_groups(modules):
            here = {name: modules[name] for name in names}

            def finish(tensors: Tensors, here: Mapping[str, Sources] = here) -> Tensors:
                found = _converted(_modules(tensors, here), prefix, base=base)
                return self._merged(block, found)

            yield Part(_flattened(here), finish)

    def projection(self, block: int) -> tuple[Tensor, Tensor]:
        """See index.Reader."""
        parts = {ADALN: self.blocks[block][ADALN]}
        found = self._merged(block, _convert(parts, "", base="attn.orig."))
        return found[f"{ADALN}.weight"], found[f"{ADALN}.bias"]

    def _merged(self, block: int | None, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Adapters added; a quantised weight that one changes becomes bf16 for it."""
        for adapter in self.adapters:
            for (place, name), pair in adapter.pairs.items():
                weight = None if place != block else _plain_weight(tensors, name)
                if weight is not None:
                    weight = weight if self.device is None else weight.to(self.device)
                    tensors[name] = weight
                    pair.add_to(weight)
        return tensors


def is_comfy(file: TensorFile) -> bool:
    """Whether a header has this model's ComfyUI names."""
    return _prefix(file) is not None


def find_comfy(folder: Path) -> Path | None:
    """The one single file of this model in or below a folder (two levels), by header."""
    found: list[Path] = []
    damage: CheckpointError | None = None
    for path in sorted(
        path for glob in ("*", "*/*") for path in folder.glob(f"{glob}.safetensors")
    ):
        try:
            if path.parent.name == REFERENCE_FOLDER and path.parent != folder:
                continue
            if is_comfy(read_header(path)):
                found.append(path)
        except CheckpointError as broken:
            damage = damage or broken
    if damage is not None and not found:
        raise damage  # it may be the one that was meant
    if len(found) > 1:
        raise CheckpointError(
            "several transformers in one folder",
            file=folder,
            expected="one",
            found=", ".join(path.name for path in found),
            remedy="Name the file.",
        )
    return found[0] if found else None


def open_comfy(path: Path, stage_path: Path | None) -> Checkpoint:
    """Open a single file: dense, or VDN when a stage folder is given."""
    from .openvdn import check_adapters, read_stage, stage_notes

    file = read_header(path)
    prefix = _prefix(file) or ""
    local = file.renamed(
        lambda name: name.removeprefix(prefix) if name.startswith(prefix) else None
    )
    modules = modules_of(local)
    refiner, blocks = stack_of(local, modules, "token_refiner."), stack_of(local, modules, "")
    dense = derive_config(local, modules, refiner, blocks)
    root = {name: modules[name] for name in ROOT if name in modules}
    table = local.tensors.get("adaln_t_table")
    if table is not None:
        root[""] = {"adaln_t_table": Source(local, "adaln_t_table")}
    for i, block in enumerate(blocks):
        check_block(block, dense, f"{path} (blocks.{i})", dense.time_dim)
    for i, block in enumerate(refiner):
        check_block(block, dense, f"{path} (token_refiner.blocks.{i})", None)
    check_root(root, dense, path, pruned=table is not None)
    kinds = {_kind(local, blocks[0][name]) for name in (QKV, FC1)}
    kind = kinds.pop() if len(kinds) == 1 else "plain"
    check_quantisers(blocks, path)
    stage = None if stage_path is None else read_stage(stage_path, dense)
    config, notes = dense, ()
    if stage is not None:
        config = ModelConfig.from_json(dense.as_json(), stage.transform)
        if table is not None:
            raise CheckpointError(
                "a pruned base cannot take the stage's adapters: they change AdaLN projections",
                file=path,
                expected=f"{ADALN}.weight with its whole input and a time_embedder",
                found=f"input {dense.time_dim} and adaln_t_table",
                remedy="Use the base file that is not pruned, or an edge checkpoint.",
            )
        check_adapters(stage.adapters, config)
        kind = "plain" if stage.adapters else kind
        notes = stage_notes(stage.adapters)
    return Checkpoint(
        path=path,
        layout="comfy",
        weight_format=kind,
        config=config,
        files=(file,) if stage is None else (file, *stage.files),
        reader=ComfyReader(
            root,
            refiner,
            blocks,
            () if stage is None else stage.branch,
            () if stage is None else stage.adapters,
        ),
        has_projections=True,
        pruned=table is not None,
        notes=notes,
    )


def _prefix(file: TensorFile) -> str | None:
    for prefix in PREFIXES:
        if f"{prefix}video_patch_proj.weight" in file.tensors:
            return prefix
    return None


def _kind(file: TensorFile, parts: Sources) -> str:
    return {"I8": "int8-convrot", "F8_E4M3": "fp8-tensor"}.get(parts["weight"].span.dtype, "plain")


def _plain_weight(tensors: dict[str, Tensor], name: str) -> Tensor | None:
    """The weight of that name out of quantisation, its codes and scale removed; None if absent."""
    linear = name.removesuffix(".weight")
    codes = next((f"{linear}.{s}" for s in CODES if f"{linear}.{s}" in tensors), None)
    if codes is None:
        return tensors.get(name)
    import torch

    from ...kernels.reference.quantise import dequantise_fp8, dequantise_int8_convrot

    scale = tensors.pop(f"{linear}.weight_scale")
    dequantise = dequantise_int8_convrot if codes.endswith("int8") else dequantise_fp8
    return dequantise(tensors.pop(codes), scale).to(torch.bfloat16)


def _read(parts: Sources) -> Tensors:
    """One module's tensors, as `_suffixed` names them."""
    return _suffixed(read_sources(_kept(parts)))


def _kept(parts: Sources) -> Sources:
    return {part: source for part, source in parts.items() if part not in IGNORED}


def _suffixed(parts: Mapping[str, Tensor]) -> Tensors:
    """One module's tensors under edge suffixes: weight, weight_int8 or weight_fp8, weight_scale."""
    import torch

    found: dict[str, Tensor] = {}
    for part, tensor in parts.items():
        if part in SCALES:
            found["weight_scale"] = tensor.reshape(-1, 1)
        elif part == "weight" and tensor.dtype in (torch.int8, torch.float8_e4m3fn):
            found["weight_int8" if tensor.dtype == torch.int8 else "weight_fp8"] = tensor
        else:
            found[part] = tensor
    return found


def _flattened(modules: Mapping[str, Sources]) -> Sources:
    """What to read of some modules, under one name each; `_modules` takes it apart."""
    return {
        f"{module}/{part}": source
        for module, parts in modules.items()
        for part, source in _kept(parts).items()
    }


def _modules(tensors: Mapping[str, Tensor], modules: Iterable[str]) -> dict[str, Tensors]:
    found: dict[str, Tensors] = {module: {} for module in modules}
    for name, tensor in tensors.items():
        module, _, part = name.rpartition("/")
        found[module][part] = tensor
    return {module: _suffixed(parts) for module, parts in found.items()}


def _root_named(modules: Mapping[str, Tensors]) -> Tensors:
    return {
        name: tensor
        for module, parts in modules.items()
        for name, tensor in _named(ROOT[module], parts).items()
    }


def _named(module: str, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{module}.{part}": tensor for part, tensor in parts.items()}


def _convert(modules: Mapping[str, Sources], prefix: str, *, base: str) -> Tensors:
    """A block's tensors, read, as `_converted` names them."""
    return _converted({name: _read(parts) for name, parts in modules.items()}, prefix, base=base)


def _converted(modules: Mapping[str, Tensors], prefix: str, *, base: str) -> Tensors:
    """A block's tensors under this package's names; base: where q, k, v and their norms go."""
    found: dict[str, Tensor] = {}
    for module, parts in modules.items():
        if module == QKV:
            for i, target in enumerate(("to_q", "to_k", "to_v")):
                third = {part: _rows(tensor, i, 3) for part, tensor in parts.items()}
                found |= _named(f"{prefix}{base}{target}", third)
        elif module == FC1:
            swapped = {part: _swap_halves(tensor) for part, tensor in parts.items()}
            found |= _named(f"{prefix}ff.net.0.proj", swapped)
        else:
            name = BLOCK[module].replace("attn.", base)
            found |= _named(f"{prefix}{name}", parts)
    return found


def _rows(tensor: Tensor, index: int, count: int) -> Tensor:
    """The index-th of `count` equal parts of the rows; a scale for all rows stays whole."""
    return tensor if tensor.shape[0] == 1 else tensor.chunk(count)[index]


def _swap_halves(tensor: Tensor) -> Tensor:
    if tensor.shape[0] == 1:
        return tensor
    import torch

    first, second = (half.view(torch.uint8) if half.dtype.itemsize == 1 else half
                     for half in tensor.chunk(2))  # fmt: skip
    return torch.cat([second, first]).view(tensor.dtype)
