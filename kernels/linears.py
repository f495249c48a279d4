"""Ways to run a quantised linear. Each takes an activation of its own kind and a Weight.

    scaled_product        PyTorch's scaled FP8 product, row scales or one scale a tensor
    scaled_product_tiled  row scales where the build lacks that kernel: one-scale products into
                          float32 tiles of at most 32 MiB, then one rescale
    int8_library          PyTorch's int8 product into int32, then one rescale
    int8_triton           our int8 product with the scales in its epilogue
    int8_kitchen          comfy-kitchen's fused int8 linear, which quantises itself
    storage               weights decoded tile by tile to the compute dtype, plain product

All have the signature of kernels.reference.quantise.linear. `storage` and `int8_kitchen` want
plain activations; kernels.compose sees to it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .reference import quantise as reference
from .weights import Activation, Weight

TILE_BYTES = 32 << 20
MIN_LIBRARY_ROWS = 17  # torch._int_mm refuses fewer


def scaled_product(
    act: Activation, weight: Weight, out_dtype: torch.dtype, *, out: Tensor | None = None
) -> Tensor:
    """Widths that are no multiples of 16, which only miniatures have, take the plain form."""
    if weight.kind == "plain" or not _sixteens(weight):
        return reference.linear(act, weight, out_dtype, out=out)
    where = {} if out is None else {"out": out}
    result = torch._scaled_mm(
        act.codes,
        weight.codes.t(),
        scale_a=act.scale,
        scale_b=weight.scale,
        out_dtype=out_dtype,
        use_fast_accum=True,
        **where,
    )
    return result if weight.bias is None else result.add_(weight.bias.to(out_dtype))


def scaled_product_tiled(
    act: Activation, weight: Weight, out_dtype: torch.dtype, *, out: Tensor | None = None
) -> Tensor:
    """Row scales applied after products with unit scales."""
    if weight.kind == "plain" or not _sixteens(weight):
        return reference.linear(act, weight, out_dtype, out=out)
    assert act.scale is not None and weight.scale is not None
    out = _output(act, weight, out_dtype, out)
    one = torch.ones((), dtype=torch.float32, device=out.device)
    scales = weight.scale.reshape(-1).expand(weight.codes.shape[0]).contiguous()
    row_scales = act.scale.reshape(-1).expand(act.codes.shape[0]).contiguous()
    for rows, columns in tiles(act.codes.shape[0], weight.codes.shape[0], 4):
        product = torch._scaled_mm(
            act.codes[rows],
            weight.codes[columns].t(),
            scale_a=one,
            scale_b=one,
            out_dtype=torch.float32,
            use_fast_accum=True,
        )
        bias = None if weight.bias is None else weight.bias[columns]
        _rescale(product, row_scales[rows], scales[columns], out[rows, columns], bias)
    return out


def int8_library(
    act: Activation, weight: Weight, out_dtype: torch.dtype, *, out: Tensor | None = None
) -> Tensor:
    """torch._int_mm, a tile of int32 sums at a time."""
    if weight.kind == "plain" or weight.codes.shape[0] % 8 or weight.codes.shape[1] % 8:
        return reference.linear(act, weight, out_dtype, out=out)
    assert act.scale is not None and weight.scale is not None
    out = _output(act, weight, out_dtype, out)
    codes, count = act.codes, act.codes.shape[0]
    if count < MIN_LIBRARY_ROWS:
        codes = torch.nn.functional.pad(codes, (0, 0, 0, MIN_LIBRARY_ROWS - count))
    row_scales, scales = act.scale.reshape(-1), weight.scale.reshape(-1)
    for columns in column_tiles(codes.shape[0], weight.codes.shape[0], 4):
        product = torch._int_mm(codes, weight.codes[columns].t())[:count]
        bias = None if weight.bias is None else weight.bias[columns]
        _rescale(product, row_scales, scales[columns], out[:, columns], bias)
    return out


def int8_triton(
    act: Activation, weight: Weight, out_dtype: torch.dtype, *, out: Tensor | None = None
) -> Tensor:
    """One launch."""
    if weight.kind == "plain":
        return reference.linear(act, weight, out_dtype, out=out)
    from .triton.gemm import int8_gemm

    assert act.scale is not None and weight.scale is not None
    out = _output(act, weight, out_dtype, out)
    return int8_gemm(act.codes, act.scale, weight.codes, weight.scale, out, weight.bias)


def int8_kitchen(
    act: Activation, weight: Weight, out_dtype: torch.dtype, *, out: Tensor | None = None
) -> Tensor:
    """comfy_kitchen.int8_linear. act: plain."""
    if weight.kind == "plain":
        return reference.linear(act, weight, out_dtype, out=out)
    import comfy_kitchen

    result = comfy_kitchen.int8_linear(
        act.codes,
        weight.codes,
        weight.scale,
        None if weight.bias is None else weight.bias.to(out_dtype),
        out_dtype=out_dtype,
        convrot=True,
        convrot_groupsize=reference.convrot_group(weight.codes.shape[1]),
    )
    return result if out is None else out.copy_(result)


def storage(
    act: Activation, weight: Weight, out_dtype: torch.dtype, *, out: Tensor | None = None
) -> Tensor:
    """Plain product with weights decoded to `out_dtype`, 32 MiB of them at a time.

    act: plain. Int8 weights stay in the rotated basis: the activation is rotated once instead.
    """
    if weight.kind == "plain":
        return reference.linear(act, weight, out_dtype, out=out)
    assert weight.scale is not None
    out = _output(act, weight, out_dtype, out)
    x = act.codes.to(out_dtype)
    if weight.kind == "int8-convrot":
        x = _rotated(x)
    columns, width = weight.codes.shape
    step = decoded_columns(width, x.element_size())
    buffer = torch.empty(min(step, columns), width, dtype=out_dtype, device=x.device)
    scales = weight.scale.reshape(-1)
    for first in range(0, columns, step):
        here = slice(first, min(first + step, columns))
        codes = weight.codes[here]
        tile = _decode(codes, scales if scales.numel() == 1 else scales[here], buffer)
        torch.mm(x, tile.t(), out=out[:, here])
    return out if weight.bias is None else out.add_(weight.bias.to(out_dtype))


def decoded_columns(width: int, item_bytes: int) -> int:
    """Weight rows that `storage` decodes at once: whole multiples of 128, because an output that
    begins anywhere else costs up to two thirds of a product's speed."""
    step = max(1, TILE_BYTES // (width * item_bytes))
    return step // 128 * 128 or step


def column_tiles(rows: int, columns: int, item_bytes: int, multiple: int = 16) -> list[slice]:
    """Columns of an [rows, columns] product in slices of at most TILE_BYTES."""
    step = max(multiple, TILE_BYTES // max(1, rows * item_bytes) // multiple * multiple)
    return [slice(n, min(n + step, columns)) for n in range(0, columns, step)]


def tiles(rows: int, columns: int, item_bytes: int) -> list[tuple[slice, slice]]:
    """An [rows, columns] product in tiles of at most TILE_BYTES, tall rather than wide."""
    step = max(16, TILE_BYTES // (16 * item_bytes) // 16 * 16)
    found = []
    for first in range(0, rows, step):
        here = slice(first, min(first + step, rows))
        found += [(here, c) for c in column_tiles(here.stop - here.start, columns, item_bytes)]
    return found


def _sixteens(weight: Weight) -> bool:
    return not (weight.codes.shape[0] % 16 or weight.codes.shape[1] % 16)


def _output(act: Activation, weight: Weight, out_dtype: torch.dtype, out: Tensor | None) -> Tensor:
    if out is not None:
        return out
    shape = (act.codes.shape[0], weight.codes.shape[0])
    return torch.empty(shape, dtype=out_dtype, device=act.codes.device)


def _runs_triton(tensor: Tensor) -> bool:
    """Ours where Triton runs; plain PyTorch on a CPU and on cards that Triton does not know."""
    from .machine import triton_runs

    return triton_runs(tensor.device)


def _rescale(
    product: Tensor, row_scales: Tensor, scales: Tensor, out: Tensor, bias: Tensor | None
) -> None:
    if _runs_triton(product):
        from .triton.gemm import scale_product

        scale_product(product, row_scales, scales, out, bias)
        return
    value = product.to(torch.float32) * (row_scales[:, None] * scales[None, :])
    out.copy_(value if bias is None else value + bias.to(torch.float32))


def _decode(codes: Tensor, scales: Tensor, buffer: Tensor) -> Tensor:
    tile = buffer[: codes.shape[0]]
    if _runs_triton(codes):
        from .triton.gemm import decode_tile

        return decode_tile(codes, scales, tile)
    tile.copy_(codes)  # exact: every code is a value of the dtype
    return torch.mul(tile, scales.reshape(-1, 1), out=tile)


def _rotated(x: Tensor) -> Tensor:
    group = reference.convrot_group(x.shape[1])
    if _runs_triton(x):
        from .triton.quantise import rotate

        return rotate(x, group)
    return reference.rotate(x, group).to(x.dtype)
