"""The quantised linear of this folder's namespace: the usual path for each kind of weight."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import linears
from ..reference import quantise as reference
from ..weights import Activation, Weight


def linear(
    act: Activation, weight: Weight, out_dtype: torch.dtype, *, out: Tensor | None = None
) -> Tensor:
    """As kernels.reference.quantise.linear. kernels.registry chooses among all the paths."""
    if act.kind == weight.kind == "int8-convrot":
        return linears.int8_triton(act, weight, out_dtype, out=out)
    if act.kind == weight.kind and act.kind.startswith("fp8") and act.codes.is_cuda:
        return linears.scaled_product(act, weight, out_dtype, out=out)
    return reference.linear(act, weight, out_dtype, out=out)
