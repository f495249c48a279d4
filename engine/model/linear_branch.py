"""The linear branch of one block, fed group by group in the write sweep.

Features of raw k and v need two frames on each side, so they are made two frames late: after a
group that ends with chunk c (frames 5c..5c+4) features exist up to frame 5c+2, and the scan has
passed chunk c-1. States are kept at chunk borders only; the reverse scan runs over the chunks'
folded maps at the end (design: chunk-major.md, write sweep). Anchors 0 and F-1 take no part: inner
frames are 1..F-2.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .side import SideStream
from .sweep import SweepContext
from .weights import LinearBranchWeights

REACH = 2  # frames the temporal taps reach
ALPHA_FLOOR = 1e-12


class LinearBranch:
    """Buffers of one pass; `begin`, (`take`, `advance`) by group, `finish`; then `states`."""

    def __init__(self, context: SweepContext) -> None:
        self.context = c = context
        # A group and what stands before it: its halo, and a chunk that was not scanned yet.
        frames = self.ring_frames = c.chunk * c.grouped + max(c.chunk, 2 * REACH)
        shape = (frames, c.tokens, c.heads * c.head_dim)
        matrix = (c.heads, c.head_dim, c.head_dim)
        make = c.empty
        wide = torch.promote_types(c.dtype, torch.float32)
        self.k_ring, self.v_ring = make(shape), make(shape)
        self.beta = make((c.frames * c.tokens, c.heads))
        self.alpha = make((c.frames, c.heads, c.head_dim), wide)
        self.transition = make((frames, *matrix), wide)
        self.injection = make((frames, *matrix), wide)
        self.before = make(
            (c.chunks + 2, *matrix), wide
        )  # state two chunks back: at its last frame
        self.fold_t = make((c.chunks, *matrix), wide)
        self.fold_j = make((c.chunks + 2, *matrix), wide)  # in the end: state at a chunk's start
        # Inner frames where each window begins and ends: the bridge decays from low to j to high.
        low = [max(u // c.chunk * c.chunk - c.chunk, 1) - 1 for u in range(1, c.frames - 1)]
        high = [min((u // c.chunk + 2) * c.chunk, c.frames - 1) - 1 for u in range(1, c.frames - 1)]
        self.window_low = torch.tensor(low, device=c.device)
        self.window_high = torch.tensor(high, device=c.device)
        inner = (max(c.frames - 2, 0), c.heads, c.head_dim)
        self.decays = (make(inner, wide), make(inner, wide))  # of the states before and after
        self.side = SideStream(c.device, "linear", used=c.beside)
        self.rings_read: torch.cuda.Event | None = None
        self.start = self.before[0]
        self.state = make(matrix, wide)

    def begin(self, weights: LinearBranchWeights, y: Tensor, k: Tensor, v: Tensor) -> None:
        """Start a block: both scans start from half the text state.

        y: [N_t, C] modulated text rows; k, v: [N_t, H*D] their raw keys and values.
        """
        self.weights = weights
        c, wide = self.context, self.alpha.dtype
        self.taps = {
            name: tuple(c.ops.conv_taps(part) for part in pair)
            for name, pair in weights.conv.items()
        }
        self.alpha_weights = tuple(
            part.to(wide)
            for part in (weights.alpha_down, weights.alpha_up, weights.dt_bias, weights.a_log)
        )
        self.outputs_done = 0  # last frame whose T and J exist
        self.scanned = 0  # chunks the forward scan has passed
        self.rings_read = None  # a capture that failed may have left its event
        self.start.zero_()
        if c.vdn.text_state and y.shape[0]:
            beta = F.linear(y, weights.beta.to(y.dtype)).sigmoid()
            features = [
                c.ops.conv_temporal_features(
                    rows[None],
                    None,
                    beta,
                    first=0,
                    count=1,
                    low=0,
                    high=0,
                    heads=c.heads,
                    normalise=normalise,
                )
                for rows, normalise in ((k, True), (v, False))
            ]
            a, b = c.ops.frame_statistics(*features)
            one = torch.ones(1, c.heads, c.head_dim, dtype=a.dtype, device=a.device)
            _, injection = c.ops.delta_solve(a, b, one, rule=c.vdn.delta_rule, tokens=y.shape[0])
            self.start.copy_(0.5 * injection[0])
        for outside in (self.before[1], self.fold_j[c.chunks], self.fold_j[c.chunks + 1]):
            outside.copy_(self.start)  # what windows at the clip's ends read
        self.state.copy_(self.start)

    def take(self, index: int, y: Tensor, k: Tensor, v: Tensor) -> None:
        """Take group `index`: y [n*S, C], raw k and v [n*S, H*D] of all its frames."""
        c = self.context
        low, high = c.group_frames(index)
        first, last = max(low, 1), min(high, c.frames - 1)  # inner frames first..last-1
        rows = slice(low * c.tokens, high * c.tokens)
        self.beta[rows] = F.linear(y, self.weights.beta.to(y.dtype)).sigmoid()
        if first < last:
            inner = slice((first - low) * c.tokens, (last - low) * c.tokens)
            self.alpha[first:last] = self._alpha(y[inner], last - first)
            if self.rings_read is not None:
                torch.cuda.current_stream(c.device).wait_event(self.rings_read)
            for target, source, ring in (("k", k, self.k_ring), ("v", v, self.v_ring)):
                spatial = self.taps.get(target, (None, None))[0]
                c.ops.conv_spatial(source[inner], spatial, ring, first=first, grid=c.grid)

    def advance(self, index: int) -> None:
        """Make what the rows taken so far allow: features, T and J, scans."""
        c = self.context
        last = min(c.group_frames(index)[1], c.frames - 1)
        whole = index == c.groups - 1
        with self.side.beside():
            self._solve_until(c.frames - 2 if whole else last - 1 - REACH)
            self._scan_until(c.chunks if whole else c.group_chunks(index)[-1])

    def finish(self) -> None:
        """Reverse scan over the chunks' maps; afterwards `states` may be asked."""
        c = self.context
        self.side.join()
        self.rings_read = None
        c.ops.scan_back(self.start, self.fold_t, self.fold_j[: c.chunks])
        if c.vdn.bridge != "alpha":
            for decay in self.decays:
                decay.fill_(1.0)
            return
        inner = torch.log(self.alpha[1 : c.frames - 1].clamp_min(ALPHA_FLOOR)).cumsum(0)
        log = F.pad(inner, (0, 0, 0, 0, 1, 0))  # [F'+1]: what was lost before inner frame j
        torch.exp(log[1:] - log[self.window_low], out=self.decays[0])
        torch.exp(log[self.window_high] - log[:-1], out=self.decays[1])

    def states(self, index: int) -> tuple[slice, Tensor]:
        """Inner frames of group `index` (relative to the group) and the states they read.

        Returns (slice of frames, [n, H, D, D] in the compute dtype).
        """
        c = self.context
        low, high = c.group_frames(index)
        first, last = max(low, 1), min(high, c.frames - 1)
        chunks = c.group_chunks(index)
        made = c.ops.window_states(
            self.before[chunks.start : chunks.stop],
            self.fold_j[chunks.start + 2 : chunks.stop + 2],
            *(decay[first - 1 : last - 1] for decay in self.decays),
            c.dtype,
            first=first - low,
            chunk=c.chunk,
        )
        return slice(first - low, last - low), made

    def _alpha(self, y: Tensor, count: int) -> Tensor:
        """alpha = exp(-exp(A_log) softplus(up(down(mean y)) + dt_bias)), float32 (sheet b.4)."""
        c = self.context
        down, up, bias, a_log = self.alpha_weights
        mean = y.view(count, c.tokens, -1).mean(1, dtype=self.alpha.dtype)
        dt = F.softplus(F.linear(F.linear(mean, down), up, bias))
        return torch.exp(-a_log.exp()[:, None] * dt.view(count, c.heads, c.head_dim))

    def _solve_until(self, last: int) -> None:
        """Make T and J of the frames after `outputs_done` up to `last`."""
        c = self.context
        first = self.outputs_done + 1
        count = last - first + 1
        if count <= 0:
            return
        features = [
            c.ops.conv_temporal_features(
                ring,
                self.taps.get(target, (None, None))[1],
                self.beta,
                first=first,
                count=count,
                low=1,
                high=c.frames - 2,
                heads=c.heads,
                normalise=normalise,
            )
            for target, ring, normalise in (("k", self.k_ring, True), ("v", self.v_ring, False))
        ]
        if self.side.used:
            self.rings_read = torch.cuda.Event()
            self.rings_read.record()
        a, b = c.ops.frame_statistics(*features)
        del features
        transition, injection = c.ops.delta_solve(
            a, b, self.alpha[first : last + 1], rule=c.vdn.delta_rule, tokens=c.tokens
        )
        slot = first % self.ring_frames
        fits = min(count, self.ring_frames - slot)  # frames before the ring wraps
        for ring, made in ((self.transition, transition), (self.injection, injection)):
            ring[slot : slot + fits] = made[:fits]
            if fits < count:
                ring[: count - fits] = made[fits:]
        self.outputs_done = last

    def _scan_until(self, chunk: int) -> None:
        """Scan the chunks before `chunk` that were not scanned yet."""
        c = self.context
        if self.scanned == chunk:
            return
        c.ops.scan_chunks(
            self.state,
            self.transition,
            self.injection,
            self.before[2:],
            self.fold_t,
            self.fold_j,
            chunks=range(self.scanned, chunk),
            size=c.chunk,
            frames=range(1, c.frames - 1),
        )
        self.scanned = chunk
