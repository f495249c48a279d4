"""Differences of an adapter a tile of output rows at a time, so that no whole weight is expanded.

A row of a Hadamard or Kronecker product needs a row (or two) of its factors; a DoRA row needs its
own norm, or, where magnitudes are per column, norms that a first pass over all rows collects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .apply import Difference

COLUMN_PASS_ROWS = 256
Base = Callable[[slice], Tensor]  # rows of the unchanged weight, fp32
Adder = Callable[[Tensor, slice, Tensor], None]  # add to rows, which rows, those unchanged


def plain_adder(delta: Tensor) -> Adder:
    """Adds a given difference."""

    def add(total: Tensor, rows: slice, original: Tensor) -> None:
        total += delta[rows].to(total.device)

    return add


def row_adder(difference: Difference, rows: int, base: Base) -> Adder:
    """Adds strength * difference to rows of its parameter, in place, in fp32.

    difference: its tensors lie where the rows will. rows: of the parameter. base: see DoRA above.
    """
    factors = difference.factors()
    if factors is not None:
        up, down, scale = factors.up, factors.down, factors.scale

        def add_product(total: Tensor, at: slice, original: Tensor) -> None:
            total.addmm_(up[at], down, alpha=scale)

        return add_product
    expand = _expander(difference)
    strength = difference.strength
    if not difference.needs_base:

        def add_rows(total: Tensor, at: slice, original: Tensor) -> None:
            total.add_(expand(at), alpha=strength)

        return add_rows
    return _dora(difference, expand, rows, base)


def _dora(
    difference: Difference, expand: Callable[[slice], Tensor], rows: int, base: Base
) -> Adder:
    magnitude = difference.tensors["magnitude"].to(torch.float32)
    tiny, strength = torch.finfo(torch.float32).tiny, difference.strength
    if difference.part.layer.by_column:
        squares = None
        for start in range(0, rows, COLUMN_PASS_ROWS):
            at = slice(start, min(start + COLUMN_PASS_ROWS, rows))
            moved = base(at) + expand(at)
            part = (moved * moved).sum(dim=0, keepdim=True)
            squares = part if squares is None else squares + part
        assert squares is not None
        ratio = magnitude.reshape(1, -1) / squares.sqrt().clamp_min(tiny)

        def add_by_column(total: Tensor, at: slice, original: Tensor) -> None:
            total.add_((original + expand(at)) * ratio - original, alpha=strength)

        return add_by_column
    places = _places(difference, magnitude.numel()).to(magnitude.device)
    own = magnitude.reshape(-1)[places]

    def add_by_row(total: Tensor, at: slice, original: Tensor) -> None:
        moved = original + expand(at)
        norm = torch.linalg.vector_norm(moved, dim=1, keepdim=True).clamp_min(tiny)
        total.add_(moved * (own[at][:, None] / norm) - original, alpha=strength)

    return add_by_row


def _expander(difference: Difference) -> Callable[[slice], Tensor]:
    """Rows of scale * difference, fp32, without strength and magnitude."""
    kind, scale, held = difference.part.layer.kind, difference.scale, difference.tensors
    if kind == "lora":
        rows = _product(held, "up", "mid", "down")
    elif kind == "loha":
        one, two = _pair(held, "hada_w1", "hada_t1"), _pair(held, "hada_w2", "hada_t2")
        rows = (one[0], lambda at: one[1](at) * two[1](at))
    elif kind == "lokr":
        left, right = _pair(held, "lokr_w1", "lokr_t1"), _pair(held, "lokr_w2", "lokr_t2")

        def kron(at: Tensor) -> Tensor:
            outer, inner = left[1](at // right[0]), right[1](at % right[0])
            return (outer[:, :, None] * inner[:, None, :]).reshape(len(at), -1)

        rows = (left[0] * right[0], kron)
    else:
        whole = held[next(role for role in ("diff", "diff_b", "up_bias") if role in held)]
        rows = (whole.shape[0], lambda at: whole[at].to(torch.float32))
    count, make = rows
    places = _places(difference, count)

    def expand(at: slice) -> Tensor:
        device = next(iter(held.values())).device
        return make(places[at].to(device)) * scale

    return expand


def _places(difference: Difference, file_rows: int) -> Tensor:
    """For every row of the parameter, its row in the file."""
    pieces = difference.part.rows.slices(file_rows, difference.head_dim)
    return torch.cat([torch.arange(start, stop) for start, stop in pieces])


Rows = tuple[int, Callable[[Tensor], Tensor]]  # how many, and some of them by index


def _pair(held: Mapping[str, Tensor], name: str, core: str) -> Rows:
    """One factor of a product: whole, a pair, or a pair around a core whose left is [rank, out]."""
    if name in held:
        whole = _matrix(held[name])
        return whole.shape[0], lambda at: whole[at].to(torch.float32)
    left, right = _matrix(held[f"{name}_a"]), _matrix(held[f"{name}_b"]).to(torch.float32)
    if core in held:
        left, right = left.T, _matrix(held[core]).to(torch.float32) @ right
    return left.shape[0], lambda at: left[at].to(torch.float32) @ right


def _product(held: Mapping[str, Tensor], up: str, mid: str, down: str) -> Rows:
    left, right = _matrix(held[up]), _matrix(held[down]).to(torch.float32)
    if mid in held:
        right = _matrix(held[mid]).to(torch.float32) @ right
    return left.shape[0], lambda at: left[at].to(torch.float32) @ right


def _matrix(tensor: Tensor) -> Tensor:
    return tensor.reshape(tensor.shape[0], -1)
