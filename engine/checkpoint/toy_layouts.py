"""Toy models in the unmerged layouts: OpenVDN's folders and ComfyUI's single file.

Tensors are made when their turn in the file comes, so that a full-size file never lies in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .comfy_names import BLOCK, ROOT
from .header import write_tensors
from .names import ADALN, FP32_ROOT, LINEAR_OUT, block_shapes, branch_shapes, root_shapes

if TYPE_CHECKING:
    from .toy import ToyModel

ADAPTERS = ("default", "turbo")


def write_openvdn(folder: Path, model: ToyModel) -> None:
    """h3-base with one shard a block, and a stage folder."""
    config = model.config
    base = folder / "h3-base" / "transformer"
    shards: dict[str, dict[str, tuple[int, ...]]] = {}
    count = config.layers + 1
    for i in range(config.layers):
        shapes = block_shapes(config, projection=True)
        for name in branch_shapes(config):
            shapes.pop(name)
        prefix = f"transformer_blocks.{i}."
        shards[_shard(i + 1, count)] = {prefix + name: shape for name, shape in shapes.items()}
    shards[_shard(count, count)] = root_shapes(config)
    weight_map: dict[str, str] = {}
    for file, shapes in shards.items():
        stored = {name.replace(".orig.", "."): name for name in shapes}
        weight_map |= dict.fromkeys(stored, file)
        write_tensors(
            base / file,
            {new: _announce(old, shapes[old]) for new, old in stored.items()},
            {"format": "pt"},
            load=lambda new, stored=stored, shapes=shapes: model.tensor(  # type: ignore[misc]
                stored[new], shapes[stored[new]]
            ),
        )
    index = {"metadata": {}, "weight_map": weight_map}
    _json(base / "diffusion_pytorch_model.safetensors.index.json", index)
    _json(base / "config.json", {"_class_name": "MiniMaxH3Transformer3DModel", **config.as_json()})
    write_stage(folder / "stage-toy", model)


def write_stage(folder: Path, model: ToyModel) -> None:
    """An OpenVDN stage: transform, linear branch, both adapters."""
    config = model.config
    assert config.vdn is not None
    transform = config.vdn.as_json()
    names = {
        f"transformer_blocks.{i}.{name}": shape
        for i in range(config.layers)
        for name, shape in branch_shapes(config).items()
    }
    write_tensors(
        folder / "linear_branch" / "model.safetensors",
        {name: _announce(name, shape) for name, shape in names.items()},
        load=lambda name: model.tensor(name, names[name]),
    )
    _json(folder / "linear_branch" / "config.json", transform)
    for adapter in ADAPTERS:
        _write_adapter(folder / "adapters" / adapter, adapter, model)
    spec = {"transform": transform, "adapters": [{"name": name} for name in ADAPTERS]}
    _json(folder / "model_spec.json", spec)
    _json(folder / "metadata.json", {"kind": "weights", "format": "v2", "stage": "toy", "step": 0})


def write_comfy(path: Path, model: ToyModel) -> None:
    """The base model as one file with ComfyUI's names, stacked qkv and swapped SwiGLU halves."""
    config = model.config
    made: dict[str, tuple[tuple[int, ...], Callable[[], Tensor]]] = {}

    def keep(new: str, old: str, shape: tuple[int, ...]) -> None:
        made[new] = (shape, lambda: model.tensor(old, shape))

    root = root_shapes(config)
    for new, old in ROOT.items():
        for part in ("weight", "bias"):
            if f"{old}.{part}" in root:
                keep(f"{new}.{part}", f"{old}.{part}", root[f"{old}.{part}"])
    stacks = [(f"blocks.{i}.", f"transformer_blocks.{i}.", "attn.orig.") for i in
              range(config.layers)]  # fmt: skip
    stacks += [
        (f"token_refiner.blocks.{i}.", f"token_refiner.refiner_blocks.{i}.", "attn.")
        for i in range(config.refiner_layers)
    ]
    shapes = block_shapes(config, projection=True)
    for new, old, attention in stacks:
        for name, source in BLOCK.items():
            source = source.replace("attn.", attention)
            for part in ("weight", "bias"):
                shape = shapes.get(f"{source.replace(attention, 'attn.orig.')}.{part}")
                if shape is not None and not (ADALN in source and old.startswith("token")):
                    keep(f"{new}{name}.{part}", f"{old}{source}.{part}", shape)
        made[f"{new}attn.qkv_proj.weight"] = (
            (3 * config.inner, config.hidden),
            lambda old=old, attention=attention: torch.cat(  # type: ignore[misc]
                [model.tensor(f"{old}{attention}to_{n}.weight", (config.inner, config.hidden))
                 for n in "qkv"]
            ),
        )  # fmt: skip
        made[f"{new}mlp.fc1.weight"] = (
            (2 * config.ffn, config.hidden),
            lambda old=old: torch.cat(  # type: ignore[misc]
                model.tensor(f"{old}ff.net.0.proj.weight", (2 * config.ffn, config.hidden))
                .chunk(2)[::-1]
            ),
        )  # fmt: skip
    # What a shape cannot tell (the number of rotary frequencies) is said in the metadata.
    metadata = {"config": json.dumps(config.as_json(), sort_keys=True)}
    announced = {name: _announce(_fp32_name(name), shape) for name, (shape, _) in made.items()}
    write_tensors(path, announced, metadata, load=lambda name: made[name][1]())


def _fp32_name(name: str) -> str:
    return ROOT.get(name.rpartition(".")[0], name)


def _write_adapter(folder: Path, adapter: str, model: ToyModel) -> None:
    pairs: dict[str, Tensor] = {}
    makers: dict[str, Callable[[], Tensor]] = {}
    for name, shape in model.adapter_targets(adapter).items():
        module, rank = name.removesuffix(".weight"), model.rank(name)
        for half, size, which in (("A", (rank, shape[1]), 0), ("B", (shape[0], rank), 1)):
            key = f"base_model.model.{module}.lora_{half}.{adapter}.weight"
            pairs[key] = torch.empty(size, dtype=torch.bfloat16, device="meta")

            def make(name: str = name, which: int = which) -> Tensor:
                pair = model.adapter(adapter, name)
                assert pair is not None
                return pair[which]

            makers[key] = make
    write_tensors(folder / "adapter_model.safetensors", pairs, load=lambda key: makers[key]())
    rank, narrow = model.rank(LINEAR_OUT), model.rank(ADALN)
    patterns = {"adaln_proj\\.linear": narrow, "norm_out\\.linear": narrow}
    spec = {
        "peft_type": "LORA",
        "r": rank,
        "lora_alpha": rank,
        "rank_pattern": patterns if adapter == "turbo" else {},
        "alpha_pattern": patterns if adapter == "turbo" else {},
        "target_modules": sorted({n.rpartition(".")[0].rsplit(".", 1)[-1]
                                  for n in model.adapter_targets(adapter)}),
    }  # fmt: skip
    _json(folder / "adapter_config.json", spec)


def _announce(name: str, shape: Sequence[int]) -> Tensor:
    dtype = torch.float32 if name.startswith(FP32_ROOT) else torch.bfloat16
    return torch.empty(tuple(shape), dtype=dtype, device="meta")


def _shard(number: int, count: int) -> str:
    return f"diffusion_pytorch_model-{number:05d}-of-{count:05d}.safetensors"


def _json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
