"""Time variants of the linear branch's kernels at real shapes, each checked first. For choosing
launch settings; the winners are rows of kernels/tuning.toml."""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path

import torch
import triton

sys.path.insert(0, str(Path(__file__).parent))
import synthetic

from lowpeak.engine.model.block import ChunkMajorBlock
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.residual import DeviceResidual
from lowpeak.kernels import triton as fast
from lowpeak.kernels.triton import conv, delta

H, D, S, N = 56, 128, 1008, 5


def ms(fn) -> float:
    return float(triton.testing.do_bench(fn, warmup=20, rep=60, return_mode="median"))


def report_ms(name: str, fn) -> None:
    """A line; a variant that does not compile or does not fit the card is a verdict too."""
    try:
        print(f"{name} {ms(fn):.3f} ms", flush=True)
    except Exception as failed:
        print(f"{name} {str(failed)[:80]}", flush=True)


def inverse() -> None:
    k = torch.nn.functional.normalize(torch.randn(N * H, S, D, device="cuda"), dim=-1)
    k = k * torch.rand(N * H, S, 1, device="cuda").sqrt()
    a = k.transpose(1, 2) @ k
    alpha = torch.rand(N * H, D, device="cuda")
    truth = torch.linalg.inv(a.double() + torch.eye(D, device="cuda"))
    m, t = torch.empty_like(a), torch.empty_like(a)

    def report(name, fn, get) -> None:
        fn()
        error = float((get().double() - truth).abs().max() / truth.abs().max())
        print(f"inverse {name:34s} {ms(fn):7.3f} ms  error {error:.1e}", flush=True)

    for warps, precision in itertools.product((1, 2, 4, 8), ("ieee", "tf32x3")):

        def fn(w=warps, p=precision):
            delta._inverse[(N * H,)](a, alpha, m, t, 1.0, D=D, N=16, PRECISION=p, num_warps=w)

        try:
            report(f"halves warps {warps} {precision}", fn, lambda: m)
        except Exception as failed:  # a variant that does not compile is a verdict
            print("inverse halves", warps, precision, str(failed)[:80], flush=True)
    for warps in (8, 16):

        def whole(w=warps):
            delta._inverse_small[(N * H,)](a, alpha, m, t, 1.0, D=D, num_warps=w)

        report(f"whole warps {warps}", whole, lambda: m)
    eye = torch.eye(D, device="cuda")
    kept = {}

    def cholesky():
        low = torch.linalg.cholesky_ex(a + eye)[0]
        li = torch.linalg.solve_triangular(low, eye.expand_as(low), upper=False)
        kept["m"] = li.transpose(1, 2) @ li

    report("cholesky, solve, product", cholesky, lambda: kept["m"])

    def library():
        kept["m"] = torch.linalg.inv_ex(a + eye)[0]

    report("inv_ex", library, lambda: kept["m"])


def scans() -> None:
    """One chunk and a group of four in one launch; then the reverse scan of fifteen chunks."""
    t = torch.randn(25, H, D, D, device="cuda") * 0.05
    j = torch.randn(25, H, D, D, device="cuda")
    state = torch.randn(H, D, D, device="cuda")
    kept = [torch.randn(15, H, D, D, device="cuda") * 0.05 for _ in "stj"]
    for chunks, (rows, warps) in itertools.product((1, 4), ((32, 4), (64, 4), (64, 8), (128, 8))):

        def fn(n=chunks, r=rows, w=warps):
            delta._scan[(H, D // r, 1 + 2 * n)](
                state, t, j, *kept, H, 25, 0, n, 5, 0, 5 * n,
                D=D, ROWS=r, W=64, PRECISION="tf32x3", num_warps=w,
            )  # fmt: skip

        report_ms(f"scan chunks {chunks} rows {rows} warps {warps}", fn)
    shapes = ((32, 4), (64, 4), (64, 8))
    for (rows, warps), stages in itertools.product(shapes, (1, 2, 3)):

        def back(r=rows, w=warps, s=stages):
            delta._scan_back[(H, D // r)](
                state, kept[1], kept[2], H, 15,
                D=D, ROWS=r, W=64, PRECISION="tf32x3", num_warps=w, num_stages=s,
            )  # fmt: skip

        report_ms(f"scan back rows {rows} warps {warps} stages {stages}", back)


def convolutions() -> None:
    """A chunk of the large picture: strips and blocks of channels, frames read at once."""
    height, width, c, slots = 24, 42, H * D, 10
    x = torch.randn(N * S, c, device="cuda").bfloat16()
    ring = torch.zeros(slots, S, c, device="cuda", dtype=torch.bfloat16)
    taps = torch.randn(25, c, device="cuda").bfloat16()
    for strip, block, warps in itertools.product((7, 6, 5), (32, 64, 128), (1, 2)):
        strips = triton.cdiv(width, strip)

        def spatial(w=strip, b=block, n=warps, s=strips):
            conv._conv_spatial[(N * s, c // b)](
                x, taps, ring, height, width, c, 0, slots, s, W=w, BLOCK_C=b, num_warps=n
            )

        report_ms(f"spatial strip {strip} channels {block} warps {warps}", spatial)
    beta = torch.rand(20 * S, H, device="cuda").bfloat16()
    out = torch.empty(N, H, S, D, device="cuda", dtype=torch.bfloat16)
    for frames, warps in itertools.product((1, 3, 5), (1, 2)):

        def temporal(f=frames, n=warps):
            conv._conv_temporal[(S, H, triton.cdiv(N, f))](
                ring, taps, beta, out, S, slots, c, H, 3, N, 1, 70,
                TAPS=5, NORMALISE=True, D=D, FRAMES=f, num_warps=n,
            )  # fmt: skip

        report_ms(f"temporal frames {frames} warps {warps}", temporal)


def queueing() -> None:
    """How long the host needs to queue a block, and how long the device is idle inside one."""
    config = ModelConfig()
    attention, ff = synthetic.block_weights(config, "fp8-rowwise", "cuda")
    c = synthetic.context(config, fast, "cuda", torch.bfloat16, frames=72, grid=(24, 42),
                          global_rows=1310, text_rows=500)  # fmt: skip
    block = ChunkMajorBlock(c, "store")
    x, table = synthetic.residual_and_table(config, c.total_rows, "cuda", torch.bfloat16)

    def one():
        block.run(DeviceResidual(x), attention, lambda: ff, table)

    with torch.inference_mode():
        one()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        one()
        queued = time.perf_counter() - begin
        torch.cuda.synchronize()
        whole = time.perf_counter() - begin
        print(f"queueing one block: {queued * 1e3:.1f} ms of {whole * 1e3:.1f}")
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        one()
        start.record()
        for _ in range(6):
            one()
        stop.record()
        torch.cuda.synchronize()
        print(f"six blocks back to back: {start.elapsed_time(stop) / 6:.1f} ms each")
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(2):
                one()
            torch.cuda.synchronize()
    spans = sorted(
        (e.time_range.start, e.time_range.end) for e in profile.events()
        if e.device_type == torch.autograd.DeviceType.CUDA
    )  # fmt: skip
    busy = sum(b - a for a, b in spans) / 2e3
    gaps = [max(0, b[0] - a[1]) for a, b in itertools.pairwise(spans)]
    whole = (spans[-1][1] - spans[0][0]) / 2e3
    row = {
        "busy_ms": busy,
        "whole_ms": whole,
        "gaps_over_20us": sum(gap > 20 for gap in gaps),
        "gap_ms": sum(gaps) / 2e3,
        "gap_over_20us_ms": sum(gap for gap in gaps if gap > 20) / 2e3,
        "kernels": len(spans) / 2,
    }
    print(json.dumps(row))


if __name__ == "__main__":
    for name in sys.argv[1:] or ("queueing", "inverse", "scans", "convolutions"):
        globals()[name]()
