"""One VDN-H3 block, chunk-major: a write sweep that only reads x, a read sweep that updates it.

    write   per group: k, v -> key source; features -> per-frame A, B -> T, J -> border states;
            the dense rows (anchors, global rows) attend to the keys that pass by.
    read    per group: q; for each of its chunks one exact softmax over the ring's slice; gate;
            linear readout; both projections; residual; feed-forward.

A group is one chunk, or some where pictures are small (sweep.py). Nothing of full-sequence width
exists but x and, for `store` and `host`, keys and values. The partition (group, chunk, tile, order
of reductions) is fixed here, so where bytes wait cannot change a bit of the result. Design and
formulas: chunk-major.md; model sheet a.8 and b.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from ...kernels.weights import Activation
from ..errors import CheckpointError
from ..planner.types import KeySource
from .keyring import KeyRing
from .linear_branch import REACH, LinearBranch
from .residual import Residual
from .side import SideStream
from .steps import BlockSteps
from .sweep import SweepContext
from .waiting import WaitingKeys
from .weights import AttentionWeights, FeedForwardWeights

READOUT_EPS = 1e-6


class ChunkMajorBlock(BlockSteps):
    """Buffers of one pass, used by every block in turn. Not reentrant.

    keys, host_store: see WaitingKeys. Raises CheckpointError for attention settings that only the
    plain form knows.
    """

    def __init__(
        self,
        context: SweepContext,
        keys: KeySource,
        host_store: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        c = self.context = context
        if c.full_cover:
            rows = (c.total_rows, c.heads, c.head_dim)
            self.full = (c.empty(rows), c.empty(rows))
            return
        if c.vdn.anchors != "both" or c.vdn.radius != 1 or not c.vdn.linear or c.vdn.chunk < REACH:
            raise CheckpointError(
                "the engine runs windows of one chunk on each side with both anchors",
                expected=f"radius 1, chunk >= {REACH}, anchors both, linear branch on",
                found=c.vdn,
            )
        self.ring = KeyRing(
            frames=c.frames,
            chunk=c.chunk,
            tokens=c.tokens,
            global_rows=c.global_rows,
            heads=c.heads,
            head_dim=c.head_dim,
            dtype=c.dtype,
            device=c.device,
        )
        self.waiting = WaitingKeys(c, keys, self.ring, host_store)
        self.side = SideStream(c.device, "attention", used=c.beside)
        # Small kernels leave a card partly idle at their ends: a group's attention runs beside the
        # projections and the feed-forward of the group before it. Order only; more memory.
        self.ahead = self.side.used and c.grouped > 1
        self.linear = LinearBranch(c)
        dense = 2 * c.tokens + c.global_rows
        wide = torch.promote_types(c.dtype, torch.float32)
        self.dense_q = c.empty((dense, c.heads, c.head_dim))
        self.dense_total = c.empty((dense, c.heads, c.head_dim), wide)
        self.dense_lse = c.empty((dense, c.heads), wide)

    @property
    def link_bytes(self) -> int:
        """What keys and values moved over the link so far."""
        return 0 if self.context.full_cover else self.waiting.link_bytes

    def run(
        self,
        residual: Residual,
        attention: AttentionWeights,
        feed_forward: Callable[[], FeedForwardWeights],
        table: Tensor,
    ) -> None:
        """Evaluate the block on x, in place: `write`, then `read`.

        feed_forward: asked for when the write sweep is queued, so that the second half of the
        weights may still be on its way. table: [T, 6C] AdaLN rows of this step.
        """
        self.write(residual, attention, table)
        self.read(residual, attention, feed_forward(), table)

    def write(self, residual: Residual, attention: AttentionWeights, table: Tensor) -> None:
        """First sweep. What it leaves for `read` is in buffers of the pass, at fixed addresses."""
        self.residual, self.w, self.table = residual, attention, table
        if not self.context.full_cover:
            self._write_sweep()
        del self.residual, self.w, self.table  # views of slots that will be refilled

    def read(
        self,
        residual: Residual,
        attention: AttentionWeights,
        feed_forward: FeedForwardWeights,
        table: Tensor,
    ) -> None:
        """Second sweep, after `write` with the same arguments."""
        self.residual, self.w, self.table, self.ff = residual, attention, table, feed_forward
        if self.context.full_cover:
            self._run_full()
        else:
            self._read_sweep()
        del self.residual, self.w, self.ff, self.table

    # ---------------------------------------------------------------- write sweep

    def _write_sweep(self) -> None:
        c, w = self.context, self.w
        assert w.linear is not None
        g = c.global_rows
        y, act = self._modulated(self.residual.load(0, g), 0, w.norm, 0)
        ring = self.ring
        k_raw, v_raw = self._key_value(act, slice(0, g), ring.k[ring.globals], ring.v[ring.globals])
        self.linear.begin(w.linear, y[c.text], k_raw[c.text], v_raw[c.text])
        self._dense_query(act, slice(0, g), 2 * c.tokens)
        del y, act, k_raw, v_raw
        last = c.total_rows - c.tokens
        for start, target in ((g, 0), (last, c.tokens)):
            rows = slice(start, start + c.tokens)
            _, act = self._modulated(
                self.residual.load(start, rows.stop), start, w.norm, 0, keep_y=False
            )
            self._dense_query(act, rows, target)
        self.dense_total.zero_()
        self.dense_lse.fill_(-torch.inf)
        self._fold(ring.k[ring.globals], ring.v[ring.globals])
        for index in range(c.groups):
            self._write_group(index)
        self.side.join()
        self.linear.finish()

    def _write_group(self, index: int) -> None:
        c, w = self.context, self.w
        rows = c.group_rows(index)
        y, act = self._modulated(self.residual.load(rows.start, rows.stop), rows.start, w.norm, 0)
        place = self.waiting.place(index)
        keys, values = place.keys, place.values
        k_raw, v_raw = self._key_value(act, rows, keys[place.rows], values[place.rows])
        self.waiting.written(index, place)
        if place.last:
            run = slice(place.first, place.rows.stop)
            self._fold(keys[run], values[run])
        self.linear.take(index, y, k_raw, v_raw)
        del y, act, k_raw, v_raw  # before the features are made: they are as large again
        self.linear.advance(index)

    def _dense_query(self, act: Activation, rows: slice, target: int) -> None:
        raw = self._linear(act, self.w.q)
        self._rope(raw, self.w.norm_q, rows, self.dense_q[target : target + raw.shape[0]])

    def _fold(self, keys: Tensor, values: Tensor) -> None:
        with self.side.beside():
            out, lse = self.context.ops.attention_partial(self.dense_q, keys, values)
            self.context.ops.merge_partial(self.dense_total, self.dense_lse, out, lse)

    # ---------------------------------------------------------------- read sweep

    def _read_sweep(self) -> None:
        c = self.context
        dense = self.dense_total.to(c.dtype)
        self.small = self.w.small_read()
        self.waiting.restart()
        self.waiting.load(0, self._keys_again)
        behind: deque[Callable[[], None]] = deque()
        for index in range(c.groups):
            behind.append(self._read_group(index, dense))
            if len(behind) > self.ahead:
                behind.popleft()()  # not by a name: it would keep its rows through the next group
        while behind:
            behind.popleft()()
        x = self.residual.load(0, c.global_rows)
        y, _ = self._modulated(x, 0, self.w.norm, 0, kind="plain")
        logits = self._small(y)[:, : c.heads]
        self._finish(x, 0, logits, [dense[2 * c.tokens :]], [])

    def _keys_again(self, rows: slice, keys: Tensor, values: Tensor) -> None:
        x = self.residual.load(rows.start, rows.stop)
        _, act = self._modulated(x, rows.start, self.w.norm, 0, keep_y=False)
        self._key_value(act, rows, keys, values)

    def _read_group(self, index: int, dense: Tensor) -> Callable[[], None]:
        """Queue both branches of a group; returns what updates its rows of x. Keys of the next
        group's first chunk are in the ring by then."""
        c, w = self.context, self.w
        rows = c.group_rows(index)
        x = self.residual.load(rows.start, rows.stop)
        y, act = self._modulated(x, rows.start, w.norm, 0)
        q_raw = self._linear(act, w.q)
        small = self._small(y)
        del y, act
        q = self._rope(q_raw, w.norm_q, rows, c.empty((x.shape[0], c.heads, c.head_dim)))
        logits, hidden = small[:, : c.heads], small[:, c.heads :]
        if not self.side.used:
            linear = [self._linear_part(index, q_raw, hidden)]
            del q_raw
            attention = [self._group_attention(index, q, dense)]
            del q
            return lambda: self._finish(x, rows.start, logits, attention, linear)
        with self.side.beside():
            attention = [self._group_attention(index, q, dense)]
        done, held = self.side.mark(), [q]
        linear = [self._linear_part(index, q_raw, hidden)]

        def finish() -> None:
            self.side.reach(done)
            held.clear()  # only now may the main stream use the queries' memory again
            self._finish(x, rows.start, logits, attention, linear)

        return finish

    def _group_attention(self, index: int, q: Tensor, dense: Tensor) -> Tensor:
        """Attention of a group's rows, window by window, the anchors' from `dense`. [M, H, D]."""
        c, ring = self.context, self.ring
        parts = [dense[: c.tokens]] if index == 0 else []
        start = c.group_rows(index).start
        for chunk in c.group_chunks(index):
            if chunk + 1 < c.chunks:
                self.waiting.load(chunk + 1, self._keys_again)
            window, rows = ring.window(chunk), c.chunk_rows(chunk)
            low = rows.start + (c.tokens if chunk == 0 else 0)
            high = rows.stop - (c.tokens if chunk == c.chunks - 1 else 0)
            if low < high:
                queries = q[low - start : high - start]
                parts.append(c.ops.attention(queries, ring.k[window], ring.v[window]))
        if index == c.groups - 1:
            parts.append(dense[c.tokens : 2 * c.tokens])
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _linear_part(self, index: int, q_raw: Tensor, hidden: Tensor) -> Tensor:
        """The linear branch of a group's rows, projected: [M, C]."""
        assert self.w.linear is not None
        out = self.w.linear.out
        readout = self._readout(index, q_raw, hidden)
        return self._linear(self.context.ops.quantise_activation(readout, out.kind), out)

    def _readout(self, index: int, q_raw: Tensor, hidden: Tensor) -> Tensor:
        c, branch = self.context, self.w.linear
        assert branch is not None
        frames, states = self.linear.states(index)
        inner = slice(frames.start * c.tokens, frames.stop * c.tokens)
        if inner == slice(0, q_raw.shape[0]):
            return self._inner_readout(q_raw, states, hidden)
        out = torch.zeros_like(q_raw)  # anchors read nothing from the linear branch
        if inner.start < inner.stop:
            out[inner] = self._inner_readout(q_raw[inner], states, hidden[inner])
        return out

    def _inner_readout(self, q_raw: Tensor, states: Tensor, hidden: Tensor) -> Tensor:
        branch = self.w.linear
        assert branch is not None
        return self.context.ops.linear_readout(
            q_raw,
            states,
            branch.norm,
            hidden,
            branch.gate_up,
            branch.gate_bias,
            eps=READOUT_EPS,
        )

    # ---------------------------------------------------------------- full cover

    def _run_full(self) -> None:
        """Dense attention over all rows: short clips, and the model without VDN."""
        c, w = self.context, self.w
        tiles = [slice(0, c.global_rows)] if c.global_rows else []
        tiles += [c.group_rows(index) for index in range(c.groups)]
        for rows in tiles:
            x = self.residual.load(rows.start, rows.stop)
            _, act = self._modulated(x, rows.start, w.norm, 0, keep_y=False)
            self._rope(self._linear(act, w.k), w.norm_k, rows, self.full[0][rows])
            self.full[1][rows] = self._linear(act, w.v).view(-1, c.heads, c.head_dim)
        queries = []
        for rows in tiles:  # every query before any update: keys are those of the old x
            x = self.residual.load(rows.start, rows.stop)
            y, act = self._modulated(x, rows.start, w.norm, 0)
            raw = self._linear(act, w.q)
            q = self._rope(raw, w.norm_q, rows, c.empty((x.shape[0], c.heads, c.head_dim)))
            logits = None if w.gate is None else F.linear(y, *(t.to(y.dtype) for t in w.gate))
            queries.append((rows, c.ops.attention(q, *self.full), logits))
        for rows, attention, logits in queries:
            x = self.residual.load(rows.start, rows.stop)
            self._finish(x, rows.start, logits, [attention], [])
