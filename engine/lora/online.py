"""Low-rank branches inside the block's sweeps, without a change to the sweeps.

A linear whose weight carries a branch adds (y A^T) * scale B^T to its output. y is the unquantised
input, so an activation carries it along: bf16 rows of one chunk or feed-forward tile, never of the
whole sequence. `OnlineOps` stands before the operations of kernels.reference or kernels.triton and
has their names and signatures; `attach_branches` pairs the factors of a slot with their weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ...kernels.compose import Choice
from ...kernels.weights import Activation, Weight
from .adapted import unpack_branches
from .apply import Branch, add_online_


@dataclass(frozen=True)
class AdaptedWeight(Weight):
    """A linear with a low-rank branch beside it."""

    branch: Branch | None = None


@dataclass(frozen=True)
class CarriedActivation(Activation):
    """Quantised rows, with the rows they were made from. rows: [M, K] in the engine's dtype."""

    rows: Tensor | None = None


class OnlineOps:
    """The operations of a block with branches; everything not named here is passed on."""

    def __init__(self, ops: Any) -> None:
        self._ops = ops

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ops, name)

    def norm_modulate(self, *args: Any, keep_y: bool = True, **named: Any) -> tuple:
        """See kernels.reference.norm; y is always written, for the branches read it."""
        y, act = self._ops.norm_modulate(*args, keep_y=True, **named)
        return y, _carry(act, y)

    def quantise_activation(self, x: Tensor, kind: str, group: int | None = None) -> Activation:
        """See kernels.reference.quantise."""
        named = {} if group is None else {"group": group}
        return _carry(self._ops.quantise_activation(x, kind, **named), x)

    def gate_heads(self, *args: Any, kind: str, group: int | None = None) -> Activation:
        """See kernels.reference.gates: gated rows first, then quantised from them."""
        return self.quantise_activation(
            self._ops.gate_heads(*args, kind="plain").codes, kind, group
        )

    def swiglu(self, up: Tensor, *, kind: str, group: int | None = None) -> Activation:
        """See kernels.reference.gates: activated rows first, then quantised from them."""
        return self.quantise_activation(self._ops.swiglu(up, kind="plain").codes, kind, group)

    def linear(
        self, act: Activation, weight: Weight, out_dtype: torch.dtype, **named: Any
    ) -> Tensor:
        """See kernels.reference.quantise; the branch is added to the output in place."""
        out = self._ops.linear(act, weight, out_dtype, **named)
        if not isinstance(weight, AdaptedWeight):
            return out
        assert isinstance(act, CarriedActivation) and act.rows is not None
        return add_online_(out, act.rows, weight.branch)


def attach_branches(tensors: Mapping[str, Weight | Tensor]) -> dict[str, Weight | Tensor]:
    """Assembled tensors of a slot with each carried branch on its weight. Views only.

    Without branches the tensors come back as they are.
    """
    branches = unpack_branches(tensors)
    found = {
        name: value
        for name, value in tensors.items()
        if name.rpartition(".lora_")[0] not in branches
    }
    for module, branch in branches.items():
        weight = found[module]
        assert isinstance(weight, Weight), module
        found[module] = AdaptedWeight(weight.kind, weight.codes, weight.scale, weight.bias, branch)
    return found


def online_choice(choice: Choice) -> Choice:
    """The chosen operations with branches before them; the name says so in reports."""
    ops: Any = OnlineOps(choice.ops)
    return replace(choice, name=f"{choice.name} + LoRA branches", ops=ops)


def _carry(act: Activation, rows: Tensor) -> CarriedActivation:
    return CarriedActivation(act.kind, act.codes, act.scale, rows)
