"""How the model's root asks for its weights, whatever form they are stored in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch.nn.functional as F
from torch import Tensor


class Layers(Protocol):
    """Linear layers by module name (`proj_in`) and other tensors by full name (`norm1.weight`)."""

    def linear(self, name: str, x: Tensor) -> Tensor:
        """x [..., K] through the layer `name`, bias included, in the layer's compute dtype."""

    def tensor(self, name: str) -> Tensor:
        """A tensor that is not a linear layer's weight."""


class StateLayers:
    """Layers straight from a state dictionary of plain tensors."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        self.state = state

    def linear(self, name: str, x: Tensor) -> Tensor:
        """x is cast to the weight's dtype, as mixed-precision checkpoints want it."""
        weight = self.state[f"{name}.weight"]
        return F.linear(x.to(weight.dtype), weight, self.state.get(f"{name}.bias"))

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name."""
        return self.state[name]
