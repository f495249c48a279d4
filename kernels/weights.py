"""Quantised weights and activations as plain values, shared by every implementation.

A weight's kind fixes the kind of activation it multiplies:

    plain          y = x W^T                            codes in fp32, bf16 or fp16
    fp8-rowwise    one scale per output row, one per activation row
    fp8-tensor     one scale per tensor on both sides
    int8-convrot   int8 after a Hadamard rotation of 256-channel groups, scales per row
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

KINDS = ("plain", "fp8-rowwise", "fp8-tensor", "int8-convrot")
FP8_MAX = 448.0
CONVROT_GROUP = 256


@dataclass(frozen=True)
class Weight:
    """One linear layer.

    codes: [N_out, K]; float8_e4m3fn, int8 or a float dtype.
    scale: fp32 [1, N_out] (fp8-rowwise), [1, 1] (fp8-tensor), [N_out, 1] (int8), None (plain).
    bias: [N_out] or None.
    """

    kind: str
    codes: Tensor
    scale: Tensor | None = None
    bias: Tensor | None = None


@dataclass(frozen=True)
class Activation:
    """Rows ready for a linear of the same kind.

    codes: [M, K]; scale: fp32 [M, 1] (fp8-rowwise, int8) or [1, 1] (fp8-tensor), None (plain).
    """

    kind: str
    codes: Tensor
    scale: Tensor | None = None


def convrot_group(width: int) -> int:
    """Channels that rotate together: the largest power of four dividing `width`, at most 256.

    Every published width gives 256; miniature models get a smaller group.
    """
    group = 1
    while group < CONVROT_GROUP and width % (group * 4) == 0:
        group *= 4
    return group
