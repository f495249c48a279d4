"""Numbers into verdicts: tolerances by class of precision, poisoned memory, a fair clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

BF16_STEP = 2.0**-8
QUANTISED_ERROR = 0.0316  # a cosine of 0.9995
SHORT_SECONDS = 5e-3
ROW_FACTOR = 8  # the worst row may be this much further off than the whole


@dataclass(frozen=True)
class Tolerance:
    """Relative error of the whole, and absolute error of the log-sum-exp with its growth."""

    error: float
    lse: float = 2e-3
    lse_growth: float = 2e-5


class Rejected(Exception):
    """A candidate that ran and is not good enough. The message is its detail."""


def tolerance(exact: bool, plain_error: float) -> Tolerance:
    """Exact forms: twice the error of plain PyTorch at the same precision, and one rounding step.
    Forms that quantise attention's inputs: a cosine of 0.9995."""
    if exact:
        return Tolerance(2 * plain_error + BF16_STEP)
    return Tolerance(QUANTISED_ERROR, lse=5e-2, lse_growth=2e-3)


def relative_error(got: Tensor, right: Tensor) -> float:
    """|got - right| / |right| over everything, in float64."""
    difference = (got.double() - right.double()).norm()
    return float(difference / right.double().norm().clamp_min(1e-300))


def worst_row_error(got: Tensor, right: Tensor) -> float:
    """The same row by row (last axis), against the mean size of a row; the largest."""
    difference = (got.double() - right.double()).norm(dim=-1)
    return float(difference.max() / right.double().norm(dim=-1).mean().clamp_min(1e-300))


def demand(name: str, got: Tensor, right: Tensor, allowed: float) -> float:
    """The error of `got`. Raises Rejected when it is over the tolerance or not finite."""
    if not bool(torch.isfinite(got).all()):
        raise Rejected(f"{name}: numbers that are not finite")
    error = relative_error(got, right)
    if not error <= allowed:
        raise Rejected(f"{name}: relative error {error:.2e}, allowed {allowed:.2e}")
    worst = worst_row_error(got, right)
    if not worst <= ROW_FACTOR * allowed:
        raise Rejected(f"{name}: one row is off by {worst:.2e}, allowed {ROW_FACTOR * allowed:.2e}")
    return error


def demand_lse(got: Tensor, right: Tensor, limit: Tolerance) -> None:
    """The log-sum-exp within its tolerance. Raises Rejected."""
    over = (got.double() - right.double()).abs() - limit.lse_growth * right.double().abs()
    if not bool(torch.isfinite(got).all()) or float(over.max()) > limit.lse:
        raise Rejected(f"log-sum-exp off by {float(over.max()):.2e}, allowed {limit.lse:.0e}")


@contextmanager
def poisoned(device: torch.device, spare_bytes: int):
    """New float tensors hold NaN: those of torch.empty, and those that a library allocates next
    from memory which the allocator has just got back full of NaN."""
    plain_empty, plain_like = torch.empty, torch.empty_like

    def poison(tensor: Tensor) -> Tensor:
        if tensor.is_floating_point() and tensor.element_size() > 1:
            tensor.fill_(float("nan"))
        return tensor

    if device.type == "cuda":
        spare = [poison(plain_empty(spare_bytes // 2, device=device, dtype=torch.bfloat16))]
        spare.clear()
    torch.empty = lambda *a, **k: poison(plain_empty(*a, **k))  # type: ignore[assignment]
    torch.empty_like = lambda *a, **k: poison(plain_like(*a, **k))  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.empty, torch.empty_like = plain_empty, plain_like


def wait(device: torch.device) -> None:
    """Until the device has done what was queued."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(
    run: Callable[[], Any], device: torch.device, *, repeats: int = 7, limit_s: float = 2.0
) -> tuple[float, float, int]:
    """Median seconds, spread (largest less smallest), and repeats of `run`.

    Short ones run four at a time, so that what the host needs to start one is hidden as it is in
    use; slow ones run once.
    """
    began = time.perf_counter()
    run()
    wait(device)
    inner = 4 if time.perf_counter() - began < SHORT_SECONDS else 1
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < repeats and (not found or time.perf_counter() - began < limit_s):
        start = time.perf_counter()
        for _ in range(inner):
            run()
        wait(device)
        found.append((time.perf_counter() - start) / inner)
    return statistics.median(found), max(found) - min(found), len(found)
