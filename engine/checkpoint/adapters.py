"""OpenVDN's adapters: low-rank pairs beside the base model, merged in a fixed order.

W = base + default + turbo: each delta is (alpha / rank) B A in fp32, added in the weight's own
dtype, one adapter after the other (facts: model sheet c.1, c.2). General LoRA files are the
business of engine/lora; this reads only the release's own adapter folders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError
from .header import TensorFile, read_header
from .names import split_block_name
from .sources import Source, read_json

if TYPE_CHECKING:
    from torch import Tensor

TILE_ROWS = 256  # a tile of float32 stays in a processor's caches
TILE_ELEMENTS = 16 << 20  # on a device: few kernels, 64 MiB of float32
MERGE_ORDER = ("default", "turbo")
SPEC_FILES = ("adapter_config.json", "adapter_spec.json")  # one content under two names
_KEY = re.compile(r"(?:base_model\.model\.)?(.+)\.lora_([AB])(?:\.[^.]+)?\.weight")


@dataclass(frozen=True)
class LowRank:
    """One pair: delta = scale * up @ down, up [out, r], down [r, in]."""

    down: Source
    up: Source
    scale: float

    def add_to(self, weight: Tensor) -> None:
        """Add the difference to a weight [out, in], in place."""
        down = self.down.file.read(self.down.name)
        up = self.up.file.read(self.up.name)
        add_low_rank(weight, up, down, self.scale)


@dataclass(frozen=True)
class Adapter:
    """One adapter folder. `pairs` by (block or None, local name of the weight)."""

    name: str
    file: TensorFile
    pairs: Mapping[tuple[int | None, str], LowRank]

    def check(self, shapes: Mapping[tuple[int | None, str], tuple[int, ...]]) -> None:
        """Every pair must fit a weight of the model. Raises CheckpointError."""
        for key, pair in self.pairs.items():
            shape = shapes.get(key)
            if shape is None:
                raise CheckpointError(
                    f"adapter {self.name} changes a weight that the model has not",
                    file=self.file.path,
                    tensor=pair.down.name,
                )
            rank = pair.down.span.shape[0]
            for source, expected in ((pair.down, (rank, shape[1])), (pair.up, (shape[0], rank))):
                if source.span.shape != expected:
                    raise CheckpointError(
                        "wrong shape",
                        file=self.file.path,
                        tensor=source.name,
                        expected=list(expected),
                        found=list(source.span.shape),
                    )


def read_adapter(folder: Path) -> Adapter:
    """Headers and scales of one adapter folder. Raises CheckpointError; reads no tensor."""
    spec_path = next((folder / name for name in SPEC_FILES if (folder / name).is_file()), None)
    if spec_path is None:
        raise CheckpointError("adapter has no spec", file=folder, expected=" or ".join(SPEC_FILES))
    spec = read_json(spec_path)
    files = sorted(folder.glob("*.safetensors"))
    if len(files) != 1:
        raise CheckpointError(
            "adapter folder must hold one weight file", file=folder, expected=1, found=len(files)
        )
    file = read_header(files[0])
    halves: dict[str, dict[str, Source]] = {}
    for name in file.tensors:
        match = _KEY.fullmatch(name)
        if match is None:
            raise CheckpointError("unknown adapter tensor", file=file.path, tensor=name)
        halves.setdefault(match[1], {})[match[2]] = Source(file, name)
    pairs = {}
    for module, half in halves.items():
        if len(half) != 2:
            raise CheckpointError(
                "adapter pair is not complete", file=file.path, tensor=module, expected="A and B",
                found=", ".join(sorted(half)),
            )  # fmt: skip
        rank = half["A"].span.shape[0]
        place = split_block_name(f"{module}.weight")
        key = (None, f"{module}.weight") if place is None else place
        pairs[key] = LowRank(half["A"], half["B"], _alpha(spec, module) / rank)
    return Adapter(folder.name, file, pairs)


def merge(weight: Tensor, name: tuple[int | None, str], adapters: Sequence[Adapter]) -> None:
    """Add all adapters to a freshly read weight, in their order, in place."""
    for adapter in adapters:
        pair = adapter.pairs.get(name)
        if pair is not None:
            pair.add_to(weight)


def add_low_rank(weight: Tensor, up: Tensor, down: Tensor, scale: float) -> None:
    """weight += scale * up @ down, in place: [out, in], [out, r], [r, in].

    The product runs in fp32, the sum in the weight's dtype. Tiles of rows keep the fp32 workspace
    at a few dozen MiB; the largest weight's whole difference would be a gigabyte.
    """
    import torch

    wide = down.to(weight.device, torch.float32)
    tile = tile_rows(weight)
    for rows, target in zip(up.split(tile), weight.split(tile), strict=True):
        delta = rows.to(weight.device, torch.float32) @ wide
        target += (delta if scale == 1 else delta * scale).to(weight.dtype)


def tile_rows(weight: Tensor) -> int:
    """Rows of a weight [N, K] to work on at once. It depends on shape and kind of device alone."""
    if weight.device.type == "cpu":
        return TILE_ROWS
    return max(TILE_ROWS, TILE_ELEMENTS // weight.shape[1])


def _alpha(spec: Mapping[str, Any], module: str) -> float:
    """PEFT's rule: the first alpha pattern that matches the module's end, else lora_alpha."""
    for pattern, alpha in (spec.get("alpha_pattern") or {}).items():
        if re.fullmatch(rf"(?:.*\.)?(?:{pattern})", module):
            return float(alpha)
    if "lora_alpha" not in spec:
        raise CheckpointError("adapter spec has no lora_alpha", tensor=module)
    return float(spec["lora_alpha"])
