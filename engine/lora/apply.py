"""From adapter layers to changed weights, or to a low-rank branch beside a linear.

    merged   W' = W + sum_i s_i dW_i         dW in fp32; quantised: dequantise, add, requantise
    online   out += ((y A^T) * scale) B^T    A [R, in], B [out, R]: all adapters joined along rank

s_i is the strength of an adapter. Low-rank layers stay factors; Kronecker, Hadamard and full
differences are expanded one parameter at a time. A DoRA layer depends on the weight it changes:

    W' = m * V / |V|,  V = W + dW,   |.| per output row (or per input column),  delta = s (W' - W)

Every adapter sees the unchanged weight, so that their order cannot matter; sums run in a fixed
order (by identity). Nothing here places tensors or decides between the two ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...kernels.reference import quantise
from ...kernels.weights import FP8_MAX, Weight
from ..model.modulation import adaln_table
from .binding import Part
from .modules import other_spelling
from .rows import plain_adder, row_adder


@dataclass(frozen=True)
class Factors:
    """scale * (up @ down), strength included in scale. down: [r, in], up: [out, r]."""

    down: Tensor
    up: Tensor
    scale: float


@dataclass(frozen=True)
class Branch:
    """Low-rank differences of one linear, joined along rank.

    down: [R, in], up: [out, R], one dtype; scale: [R] fp32, strength included.
    """

    down: Tensor
    up: Tensor
    scale: Tensor

    @property
    def size_bytes(self) -> int:
        """Bytes that travel with the block."""
        return sum(t.numel() * t.element_size() for t in (self.down, self.up, self.scale))

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Branch:
        """The same branch on another device."""
        moved = (t.to(device, non_blocking=non_blocking) for t in (self.down, self.up, self.scale))
        return Branch(*moved)


@dataclass(frozen=True)
class Difference:
    """One layer of an adapter on one parameter, with its tensors. Strength is never zero here.

    tensors: role -> tensor in the file's dtype, shared between the parts of a fused projection.
    scale: alpha / rank. identity: SHA-256 of the file, the order key of sums.
    """

    part: Part
    tensors: Mapping[str, Tensor]
    scale: float
    strength: float
    head_dim: int
    identity: str

    @property
    def parameter(self) -> str:
        """The model's name of what is changed."""
        return self.part.parameter

    @property
    def needs_base(self) -> bool:
        """Whether the difference depends on the weight itself (DoRA)."""
        return "magnitude" in self.tensors

    @property
    def rank(self) -> int:
        """Rank of the factors; 0 when there are none."""
        return self.part.layer.rank if self._low_rank else 0

    @property
    def _low_rank(self) -> bool:
        return self.part.layer.kind == "lora" and not self.needs_base

    def on(self, device: torch.device) -> Difference:
        """The same difference with its tensors on `device`."""
        if all(tensor.device == device for tensor in self.tensors.values()):
            return self
        return replace(self, tensors={r: t.to(device) for r, t in self.tensors.items()})

    def factors(self) -> Factors | None:
        """The difference as factors in fp32, or None when it can only be merged."""
        if not self._low_rank:
            return None
        up, down = self._pair()
        return Factors(down, up, self.scale * self.strength)

    def delta(self, base: Tensor | None = None) -> Tensor:
        """The whole difference, fp32, in the shape of the parameter, strength included.

        base: the unchanged parameter, any float dtype; only DoRA layers need it.
        Raises ValueError when it is needed and missing.
        """
        if not self.needs_base:
            return self._expanded() * self.strength
        if base is None:
            raise ValueError(f"{self.parameter}: a DoRA difference needs the weight it changes")
        weight = base.to(torch.float32)
        moved = weight + self._expanded()
        by_column = self.part.layer.by_column
        norm = torch.linalg.vector_norm(moved, dim=0 if by_column else 1, keepdim=True)
        magnitude = self.tensors["magnitude"].to(torch.float32)
        magnitude = magnitude.reshape(1, -1) if by_column else self._rows(magnitude).reshape(-1, 1)
        # A zero row has no direction: it stays zero instead of becoming NaN.
        tiny = torch.finfo(torch.float32).tiny
        return (moved * (magnitude / norm.clamp_min(tiny)) - weight) * self.strength

    def _pair(self) -> tuple[Tensor, Tensor]:
        """(up, down) in fp32, up already cut to the rows of this parameter."""
        up, down = self._matrix("up"), self._matrix("down")
        if "mid" in self.tensors:
            up = up @ self._matrix("mid")
        return self._rows(up), down

    def _expanded(self) -> Tensor:
        """scale * difference in fp32, without strength and magnitude."""
        kind = self.part.layer.kind
        if kind == "lora":
            up, down = self._pair()
            return (up @ down) * self.scale
        if kind == "loha":
            product = self._product("hada_w1", "hada_t1") * self._product("hada_w2", "hada_t2")
            return self._rows(product) * self.scale
        if kind == "lokr":
            left = self._product("lokr_w1", "lokr_t1")
            right = self._product("lokr_w2", "lokr_t2")
            return self._rows(torch.kron(left, right)) * self.scale
        role = next(role for role in ("diff", "diff_b", "up_bias") if role in self.tensors)
        return self._rows(self.tensors[role].to(torch.float32)) * self.scale

    def _product(self, name: str, core: str) -> Tensor:
        """One factor of a Kronecker or Hadamard product: whole, a pair, or a pair around a core."""
        if name in self.tensors:
            return self._matrix(name)
        left, right = self._matrix(f"{name}_a"), self._matrix(f"{name}_b")
        if core in self.tensors:
            return left.T @ self._matrix(core) @ right
        return left @ right

    def _matrix(self, role: str) -> Tensor:
        tensor = self.tensors[role].to(torch.float32)
        return tensor.reshape(tensor.shape[0], -1)

    def _rows(self, whole: Tensor) -> Tensor:
        pieces = self.part.rows.slices(whole.shape[0], self.head_dim)
        if pieces == ((0, whole.shape[0]),):
            return whole
        return torch.cat([whole[start:stop] for start, stop in pieces])


Delta = Tensor | Difference
MERGE_TILE_ROWS = 512  # output rows dequantised at a time: a merge needs no full fp32 weight
MERGE_TILE_ELEMENTS = 2 << 20  # nor, on a card, more than some 60 MB beside the model


def merge_into(weight: Tensor, deltas: Sequence[Delta]) -> Tensor:
    """weight plus each delta in turn: computed in fp32, rounded to and added in weight's dtype.

    weight: any shape, a float dtype; deltas: fp32 of that shape, or differences. Returns a new
    tensor, or `weight` itself when there is nothing to add.
    """
    base, merged = weight, weight
    for delta in deltas:
        merged = merged + _resolved(delta, base).to(weight.dtype)
    return merged


def merge_quantised(
    codes: Tensor,
    scale: Tensor | None,
    kind: str,
    deltas: Sequence[Delta],
    *,
    group: int | None = None,
    device: torch.device | None = None,
    in_place: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Dequantise, add in fp32, requantise at the same granularity, a tile of rows at a time.

    codes, scale, kind: as in kernels.weights.Weight. group: rotation group of int8, None for the
    width's own. device: where tiles are computed; None where the codes are. in_place: overwrite the
    codes; on a card the caller then waits for the stream. Returns (codes, new scale), on the
    devices of what was given; the given ones when there is nothing to add.
    """
    if not deltas:
        return codes, scale
    device = codes.device if device is None else device
    if kind == "plain":
        merged = merge_into(codes.to(device), deltas).to(codes.device)
        return (codes.copy_(merged) if in_place else merged), scale
    assert scale is not None
    height = min(MERGE_TILE_ROWS, max(16, MERGE_TILE_ELEMENTS // max(1, codes.shape[1])))
    tiles = [slice(at, min(at + height, len(codes))) for at in range(0, len(codes), height)]
    total = _row_totals(Weight(kind, codes, scale.to(device)), deltas, group, device)
    merged = codes if in_place else torch.empty_like(codes)
    new_scale = torch.empty(scale.shape, dtype=torch.float32, device=device)
    if kind == "fp8-tensor":
        absmax = torch.stack([total(rows).abs().amax() for rows in tiles]).amax()
        # The scale of a whole tensor is that of its largest value alone.
        new_scale.copy_(quantise.quantise_fp8_tensor(absmax.reshape(1, 1))[1].reshape(scale.shape))
    for rows in tiles:
        if kind == "fp8-tensor":
            scaled = total(rows) / new_scale.reshape(1, 1)
            tile = scaled.clamp(-FP8_MAX, FP8_MAX).to(codes.dtype)
        elif kind == "fp8-rowwise":
            tile, new_scale.view(-1)[rows] = _flat(quantise.quantise_fp8_rowwise(total(rows)))
        elif kind == "int8-convrot":
            tile, new_scale.view(-1)[rows] = _flat(
                quantise.quantise_int8_convrot(total(rows), group)
            )
        else:
            raise ValueError(f"unknown kind {kind!r}")
        merged[rows].copy_(tile, non_blocking=in_place)
    return merged, new_scale.to(scale.device)


def _flat(quantised: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return quantised[0], quantised[1].reshape(-1)


def _row_totals(
    weight: Weight, deltas: Sequence[Delta], group: int | None, device: torch.device
) -> Callable[[slice], Tensor]:
    """Rows of the dequantised weight plus all deltas, fp32 on `device`, on demand.

    weight: codes anywhere, scale on `device`. Nothing larger than the rows asked for is made.
    """
    assert weight.scale is not None

    def base(rows: slice) -> Tensor:
        """The weight's own rows, fp32: each with its scale, or all with one."""
        scale = weight.scale
        assert scale is not None
        if scale.numel() > 1 or len(weight.codes) == 1:
            scale = scale.reshape(-1)[rows]
        if weight.kind == "int8-convrot":
            scale = scale.reshape(-1, 1)
        codes = weight.codes[rows].to(device, non_blocking=True)
        return quantise.dequantise(Weight(weight.kind, codes, scale), group)

    adders = [
        row_adder(d.on(device), len(weight.codes), base)
        if isinstance(d, Difference)
        else plain_adder(d)
        for d in deltas
    ]

    def rows_of(rows: slice) -> Tensor:
        original = base(rows)
        total = original.clone() if len(adders) > 1 else original
        for add in adders:
            add(total, rows, original)
        return total

    return rows_of


def merge_tensors(
    tensors: Mapping[str, Weight | Tensor], merges: Mapping[str, Sequence[Difference]]
) -> dict[str, Weight | Tensor]:
    """The tensors of a block or of the root with `merges` added; untouched ones are the same.

    tensors: as a block store assembles them, linears as Weight under their module name, all else
    under its parameter name. merges: parameter name -> differences (LoraSet.merges).
    Raises KeyError for a parameter that is not there.
    """
    merged = dict(tensors)
    for parameter, differences in merges.items():
        if parameter not in merged and parameter.rpartition(".")[0] not in merged:
            parameter = other_spelling(parameter)
        module, _, part = parameter.rpartition(".")
        if parameter in merged:
            plain = merged[parameter]
            assert isinstance(plain, Tensor), parameter
            merged[parameter] = merge_into(plain, differences)
            continue
        weight = merged[module]
        assert isinstance(weight, Weight), module
        if part == "bias":
            if weight.bias is None:
                raise KeyError(parameter)
            changed = merge_into(weight.bias, differences)
            merged[module] = Weight(weight.kind, weight.codes, weight.scale, changed)
        else:
            codes, scale = merge_quantised(weight.codes, weight.scale, weight.kind, differences)
            merged[module] = Weight(weight.kind, codes, scale, weight.bias)
    return merged


def join(factors: Sequence[Factors], dtype: torch.dtype = torch.bfloat16) -> Branch:
    """Several low-rank differences of one linear as one branch, in the order given."""
    ranks = [item.down.shape[0] for item in factors]
    scale = torch.tensor([item.scale for item in factors], dtype=torch.float32)
    return Branch(
        torch.cat([item.down.to(dtype) for item in factors]),
        torch.cat([item.up.to(dtype) for item in factors], dim=1),
        scale.repeat_interleave(torch.tensor(ranks)).to(factors[0].down.device),
    )


def online_delta(y: Tensor, branch: Branch | Factors) -> Tensor:
    """What the branch adds to a linear's output. y: [N, in], unquantised; returns [N, out].

    Products run in the branch's dtype with fp32 accumulation; the scale is applied in fp32 between
    them.
    """
    branch = _branch(branch)
    return _hidden(y, branch) @ branch.up.T


def add_online_(out: Tensor, y: Tensor, branch: Branch | Factors | None) -> Tensor:
    """out += branch(y), in place and rounded once; no work at all for None.

    out: [N, out], y: [N, in]. Besides out only [N, R] is allocated.
    """
    if branch is None:
        return out
    branch = _branch(branch)
    if out.dtype == branch.up.dtype:
        return out.addmm_(_hidden(y, branch), branch.up.T)
    return out.add_((_hidden(y, branch) @ branch.up.T).to(out.dtype))


def adaln_table_with(
    weight: Tensor,
    bias: Tensor,
    temb: Tensor,
    *,
    weight_differences: Sequence[Delta] = (),
    bias_differences: Sequence[Delta] = (),
) -> Tensor:
    """A block's AdaLN table from its original projection plus differences.

    weight: [18C, E], bias: [18C] in the checkpoint's dtype, temb: [n, E] fp32 (already that of the
    changed time embedder, if one is changed). Returns [3n, 6C] in weight's dtype.
    """
    changed = merge_into(weight, weight_differences)
    return adaln_table(changed, merge_into(bias, bias_differences), temb)


def _resolved(delta: Delta, base: Tensor) -> Tensor:
    """A delta where its weight lies: factors cross the link, not the product."""
    if isinstance(delta, Difference):
        return delta.on(base.device).delta(base if delta.needs_base else None)
    return delta.to(base.device)


def _branch(branch: Branch | Factors) -> Branch:
    return join([branch], branch.down.dtype) if isinstance(branch, Factors) else branch


def _hidden(y: Tensor, branch: Branch) -> Tensor:
    # In place, in fp32 inside one kernel, rounded once.
    return (y.to(branch.down.dtype) @ branch.down.T).mul_(branch.scale)
