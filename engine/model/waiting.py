"""Where keys and values wait between the sweeps of a block, and how they come into the ring.

    store       on the device, all of them; the first three chunks in the ring itself, where a
                chunk is a group: it is idle in the write sweep
    host        in page-locked memory
    recompute   nowhere: made again by groups, from rows of x that nobody has updated yet

Keys that are not stored stand in a stage: in the write sweep until the dense rows have seen them,
in the read sweep until the ring takes them, chunk by chunk. Every source gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from ..planner.types import KeySource
from .keyring import KeyRing
from .sweep import SweepContext

IN_RING = 3  # chunks whose stored keys wait in the ring
KeysAgain = Callable[[slice, Tensor, Tensor], None]  # packed rows, and where keys and values go


def chunks_in_ring(context: SweepContext) -> bool:
    """Whether the first chunks are whole ones that a write sweep can leave in the ring."""
    return context.grouped == 1 and context.chunks > IN_RING


@dataclass(frozen=True)
class Place:
    """Where the write sweep puts a group: `rows` of keys and values [.., H, D]. first: where its
    run stands in them, the groups whose keys the dense rows fold in at once; last: it ends one."""

    keys: Tensor
    values: Tensor
    rows: slice
    first: int
    last: bool


class WaitingKeys:
    """Of one pass, used by every block in turn.

    host_store: two page-locked tensors [F*S, H, D] when source is "host". link_bytes: moved over
    the link so far.
    """

    def __init__(
        self,
        context: SweepContext,
        source: KeySource,
        ring: KeyRing,
        host_store: tuple[Tensor, Tensor] | None,
    ) -> None:
        c = self.context = context
        self.source, self.ring, self.link_bytes = source, ring, 0
        self.store: tuple[Tensor, Tensor] | None = None
        self.in_ring = IN_RING if source == "store" and chunks_in_ring(c) else 0
        self.unstored = max(0, self.in_ring * c.chunk - 1) * c.tokens  # rows the store leaves out
        if source == "store":
            shape = (c.frames * c.tokens - self.unstored, c.heads, c.head_dim)
            self.store = (c.empty(shape), c.empty(shape))
        elif source == "host":
            assert host_store is not None
            self.store = host_store
        self.stage = self._staging()

    def _staging(self) -> tuple[Tensor, Tensor]:
        c, ring = self.context, self.ring
        if self.source == "store":
            assert self.store is not None
            return self.store
        if c.grouped == 1:  # the ring itself: its read sweep has not begun, or writes there
            return ring.k[ring.slots], ring.v[ring.slots]
        shape = (c.grouped * c.chunk * c.tokens, c.heads, c.head_dim)
        return c.empty(shape), c.empty(shape)

    def place(self, index: int) -> Place:
        """Where keys and values of group `index` have to be written."""
        c, ring = self.context, self.ring
        run = index - index % c.fold_groups
        last = index == run + c.fold_groups - 1 or index == c.groups - 1
        kept, first = self._kept(c.group_rows(index)), self._kept(c.group_rows(run)).start
        keys, values = self.stage
        if self.source != "store":  # every run stands at the stage's start
            return Place(keys, values, _shifted(kept, first), 0, last)
        if index < self.in_ring:  # the first run, in the ring's slots
            return Place(ring.k[ring.slots], ring.v[ring.slots], kept, first, last)
        return Place(keys, values, _shifted(kept, self.unstored), first - self.unstored, last)

    def written(self, index: int, place: Place) -> None:
        """Keys and values of group `index` are in their place: keep what must be elsewhere too."""
        c, ring = self.context, self.ring
        pair, stop = (place.keys, place.values), place.rows.stop
        if self.source == "host":
            assert self.store is not None
            self._copy(self.store, self._kept(c.group_rows(index)), pair, place.rows)
        if index == 0:
            self._keep_anchor(ring.first_anchor, place, place.rows.start)
        if index == c.groups - 1:
            self._keep_anchor(ring.last_anchor, place, stop - c.tokens)
        if index == self.in_ring - 1:  # an anchor will stand where its last frame is in the ring
            assert self.store is not None
            self._copy(self.store, slice(0, c.tokens), pair, slice(stop - c.tokens, stop))

    def restart(self) -> None:
        """The read sweep begins."""
        self.ring.restart()
        if self.in_ring:
            self.ring.turn()

    def load(self, index: int, again: KeysAgain) -> None:
        """Bring chunk `index` into the ring. again: makes the keys of packed rows anew; a group's
        first chunk is asked for before the group is read.
        """
        c, ring = self.context, self.ring
        rows = c.chunk_rows(index)
        place = ring.place(index)
        if self.store is not None:
            kept = self._kept(rows)
            if index < self.in_ring - 1:
                return  # there already
            if index == self.in_ring - 1:
                place = slice(place.stop - c.tokens, place.stop)
                kept = slice(kept.stop - c.tokens, kept.stop)
            self._copy((ring.k, ring.v), place, self.store, _shifted(kept, self.unstored))
            return
        if c.grouped == 1:
            again(rows, ring.k[place], ring.v[place])
            return
        group = c.group_rows(index // c.grouped)
        if rows.start == group.start:
            again(group, *(part[: group.stop - group.start] for part in self.stage))
        self._copy((ring.k, ring.v), place, self.stage, _shifted(rows, group.start))

    def _kept(self, rows: slice) -> slice:
        """Packed rows counted from the first video row."""
        return _shifted(rows, self.context.global_rows)

    def _copy(
        self,
        target: tuple[Tensor, Tensor],
        target_rows: slice,
        source: tuple[Tensor, Tensor],
        source_rows: slice,
    ) -> None:
        for to, by in zip(target, source, strict=True):
            to[target_rows].copy_(by[source_rows], non_blocking=True)
            if self.source == "host":
                self.link_bytes += to[target_rows].numel() * to.element_size()

    def _keep_anchor(self, target: slice, place: Place, start: int) -> None:
        source = slice(start, start + self.context.tokens)
        self.ring.k[target], self.ring.v[target] = place.keys[source], place.values[source]


def _shifted(rows: slice, by: int) -> slice:
    return slice(rows.start - by, rows.stop - by)
