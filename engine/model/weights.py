"""The weights of one block under short names, from the tensors of a slot. Views only, no copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ...kernels.weights import Weight


@dataclass(frozen=True)
class LinearBranchWeights:
    """The linear branch of one block (model sheet c.1 gives names and shapes)."""

    beta: Tensor  # [H, C]
    alpha_down: Tensor  # [A, C]
    alpha_up: Tensor  # [H*D, A]
    a_log: Tensor  # [H]
    dt_bias: Tensor  # [H*D]
    norm: Tensor  # [D]
    gate_down: Tensor  # [G, C]
    gate_up: Tensor  # [H*D, G]
    gate_bias: Tensor  # [H*D]
    conv: dict[str, tuple[Tensor, Tensor]]  # target -> (spatial, temporal)
    out: Weight


@dataclass(frozen=True)
class FeedForwardWeights:
    """The second half of a block."""

    up: Weight  # [2*FF, C], rows [value ; gate]
    down: Weight  # [C, FF]
    norm: Tensor  # [C]

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Weight | Tensor]) -> FeedForwardWeights:
        """From the assembled tensors of a block or of its second half."""
        return cls(
            _weight(tensors, "ff.net.0.proj"),
            _weight(tensors, "ff.net.2"),
            _plain(tensors, "norm2.weight"),
        )


@dataclass(frozen=True)
class AttentionWeights:
    """The first half of a block. `gate` and `linear` are None where the model has none."""

    q: Weight
    k: Weight
    v: Weight
    out: Weight
    norm: Tensor
    norm_q: Tensor
    norm_k: Tensor
    gate: tuple[Tensor, Tensor] | None
    linear: LinearBranchWeights | None

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Weight | Tensor]) -> AttentionWeights:
        """From the assembled tensors of a block or its first half; a dense model's names lack
        `.orig.`."""
        base = "attn.orig." if "attn.orig.to_q" in tensors else "attn."

        def weight(name: str) -> Weight:
            return _weight(tensors, name)

        def plain(name: str) -> Tensor:
            return _plain(tensors, name)

        gate = None
        if "attn.softmax_gate.up.weight" in tensors:
            gate = (plain("attn.softmax_gate.up.weight"), plain("attn.softmax_gate.up.bias"))
        linear = None
        if "attn.to_out_linear" in tensors:
            branch = "attn.linear_attention."
            conv = {
                target: (
                    plain(f"{branch}short_conv.{target}_sp.weight"),
                    plain(f"{branch}short_conv.{target}_tm.weight"),
                )
                for target in ("k", "v")
                if f"{branch}short_conv.{target}_sp.weight" in tensors
            }
            linear = LinearBranchWeights(
                beta=plain(f"{branch}beta_proj.weight"),
                alpha_down=plain(f"{branch}alpha.down.weight"),
                alpha_up=plain(f"{branch}alpha.up.weight"),
                a_log=plain(f"{branch}alpha.A_log"),
                dt_bias=plain(f"{branch}alpha.dt_bias"),
                norm=plain(f"{branch}norm.weight"),
                gate_down=plain(f"{branch}output_gate.down.weight"),
                gate_up=plain(f"{branch}output_gate.up.weight"),
                gate_bias=plain(f"{branch}output_gate.up.bias"),
                conv=conv,
                out=weight("attn.to_out_linear"),
            )
        return cls(
            q=weight(f"{base}to_q"),
            k=weight(f"{base}to_k"),
            v=weight(f"{base}to_v"),
            out=weight(f"{base}to_out.0"),
            norm=plain("norm1.weight"),
            norm_q=plain(f"{base}norm_q.weight"),
            norm_k=plain(f"{base}norm_k.weight"),
            gate=gate,
            linear=linear,
        )

    def small_read(self) -> tuple[Tensor, Tensor | None]:
        """Gate and output-gate rows as one small linear: ([H (+ G), C], bias of the gate)."""
        assert self.gate is not None
        if self.linear is None:
            return self.gate
        return torch.cat([self.gate[0], self.linear.gate_down]), self.gate[1]


def part_of(name: str) -> int:
    """Which half of a block a tensor belongs to: 0 attention, 1 feed-forward."""
    return int(name.startswith("ff.") or name == "norm2.weight")


def _weight(tensors: Mapping[str, Weight | Tensor], name: str) -> Weight:
    value = tensors[name]
    assert isinstance(value, Weight), name
    return value


def _plain(tensors: Mapping[str, Weight | Tensor], name: str) -> Tensor:
    value = tensors[name]
    assert isinstance(value, Tensor), name
    return value
