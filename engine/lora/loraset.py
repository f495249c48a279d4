"""The adapters of a request, bound to a model: what travels with a block, and what is merged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import torch
from torch import Tensor

from .apply import Branch, Difference, join
from .modules import block_index, touches_adaln
from .report import BindingReport

# Linears that can carry a low-rank branch; every other parameter is small and merged.
ONLINE_TAILS = (
    ".attn.to_q", ".attn.to_k", ".attn.to_v", ".attn.to_out.0",
    ".attn.orig.to_q", ".attn.orig.to_k", ".attn.orig.to_v", ".attn.orig.to_out.0",
    ".attn.to_out_linear", ".ff.net.0.proj", ".ff.net.2",
)  # fmt: skip


@dataclass(frozen=True)
class LoraSet:
    """The adapters of a request, by parameter of the model. Host tensors, in the files' dtypes.

    differences: parameter -> what changes it, ordered by file identity and strength, so that the
    order in which a user lists adapters cannot change a bit. reports are in the user's order.
    """

    reports: tuple[BindingReport, ...] = ()
    differences: Mapping[str, tuple[Difference, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    identity: str = ""

    def __bool__(self) -> bool:
        return bool(self.differences)

    @property
    def merge_only(self) -> tuple[str, ...]:
        """Parameters with a change that cannot run online: they are merged either way."""
        return tuple(
            name
            for name, items in self.differences.items()
            if any(not can_run_online(item) for item in items)
        )

    @property
    def adaln_parameters(self) -> tuple[str, ...]:
        """Changed parameters that the AdaLN tables of a checkpoint depend on."""
        return tuple(name for name in self.differences if touches_adaln(name.rpartition(".")[0]))

    @property
    def host_bytes(self) -> int:
        """Host memory that the factors occupy; a tensor shared by q, k and v counts once."""
        seen = {
            tensor.data_ptr(): tensor.numel() * tensor.element_size()
            for items in self.differences.values()
            for item in items
            for tensor in item.tensors.values()
        }
        return sum(seen.values())

    def branches(self, index: int | None, dtype: torch.dtype = torch.bfloat16) -> dict[str, Branch]:
        """Online branches of block `index` by module name inside the block; of the root for None.

        dtype: that of the factors on the device.
        """
        found: dict[str, Branch] = {}
        for name, items in self._of(index):
            factors = [item.factors() for item in items if can_run_online(item)]
            joined = [item for item in factors if item is not None]
            if joined:
                found[name.removesuffix(".weight")] = join(joined, dtype)
        return found

    def online_sizes(self) -> dict[str, tuple[int, int, int]]:
        """(out, in, largest rank in any block) of every block linear that some branch reaches."""
        sizes: dict[str, tuple[int, int, int]] = {}
        for name, items in self.differences.items():
            rank = sum(item.rank for item in items if can_run_online(item))
            if block_index(name) is None or not rank:
                continue
            module = name.split(".", 2)[2].removesuffix(".weight")
            rows, columns = items[0].part.size
            sizes[module] = (rows, columns, max(rank, sizes.get(module, (0, 0, 0))[2]))
        return sizes

    def slot_bytes(self, *, element_bytes: int = 2) -> int:
        """Bytes that online factors add to every block of the stack, whichever block it is."""
        return sum(
            rank * ((rows + columns) * element_bytes + 4)
            for rows, columns, rank in self.online_sizes().values()
        )

    def branch_bytes(self, index: int | None, *, element_bytes: int = 2) -> int:
        """Bytes of `branches(index)` from shapes alone, for the planner."""
        total = 0
        for _, items in self._of(index):
            rank = sum(item.rank for item in items if can_run_online(item))
            rows, columns = items[0].part.size if len(items[0].part.size) == 2 else (0, 0)
            total += rank * ((rows + columns) * element_bytes + 4)
        return total

    def merges(self, index: int | None, *, online: bool) -> dict[str, tuple[Difference, ...]]:
        """Differences to merge into block `index` (root: None), by parameter name inside it.

        online: True leaves out what `branches` covers. AdaLN projections are left out: their
        changes go through the tables (`adaln_parameters`).
        """
        found: dict[str, tuple[Difference, ...]] = {}
        for name, items in self._of(index):
            if items[0].part.module.endswith(".adaln_proj.linear"):
                continue
            kept = tuple(item for item in items if not (online and can_run_online(item)))
            if kept:
                found[name] = kept
        return found

    def adaln(self, index: int) -> dict[str, tuple[Difference, ...]]:
        """Differences of block `index`'s AdaLN projection: keys 'weight', 'bias'."""
        base = f"transformer_blocks.{index}.adaln_proj.linear."
        return {
            part: self.differences[base + part]
            for part in ("weight", "bias")
            if base + part in self.differences
        }

    def delta(self, parameter: str, base: Tensor | None = None) -> Tensor | None:
        """Sum of all differences of a parameter, fp32; None when it is unchanged."""
        items = self.differences.get(parameter, ())
        if not items:
            return None
        total = items[0].delta(base)
        for item in items[1:]:
            total = total + item.delta(base)
        return total

    def _of(self, index: int | None) -> Iterable[tuple[str, tuple[Difference, ...]]]:
        prefix = "" if index is None else f"transformer_blocks.{index}."
        for name, items in self.differences.items():
            if block_index(name) == index:
                yield name.removeprefix(prefix), items


def can_run_online(item: Difference) -> bool:
    """Whether a difference can be a branch: low rank, on a large linear."""
    return item.rank > 0 and item.part.module.endswith(ONLINE_TAILS)
