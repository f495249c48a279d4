"""The latent upscaler's file: its tensors, read and checked before anything runs, and toys of it.

One safetensors file, float16, bare names (322 tensors, 690,592,672 bytes in the released one), or
the same names under the prefix `upscaler.` (facts: model sheet d.7, l.11). Width and depth are read
from the header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..errors import CheckpointError

PREFIX = "upscaler."
EMBED_WIDTH = 64
LATENT_CHANNELS = 24
NORM_GROUPS = 32
FLOATS = ("F16", "BF16", "F32")

Shape = tuple[int, ...]


@dataclass(frozen=True)
class UpscalerConfig:
    """Sizes of an upscaler.

    in_blocks, out_blocks: residual blocks before and after the resize.
    width: channels inside, a multiple of 32. channels: of the latents.
    """

    width: int = 512
    in_blocks: int = 12
    out_blocks: int = 12
    channels: int = LATENT_CHANNELS
    temporal_taps: int = 5

    def entries(self, side: str) -> list[tuple[str, bool]]:
        """(name, is temporal convolution) of the list `side`, "in_blocks" or "out_blocks".

        A temporal convolution follows residual blocks 0, 2, 4, ...
        """
        found: list[tuple[str, bool]] = []
        for block in range(getattr(self, side)):
            found.append((f"{side}.{len(found)}", False))
            if block % 2 == 0:
                found.append((f"{side}.{len(found)}", True))
        return found

    def shapes(self) -> dict[str, Shape]:
        """Every tensor's shape by its bare name."""
        width, cube = self.width, (3, 3, 3)
        shapes: dict[str, Shape] = {
            "embed.0.weight": (EMBED_WIDTH, 1),
            "embed.2.weight": (EMBED_WIDTH, EMBED_WIDTH),
            "conv_in.weight": (width, self.channels, *cube),
            "norm_out.weight": (width,),
            "conv_out.weight": (self.channels, width, *cube),
        }
        for name, temporal in self.entries("in_blocks") + self.entries("out_blocks"):
            if temporal:
                shapes[f"{name}.norm.weight"] = (width,)
                shapes[f"{name}.dwconv.weight"] = (width, 1, self.temporal_taps, 1, 1)
                shapes[f"{name}.pwconv.weight"] = (width, width, 1, 1, 1)
            else:
                shapes[f"{name}.in_layers.0.weight"] = (width,)
                shapes[f"{name}.in_layers.2.weight"] = (width, width, *cube)
                shapes[f"{name}.emb_layers.1.weight"] = (2 * width, EMBED_WIDTH)
                shapes[f"{name}.out_norm.weight"] = (width,)
                shapes[f"{name}.out_layers.2.weight"] = (width, width, *cube)
        biases = {name.removesuffix("weight") + "bias": size[:1] for name, size in shapes.items()}
        return shapes | biases


@dataclass(frozen=True)
class UpscalerFile:
    """A checked file. Tensors are read when asked for, so a run may stream them."""

    path: Path
    config: UpscalerConfig
    prefix: str
    tensor_bytes: int

    def read(
        self, *parts: str, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
    ) -> dict[str, Tensor]:
        """Tensors whose bare name starts with one of `parts` (all without parts), by bare name."""
        with safe_open(self.path, "pt") as opened:
            return {
                name: opened.get_tensor(self.prefix + name).to(device=device, dtype=dtype)
                for name in self.config.shapes()
                if not parts or name.startswith(parts)
            }


def open_upscaler(path: str | Path) -> UpscalerFile:
    """Read and check the header of an upscaler file. No tensor is read.

    Raises CheckpointError for an unreadable or truncated file, a missing or unexpected tensor, a
    wrong shape or dtype.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(
            "the latent upscaler is missing",
            file=path,
            remedy="Fetch it with `lowpeak models pull`, or sample in a single pass",
        )
    try:
        with safe_open(path, "pt") as opened:
            slices = {key: opened.get_slice(key) for key in opened.keys()}  # noqa: SIM118
            found = {k: (tuple(s.get_shape()), s.get_dtype()) for k, s in slices.items()}
    except SafetensorError as broken:
        raise CheckpointError(f"not a readable safetensors file ({broken})", file=path) from broken
    prefix = PREFIX if any(name.startswith(PREFIX) for name in found) else ""
    config = _infer(path, {k.removeprefix(prefix): v for k, v in found.items()}, prefix)
    total = _check(path, config, found, prefix)
    return UpscalerFile(path, config, prefix, total)


def write_toy_upscaler(
    path: str | Path, seed: int, width: int = 32, depth: int = 1, *, prefix: str = ""
) -> UpscalerFile:
    """Write an upscaler of random float16 weights: `depth` blocks a side, every tensor random.

    Amplitudes keep activations finite at any depth. Returns the checked file.
    """
    config = UpscalerConfig(width=width, in_blocks=depth, out_blocks=depth)
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in sorted(config.shapes().items()):
        noise = torch.rand(shape, generator=generator) * 2 - 1
        if len(shape) > 1:
            noise *= 2 / noise[0].numel() ** 0.5
        else:
            noise = noise * 0.5 + (1.0 if name.endswith("weight") else 0.0)
        tensors[prefix + name] = noise.half()
    save_file(tensors, str(path))
    return open_upscaler(path)


def _infer(path: Path, found: Mapping[str, tuple[Shape, str]], prefix: str) -> UpscalerConfig:
    first = found.get("conv_in.weight")
    if first is None or len(first[0]) != 5:
        raise CheckpointError(
            "not a latent upscaler",
            file=path,
            tensor=f"{prefix}conv_in.weight",
            expected="[width, 24, 3, 3, 3]",
            found=None if first is None else first[0],
        )
    width, channels = first[0][:2]
    if width % NORM_GROUPS or channels != LATENT_CHANNELS:
        raise CheckpointError(
            "an upscaler of another latent space",
            file=path,
            tensor=f"{prefix}conv_in.weight",
            expected=f"[multiple of {NORM_GROUPS}, {LATENT_CHANNELS}, 3, 3, 3]",
            found=first[0],
        )
    blocks = {
        side: sum(
            name.startswith(f"{side}.") and name.endswith(".out_norm.weight") for name in found
        )
        for side in ("in_blocks", "out_blocks")
    }
    return UpscalerConfig(width=width, channels=channels, **blocks)


def _check(
    path: Path, config: UpscalerConfig, found: Mapping[str, tuple[Shape, str]], prefix: str
) -> int:
    total = 0
    expected = config.shapes()
    for name, shape in expected.items():
        here: Any = found.get(prefix + name)
        if here is None or here[0] != shape:
            raise CheckpointError(
                "a tensor is missing" if here is None else "a tensor has the wrong shape",
                file=path,
                tensor=prefix + name,
                expected=shape,
                found=None if here is None else here[0],
            )
        if here[1] not in FLOATS:
            raise CheckpointError(
                "a tensor has the wrong dtype",
                file=path,
                tensor=prefix + name,
                expected=" or ".join(FLOATS),
                found=here[1],
            )
        total += torch.Size(shape).numel() * (4 if here[1] == "F32" else 2)
    for name in sorted(found):
        if name.removeprefix(prefix) not in expected or not name.startswith(prefix):
            raise CheckpointError(
                "an unexpected tensor", file=path, tensor=name, expected=None, found=found[name][0]
            )
    return total
