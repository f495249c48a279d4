"""A model in parts: what to read for each, and what to make of it afterwards.

Reading and computing are different stages of a conversion, on different threads, so a layout says
what it reads without reading it. Parts of a unit (a block, or the root) are of like size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .sources import Source

if TYPE_CHECKING:
    from torch import Tensor

PART_BYTES = 512 << 20
Tensors = dict[str, "Tensor"]


def _as_they_are(tensors: Tensors) -> Tensors:
    return tensors


@dataclass(frozen=True)
class Part:
    """Some tensors of a unit.

    sources: to read, under names that `finish` knows. made: tensors that need no reading.
    finish: gives the unit's tensors under local names; it may change and reuse what it gets.
    """

    sources: Mapping[str, Source] = field(default_factory=dict)
    finish: Callable[[Tensors], Tensors] = _as_they_are
    made: Mapping[str, Tensor] = field(default_factory=dict)

    def then(self, change: Callable[[Tensors], Tensors]) -> Part:
        """The same part with a further step behind."""
        first = self.finish
        return Part(self.sources, lambda tensors: change(first(tensors)), self.made)


def groups_by_bytes(sizes: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    """Names in their order, together as long as they fit in a part. sizes: (name, bytes)."""
    group: list[str] = []
    filled = 0
    for name, nbytes in sizes:
        if group and filled + nbytes > PART_BYTES:
            yield group
            group, filled = [], 0
        group.append(name)
        filled += nbytes
    if group:
        yield group
