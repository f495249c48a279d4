"""Every way to run a quantised linear, on the block's shapes: checked once, then timed.

    python -m lowpeak.benchmarks.gemm_paths --out FILE [--seconds 55] [--tiny]

Prints a line a case; the JSON is rewritten after each, so a stopped run keeps what it had.
Needs CUDA, except with --tiny, which runs the plain paths on a CPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..kernels import linears
from ..kernels.reference import quantise as reference
from ..kernels.weights import Activation, Weight

SHAPES = {  # rows, width, columns
    "up": (2560, 5376, 28672),
    "down": (2560, 14336, 5376),
    "q": (5040, 5376, 7168),
    "out": (5040, 7168, 5376),
}
SEARCH = [  # launch parameters tried for the int8 products
    (128, 256, 128, 8, 8, 3),
    (128, 256, 64, 8, 8, 4),
    (128, 128, 128, 8, 8, 4),
    (128, 128, 128, 8, 4, 3),
    (256, 128, 128, 8, 8, 3),
]
NAMES = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "num_warps", "num_stages")


class Bench:
    """Rows as they come. Nothing is started after `seconds`."""

    def __init__(self, out: Path, seconds: float, device: str) -> None:
        self.out, self.device = out, device
        self.until = time.perf_counter() + seconds
        self.rows: list[dict[str, Any]] = []

    def case(self, name: str, run: Callable[[], Any], operations: float = 0, **more: Any) -> None:
        """Time `run` and write the row; a failure is a row too."""
        if time.perf_counter() > self.until:
            print(f"out of time before {name}", flush=True)
            return
        row: dict[str, Any] = {"case": name, **more}
        try:
            began = time.perf_counter()
            checked = run()
            self._wait()
            row["first_call_seconds"] = round(time.perf_counter() - began, 3)
            if isinstance(checked, str):
                row["check"] = checked
            else:
                row["milliseconds"], row["spread"] = self._time(run)
                row["tflops"] = round(operations / row["milliseconds"] / 1e9, 1)
        except Exception as failed:  # a row of its own, and on to the next case
            row["failed"] = f"{type(failed).__name__}: {failed}"[:400]
        self.rows.append(row)
        print(json.dumps(row), flush=True)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text(json.dumps(self.rows, indent=1))

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def _time(self, run: Callable[[], Any], repeats: int = 5, inner: int = 4):
        found = []
        for _ in range(repeats):
            self._wait()
            began = time.perf_counter()
            for _ in range(inner):
                run()
            self._wait()
            found.append((time.perf_counter() - began) / inner * 1e3)
        return round(statistics.median(found), 4), [round(min(found), 4), round(max(found), 4)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=55)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--no-search", action="store_true")
    asked = parser.parse_args()
    device = "cpu" if asked.tiny else "cuda"
    bench = Bench(asked.out, asked.seconds, device)
    shapes = {"tiny": (40, 64, 96)} if asked.tiny else SHAPES
    with torch.inference_mode():
        if not asked.tiny:
            checks(bench)
        for name, shape in shapes.items():
            one_shape(bench, name, shape, search=not asked.no_search and name == "up")


def one_shape(bench: Bench, name: str, shape: tuple[int, int, int], *, search: bool) -> None:
    """All paths at one shape; `search` also tries launch parameters."""
    rows, width, columns = shape
    device, dtype = bench.device, torch.float32 if bench.device == "cpu" else torch.bfloat16
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(rows, width, generator=generator, device=device).to(dtype)
    w = torch.randn(columns, width, generator=generator, device=device).to(dtype) / width**0.5
    operations = 2.0 * rows * width * columns
    triton = device == "cuda"
    weights = {kind: reference.quantise_weight(w, kind) for kind in KINDS}
    quantise = _fast_quantise() if triton else reference.quantise_activation
    acts = {kind: quantise(x, kind) for kind in KINDS}
    plain = Activation("plain", x)
    out = torch.empty(rows, columns, dtype=dtype, device=device)

    def linear(path: Callable[..., Any], act: Activation, weight: Weight) -> Callable[[], Any]:
        return lambda: path(act, weight, dtype, out=out)

    def add(case: str, run: Callable[[], Any], flops: float = operations) -> None:
        bench.case(f"{name} {case}", run, flops, shape=shape)

    add("bf16 product", linear(reference.linear, plain, Weight("plain", w)))
    for kind in ("fp8-rowwise", "fp8-tensor"):
        if triton:
            add(f"scaled {kind}", linear(linears.scaled_product, acts[kind], weights[kind]))
    if triton:
        tiled = linears.scaled_product_tiled
        add("tiled fp8-rowwise", linear(tiled, acts["fp8-rowwise"], weights["fp8-rowwise"]))
    int8 = (acts["int8-convrot"], weights["int8-convrot"])
    add("int8 library", linear(linears.int8_library, *int8))
    if triton:
        add("int8 triton", linear(linears.int8_triton, *int8))
        add("int8 kitchen", linear(linears.int8_kitchen, plain, int8[1]))
    for kind in ("fp8-rowwise", "int8-convrot"):
        add(f"storage {kind}", linear(linears.storage, plain, weights[kind]))
    for kind in KINDS:
        add(f"quantise {kind}", lambda kind=kind: quantise(x, kind), 0)
    if search and triton:
        _search(bench, name, int8, out, operations)


def _search(bench: Bench, name: str, int8: Any, out: Any, operations: float) -> None:
    from ..kernels.triton import gemm

    act, weight = int8
    for values in SEARCH:
        launch = dict(zip(NAMES, values, strict=True))
        for kernel in (gemm.int8_gemm, gemm.int8_gemm_bulk):

            def run(kernel=kernel, launch=launch) -> Any:
                return kernel(
                    act.codes, act.scale, weight.codes, weight.scale, out, BULK=0, **launch
                )

            bench.case(f"{name} {kernel.__name__} {values}", run, operations, launch=launch)


def checks(bench: Bench) -> None:
    """The card's numbers against the plain rule: codes bit for bit, products within a rounding."""
    generator = torch.Generator("cuda").manual_seed(1)
    x = torch.randn(300, 7168, generator=generator, device="cuda").to(torch.bfloat16)
    x[:, 77] *= 60
    x[5] = 0
    w = torch.randn(512, 7168, generator=generator, device="cuda").to(torch.bfloat16)
    quantise = _fast_quantise()

    def codes(kind: str, rows: torch.Tensor) -> str:
        # On a card PyTorch divides by a constant through its reciprocal: the rule is the CPU's.
        fast, plain = quantise(rows, kind), reference.quantise_activation(rows.cpu(), kind)
        differ = int((fast.codes.float().cpu() != plain.codes.float()).sum())
        return f"{differ} of {rows.numel()} codes differ, scales equal " + str(
            torch.equal(fast.scale.cpu(), plain.scale)
        )

    def product(path: Callable[..., Any], kind: str, plain: bool = False) -> str:
        weight = reference.quantise_weight(w, kind)
        act = reference.quantise_activation(x, kind)
        truth = reference.linear(act, weight, torch.float64)
        bf16 = torch.nn.functional.linear(x, reference.dequantise(weight).to(x.dtype)).double()
        exact = torch.nn.functional.linear(x.double(), reference.dequantise(weight).double())
        got = path(Activation("plain", x) if plain else act, weight, torch.bfloat16).double()
        against = exact if plain else truth
        errors = [float((v - against).norm() / against.norm()) for v in (got, truth, bf16)]
        return f"relative error {errors[0]:.2e} (truth {errors[1]:.2e}, bf16 {errors[2]:.2e})"

    for kind in KINDS:
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            bench.case(f"codes {kind} {dtype}", lambda k=kind, d=dtype: codes(k, x.to(d)))
    for name, kind, plain in (
        ("scaled_product", "fp8-rowwise", False),
        ("scaled_product", "fp8-tensor", False),
        ("scaled_product_tiled", "fp8-rowwise", False),
        ("int8_library", "int8-convrot", False),
        ("int8_triton", "int8-convrot", False),
        ("int8_kitchen", "int8-convrot", True),
        ("storage", "fp8-rowwise", True),
        ("storage", "int8-convrot", True),
    ):
        path = getattr(linears, name)
        bench.case(f"{name} {kind}", lambda p=path, k=kind, f=plain: product(p, k, f))


KINDS = ("fp8-rowwise", "fp8-tensor", "int8-convrot")


def _fast_quantise() -> Callable[..., Activation]:
    from ..kernels.triton.quantise import quantise_activation

    return quantise_activation


if __name__ == "__main__":
    main()
