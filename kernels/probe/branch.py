"""The operations of the linear branch and between the products, judged one by one.

Each is compared with the plain form in float32; its first call is timed apart, so that the sum of
first calls with an empty kernel cache is what a user waits for once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import reference
from . import judge


def judge_branch(
    ops: Any, device: torch.device, dtype: torch.dtype, head_width: int, *, small: bool
) -> dict[str, Any]:
    """Every operation of a namespace. Raises Rejected with the name of the one that is off."""
    setting = _Setting(device, dtype, head_width, small)
    found: dict[str, Any] = {"first_seconds": 0.0, "seconds": 0.0, "error": 0.0, "ops": {}}
    for name, call in setting.calls().items():
        with judge.poisoned(device, 1 << 20):
            began = time.perf_counter()
            got = call(ops, dtype)
            judge.wait(device)
            first = time.perf_counter() - began
        plain, right = call(reference, dtype), call(reference, torch.float32)
        error = 0.0
        for index, (mine, theirs, truth) in enumerate(zip(got, plain, right, strict=True)):
            allowed = judge.tolerance(True, judge.relative_error(theirs.float(), truth)).error
            label = name if len(got) == 1 else f"{name}[{index}]"
            flat = (t.float().reshape(-1, t.shape[-1]) for t in (mine, truth))
            error = max(error, judge.demand(label, *flat, allowed))
        seconds, _, _ = judge.measure(lambda call=call: call(ops, dtype), device, repeats=3)
        found["ops"][name] = {"first_seconds": first, "seconds": seconds, "error": error}
        found["first_seconds"] += first
        found["seconds"] += seconds
        found["error"] = max(found["error"], error)
    return found


class _Setting:
    """Inputs of one chunk, small enough to be quick and with the real head width."""

    def __init__(self, device: torch.device, dtype: torch.dtype, head_width: int, small: bool):
        self.device, self.width = device, head_width
        self.heads, self.grid = (2, (3, 4)) if small else (56, (8, 14))
        self.frames, self.tokens = 3, self.grid[0] * self.grid[1]
        self.generator = torch.Generator(device).manual_seed(9)
        self.dtype = dtype

    def draw(self, *shape: int, scale: float = 1.0) -> Tensor:
        """Normal numbers, rounded to the engine's dtype so that every form gets the same ones."""
        made = torch.randn(*shape, generator=self.generator, device=self.device) * scale
        return made.to(self.dtype)

    def calls(self) -> dict[str, Callable[[Any, torch.dtype], tuple[Tensor, ...]]]:
        """name -> (operations, dtype) -> outputs."""
        rows, channels = self.frames * self.tokens, self.heads * self.width
        x, table = self.draw(rows, channels, scale=3), self.draw(4, 6 * channels, scale=0.5)
        weight, head_weight = self.draw(channels), self.draw(self.width)
        pick = torch.arange(rows, device=self.device, dtype=torch.int32) % 4
        half = self.width * 3 // 8
        angle = torch.rand(rows, half, generator=self.generator, device=self.device) * 6
        logits = self.draw(rows, self.heads)
        up = self.draw(rows, 2 * channels)
        attention = self.draw(rows, self.heads, self.width)
        spatial = self.draw(channels, 1, 5, 5, scale=0.2)
        temporal = self.draw(channels, 1, 5, scale=0.4)
        beta = torch.rand(rows, self.heads, generator=self.generator, device=self.device)
        beta = beta.to(self.dtype)

        def norm(ops: Any, kind: torch.dtype) -> tuple[Tensor, ...]:
            y, _ = ops.norm_modulate(
                x.to(kind), weight.to(kind), table.to(kind), pick, 0, eps=1e-5, kind="plain"
            )
            return (y,)

        def rope(ops: Any, kind: torch.dtype) -> tuple[Tensor, ...]:
            out = torch.empty(rows, self.heads, self.width, dtype=kind, device=self.device)
            tables = (angle.cos(), angle.sin())
            return (
                ops.head_norm_rope(x.to(kind), head_weight.to(kind), *tables, eps=1e-5, out=out),
            )

        def gates(ops: Any, kind: torch.dtype) -> tuple[Tensor, ...]:
            gated = ops.gate_heads(attention.to(kind), logits.to(kind), kind="plain").codes
            return gated, ops.swiglu(up.to(kind), kind="plain").codes

        def residual(ops: Any, kind: torch.dtype) -> tuple[Tensor, ...]:
            total = x.to(kind, copy=True)
            ops.add_gated(total, table.to(kind), pick, 2, up[:, :channels].to(kind).contiguous())
            return (total,)

        def features(ops: Any, kind: torch.dtype) -> tuple[Tensor, ...]:
            """The ring after the spatial taps, and the features that temporal ones make of it."""
            ring = torch.zeros(8, self.tokens, channels, dtype=kind, device=self.device)
            ops.conv_spatial(
                x.to(kind), ops.conv_taps(spatial.to(kind)), ring, first=1, grid=self.grid
            )
            made = ops.conv_temporal_features(
                ring, ops.conv_taps(temporal.to(kind)), beta.to(kind).repeat(4, 1),
                first=1, count=self.frames, low=1, high=self.frames, heads=self.heads,
                normalise=True,
            )  # fmt: skip
            return ring[1 : 1 + self.frames].reshape(rows, channels), made

        return {
            "norm_modulate": norm,
            "head_norm_rope": rope,
            "gates": gates,
            "add_gated": residual,
            "convolutions": features,
            **self._scans(),
        }

    def _scans(self) -> dict[str, Callable[[Any, torch.dtype], tuple[Tensor, ...]]]:
        shape = (self.frames, self.heads, self.width, self.width)
        unit = self.draw(self.frames, self.heads, self.tokens, self.width).float()
        keys = (unit / unit.norm(dim=-1, keepdim=True)).to(self.dtype)
        values = self.draw(self.frames, self.heads, self.tokens, self.width)
        alpha = torch.rand(shape[:3], generator=self.generator, device=self.device)
        q = self.draw(self.frames * self.tokens, self.heads * self.width)
        states = self.draw(*shape)
        hidden = self.draw(self.frames * self.tokens, self.width)
        gate = self.draw(self.heads * self.width, self.width, scale=0.2)
        bias, norm = self.draw(self.heads * self.width), self.draw(self.width)

        def scan(ops: Any, kind: torch.dtype) -> tuple[Tensor, ...]:
            """From features to states: statistics, solve, and both scans over one chunk."""
            a, b = ops.frame_statistics(keys.to(kind), values.to(kind))
            t, j = ops.delta_solve(a, b, alpha, rule="vdn_solve", tokens=self.tokens)
            state = torch.zeros(shape[1:], device=self.device)
            kept = [torch.empty_like(state)[None] for _ in "stj"]
            frames = range(self.frames)
            ops.scan_chunks(state, t, j, *kept, chunks=range(1), size=self.frames, frames=frames)
            ops.scan_back(state, *kept[1:])
            return a, b, t, j, state, *kept

        def readout(ops: Any, kind: torch.dtype) -> tuple[Tensor, ...]:
            return (
                ops.linear_readout(
                    q.to(kind), states.to(kind), norm.to(kind), hidden.to(kind), gate.to(kind),
                    bias.to(kind), eps=1e-6,
                ),
            )  # fmt: skip

        def merge(ops: Any, kind: torch.dtype) -> tuple[Tensor, ...]:
            total = torch.zeros(40, self.heads, self.width, device=self.device)
            lse = torch.full((40, self.heads), -torch.inf, device=self.device)
            for index in range(2):
                part = values[index].transpose(0, 1)[:12].to(kind).repeat(4, 1, 1)[:40]
                ops.merge_partial(total, lse, part, part.float().mean(-1))
            return total, lse

        return {"scan": scan, "linear_readout": readout, "merge_partial": merge}
