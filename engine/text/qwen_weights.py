"""Linear layers in every form a text encoder's files use, dequantised tile by tile.

    float    W as stored
    fp8      W = codes * scale                              one scale, or one a row
    int8     W = (codes * scale) H, H per group             group 1: not rotated
    nvfp4    W = e2m1(codes) * (tensor scale * block scale) a scale for 16 inputs, two codes a byte,
                                                            the even input in the high half
    y = (x * pre_quant_scale) W^T + bias

NVFP4's block scales are stored for matrix units: tiles of 128 rows by 4 scales, in which row r has
place (r mod 32, r div 32); both sides are padded to whole tiles. A tile of rows is all that exists
in a float dtype at a time, so a quantised layer costs its stored size and little more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ...kernels.reference.quantise import dequantise_int8_convrot
from ..checkpoint.header import FLOAT_NAMES
from ..units import round_up

TILE_ELEMENTS = 16 << 20  # of a weight in fp32 at once; a few copies of it live for a moment
SCALE_ROWS, SCALE_COLUMNS = 128, 4  # of a stored tile of block scales
BLOCK = 16  # inputs that share a block scale
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


@dataclass(frozen=True)
class Form:
    """How one weight is stored. rows, columns: [out, in] as used. group: of the int8 rotation."""

    kind: str  # "float" | "fp8" | "int8" | "nvfp4"
    rows: int
    columns: int
    group: int = 1

    def expected(self) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
        """What must lie in the file: ending after the layer's name -> dtypes and shape.

        Scales of fp8 and int8, one or one a row, are for the reader to check.
        """
        if self.kind == "float":
            return {"weight": (FLOAT_NAMES, (self.rows, self.columns))}
        if self.kind in ("fp8", "int8"):
            dtype = "F8_E4M3" if self.kind == "fp8" else "I8"
            return {"weight": ((dtype,), (self.rows, self.columns))}
        return {
            "weight": (("U8",), (self.rows, self.columns // 2)),
            "weight_scale": (
                ("F8_E4M3", "U8"),
                (
                    round_up(self.rows, SCALE_ROWS),
                    round_up(self.columns // BLOCK, SCALE_COLUMNS),
                ),
            ),
            "weight_scale_2": (("F32",), ()),
        }


def weight_rows(form: Form, tensors: Mapping[str, Tensor], start: int, stop: int) -> Tensor:
    """Rows start..stop of a weight, fp32 [stop - start, in].

    tensors: by ending ("weight", "weight_scale", ...). start: a multiple of SCALE_ROWS.
    """
    codes = tensors["weight"][start:stop]
    if form.kind == "float":
        return codes.float()
    scale = tensors.get("weight_scale")
    if form.kind == "nvfp4":
        assert scale is not None
        blocks = block_scales(scale, form, start, stop) * tensors["weight_scale_2"].reshape(())
        return (unpack_e2m1(codes).view(stop - start, -1, BLOCK) * blocks[..., None]).flatten(1)
    if scale is None:
        return codes.float()
    scale = scale.float().reshape(-1, 1)
    scale = scale if scale.shape[0] == 1 else scale[start:stop]
    if form.kind == "int8":
        return dequantise_int8_convrot(codes, scale, form.group)
    return codes.float() * scale


def unpack_e2m1(packed: Tensor) -> Tensor:
    """packed: [..., n] uint8, two codes a byte. Returns their values, fp32 [..., 2 n]."""
    table = torch.tensor((*E2M1, *(-value for value in E2M1)), device=packed.device)
    codes = torch.stack((packed >> 4, packed & 15), dim=-1).flatten(-2)
    return table[codes.int()]


def block_scales(stored: Tensor, form: Form, start: int, stop: int) -> Tensor:
    """Block scales of rows start..stop out of their stored tiles: fp32 [stop - start, in / 16]."""
    across = round_up(form.columns // BLOCK, SCALE_COLUMNS) // SCALE_COLUMNS
    first, last = start // SCALE_ROWS, -(-stop // SCALE_ROWS)
    tiles = stored.view(torch.uint8).reshape(-1, across, 32, 4, SCALE_COLUMNS)[first:last]
    plain = tiles.permute(0, 3, 2, 1, 4).reshape(-1, across * SCALE_COLUMNS)
    plain = plain.view(torch.float8_e4m3fn)[start - first * SCALE_ROWS :][: stop - start]
    return plain[:, : form.columns // BLOCK].float()


def apply_linear(form: Form, tensors: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """x [rows, in] through the layer, in x's dtype: [rows, out]."""
    bias = tensors.get("bias")
    bias = None if bias is None else bias.to(x.dtype)
    smooth = tensors.get("pre_quant_scale")
    if smooth is not None:
        x = x * smooth.to(x.dtype)
    weight = tensors["weight"]
    if form.kind == "float" and weight.dtype == x.dtype:
        return functional.linear(x, weight, bias)
    out = x.new_empty(x.shape[0], form.rows)
    tile_rows = max(1, TILE_ELEMENTS // form.columns // SCALE_ROWS) * SCALE_ROWS
    for start in range(0, form.rows, tile_rows):
        stop = min(start + tile_rows, form.rows)
        tile = weight_rows(form, tensors, start, stop).to(x.dtype)
        out[:, start:stop] = functional.linear(x, tile, None if bias is None else bias[start:stop])
    return out
