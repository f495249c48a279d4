"""Gradients of a loss, as captured CUDA graphs where that works: small models are launch-bound.

A layout (shapes of a batch) is run plainly twice, then captured, compared once with the plain
result, and replayed from then on. A capture that fails or differs leaves its layout plain.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .loop import Run

PLAIN_FIRST = 2
MOST = 72  # graphs
TOLERANCE = 0.02
Loss = Callable[[Sequence[Tensor]], Tensor]


@dataclass
class _Captured:
    graph: torch.cuda.CUDAGraph
    inputs: list[Tensor]


class Gradients:
    """Puts gradients of `loss` into the `grad` of fixed parameters and gives the loss's parts."""

    def __init__(self, run: Run, params: Sequence[Tensor], parts: int) -> None:
        self.run, self.params = run, list(params)
        for p in self.params:
            p.grad = torch.zeros_like(p)
        self.grads = [p.grad for p in self.params]
        self.parts = torch.zeros(parts, device=run.device)
        self.seen: dict[Hashable, int] = {}
        self.held: dict[Hashable, _Captured] = {}
        self.wanted = run.device.type == "cuda"
        self.pool: tuple[int, int] | None = None

    def __call__(self, key: Hashable, inputs: Sequence[Tensor], loss: Loss) -> Tensor:
        """Parts [n] of the loss whose sum was differentiated.

        key: names shapes and code path of `loss`, which must draw no random numbers, read only
        `inputs`, the parameters and constants, and never wait for the device.
        """
        found = self.held.get(key)
        if found is not None:
            for target, value in zip(found.inputs, inputs, strict=True):
                target.copy_(value)
            found.graph.replay()
            return self.parts.clone()
        count = self.seen[key] = self.seen.get(key, 0) + 1
        parts = self._work(inputs, loss)
        if self.wanted and count == PLAIN_FIRST + 1 and len(self.held) < MOST:
            plain = parts.clone()
            try:
                self._capture(key, inputs, loss, plain)
            except Exception as failure:
                self.held.pop(key, None)
                self.wanted = False
                self.run.say(f"graphs: none from here on, {type(failure).__name__}: {failure}")
                torch.cuda.synchronize()
                return self._work(inputs, loss).clone()
        return parts.clone()

    def _work(self, inputs: Sequence[Tensor], loss: Loss) -> Tensor:
        parts = loss(inputs)
        grads = torch.autograd.grad(parts.sum(), self.params, allow_unused=True)
        used = [(t, g) for t, g in zip(self.grads, grads, strict=True) if g is not None]
        rest = [t for t, g in zip(self.grads, grads, strict=True) if g is None]
        torch._foreach_copy_([t for t, _ in used], [g for _, g in used])
        if rest:
            torch._foreach_zero_(rest)
        self.parts.copy_(parts.detach())
        return self.parts

    def _capture(self, key: Hashable, inputs: Sequence[Tensor], loss: Loss, plain: Tensor) -> None:
        held = [value.clone() for value in inputs]
        graph = torch.cuda.CUDAGraph()
        if self.pool is None:
            self.pool = torch.cuda.graph_pool_handle()
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            self._work(held, loss)
        graph.replay()
        off = float(((self.parts - plain).abs() / plain.abs().clamp_min(1e-3)).max())
        if not off <= TOLERANCE:
            self._work(inputs, loss)
            raise RuntimeError(f"the captured loss is {100 * off:.1f} % off")
        self.held[key] = _Captured(graph, held)
