"""ComfyUI's names of this model and what a single file must hold, checked from its header.

Sizes are derived from shapes, because the file carries no configuration; a JSON `config` in its
metadata (as our own miniatures have) settles what shapes cannot tell. Int8 weights without rotation
look like rotated ones, so the few bytes of JSON in `comfy_quant` are read as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...kernels.weights import convrot_group
from ..errors import CheckpointError
from ..model.config import ModelConfig
from .header import FLOAT_NAMES, TensorFile
from .names import ADALN, projection_shapes, root_shapes
from .sources import Source, Sources, check_sources

PREFIXES = ("model.diffusion_model.", "diffusion_model.", "")
ROOT = {
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
BLOCK = {
    "norm1": "norm1",
    "norm2": "norm2",
    "attn.q_norm": "attn.norm_q",
    "attn.k_norm": "attn.norm_k",
    "attn.out_proj": "attn.to_out.0",
    "mlp.fc2": "ff.net.2",
    "adaln_proj.linear": "adaln_proj.linear",
}
QKV, FC1 = "attn.qkv_proj", "mlp.fc1"
CODES = ("weight_int8", "weight_fp8")
SCALES = ("weight_scale", "scale_weight")
IGNORED = ("rope.inv_freq", "scaled_fp8", "input_scale", "scale_input", "comfy_quant")
BLOCK_NAME = re.compile(r"(token_refiner\.)?blocks\.(\d+)\.(.+)")


def modules_of(file: TensorFile) -> dict[str, Sources]:
    """Tensors grouped by module: {'blocks.0.attn.qkv_proj': {'weight': ..., 'bias': ...}}."""
    found: dict[str, Sources] = {}
    for name in file.tensors:
        module, _, part = name.rpartition(".")
        found.setdefault(module, {})[part] = Source(file, name)
    return found


def stack_of(
    file: TensorFile, modules: Mapping[str, Sources], prefix: str
) -> tuple[Mapping[str, Sources], ...]:
    stack: dict[int, dict[str, Sources]] = {}
    for module, parts in modules.items():
        match = BLOCK_NAME.fullmatch(module)
        if match is None or (match[1] or "") != prefix:
            continue
        if match[3] not in {*BLOCK, QKV, FC1}:
            raise CheckpointError(
                "unknown part of a block",
                file=file.path,
                tensor=module,
                expected=", ".join([*BLOCK, QKV, FC1]),
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


def derive_config(
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
        heads=shape(blocks[0], QKV)[0] // 3 // head_dim,
        head_dim=head_dim,
        hidden=hidden,
        ffn=shape(blocks[0], FC1)[0] // 2,
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
        name = next((item for item in SCALES if item in parts), SCALES[0])
        size = rows if weight.span.dtype == "I8" else 1
        expected[f"{module}.{SCALES[0]}"] = (("F32",), (size,))
        if name in parts:
            sources[f"{module}.{SCALES[0]}"] = parts[name]
    check_sources(sources, expected, where=where)


def check_block(
    block: Mapping[str, Sources], config: ModelConfig, where: str, time_dim: int | None
) -> None:
    hidden, inner, ffn = config.hidden, config.inner, config.ffn
    linears = {
        QKV: (3 * inner, hidden),
        "attn.out_proj": (hidden, inner),
        FC1: (2 * ffn, hidden),
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


def check_root(
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
            sources |= {f"{ROOT[module]}.{part}": source for part, source in parts.items()}
    quantised = (*FLOAT_NAMES, "I8", "F8_E4M3")
    check_sources(sources, {k: (quantised, v) for k, v in shapes.items()}, where=path)


def check_quantisers(blocks: Iterable[Mapping[str, Sources]], path: Path) -> None:
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
            text = quant.file.read_bytes(quant.name)
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
