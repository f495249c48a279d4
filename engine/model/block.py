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

from ...kernels.weights import Activation, Weight
from ..errors import CheckpointError
from ..planner.types import KeySource
from .keyring import KeyRing
from .linear_branch import REACH, LinearBranch
from .residual import Residual
from .side import SideStream
from .sweep import FFN_TILE_ROWS, SweepContext
from .weights import AttentionWeights, FeedForwardWeights

READOUT_EPS = 1e-6
IN_RING = 3  # chunks whose stored keys wait in the ring, which is idle in the write sweep


def chunks_in_ring(context: SweepContext) -> bool:
    """Whether the first chunks are whole ones that a write sweep can leave in the ring."""
    return context.grouped == 1 and context.chunks > IN_RING


class ChunkMajorBlock:
    """Buffers of one pass, used by every block in turn. Not reentrant.

    keys: where the read sweep gets the next chunk's keys from. host_store: two pinned tensors
    [F*S, H, D] when keys is "host". Raises CheckpointError for attention settings that only the
    plain form knows.
    """

    def __init__(
        self,
        context: SweepContext,
        keys: KeySource,
        host_store: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        c = self.context = context
        self.keys = keys
        self.link_bytes = 0
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
        self.store: tuple[Tensor, Tensor] | None = None
        self.in_ring = IN_RING if keys == "store" and chunks_in_ring(c) else 0
        if keys == "store":
            self.unstored = max(0, self.in_ring * c.chunk - 1) * c.tokens
            shape = (c.frames * c.tokens - self.unstored, c.heads, c.head_dim)
            self.store = (c.empty(shape), c.empty(shape))
        elif keys == "host":
            assert host_store is not None
            self.store = host_store
        self.stage = self._staging()
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

    def _staging(self) -> tuple[Tensor, Tensor]:
        """Where keys and values of groups stand that are not stored: in the write sweep until the
        dense rows have seen them, in the read sweep until the ring takes them, chunk by chunk.
        """
        c, ring = self.context, self.ring
        if self.keys == "store":
            assert self.store is not None
            return self.store
        if c.grouped == 1:  # the ring itself: its read sweep has not begun, or writes there
            return ring.k[ring.slots], ring.v[ring.slots]
        shape = (c.grouped * c.chunk * c.tokens, c.heads, c.head_dim)
        return c.empty(shape), c.empty(shape)

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
        c, w, ring = self.context, self.w, self.ring
        rows = c.group_rows(index)
        y, act = self._modulated(self.residual.load(rows.start, rows.stop), rows.start, w.norm, 0)
        kept = slice(rows.start - c.global_rows, rows.stop - c.global_rows)
        run = index - index % c.fold_groups  # first group of the run the dense rows fold in at once
        first = c.group_rows(run).start - c.global_rows
        place, (keys, values) = kept, self.stage
        if self.keys != "store":  # every run stands at the stage's start
            place, first = slice(kept.start - first, kept.stop - first), 0
        elif index < self.in_ring:  # the first run, in the ring's slots
            keys, values = ring.k[ring.slots], ring.v[ring.slots]
        else:
            first -= self.unstored
            place = slice(kept.start - self.unstored, kept.stop - self.unstored)
        k_raw, v_raw = self._key_value(act, rows, keys[place], values[place])
        if self.keys == "host":
            assert self.store is not None
            self._copy(self.store, kept, (keys, values), place)
        if index == 0:
            self._keep_anchor(ring.first_anchor, keys, values, place.start)
        if index == c.groups - 1:
            self._keep_anchor(ring.last_anchor, keys, values, place.stop - c.tokens)
        if index == self.in_ring - 1:  # an anchor will stand where its last frame is in the ring
            assert self.store is not None
            tail = slice(place.stop - c.tokens, place.stop)
            self._copy(self.store, slice(0, c.tokens), (keys, values), tail)
        if index == run + c.fold_groups - 1 or index == c.groups - 1:
            self._fold(keys[first : place.stop], values[first : place.stop])
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
        self.ring.restart()
        if self.in_ring:
            self.ring.turn()
        self._load_keys(0)
        waiting: deque[Callable[[], None]] = deque()
        for index in range(c.groups):
            waiting.append(self._read_group(index, dense))
            if len(waiting) > self.ahead:
                waiting.popleft()()  # not by a name: it would keep its rows through the next group
        while waiting:
            waiting.popleft()()
        x = self.residual.load(0, c.global_rows)
        y, _ = self._modulated(x, 0, self.w.norm, 0, kind="plain")
        logits = self._small(y)[:, : c.heads]
        self._finish(x, 0, logits, [dense[2 * c.tokens :]], [])

    def _load_keys(self, index: int) -> None:
        """Bring chunk `index` into the ring. Recomputed keys are made by groups, from rows of x
        that nobody has updated yet: a group's first chunk is asked for before the group is read.
        """
        c, ring = self.context, self.ring
        rows = c.chunk_rows(index)
        place = ring.place(index)
        if self.store is not None:
            kept = slice(rows.start - c.global_rows, rows.stop - c.global_rows)
            if self.keys == "store":
                if index < self.in_ring - 1:
                    return  # there already
                if index == self.in_ring - 1:
                    place = slice(place.stop - c.tokens, place.stop)
                    kept = slice(kept.stop - c.tokens, kept.stop)
                kept = slice(kept.start - self.unstored, kept.stop - self.unstored)
            self._copy((ring.k, ring.v), place, self.store, kept)
            return
        if c.grouped == 1:
            self._keys_again(rows, ring.k[place], ring.v[place])
            return
        group = c.group_rows(index // c.grouped)
        if rows.start == group.start:
            self._keys_again(group, *(part[: group.stop - group.start] for part in self.stage))
        made = slice(rows.start - group.start, rows.stop - group.start)
        self._copy((ring.k, ring.v), place, self.stage, made)

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
                self._load_keys(chunk + 1)
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

    def _finish(
        self,
        x: Tensor,
        start: int,
        logits: Tensor | None,
        attention: list[Tensor],
        linear: list[Tensor],
    ) -> None:
        """Gate, projection, residual, feed-forward; x: rows from `start`, changed in place.

        attention: softmax attention [M, H, D]; linear: for video rows, the projected linear branch
        [M, C]. Both lists are emptied as they are used.
        """
        c, w, ff = self.context, self.w, self.ff
        rows = c.rows[start : start + x.shape[0]]
        act = c.ops.gate_heads(attention.pop(), logits, kind=w.out.kind)
        outputs = [self._linear(act, w.out), *linear]
        linear.clear()
        del act
        c.ops.add_gated(x, self.table, rows, 2, *outputs)
        del outputs
        for first in range(0, x.shape[0], FFN_TILE_ROWS):
            tile = x[first : first + FFN_TILE_ROWS]
            _, act = self._modulated(tile, start + first, ff.norm, 3, kind=ff.up.kind, keep_y=False)
            act = c.ops.swiglu(self._linear(act, ff.up), kind=ff.down.kind)
            tile_rows = rows[first : first + FFN_TILE_ROWS]
            c.ops.add_gated(tile, self.table, tile_rows, 5, self._linear(act, ff.down))
        self.residual.save(start, x)

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

    # ---------------------------------------------------------------- small steps

    def _modulated(
        self,
        x: Tensor,
        start: int,
        norm: Tensor,
        column: int,
        *,
        kind: str | None = None,
        keep_y: bool = True,
    ) -> tuple[Tensor, Activation]:
        c = self.context
        return c.ops.norm_modulate(
            x,
            norm,
            self.table,
            c.rows[start : start + x.shape[0]],
            column,
            eps=c.config.eps,
            kind=kind or self.w.q.kind,
            keep_y=keep_y,
        )

    def _linear(self, act: Activation, weight: Weight, *, out: Tensor | None = None) -> Tensor:
        return self.context.ops.linear(act, weight, self.context.dtype, out=out)

    def _small(self, y: Tensor) -> Tensor:
        """Softmax-gate logits [M, H] and the output gate's hidden rows [M, G], side by side."""
        matrix, bias = self.small
        out = F.linear(y, matrix.to(y.dtype))
        out[:, : self.context.heads] += bias.to(y.dtype)
        return out

    def _rope(self, raw: Tensor, norm: Tensor, rows: slice, out: Tensor) -> Tensor:
        c = self.context
        return c.ops.head_norm_rope(raw, norm, c.cos[rows], c.sin[rows], eps=c.config.eps, out=out)

    def _key_value(
        self, act: Activation, rows: slice, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of packed `rows` into [M, H, D] views; returns them raw, [M, H*D]."""
        k_raw = self._linear(act, self.w.k)
        self._rope(k_raw, self.w.norm_k, rows, keys)
        v_raw = self._linear(act, self.w.v, out=values.view(values.shape[0], -1))
        return k_raw, v_raw

    def _copy(
        self,
        target: tuple[Tensor, Tensor],
        target_rows: slice,
        source: tuple[Tensor, Tensor],
        source_rows: slice,
    ) -> None:
        for to, by in zip(target, source, strict=True):
            to[target_rows].copy_(by[source_rows], non_blocking=True)
            if self.keys == "host":
                self.link_bytes += to[target_rows].numel() * to.element_size()

    def _keep_anchor(self, target: slice, keys: Tensor, values: Tensor, start: int) -> None:
        source = slice(start, start + self.context.tokens)
        self.ring.k[target], self.ring.v[target] = keys[source], values[source]
