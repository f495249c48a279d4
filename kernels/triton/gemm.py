"""Int8 products with their scales in the epilogue, and the small kernels around library products.

int8_gemm        y = (a b^T) * (row scale * column scale) + bias, int32 accumulation
scale_product    the same epilogue over a finished product (int32 or float32)
decode_tile      quantised weights as values of a float dtype, for a plain product
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..tuning import tuned


@triton.jit
def _store_scaled(
    total, row_scale, column_scale, bias, out, m, n, rows, columns, out_stride, BIAS: tl.constexpr
):  # fmt: skip
    """A tile of a product times its scales, plus bias, into rows m and columns n of out."""
    scale_m = tl.load(row_scale + m, m < rows, 0.0)
    scale_n = tl.load(column_scale + n, n < columns, 0.0)
    value = total.to(tl.float32) * (scale_m[:, None] * scale_n[None, :])
    if BIAS:
        value += tl.load(bias + n, n < columns, 0.0).to(tl.float32)[None, :]
    to = out + m.to(tl.int64)[:, None] * out_stride + n[None, :]
    here = (m < rows)[:, None] & (n < columns)[None, :]
    tl.store(to, value.to(out.dtype.element_ty), here)


@triton.jit
def _int8_gemm(
    a, b, row_scale, column_scale, bias, out, rows, columns, width, out_stride,
    BIAS: tl.constexpr, EVEN: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    across, down = tl.cdiv(columns, BLOCK_N), tl.cdiv(rows, BLOCK_M)
    band = program // (GROUP_M * across)  # bands of GROUP_M tiles share b in the L2 cache
    first = band * GROUP_M
    height = min(down - first, GROUP_M)
    tile_m = first + (program % (GROUP_M * across)) % height
    tile_n = (program % (GROUP_M * across)) // height
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_at = a + (m % rows).to(tl.int64)[:, None] * width + k[None, :]
    b_at = b + (n % columns).to(tl.int64)[None, :] * width + k[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for start in range(0, width, BLOCK_K):
        if EVEN:
            x, y = tl.load(a_at), tl.load(b_at)
        else:
            inside = start + k < width
            x, y = tl.load(a_at, inside[None, :], 0), tl.load(b_at, inside[:, None], 0)
        total = tl.dot(x, y, total, out_dtype=tl.int32)
        a_at += BLOCK_K
        b_at += BLOCK_K
    _store_scaled(total, row_scale, column_scale, bias, out, m, n, rows, columns, out_stride, BIAS)


def int8_gemm(
    a: Tensor,
    row_scale: Tensor,
    b: Tensor,
    column_scale: Tensor,
    out: Tensor,
    bias: Tensor | None = None,
    **launch: int,
) -> Tensor:
    """a [M, K] times b [N, K] transposed, scaled, into out [M, N] (unit stride along N).

    a, b: int8, contiguous; row_scale: float32, M values; column_scale: float32, N values.
    launch: overrides of the tuned parameters; BULK takes `int8_gemm_bulk` where it can.
    """
    settings = {**tuned("int8_gemm", a.device), **launch}
    rows, width = a.shape
    columns = b.shape[0]
    if settings.pop("BULK", 0) and width % 16 == 0:
        return int8_gemm_bulk(a, row_scale, b, column_scale, out, bias, **settings)
    tiles = triton.cdiv(rows, settings["BLOCK_M"]) * triton.cdiv(columns, settings["BLOCK_N"])
    _int8_gemm[(tiles,)](
        a, b, row_scale, column_scale, out if bias is None else bias, out,
        rows, columns, width, out.stride(0),
        BIAS=bias is not None, EVEN=width % settings["BLOCK_K"] == 0, **settings,
    )  # fmt: skip
    return out


@triton.jit
def _int8_gemm_bulk(
    a, b, row_scale, column_scale, bias, out, rows, columns, width, out_stride,
    BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    across, down = tl.cdiv(columns, BLOCK_N), tl.cdiv(rows, BLOCK_M)
    band = program // (GROUP_M * across)
    first = band * GROUP_M
    height = min(down - first, GROUP_M)
    tile_m = (first + (program % (GROUP_M * across)) % height) * BLOCK_M
    tile_n = ((program % (GROUP_M * across)) // height) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for start in range(0, width, BLOCK_K):
        x = a.load([tile_m, start])
        y = b.load([tile_n, start])
        total = tl.dot(x, y.T, total, out_dtype=tl.int32)
    m = tile_m + tl.arange(0, BLOCK_M)
    n = tile_n + tl.arange(0, BLOCK_N)
    _store_scaled(total, row_scale, column_scale, bias, out, m, n, rows, columns, out_stride, BIAS)


def int8_gemm_bulk(
    a: Tensor,
    row_scale: Tensor,
    b: Tensor,
    column_scale: Tensor,
    out: Tensor,
    bias: Tensor | None = None,
    **launch: int,
) -> Tensor:
    """As `int8_gemm`, tiles fetched by the bulk copy engine (Hopper and newer; K % 16 == 0)."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    settings = {**tuned("int8_gemm_bulk", a.device), **launch}
    settings.pop("BULK", 0)
    rows, width = a.shape
    columns = b.shape[0]
    tiles = triton.cdiv(rows, settings["BLOCK_M"]) * triton.cdiv(columns, settings["BLOCK_N"])
    a_tiles = TensorDescriptor.from_tensor(a, [settings["BLOCK_M"], settings["BLOCK_K"]])
    b_tiles = TensorDescriptor.from_tensor(b, [settings["BLOCK_N"], settings["BLOCK_K"]])
    _int8_gemm_bulk[(tiles,)](
        a_tiles, b_tiles, row_scale, column_scale, out if bias is None else bias, out,
        rows, columns, width, out.stride(0), BIAS=bias is not None, **settings,
    )  # fmt: skip
    return out


@triton.jit
def _scale_product(
    product, row_scale, column_scale, bias, out, rows, columns, in_stride, out_stride,
    BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    here = (m < rows)[:, None] & (n < columns)[None, :]
    value = tl.load(product + m[:, None] * in_stride + n[None, :], here, 0).to(tl.float32)
    scale_m = tl.load(row_scale + m, m < rows, 0.0)
    scale_n = tl.load(column_scale + n, n < columns, 0.0)
    value = value * (scale_m[:, None] * scale_n[None, :])
    if BIAS:
        value += tl.load(bias + n, n < columns, 0.0).to(tl.float32)[None, :]
    tl.store(out + m[:, None] * out_stride + n[None, :], value.to(out.dtype.element_ty), here)


def scale_product(
    product: Tensor,
    row_scale: Tensor,
    column_scale: Tensor,
    out: Tensor,
    bias: Tensor | None,
    **launch: int,
) -> Tensor:
    """product [M, N] (int32 or float32) times row and column scales, plus bias, into out."""
    settings = {**tuned("elementwise_tile", product.device), **launch}
    rows, columns = product.shape
    grid = (triton.cdiv(rows, settings["BLOCK_M"]), triton.cdiv(columns, settings["BLOCK_N"]))
    _scale_product[grid](
        product, row_scale, column_scale, out if bias is None else bias, out,
        rows, columns, product.stride(0), out.stride(0), BIAS=bias is not None, **settings,
    )  # fmt: skip
    return out


@triton.jit
def _decode_tile(
    codes, scale, out, rows, width,
    EACH: tl.constexpr, FP8: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    here = (m < rows)[:, None] & (n < width)[None, :]
    code = tl.load(codes + m[:, None] * width + n[None, :], here, 0)
    if FP8:
        # e4m3 moved into float16's fields is the value over 256, subnormals included. Bit tricks,
        # because cards before Ada cannot convert FP8. A weight is never NaN.
        bits = code.to(tl.uint16)
        bits = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
        value = bits.to(tl.float16, bitcast=True).to(tl.float32) * 256.0
    else:
        value = code.to(tl.float32)
    factor = tl.load(scale + (m if EACH else m * 0), m < rows, 0.0)
    value = value * factor[:, None]
    tl.store(out + m[:, None] * width + n[None, :], value.to(out.dtype.element_ty), here)


def decode_tile(codes: Tensor, scale: Tensor, out: Tensor) -> Tensor:
    """Codes [T, K] (float8_e4m3fn or int8) times their scale (T values or one) into out [T, K]."""
    settings = tuned("elementwise_tile", codes.device)
    rows, width = codes.shape
    grid = (triton.cdiv(rows, settings["BLOCK_M"]), triton.cdiv(width, settings["BLOCK_N"]))
    fp8 = codes.dtype == torch.float8_e4m3fn
    _decode_tile[grid](
        codes.view(torch.uint8) if fp8 else codes, scale, out, rows, width,
        EACH=scale.numel() > 1, FP8=fp8, **settings,
    )  # fmt: skip
    return out
