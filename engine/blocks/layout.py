"""Where a block's tensors stand in its host bytes and in a device slot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..units import round_up

SLOT_ALIGNMENT = 256  # matrix units want aligned operands; a file's offsets promise nothing


@dataclass(frozen=True)
class Piece:
    """One tensor in a block's host bytes."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start_byte: int
    nbytes: int


@dataclass(frozen=True)
class PartLayout:
    """A part of a block (all of it, or a half) as it lies in a device slot.

    offsets: tensor name -> byte offset in the slot. copies: (host byte, slot byte, bytes) runs that
    bring the part over; neighbours in the file that stay neighbours in the slot are one run.
    """

    pieces: Mapping[str, Piece]
    offsets: Mapping[str, int]
    copies: tuple[tuple[int, int, int], ...]
    slot_bytes: int

    def views(self, slot: Tensor) -> dict[str, Tensor]:
        """Tensors of the part as views of `slot` (uint8). They die with the slot's contents."""
        return {
            name: slot[start : start + piece.nbytes].view(piece.dtype).view(piece.shape)
            for name, piece in self.pieces.items()
            for start in (self.offsets[name],)
        }

    @property
    def link_bytes(self) -> int:
        """Bytes that cross the link for this part."""
        return sum(count for _, _, count in self.copies)


def plan_part(pieces: Mapping[str, Piece]) -> PartLayout:
    """Lay out the tensors in the order of their host bytes, each aligned."""
    offsets: dict[str, int] = {}
    runs: list[list[int]] = []
    cursor = 0
    for name, piece in sorted(pieces.items(), key=lambda item: item[1].start_byte):
        offset = round_up(cursor, SLOT_ALIGNMENT)
        if runs:
            host, slot, _ = runs[-1]
            follow = slot + piece.start_byte - host  # where it would stand as a neighbour
            if follow % SLOT_ALIGNMENT == 0 and 0 <= follow - cursor < SLOT_ALIGNMENT:
                offset = follow
                runs[-1][2] = piece.start_byte + piece.nbytes - host
            else:
                runs.append([piece.start_byte, offset, piece.nbytes])
        else:
            runs.append([piece.start_byte, offset, piece.nbytes])
        offsets[name] = offset
        cursor = offset + piece.nbytes
    return PartLayout(
        dict(pieces), offsets, tuple((a, b, c) for a, b, c in runs), round_up(cursor, 4096)
    )


def plan_parts(
    pieces: Mapping[str, Piece], part_of: Callable[[str], int] | None = None
) -> Sequence[PartLayout]:
    """The parts of a block. `part_of` gives a tensor's part, 0, 1, ...; None keeps one part."""
    if part_of is None:
        return (plan_part(pieces),)
    count = 1 + max(part_of(name) for name in pieces)
    return tuple(
        plan_part({name: piece for name, piece in pieces.items() if part_of(name) == part})
        for part in range(count)
    )
