"""What each candidate must do: real lengths, large values, sampled rows against float32.

A case takes the function and gives {"error", "seconds", "spread", "repeats", "first_seconds"};
it raises judge.Rejected for a candidate that ran and is wrong. Whatever else it raises is the
candidate's failure too, and the child says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..reference import quantise as plain_linear
from ..registry import Implementation
from ..weights import Activation
from . import judge
from .judge import Rejected

# Lengths of the reference request: 1344 x 768, 243 frames; dense rows of the longest clip.
FULL = {
    "window": (5040, 18144),
    "global": (3326, 171360),
    "heads": 56,
    "head_width": 128,
    "linear": (2560, 5376, 28672),
}
TINY = {
    "window": (40, 96),
    "global": (24, 300),
    "heads": 2,
    "head_width": 64,
    "linear": (48, 64, 96),
}
SAMPLED_ROWS = 48
LARGE = 12.0  # queries and keys this much larger: the softmax picks single keys
ROOMY_BYTES = 24 << 30  # cards with less free memory are probed with fewer heads


@dataclass(frozen=True)
class Sizes:
    """Lengths (queries, keys) of both attentions, heads and their width, and a linear's shape."""

    window: tuple[int, int]
    globals: tuple[int, int]
    heads: int
    head_width: int
    linear: tuple[int, int, int]


def sizes_for(device: torch.device, name: str) -> Sizes:
    """Full sizes; on a card with little free memory with as many heads as fit well."""
    size: dict[str, Any] = FULL if name == "full" else TINY
    heads = size["heads"]
    if device.type == "cuda" and torch.cuda.mem_get_info(device)[0] < ROOMY_BYTES:
        heads = min(heads, 8)
    return Sizes(size["window"], size["global"], heads, size["head_width"], size["linear"])


def run_case(
    item: Implementation,
    function: Callable[..., Any],
    kind: str,
    sizes: Sizes,
    device: torch.device,
    dtype: torch.dtype,
) -> dict[str, Any]:
    """Judge one candidate. Raises Rejected, or whatever the candidate raises."""
    if item.op == "linear":
        return _linear(item, function, kind, sizes, device, dtype)
    if item.op == "branch":
        from .branch import judge_branch

        return judge_branch(function, device, dtype, sizes.head_width, small=sizes.heads < 8)
    return _attention(item, function, sizes, device, dtype)


# ---------------------------------------------------------------- attention


def _attention(
    item: Implementation, function: Callable[..., Any], sizes: Sizes, device, dtype
) -> dict[str, Any]:
    partial = item.op == "global attention"
    lengths = sizes.globals if partial else sizes.window
    found: dict[str, Any] = {}
    for scale in (1.0, LARGE):
        q, k, v = _heads(lengths, sizes, device, dtype, scale)
        kept = [t.clone() for t in (q, k, v)]
        with judge.poisoned(device, 2 * q.numel() * q.element_size()):
            began = time.perf_counter()
            got = function(q, k, v)
            judge.wait(device)
            found.setdefault("first_seconds", time.perf_counter() - began)
        for name, before, after in zip("qkv", kept, (q, k, v), strict=True):
            if not torch.equal(before, after):
                raise Rejected(f"changes its input {name}")
        del kept
        out, lse = got if partial else (got, None)
        error = _judge_rows(item, out, lse, (q, k, v), scale)
        found["error" if scale == 1.0 else "error_large"] = error
        if scale == 1.0:
            again = function(q, k, v)
            found["deterministic"] = torch.equal(out, again[0] if partial else again)
            del again
            timed = judge.measure(lambda q=q, k=k, v=v: function(q, k, v), device)
            found["seconds"], found["spread"], found["repeats"] = timed
            operations = 4.0 * q.shape[0] * k.shape[0] * q.shape[1] * q.shape[2]
            found["tflops"] = round(operations / found["seconds"] / 1e12, 1)
    return found


def _heads(lengths, sizes: Sizes, device, dtype, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Queries and keys of unit channels, scores `scale` times larger; then values with outliers.

    Keys and values are rows of a longer buffer, as slices of the key ring are.
    """
    generator = torch.Generator(device).manual_seed(11)
    rows, keys = lengths
    shape = (sizes.heads, sizes.head_width)

    def draw(count: int) -> Tensor:
        made = torch.randn(count, *shape, generator=generator, device=device, dtype=torch.float32)
        return made.to(dtype)

    q, k, v = draw(rows) * scale**0.5, draw(keys + 8)[8:] * scale**0.5, draw(keys + 8)[8:]
    k[:, :, 5] += 4 * scale**0.5  # offset channels, as real keys and values have
    v[:, :, 7] += 2
    if scale > 1:
        v[::97] *= 30
    return q, k, v


def _judge_rows(item: Implementation, out: Tensor, lse, heads, scale: float) -> float:
    q, k, v = heads
    if out.shape != q.shape:
        raise Rejected(f"gives shape {tuple(out.shape)}, expected {tuple(q.shape)}")
    if not bool(torch.isfinite(out).all()):
        raise Rejected("leaves outputs unwritten or not finite")
    generator = torch.Generator().manual_seed(3)
    middle = torch.randint(0, q.shape[0], (SAMPLED_ROWS - 2,), generator=generator).tolist()
    rows = torch.tensor([0, *middle, q.shape[0] - 1], device=q.device)
    right, right_lse, plain = _exact_rows(q[rows], k, v)
    limit = judge.tolerance(item.exact, judge.relative_error(plain, right))
    name = "values" if scale == 1.0 else "values at large scores"
    if item.exact or scale == 1.0:
        error = judge.demand(name, out[rows], right, limit.error)
    else:  # int8 scores round by more than one there: finite and of the right size is all
        error = judge.demand(name, out[rows], right, 0.5)
    if lse is not None:
        judge.demand_lse(lse[rows], right_lse, limit)
    return error


def _exact_rows(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of attention in float32 head by head, their log-sum-exp, and the rows rounded as plain
    PyTorch in the given dtype rounds them: probabilities and output."""
    outs, lses, plains = [], [], []
    for head in range(q.shape[1]):
        x, y, z = (t[:, head].float() for t in (q, k, v))
        scores = (x.double() @ y.double().T if x.shape[0] * y.shape[0] < 1 << 20 else x @ y.T) * (
            q.shape[-1] ** -0.5
        )
        lse = scores.logsumexp(-1)
        weights = (scores - lse[:, None]).exp().float()
        outs.append(weights @ z)
        lses.append(lse.float())
        plains.append((weights.to(q.dtype).float() @ z).to(q.dtype))
    return torch.stack(outs, 1), torch.stack(lses, 1), torch.stack(plains, 1)


# ---------------------------------------------------------------- linear


def _linear(
    item: Implementation, function: Callable[..., Any], kind: str, sizes: Sizes, device, dtype
) -> dict[str, Any]:
    rows, width, columns = sizes.linear
    generator = torch.Generator(device).manual_seed(5)
    x = torch.randn(rows, width, generator=generator, device=device).to(dtype)
    x[:, :: max(1, width // 8)] *= 60  # outlier channels
    x[3] = 0
    w = torch.randn(columns, width, generator=generator, device=device).to(dtype) / width**0.5
    weight = plain_linear.quantise_weight(w, kind)
    act = plain_linear.quantise_activation(x, kind)
    given = Activation("plain", x) if item.activation == "plain" else act
    del w
    out = torch.full((rows, columns), float("nan"), dtype=dtype, device=device)
    began = time.perf_counter()
    got = function(given, weight, dtype, out=out)
    judge.wait(device)
    found: dict[str, Any] = {"first_seconds": time.perf_counter() - began}
    if got.data_ptr() != out.data_ptr():
        raise Rejected("does not write the output that it was given")
    picked = torch.linspace(0, rows - 1, min(rows, 64), device=device).long()
    decoded = plain_linear.dequantise(weight)
    few = Activation(kind, act.codes[picked], _rows_of(act.scale, picked))
    if item.name == "storage":
        right = x[picked].float() @ decoded.T
    else:
        right = plain_linear.linear(few, weight, torch.float32)
    rounded = (x[picked] @ decoded.to(dtype).T).float()
    plain_error = judge.relative_error(rounded, x[picked].float() @ decoded.T)
    if not bool(torch.isfinite(got).all()):
        raise Rejected("leaves outputs unwritten or not finite")
    found["error"] = judge.demand(
        "product", got[picked], right, judge.tolerance(True, plain_error).error
    )
    timed = judge.measure(lambda: function(given, weight, dtype, out=out), device)
    found["seconds"], found["spread"], found["repeats"] = timed
    found["tflops"] = round(2.0 * rows * width * columns / found["seconds"] / 1e12, 1)
    return found


def _rows_of(scale: Tensor | None, rows: Tensor) -> Tensor | None:
    return scale if scale is None or scale.shape[0] == 1 else scale[rows]
