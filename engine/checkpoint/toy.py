"""Synthetic checkpoints in every published layout: random weights that behave like a model.

Every tensor has its own generator, seeded by (seed, name), so any tensor can be made alone, in any
order, and two layouts of one seed hold one model. Scales keep activations finite and of ordinary
size through 50 blocks: linears at 1/sqrt(width), norms around 1 with a few outlier channels, gates
around 0.1, decays between 0.7 and 1. CPU and CUDA generators differ: `device` is part of the seed.

Sizes: tiny (seconds on a CPU), block (two blocks of the real width), full (the real shapes).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from ..model.config import ModelConfig
from ..sampling.schedules import TASK_CONDITIONS, community_schedule, schedule
from .adapters import add_low_rank
from .edge import CACHES
from .edge_recipe import EdgeRecipe, Progress
from .names import ADALN, FP32_ROOT, block_shapes, part_groups, root_linears, root_shapes
from .parts import Part
from .tables import Times
from .toy_layouts import write_comfy, write_openvdn, write_stage
from .toy_sizes import FORMATS, SIZES, check_toy
from .writer import write_edge

GENERATOR = "lowpeak toy-checkpoint"  # what the edge layout's manifest says of its origin
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
                add_low_rank(weight, pair[1], pair[0], 1.0)
        return weight

    def root_tensors(self) -> dict[str, Tensor]:
        """The root's tensors under diffusers names."""
        return {name: self.merged(name, shape) for name, shape in root_shapes(self.config).items()}

    def block_tensors(self, block: int) -> dict[str, Tensor]:
        """A block's tensors under local names."""
        return {name: tensor for part in self.block_parts(block) for name, tensor in part.items()}

    def parts(self, block: int | None) -> Iterator[Part]:
        """See writer.SourceModel."""
        tensors = (self.root_tensors(),) if block is None else self.block_parts(block)
        for part in tensors:
            yield Part(made=part)

    def block_parts(self, block: int) -> Iterator[dict[str, Tensor]]:
        """A block's tensors in a few parts."""
        shapes = block_shapes(self.config, projection=True)
        prefix = f"transformer_blocks.{block}."
        for names in part_groups(shapes):
            yield {name: self.merged(prefix + name, shapes[name]) for name in names}

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
    check_toy(size, format)
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
            device=device,
            extra={"generator": GENERATOR},
        )
        write_edge(folder / CACHES[kind], model, recipe, progress)
    for extra in extras:
        extra(folder, config, seed)
    return folder
