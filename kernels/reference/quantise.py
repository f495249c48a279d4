"""Quantised linears in plain PyTorch: the oracle of every fast kernel, and the converter's rule.

    fp8     s = max(absmax / 448, 1e-12),           codes = e4m3fn(x / s)
    int8    x' = x H per group,  s = max(absmax(x'_row) / 127, 1e-30),  codes = round(x' / s)

Two facts decide single codes and are part of the formats (facts: model sheet c.4, l.1, l.5):
a weight is divided by its scale rounded to the weight's dtype, in that dtype, while the stored
scale stays fp32; int8 treats activations the same way and also rounds x' to the input dtype.
FP8 activations are divided in fp32. H is (H4 kron H4 kron ...) / sqrt(group): symmetric,
orthogonal and its own inverse.

This file does not place tensors, pick kernels, or fuse anything.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ..weights import FP8_MAX, Activation, Weight, convrot_group

FP8_SCALE_FLOOR = 1e-12
INT8_SCALE_FLOOR = 1e-30
INT8_MAX = 127


def hadamard(group: int, *, device: torch.device | str | None = None) -> Tensor:
    """The rotation of one group: fp32 [group, group], entries +-1/sqrt(group).

    Raises ValueError when `group` is no power of four.
    """
    quarter = torch.tensor(
        [[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]],
        dtype=torch.float32,
        device=device,
    )
    matrix = torch.ones(1, 1, dtype=torch.float32, device=device)
    while matrix.shape[0] < group:
        matrix = torch.kron(matrix, quarter)
    if matrix.shape[0] != group:
        raise ValueError(f"convrot group {group} is not a power of four")
    return matrix / group**0.5


def rotate(x: Tensor, group: int) -> Tensor:
    """x H per group along the last axis, in fp32. x: [..., K] float; returns [..., K] fp32."""
    width = x.shape[-1]
    if width % group:
        raise ValueError(f"width {width} is no multiple of the convrot group {group}")
    grouped = x.to(torch.float32).reshape(-1, group)
    return (grouped @ hadamard(group, device=x.device)).reshape(x.shape)


# ---------------------------------------------------------------- weights


def quantise_fp8_rowwise(w: Tensor) -> tuple[Tensor, Tensor]:
    """w: [N, K] float -> codes float8_e4m3fn [N, K], scale fp32 [1, N]."""
    scale = _fp8_scale(w.abs().amax(dim=1, keepdim=True))
    return _fp8_codes(w / scale.to(w.dtype)), scale.reshape(1, -1)


def quantise_fp8_tensor(w: Tensor) -> tuple[Tensor, Tensor]:
    """w: [N, K] float -> codes float8_e4m3fn [N, K], scale fp32 [1, 1]."""
    scale = _fp8_scale(w.abs().amax().reshape(1, 1))
    return _fp8_codes(w / scale.to(w.dtype)), scale


def quantise_int8_convrot(w: Tensor, group: int | None = None) -> tuple[Tensor, Tensor]:
    """w: [N, K] float -> codes int8 [N, K] in the rotated basis, scale fp32 [N, 1].

    group: None takes `convrot_group(K)`; 1 means no rotation. Codes lie in -128..127: -128 does
    occur when the rounded divisor is smaller than the scale.
    """
    group = convrot_group(w.shape[-1]) if group is None else group
    return _int8_rows(w, group)


def quantise_weight(w: Tensor, kind: str, *, bias: Tensor | None = None) -> Weight:
    """w: [N, K] float as a Weight of `kind` (kernels.weights.KINDS)."""
    if kind == "plain":
        return Weight(kind, w, None, bias)
    quantise = {
        "fp8-rowwise": quantise_fp8_rowwise,
        "fp8-tensor": quantise_fp8_tensor,
        "int8-convrot": quantise_int8_convrot,
    }[kind]
    return Weight(kind, *quantise(w), bias)


def dequantise_fp8(codes: Tensor, scale: Tensor) -> Tensor:
    """codes [N, K] e4m3fn with scale [1, N] or [1, 1] -> fp32 [N, K]."""
    return codes.to(torch.float32) * scale.reshape(-1, 1)


def dequantise_int8_convrot(codes: Tensor, scale: Tensor, group: int | None = None) -> Tensor:
    """codes [N, K] int8 with scale [N, 1] -> fp32 [N, K] in the original basis."""
    group = convrot_group(codes.shape[-1]) if group is None else group
    return rotate(codes.to(torch.float32) * scale.reshape(-1, 1), group)


def dequantise(weight: Weight, group: int | None = None) -> Tensor:
    """The weight as fp32 [N, K] in the original basis."""
    if weight.kind == "plain":
        return weight.codes.to(torch.float32)
    assert weight.scale is not None
    if weight.kind == "int8-convrot":
        return dequantise_int8_convrot(weight.codes, weight.scale, group)
    return dequantise_fp8(weight.codes, weight.scale)


# ---------------------------------------------------------------- activations


def quantise_activation(x: Tensor, kind: str, group: int | None = None) -> Activation:
    """Rows ready for a linear of `kind`.

    x: [M, K] float. group: int8 only; None takes `convrot_group(K)`.
    """
    if kind == "plain":
        return Activation(kind, x)
    if kind == "fp8-rowwise":
        scale = _fp8_scale(x.abs().amax(dim=1, keepdim=True))
        return Activation(kind, _fp8_codes(x.to(torch.float32) / scale), scale)
    if kind == "fp8-tensor":
        scale = _fp8_scale(x.abs().amax().reshape(1, 1))
        return Activation(kind, _fp8_codes(x.to(torch.float32) / scale), scale)
    if kind == "int8-convrot":
        group = convrot_group(x.shape[-1]) if group is None else group
        return Activation(kind, *_int8_rows(x, group))
    raise ValueError(f"unknown kind {kind!r}")


# ---------------------------------------------------------------- the linear


def linear(
    act: Activation, weight: Weight, out_dtype: torch.dtype, *, out: Tensor | None = None
) -> Tensor:
    """act [M, K] times weight [N, K] transposed, plus bias -> [M, N] in `out_dtype`.

    FP8 accumulates in fp32. Int8 accumulates exactly (in float64 here, which holds every int32
    sum; a device without an integer GEMM gives the same number). Scales and bias apply in fp32.
    A plain product runs in `out_dtype`. out: [M, N], written and returned when given.
    """
    if out is not None:
        return out.copy_(linear(act, weight, out_dtype))
    if act.kind != weight.kind:
        raise ValueError(f"activation of kind {act.kind} for a weight of kind {weight.kind}")
    if weight.kind == "plain":
        bias = None if weight.bias is None else weight.bias.to(out_dtype)
        return functional.linear(act.codes.to(out_dtype), weight.codes.to(out_dtype), bias)
    assert act.scale is not None and weight.scale is not None
    if weight.kind == "int8-convrot":
        product = (act.codes.to(torch.float64) @ weight.codes.to(torch.float64).T).float()
    else:
        product = act.codes.to(torch.float32) @ weight.codes.to(torch.float32).T
    product = product * (act.scale * weight.scale.reshape(1, -1))
    if weight.bias is not None:
        product = product + weight.bias.to(torch.float32)
    return product.to(out_dtype)


def _fp8_scale(absmax: Tensor) -> Tensor:
    return _divided(absmax.to(torch.float32), FP8_MAX).clamp_min(FP8_SCALE_FLOOR)


def _divided(absmax: Tensor, most: float) -> Tensor:
    """absmax / most, rounded alike everywhere: CUDA multiplies by the reciprocal of a number."""
    return absmax / torch.full((), most, dtype=absmax.dtype, device=absmax.device)


def _fp8_codes(scaled: Tensor) -> Tensor:
    # A divisor rounded down can lift the largest value over 448, which e4m3fn turns into NaN.
    return scaled.clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn)


def _int8_rows(x: Tensor, group: int) -> tuple[Tensor, Tensor]:
    rotated = x if group == 1 else rotate(x, group).to(x.dtype)
    absmax = rotated.abs().amax(dim=-1, keepdim=True).to(torch.float32)
    scale = _divided(absmax, INT8_MAX).clamp_min(INT8_SCALE_FLOOR)
    # The floor underflows in fp16: a zero row would be 0 / 0 there.
    scaled = (rotated / scale.to(x.dtype)).nan_to_num(0.0)
    codes = scaled.round().clamp(-INT8_MAX - 1, INT8_MAX)
    return codes.to(torch.int8), scale
