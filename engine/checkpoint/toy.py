"""Synthetic checkpoints in every published layout: random weights that behave like a model.

Every tensor has its own generator, seeded by (seed, name), so any tensor can be made alone, in any
order, and two layouts of one seed hold one model. Scales keep activations finite and of ordinary
size through 50 blocks: linears at 1/sqrt(width), norms around 1 with a few outlier channels, gates
around 0.1, decays between 0.7 and 1. CPU and CUDA generators differ: `device` is part of the seed.

Sizes: tiny (seconds on a CPU), block (two blocks of the real width), full (the real shapes).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from ..errors import RequestError
from ..model.config import ModelConfig
from ..sampling.schedules import TASK_CONDITIONS, community_schedule, schedule
from .edge import CACHES
from .header import write_tensors
from .names import (
    ADALN,
    FP32_ROOT,
    LINEAR_OUT,
    block_shapes,
    branch_shapes,
    root_linears,
    root_shapes,
)
from .tables import Times
from .writer import EdgeRecipe, Progress, write_edge

SIZES: dict[str, ModelConfig] = {
    "tiny": ModelConfig(
        layers=3,
        refiner_layers=1,
        heads=2,
        head_dim=32,
        hidden=96,
        ffn=128,
        text_dim=64,
        freq_dim=32,
        time_hidden=48,
        time_dim=40,
        rope_freqs=4,
    ),
    "block": ModelConfig(layers=2),
    "full": ModelConfig(),
}
FORMATS = {
    "edge-fp8": "fp8-tensor",
    "edge-fp8-rowwise": "fp8-rowwise",
    "edge-int8": "int8-convrot",
    "openvdn": "plain",
    "comfy": "plain",
}
ADAPTERS = {"default": 0.04, "turbo": 0.08}  # name -> size of a delta against its weight
FULL_RANK, FULL_ADALN_RANK = 64, 16
OUTLIER_GAIN = 6.0
Extra = Callable[[Path, ModelConfig, int], None]  # folder, config, seed


@dataclass(frozen=True)
class ToyModel:
    """The synthetic model of one (size, seed): base, branch and adapters, made on demand."""

    config: ModelConfig
    seed: int
    device: str = "cpu"
    pruned: bool = False

    def tensor(self, name: str, shape: Sequence[int]) -> Tensor:
        """One base or branch tensor by its full name (`transformer_blocks.0.norm1.weight`)."""
        dtype = torch.float32 if name.startswith(FP32_ROOT) else torch.bfloat16
        return self._values(name, tuple(shape)).to(dtype)

    def adapter(self, adapter: str, name: str) -> tuple[Tensor, Tensor] | None:
        """(down [r, in], up [out, r]) of an adapter on a weight, bf16; None if it leaves it."""
        shape = self.adapter_targets(adapter).get(name)
        if shape is None:
            return None
        rank = self.rank(name)
        # delta = up @ down has a standard deviation of gain / sqrt(in): a fraction of the weight's.
        down = self._normal(f"{adapter}/{name}/down", (rank, shape[1])) / math.sqrt(shape[1])
        up = self._normal(f"{adapter}/{name}/up", (shape[0], rank))
        up = up * (ADAPTERS[adapter] / math.sqrt(rank))
        return down.to(torch.bfloat16), up.to(torch.bfloat16)

    def adapter_targets(self, adapter: str) -> dict[str, tuple[int, ...]]:
        """Weights an adapter changes, by full name (facts: model sheet c.1)."""
        attention = ("attn.orig.to_q", "attn.orig.to_k", "attn.orig.to_v", "attn.orig.to_out.0")
        inner = attention if adapter == "default" else (
            *attention, "ff.net.0.proj", "ff.net.2", ADALN)  # fmt: skip
        shapes = block_shapes(self.config, projection=True)
        found = {
            f"transformer_blocks.{i}.{name}.weight": shapes[f"{name}.weight"]
            for i in range(self.config.layers)
            for name in inner
        }
        refiner = [name for name in root_linears(self.config) if name != "context_embedder"]
        if adapter == "default":
            refiner = [name for name in refiner if ".attn." in name]
        else:
            refiner.append("norm_out.linear")
        root = root_shapes(self.config)
        return found | {f"{name}.weight": root[f"{name}.weight"] for name in refiner}

    def rank(self, name: str) -> int:
        """Rank of the adapters on a weight: 64, and 16 on AdaLN; smaller for miniatures."""
        full = FULL_ADALN_RANK if "norm_out" in name or ADALN in name else FULL_RANK
        return full if self.config.hidden >= 1024 else full // 16

    def merged(self, name: str, shape: Sequence[int]) -> Tensor:
        """A tensor with the adapters added in their order, as the release merges them."""
        weight = self.tensor(name, shape)
        for adapter in ADAPTERS:
            pair = self.adapter(adapter, name)
            if pair is not None:
                weight = weight + (pair[1].float() @ pair[0].float()).to(weight.dtype)
        return weight

    def root_tensors(self) -> dict[str, Tensor]:
        """See writer.SourceModel."""
        return {name: self.merged(name, shape) for name, shape in root_shapes(self.config).items()}

    def block_tensors(self, block: int) -> dict[str, Tensor]:
        """See writer.SourceModel."""
        shapes = block_shapes(self.config, projection=True)
        prefix = f"transformer_blocks.{block}."
        return {name: self.merged(prefix + name, shape) for name, shape in shapes.items()}

    def projection_digest(self, block: int) -> str:
        """See writer.SourceModel: the projection is a function of these words."""
        words = f"toy {self.config} {self.seed} {torch.device(self.device).type} {block}"
        return hashlib.sha256(words.encode()).hexdigest()

    def _normal(self, name: str, shape: tuple[int, ...]) -> Tensor:
        return torch.randn(shape, generator=self._generator(name), device=self.device)

    def _generator(self, name: str) -> torch.Generator:
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
        seed = int.from_bytes(digest[:7], "little")
        return torch.Generator(device=self.device).manual_seed(seed)

    def _values(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """fp32 values of a tensor by what it is."""
        generator = self._generator(name)

        def normal() -> Tensor:
            return torch.randn(shape, generator=generator, device=self.device)

        def uniform(low: float, high: float) -> Tensor:
            spread = torch.rand(shape, generator=generator, device=self.device)
            return low + (high - low) * spread

        if name.endswith(f"{ADALN}.weight") or name.endswith("norm_out.linear.weight"):
            return normal() * (0.5 / math.sqrt(shape[1]))
        if name.endswith(f"{ADALN}.bias"):
            return self._adaln_bias(normal())
        if name.endswith("alpha.A_log"):
            return uniform(-1.0, 0.7)
        if name.endswith("alpha.dt_bias"):
            return torch.log(torch.expm1(uniform(0.01, 0.2)))  # softplus gives the range back
        if name.endswith("alpha.up.weight"):
            return normal() * (0.3 / math.sqrt(shape[1]))
        if ".short_conv." in name:
            values = normal() * 0.1
            centre = (slice(None), 0, *(size // 2 for size in shape[2:]))
            values[centre] += 1.0
            return values
        if name.endswith("softmax_gate.up.bias"):
            return 2.0 + 0.5 * normal()
        if name.endswith("softmax_gate.up.weight"):
            return normal() * (0.5 / math.sqrt(shape[1]))
        if len(shape) == 1 and name.endswith(".weight"):
            return self._norm_weight(1.0 + 0.1 * normal(), name, generator)
        if name.endswith(".bias"):
            return normal() * (1.0 if "output_gate" in name else 0.1)
        return normal() / math.sqrt(shape[-1])

    def _adaln_bias(self, values: Tensor) -> Tensor:
        """Shift and scale around 0, gates around 0.1."""
        parts = values.reshape(3, 6, -1) * 0.1
        parts[:, 2::3] = 0.1 + parts[:, 2::3] * 0.5
        return parts.reshape(-1)

    def _norm_weight(self, values: Tensor, name: str, generator: torch.Generator) -> Tensor:
        """A few channels of the block norms stand out, as in trained models."""
        if name.endswith(("norm1.weight", "norm2.weight")):
            count = max(1, values.numel() // 1000)
            places = torch.randint(
                values.numel(), (count,), generator=generator, device=self.device
            )
            values[places] *= OUTLIER_GAIN
        return values


def toy_tables(size: str) -> tuple[Times, ...]:
    """Schedules that get prepared tables: 8 steps, with keyframes, 3-step refine; more for tiny."""
    tasks = list(TASK_CONDITIONS) if size == "tiny" else ["t2va", "fl2va"]
    counts = (8, 12, 16, 20) if size == "tiny" else (8,)
    found: list[Times] = []
    for task in tasks:
        conditions = TASK_CONDITIONS[task]
        found += [schedule(steps).table_times(conditions) for steps in counts]
        found.append(community_schedule().table_times(conditions))
    return tuple(dict.fromkeys(found))


def write_toy_checkpoint(
    folder: Path,
    *,
    size: str = "tiny",
    format: str = "edge-fp8-rowwise",
    seed: int = 0,
    device: str = "cpu",
    blocks: int | None = None,
    extras: Sequence[Extra] = (),
    progress: Progress | None = None,
) -> Path:
    """Write a synthetic checkpoint below `folder` and return what `open_checkpoint` opens.

    blocks: fewer (or more) blocks than the size has. device: where tensors are made; 'cuda' is
    much faster for full and gives other numbers than 'cpu'. extras: write the other models (VAE,
    upscaler, text encoder) beside it. Raises RequestError for an unknown size or format.
    """
    if size not in SIZES:
        raise RequestError(f"size {size!r} is none of {', '.join(SIZES)}", field="size")
    if format not in FORMATS:
        raise RequestError(f"format {format!r} is none of {', '.join(FORMATS)}", field="format")
    config = SIZES[size] if blocks is None else replace(SIZES[size], layers=blocks)
    model = ToyModel(config, seed, device)
    folder = Path(folder)
    if format == "openvdn":
        write_openvdn(folder, model)
    elif format == "comfy":
        write_comfy(folder / "diffusion_models" / f"minimax_h3_toy_{size}.safetensors", model)
        write_stage(folder / "vdn" / "stage-toy", model)
    else:
        kind = FORMATS[format]
        recipe = EdgeRecipe(
            kind,
            toy_tables(size),
            f"toy-{size}-{seed}-{torch.device(device).type}",
            projections=size == "tiny",
            extra={"generator": "lowpeak toy-checkpoint"},
        )
        write_edge(folder / CACHES[kind], model, recipe, progress)
    for extra in extras:
        extra(folder, config, seed)
    return folder


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
    for new, old in COMFY_ROOT.items():
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
        for name, source in COMFY_BLOCK.items():
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


COMFY_ROOT = {
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
COMFY_BLOCK = {
    "norm1": "norm1",
    "norm2": "norm2",
    "attn.q_norm": "attn.norm_q",
    "attn.k_norm": "attn.norm_k",
    "attn.out_proj": "attn.to_out.0",
    "mlp.fc2": "ff.net.2",
    "adaln_proj.linear": ADALN,
}


def _fp32_name(name: str) -> str:
    return COMFY_ROOT.get(name.rpartition(".")[0], name)


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
