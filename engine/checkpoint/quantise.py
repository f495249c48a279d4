"""A checkpoint's linears as codes and scales, in tiles of rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.reference.quantise import (
    quantise_fp8_rowwise,
    quantise_fp8_tensor,
    quantise_int8_convrot,
)
from ...kernels.weights import FP8_MAX
from .adapters import tile_rows


def quantise_tensors(
    tensors: dict[str, Tensor], linears: Sequence[str], weight_format: str
) -> dict[str, Tensor]:
    """Replace the linears' weights by codes and scales, as an edge file stores them.

    Weights are taken out of `tensors` one by one, so that the peak stays at one weight's workspace.
    A linear that is quantised already in this format keeps its codes.
    """
    suffix = "weight_int8" if weight_format == "int8-convrot" else "weight_fp8"
    found: dict[str, Tensor] = {}
    for name in linears:
        if f"{name}.{suffix}" in tensors:
            continue
        codes, scale = quantise_tiles(tensors.pop(f"{name}.weight"), weight_format)
        found[f"{name}.{suffix}"], found[f"{name}.weight_scale"] = codes, scale
    return found | tensors


def quantise_tiles(weight: Tensor, weight_format: str) -> tuple[Tensor, Tensor]:
    """Codes and scale of one weight [N, K], in tiles of rows: equal to quantising it at once."""
    tiles = weight.split(tile_rows(weight))
    if weight_format == "fp8-tensor":
        # The reference takes one scale from the tile it sees: give it the largest value's row.
        largest = torch.stack([tile.abs().amax() for tile in tiles]).amax()
        _, scale = quantise_fp8_tensor(largest.reshape(1, 1))
        parts = [_codes_at(tile, scale) for tile in tiles]
        return torch.cat([part.view(torch.uint8) for part in parts]).view(parts[0].dtype), scale
    quantise = quantise_int8_convrot if weight_format == "int8-convrot" else quantise_fp8_rowwise
    pairs = [quantise(tile) for tile in tiles]
    codes = torch.cat([codes.view(torch.uint8) for codes, _ in pairs]).view(pairs[0][0].dtype)
    return codes, torch.cat([scale for _, scale in pairs], 0 if codes.dtype == torch.int8 else 1)


def _codes_at(tile: Tensor, scale: Tensor) -> Tensor:
    return (tile / scale.to(tile.dtype)).clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn)
