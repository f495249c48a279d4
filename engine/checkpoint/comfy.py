"""ComfyUI's single file: other names, stacked qkv, and the SwiGLU halves the other way round.

    blocks.N.attn.qkv_proj  rows [q; k; v]          blocks.N.mlp.fc1  rows [gate; value]

Linears come plain, as int8 ConvRot (`weight` int8, `weight_scale`, JSON in `comfy_quant`), or as
scaled FP8 (`weight` e4m3fn with one scale). "Pruned" files replace the time embedder by a table of
eight numbers a time (facts: model sheet c.4, c.5). Splitting q, k, v gives views; swapping halves
copies one weight.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...kernels.reference.quantise import (
    convrot_group,
    dequantise_fp8,
    dequantise_int8_convrot,
)
from ..errors import CheckpointError
from ..model.config import ModelConfig
from .adapters import Adapter
from .header import FLOAT_NAMES, TensorFile, read_header
from .index import Checkpoint
from .names import ADALN, projection_shapes, root_shapes
from .sources import Source, Sources, check_sources, read_sources

PREFIXES = ("model.diffusion_model.", "diffusion_model.", "")
_ROOT = {
    "video_patch_proj": "proj_in",
    "audio_patch_proj": "audio_proj_in",
    "condition_proj": "context_embedder",
    "time_embedder.proj_in": "time_embedder.linear_1",
    "time_embedder.proj_out": "time_embedder.linear_2",
    "token_refiner.final_norm": "token_refiner.final_norm",
    "final_layer.norm": "norm_out.norm",
    "final_layer.adaln_proj.linear": "norm_out.linear",
    "final_layer.video_out": "proj_out",
    "final_layer.audio_out": "audio_proj_out",
}
_BLOCK = {
    "norm1": "norm1",
    "norm2": "norm2",
    "attn.q_norm": "attn.norm_q",
    "attn.k_norm": "attn.norm_k",
    "attn.out_proj": "attn.to_out.0",
    "mlp.fc2": "ff.net.2",
    "adaln_proj.linear": "adaln_proj.linear",
}
_QKV, _FC1 = "attn.qkv_proj", "mlp.fc1"
_CODES = ("weight_int8", "weight_fp8")
_SCALES = ("weight_scale", "scale_weight")
_IGNORED = ("rope.inv_freq", "scaled_fp8", "input_scale", "scale_input", "comfy_quant")
_BLOCK_NAME = re.compile(r"(token_refiner\.)?blocks\.(\d+)\.(.+)")


@dataclass(frozen=True)
class ComfyReader:
    """Reads a single file's modules and gives them this package's names."""

    root: Mapping[str, Sources]  # module in the file -> its tensors by kind (weight, bias, ...)
    refiner: tuple[Mapping[str, Sources], ...]
    blocks: tuple[Mapping[str, Sources], ...]
    branch: tuple[Sources, ...] = ()
    adapters: tuple[Adapter, ...] = field(default=())

    def root_tensors(self) -> dict[str, Tensor]:
        """See index.Reader."""
        found: dict[str, Tensor] = {}
        for module, parts in self.root.items():
            if module == "":
                found |= read_sources(parts)
            else:
                found |= _named(_ROOT[module], _read(parts))
        for i, modules in enumerate(self.refiner):
            found |= _convert(modules, f"token_refiner.refiner_blocks.{i}.", base="attn.")
        return self._merged(None, found)

    def block_tensors(self, block: int) -> dict[str, Tensor]:
        """See index.Reader."""
        found = self._merged(block, _convert(self.blocks[block], "", base="attn.orig."))
        return {**found, **read_sources(self.branch[block])} if self.branch else found

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
                    tensors[name] = weight + pair.delta().to(weight.dtype)
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
    modules = _modules(local)
    refiner, blocks = _stack(local, modules, "token_refiner."), _stack(local, modules, "")
    dense = _derive_config(local, modules, refiner, blocks)
    root = {name: modules[name] for name in _ROOT if name in modules}
    table = local.tensors.get("adaln_t_table")
    if table is not None:
        root[""] = {"adaln_t_table": Source(local, "adaln_t_table")}
    for i, block in enumerate(blocks):
        _check_block(block, dense, f"{path} (blocks.{i})", dense.time_dim)
    for i, block in enumerate(refiner):
        _check_block(block, dense, f"{path} (token_refiner.blocks.{i})", None)
    _check_root(root, dense, path, pruned=table is not None)
    kinds = {_kind(local, blocks[0][name]) for name in (_QKV, _FC1)}
    kind = kinds.pop() if len(kinds) == 1 else "plain"
    _check_quantisers(blocks, path)
    stage = None if stage_path is None else read_stage(stage_path, dense)
    config, notes = dense, ()
    if stage is not None:
        config = ModelConfig.from_json(dense.as_json(), stage.transform)
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


def _modules(file: TensorFile) -> dict[str, Sources]:
    """Tensors grouped by module: {'blocks.0.attn.qkv_proj': {'weight': ..., 'bias': ...}}."""
    found: dict[str, Sources] = {}
    for name in file.tensors:
        module, _, part = name.rpartition(".")
        found.setdefault(module, {})[part] = Source(file, name)
    return found


def _stack(
    file: TensorFile, modules: Mapping[str, Sources], prefix: str
) -> tuple[Mapping[str, Sources], ...]:
    stack: dict[int, dict[str, Sources]] = {}
    for module, parts in modules.items():
        match = _BLOCK_NAME.fullmatch(module)
        if match is None or (match[1] or "") != prefix:
            continue
        if match[3] not in {*_BLOCK, _QKV, _FC1}:
            raise CheckpointError(
                "unknown part of a block",
                file=file.path,
                tensor=module,
                expected=", ".join([*_BLOCK, _QKV, _FC1]),
                found=match[3],
                remedy="This is another variant of the model.",
            )
        stack.setdefault(int(match[2]), {})[match[3]] = parts
    if sorted(stack) != list(range(len(stack))):
        raise CheckpointError(
            "blocks are missing",
            file=file.path,
            expected=f"{prefix}blocks.0..{max(stack)}",
            found=f"{len(stack)} blocks",
        )
    return tuple(stack[i] for i in range(len(stack)))


def _derive_config(
    file: TensorFile,
    modules: Mapping[str, Sources],
    refiner: tuple[Mapping[str, Sources], ...],
    blocks: tuple[Mapping[str, Sources], ...],
) -> ModelConfig:
    """Sizes from shapes; a JSON config in the file's metadata settles what shapes cannot tell."""

    def shape(parts: Mapping[str, Sources], module: str) -> tuple[int, ...]:
        source = parts.get(module, {}).get("weight")
        if source is None:
            raise CheckpointError(
                "missing tensor", file=file.path, tensor=f"{module}.weight", found="nothing"
            )
        return source.span.shape

    if not blocks:
        raise CheckpointError("single file without blocks", file=file.path)
    stored = file.metadata.get("config")
    if stored is not None:
        try:
            return ModelConfig.from_json(json.loads(stored), None)
        except (json.JSONDecodeError, TypeError, ValueError) as broken:
            raise CheckpointError(
                f"config in the metadata is damaged ({broken})", file=file.path
            ) from None
    head_dim = shape(blocks[0], "attn.q_norm")[0]
    hidden = shape(blocks[0], "norm1")[0]
    defaults = ModelConfig()
    pruned = "adaln_t_table" in file.tensors
    first = None if pruned else shape(modules, "time_embedder.proj_in")
    return ModelConfig(
        layers=len(blocks),
        refiner_layers=len(refiner),
        heads=shape(blocks[0], _QKV)[0] // 3 // head_dim,
        head_dim=head_dim,
        hidden=hidden,
        ffn=shape(blocks[0], _FC1)[0] // 2,
        in_channels=shape(modules, "video_patch_proj")[1] // 4,
        audio_channels=shape(modules, "audio_patch_proj")[1],
        text_dim=shape(modules, "condition_proj")[1],
        freq_dim=defaults.freq_dim if first is None else first[1],
        time_hidden=defaults.time_hidden if first is None else first[0],
        time_dim=shape(blocks[0], ADALN)[1],
        rope_freqs=head_dim // 8,  # 96 of 128 channels rotate: three axes, two halves
        vdn=None,
    )


def _linear(parts: Sources, rows: int, width: int, where: str, module: str) -> None:
    """Check one linear: weight, its scale if quantised, no bias."""
    weight = parts.get("weight")
    dtypes = (*FLOAT_NAMES, "I8", "F8_E4M3")
    sources: Sources = {} if weight is None else {f"{module}.weight": weight}
    expected: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
        f"{module}.weight": (dtypes, (rows, width))
    }
    if weight is not None and weight.span.dtype in ("I8", "F8_E4M3"):
        name = next((item for item in _SCALES if item in parts), _SCALES[0])
        size = rows if weight.span.dtype == "I8" else 1
        expected[f"{module}.{_SCALES[0]}"] = (("F32",), (size,))
        if name in parts:
            sources[f"{module}.{_SCALES[0]}"] = parts[name]
    check_sources(sources, expected, where=where)


def _check_block(
    block: Mapping[str, Sources], config: ModelConfig, where: str, time_dim: int | None
) -> None:
    hidden, inner, ffn = config.hidden, config.inner, config.ffn
    linears = {
        _QKV: (3 * inner, hidden),
        "attn.out_proj": (hidden, inner),
        _FC1: (2 * ffn, hidden),
        "mlp.fc2": (hidden, ffn),
    }
    for module, (rows, width) in linears.items():
        _linear(block.get(module, {}), rows, width, where, module)
    plain: dict[str, tuple[int, ...]] = {
        "norm1.weight": (hidden,),
        "norm2.weight": (hidden,),
        "attn.q_norm.weight": (config.head_dim,),
        "attn.k_norm.weight": (config.head_dim,),
    }
    if time_dim is not None:
        plain |= projection_shapes(config, time_dim)
    sources = {
        f"{module}.{part}": source
        for module, parts in block.items()
        for part, source in parts.items()
    }
    check_sources(sources, {k: (FLOAT_NAMES, v) for k, v in plain.items()}, where=where)


def _check_root(
    root: Mapping[str, Sources], config: ModelConfig, path: Path, *, pruned: bool
) -> None:
    rows = root[""]["adaln_t_table"].span.shape if pruned else None
    if rows is not None and len(rows) != 2:
        raise CheckpointError(
            "wrong shape",
            file=path,
            tensor="adaln_t_table",
            expected="[n, width]",
            found=list(rows),
        )
    shapes = root_shapes(config, pruned_rows=rows)  # type: ignore[arg-type]
    shapes = {k: v for k, v in shapes.items() if not k.startswith("token_refiner.refiner_blocks")}
    sources: Sources = dict(root.get("", {}))
    for module, parts in root.items():
        if module:
            sources |= {f"{_ROOT[module]}.{part}": source for part, source in parts.items()}
    quantised = (*FLOAT_NAMES, "I8", "F8_E4M3")
    check_sources(sources, {k: (quantised, v) for k, v in shapes.items()}, where=path)


def _kind(file: TensorFile, parts: Sources) -> str:
    return {"I8": "int8-convrot", "F8_E4M3": "fp8-tensor"}.get(parts["weight"].span.dtype, "plain")


def _check_quantisers(blocks: Iterable[Mapping[str, Sources]], path: Path) -> None:
    """Int8 weights without rotation, or with other groups, look alike: read what the file says.

    These are a few dozen bytes of JSON each, stored as a tensor.
    """
    block = next(iter(blocks))
    for module, parts in block.items():
        weight, quant = parts.get("weight"), parts.get("comfy_quant")
        if weight is None or weight.span.dtype != "I8":
            continue
        group = convrot_group(weight.span.shape[1])
        expected = {"format": "int8_tensorwise", "convrot": True, "convrot_groupsize": group}
        found: Any = None
        if quant is not None:
            text = bytes(quant.file.read(quant.name).to(torch.uint8).tolist())
            try:
                found = json.loads(text)
            except (UnicodeDecodeError, json.JSONDecodeError):
                found = text[:80]
        if not isinstance(found, dict) or any(found.get(k) != v for k, v in expected.items()):
            raise CheckpointError(
                "unknown int8 rule",
                file=path,
                tensor=f"{module}.comfy_quant",
                expected=json.dumps(expected),
                found=json.dumps(found, default=str) if found is not None else "nothing",
                remedy="This checkpoint needs a newer Lowpeak.",
            )


def _plain_weight(tensors: dict[str, Tensor], name: str) -> Tensor | None:
    """The weight of that name out of quantisation, its codes and scale removed; None if absent."""
    linear = name.removesuffix(".weight")
    codes = next((f"{linear}.{s}" for s in _CODES if f"{linear}.{s}" in tensors), None)
    if codes is None:
        return tensors.get(name)
    scale = tensors.pop(f"{linear}.weight_scale")
    dequantise = dequantise_int8_convrot if codes.endswith("int8") else dequantise_fp8
    return dequantise(tensors.pop(codes), scale).to(torch.bfloat16)


def _read(parts: Sources) -> dict[str, Tensor]:
    """One module's tensors under edge suffixes: weight, weight_int8 or weight_fp8, weight_scale."""
    kept = {part: source for part, source in parts.items() if part not in _IGNORED}
    found: dict[str, Tensor] = {}
    for part, tensor in read_sources(kept).items():
        if part in _SCALES:
            found["weight_scale"] = tensor.reshape(-1, 1)
        elif part == "weight" and tensor.dtype in (torch.int8, torch.float8_e4m3fn):
            found["weight_int8" if tensor.dtype == torch.int8 else "weight_fp8"] = tensor
        else:
            found[part] = tensor
    return found


def _named(module: str, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{module}.{part}": tensor for part, tensor in parts.items()}


def _convert(modules: Mapping[str, Sources], prefix: str, *, base: str) -> dict[str, Tensor]:
    """A block's tensors under this package's names; base: where q, k, v and their norms go."""
    found: dict[str, Tensor] = {}
    for module, sources in modules.items():
        parts = _read(sources)
        if module == _QKV:
            for i, target in enumerate(("to_q", "to_k", "to_v")):
                third = {part: _rows(tensor, i, 3) for part, tensor in parts.items()}
                found |= _named(f"{prefix}{base}{target}", third)
        elif module == _FC1:
            swapped = {part: _swap_halves(tensor) for part, tensor in parts.items()}
            found |= _named(f"{prefix}ff.net.0.proj", swapped)
        else:
            name = _BLOCK[module].replace("attn.", base)
            found |= _named(f"{prefix}{name}", parts)
    return found


def _rows(tensor: Tensor, index: int, count: int) -> Tensor:
    """The index-th of `count` equal parts of the rows; a scale for all rows stays whole."""
    return tensor if tensor.shape[0] == 1 else tensor.chunk(count)[index]


def _swap_halves(tensor: Tensor) -> Tensor:
    if tensor.shape[0] == 1:
        return tensor
    first, second = (half.view(torch.uint8) if half.dtype.itemsize == 1 else half
                     for half in tensor.chunk(2))  # fmt: skip
    return torch.cat([second, first]).view(tensor.dtype)
