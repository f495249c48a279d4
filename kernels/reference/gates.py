"""Gates and residuals: small elementwise operations between the big products."""

from __future__ import annotations

import torch
from torch import Tensor

from ..weights import Activation
from .quantise import quantise_activation


def gate_heads(
    attention: Tensor, logits: Tensor | None, *, kind: str, group: int | None = None
) -> Activation:
    """sigmoid(logits) per head times the attention output, ready for to_out.

    attention: [M, H, D]; logits: [M, H], None for no gate. Returns an Activation of [M, H*D].
    """
    value = attention
    if logits is not None:
        wide = torch.promote_types(attention.dtype, torch.float32)
        value = (attention.to(wide) * logits.to(wide).sigmoid()[..., None]).to(attention.dtype)
    return quantise_activation(value.reshape(value.shape[0], -1), kind, group)


def swiglu(up: Tensor, *, kind: str, group: int | None = None) -> Activation:
    """value * SiLU(gate) of [M, 2*FF] rows stored as [value ; gate] (model sheet a.8)."""
    wide = torch.promote_types(up.dtype, torch.float32)
    value, gate = up.to(wide).chunk(2, -1)
    return quantise_activation((value * gate * gate.sigmoid()).to(up.dtype), kind, group)


def add_gated(x: Tensor, table: Tensor, rows: Tensor, column: int, *outputs: Tensor) -> None:
    """x += gate * sum(outputs), in place.

    x: [M, C]; outputs: [M, C] each; table: [T, 6C]; rows: int32 [M]; column: the sixth to use.
    """
    width = x.shape[1]
    wide = torch.promote_types(x.dtype, torch.float32)
    gate = table[rows.long(), column * width : (column + 1) * width].to(wide)
    total = outputs[0].to(wide)
    for other in outputs[1:]:
        total = total + other.to(wide)
    x.copy_((x.to(wide) + gate * total).to(x.dtype))
