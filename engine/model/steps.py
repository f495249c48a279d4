"""What a block does to some rows at once, whichever sweep they are in."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from ...kernels.weights import Activation, Weight
from .residual import Residual
from .sweep import FFN_TILE_ROWS, SweepContext
from .weights import AttentionWeights, FeedForwardWeights


class BlockSteps:
    """Row-wise stages over the weights of the block at hand.

    residual, w, table, ff: of that block, there while one of its sweeps runs. small: gate and
    output-gate rows, `AttentionWeights.small_read`.
    """

    context: SweepContext
    residual: Residual
    w: AttentionWeights
    ff: FeedForwardWeights
    table: Tensor
    small: tuple[Tensor, Tensor]

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
