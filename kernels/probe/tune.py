"""Launch parameters measured: every candidate at real shapes, the best as a row of tuning.toml.

Run by `lowpeak bench kernels`, never while a user waits. A row names what it was measured on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import torch

from ..machine import read_machine
from ..tuning import tuned
from . import judge

ROWS, WIDTH, COLUMNS = 2560, 5376, 28672  # the feed-forward's first product
GEMM_TILES = (  # rows, columns, depth, warps, stages, tiles of a band
    (128, 128, 128, 4, 3, 8),
    (128, 128, 128, 4, 4, 8),
    (128, 128, 128, 4, 3, 16),
    (128, 128, 128, 4, 3, 4),
    (128, 128, 64, 4, 4, 8),
    (64, 256, 128, 4, 3, 8),
    (128, 256, 128, 8, 4, 8),
    (256, 128, 128, 8, 3, 8),
    (128, 256, 128, 8, 3, 16),
)
Run = Callable[[Mapping[str, int]], Any]


def candidates(op: str) -> Iterator[dict[str, int]]:
    """Launch parameters to try for an op."""
    if op in ("int8_gemm", "int8_gemm_bulk"):
        for m, n, k, warps, stages, group in GEMM_TILES:
            yield {
                "BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": group,
                "num_warps": warps, "num_stages": stages,
            }  # fmt: skip
    elif op in ("int8_rows", "int8_wide_rows"):
        yield from ({"num_warps": warps} for warps in (4, 8, 16, 32))
    elif op == "elementwise_tile":
        for m, n, warps in itertools.product((4, 16, 32), (128, 256, 512), (4, 8)):
            yield {"BLOCK_M": m, "BLOCK_N": n, "num_warps": warps}
    else:
        raise KeyError(f"no candidates for {op!r}")


OPS = ("int8_gemm", "int8_gemm_bulk", "int8_rows", "int8_wide_rows", "elementwise_tile")


def tune(
    op: str, device: torch.device, *, progress: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Time every candidate of `op`: {"op", "best", "now", "tried": [...]}; failures are listed."""
    run = _runner(op, device)
    tried: list[dict[str, Any]] = []
    for values in candidates(op):
        entry: dict[str, Any] = {"values": values}
        try:
            seconds, spread, _ = judge.measure(lambda v=values: run(v), device, limit_s=0.3)
            entry |= {"seconds": seconds, "spread": spread}
        except Exception as failed:  # too much shared memory, too many registers: not a candidate
            entry["failed"] = f"{type(failed).__name__}: {failed}".splitlines()[0][:120]
        tried.append(entry)
        progress(f"{op} {values}: {entry.get('seconds', entry.get('failed'))}")
    timed = [entry for entry in tried if "seconds" in entry]
    best = min(timed, key=lambda entry: entry["seconds"], default=None)
    return {"op": op, "best": best, "now": tuned(op, device), "tried": tried}


def toml_row(found: Mapping[str, Any], device: torch.device, command: str) -> str:
    """The best candidate as a row of tuning.toml, "" when nothing ran."""
    best = found["best"]
    if best is None:
        return ""
    machine = read_machine(device)
    capability = ".".join(map(str, machine.capability or (0, 0)))
    values = ", ".join(f"{name} = {value}" for name, value in best["values"].items())
    software = ", ".join(f"{name} {machine.packages.get(name)}" for name in ("torch", "triton"))
    return "\n".join(
        (
            "[[row]]",
            f'op = "{found["op"]}"',
            f'capability = "{capability}"',
            f"values = {{ {values} }}",
            'status = "measured"',
            f"milliseconds = {best['seconds'] * 1e3:.4f}",
            f'device = "{machine.name}"',
            f'software = "{software}"',
            f'command = "{command}"',
            f'date = "{datetime.now(UTC).date()}"',
        )
    )


def _runner(op: str, device: torch.device) -> Run:
    """A function that launches `op` once with the parameters it is given."""
    from ..triton import gemm, quantise

    def codes(*shape: int) -> torch.Tensor:
        return torch.randint(-128, 128, shape, dtype=torch.int8, device=device)

    if op in ("int8_gemm", "int8_gemm_bulk"):
        kernel = getattr(gemm, op)
        plain = {"BULK": 0} if op == "int8_gemm" else {}
        a, b = codes(ROWS, WIDTH), codes(COLUMNS, WIDTH)
        row_scale, column_scale = (torch.rand(n, device=device) for n in (ROWS, COLUMNS))
        out = torch.empty(ROWS, COLUMNS, dtype=torch.bfloat16, device=device)
        return lambda values: kernel(a, row_scale, b, column_scale, out, **plain, **values)
    if op in ("int8_rows", "int8_wide_rows"):
        width = WIDTH if op == "int8_rows" else COLUMNS // 2
        x = torch.randn(ROWS, width, device=device).to(torch.bfloat16)
        return lambda values: quantise.quantise_int8(x, None, **values)
    product = torch.randn(ROWS, 3264, device=device)
    scales = torch.rand(ROWS, device=device), torch.rand(3264, device=device)
    out = torch.empty(ROWS, 3264, dtype=torch.bfloat16, device=device)
    return lambda values: gemm.scale_product(product, *scales, out, None, **values)
