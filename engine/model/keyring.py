"""One contiguous key/value buffer, and where each chunk stands in it.

    [ last anchor | slot 0 | slot 1 | slot 2 | global rows | first anchor ]

Softmax does not care in which order its keys stand, so the key set of any chunk (itself, its two
neighbours, both anchors, the global rows) is one contiguous slice of this buffer (design:
chunk-major.md). Chunk c goes to slot (c + 1) mod 3: it replaces chunk c-3, which nobody reads any
more. At the clip's ends a chunk or an anchor is missing; the slice is then cut at an edge, and
where a hole would remain inside, what lies left of it is moved right. Stale rows are never inside
a slice.
"""

from __future__ import annotations

import torch


class KeyRing:
    """Keys and values of three chunks, the anchors and the global rows.

    frames: F > 2 chunks; chunk: frames of a chunk; tokens: S; global_rows: G. Keys and values are
    [rows, H, D] of one dtype. Views returned by `place` and `window` die with the next `place`.
    """

    def __init__(
        self,
        *,
        frames: int,
        chunk: int,
        tokens: int,
        global_rows: int,
        heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.frames, self.chunk, self.tokens = frames, chunk, tokens
        self.chunks = -(-frames // chunk)
        slot = chunk * tokens
        self.slots_start = tokens
        self.slots_stop = tokens + 3 * slot
        self.globals = slice(self.slots_stop, self.slots_stop + global_rows)
        self.first_anchor = slice(self.globals.stop, self.globals.stop + tokens)
        self.last_anchor = slice(0, tokens)
        rows = self.first_anchor.stop
        self.k = torch.empty(rows, heads, head_dim, dtype=dtype, device=device)
        self.v = torch.empty_like(self.k)
        self._where: dict[int, tuple[int, int]] = {}  # chunk -> (start, rows)

    def chunk_rows(self, index: int) -> int:
        """Rows of a chunk; the last may be short."""
        return (min(self.frames, (index + 1) * self.chunk) - index * self.chunk) * self.tokens

    def place(self, index: int) -> slice:
        """The rows where chunk `index` has to be written, in the order of the read sweep."""
        slot = (index + 1) % 3
        slot_rows = self.chunk * self.tokens
        rows = self.chunk_rows(index)
        start = self.slots_start + (slot + 1) * slot_rows - rows  # right-aligned: no hole after it
        self._where.pop(index - 3, None)
        self._where[index] = (start, rows)
        return slice(start, start + rows)

    def window(self, index: int) -> slice:
        """The slice that is the key set of chunk `index`. Moves rows if a hole must be closed."""
        present = [c for c in (index - 1, index, index + 1) if 0 <= c < self.chunks]
        start = self._close_holes(present)
        if self.chunks - 1 not in present:
            self._anchor_before(start)
            start -= self.tokens
        stop = self.globals.stop if 0 in present else self.first_anchor.stop
        return slice(start, stop)

    def restart(self) -> None:
        """Forget the chunks; the next read sweep begins."""
        self._where.clear()

    @property
    def slots(self) -> slice:
        """Rows of the three slots."""
        return slice(self.slots_start, self.slots_stop)

    def turn(self) -> None:
        """Chunks 0, 1, 2 from slots 0, 1, 2, where a write sweep left them, to where `place` has
        them: each a slot further, the last around. A frame at a time, so one frame is extra."""
        slot = self.chunk * self.tokens
        for buffer in (self.k, self.v):
            slots = buffer[self.slots].unflatten(0, (3, slot))
            for first in range(0, slot, self.tokens):
                zero, one, two = slots[:, first : first + self.tokens]
                around = two.clone()
                two.copy_(one)
                one.copy_(zero)
                zero.copy_(around)

    def _close_holes(self, present: list[int]) -> int:
        """Right-align the chunks against the global rows; the first row of the run."""
        cursor = self.slots_stop
        for start, rows, index in sorted(((*self._where[c], c) for c in present), reverse=True):
            target = cursor - rows
            self._move(start, target, rows)
            self._where[index] = (target, rows)
            cursor = target
        return cursor

    def _anchor_before(self, start: int) -> None:
        if start != self.last_anchor.stop:
            for buffer in (self.k, self.v):
                buffer[start - self.tokens : start] = buffer[self.last_anchor]

    def _move(self, source: int, target: int, rows: int) -> None:
        """Move rows to the right, overlap allowed: from the right end, a gap's width at a time."""
        gap = target - source
        while rows and gap:
            piece = min(gap, rows)
            for buffer in (self.k, self.v):
                buffer[target + rows - piece : target + rows] = buffer[
                    source + rows - piece : source + rows
                ]
            rows -= piece
