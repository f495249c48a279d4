"""The root of the transformer: what is no block. Input and output layers stay on the device; text
refiner and time weights are there only while something is made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ...kernels.compose import Choice
from ...kernels.weights import Weight
from .config import ModelConfig
from .head import OutputTables
from .modulation import TIME_TABLE
from .refiner import refine_text


class RootLayers:
    """The root's layers for refiner and head: quantised ones through the fast linear."""

    def __init__(
        self, root: Mapping[str, Weight | Tensor], choice: Choice, dtype: torch.dtype
    ) -> None:
        self.root, self.ops, self.dtype = root, choice.ops, dtype

    def linear(self, name: str, x: Tensor) -> Tensor:
        """Plain weights compute in their own dtype or the engine's, whichever is wider; quantised
        ones give the engine's."""
        weight = self.root[name]
        assert isinstance(weight, Weight), name
        if weight.kind == "plain":
            wide = torch.promote_types(weight.codes.dtype, self.dtype)
            bias = None if weight.bias is None else weight.bias.to(wide)
            return F.linear(x.to(wide), weight.codes.to(wide), bias)
        flat = x.reshape(-1, x.shape[-1]).to(self.dtype)
        act = self.ops.quantise_activation(flat, weight.kind)
        return self.ops.linear(act, weight, self.dtype).unflatten(0, x.shape[:-1])

    def tensor(self, name: str) -> Tensor:
        """A tensor that is not a linear layer's weight."""
        value = self.root[name]
        assert isinstance(value, Tensor), name
        return value


def root_on(
    root: Mapping[str, Weight | Tensor], device: torch.device
) -> dict[str, Weight | Tensor]:
    """A copy of some of the root's tensors on a device."""

    def move(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.to(device)

    moved: dict[str, Weight | Tensor] = {}
    for name, value in root.items():
        if isinstance(value, Tensor):
            moved[name] = value.to(device)
        else:
            moved[name] = Weight(
                value.kind, value.codes.to(device), move(value.scale), move(value.bias)
            )
    return moved


def is_text_only(name: str) -> bool:
    """Root tensors that only the text refiner reads: they leave the device after one use."""
    return name.startswith(("context_embedder", "token_refiner"))


def is_time_only(name: str) -> bool:
    """Root tensors that only the output norm's tables are made from."""
    return name.startswith(("time_embedder", "norm_out.linear", TIME_TABLE))


def output_tables(
    root: Mapping[str, Weight | Tensor],
    times: Sequence[Sequence[float]],
    config: ModelConfig,
    choice: Choice,
    device: torch.device,
    dtype: torch.dtype,
) -> OutputTables:
    """The output norm's tables at the times of all steps; their weights leave the device again."""
    used = root_on({name: value for name, value in root.items() if is_time_only(name)}, device)
    weights = {k: v for k, v in used.items() if isinstance(v, Tensor)}
    weights |= {f"{k}.weight": v.codes for k, v in used.items() if isinstance(v, Weight)}
    layers = RootLayers(used, choice, dtype)
    return OutputTables(layers, weights, times, config.freq_dim, device)


def refined_text(
    root: Mapping[str, Weight | Tensor],
    text: Tensor,
    config: ModelConfig,
    choice: Choice,
    device: torch.device,
    dtype: torch.dtype,
) -> Tensor:
    """Text encoder rows [N_t, text_dim] through embedder and refiner: [N_t, C] on the device.

    The refiner's weights are on the device only inside this call.
    """
    used = root_on({name: value for name, value in root.items() if is_text_only(name)}, device)
    layers = RootLayers(used, choice, dtype)
    return refine_text(layers, text.to(device=device, dtype=dtype), config).to(dtype)
