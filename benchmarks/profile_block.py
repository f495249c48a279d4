"""Where a block's time goes: one block at real width, chunk-major, on a CUDA device.

    python benchmarks/profile_block.py [--frames 72 --grid 24x42 --globals 1310] [--out FILE]

Prints milliseconds a block for each key source, the peak of reserved memory, whether all sources
give the same bits, the error of the fast kernels against the plain ones, and the kernels by time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
import synthetic

from lowpeak.engine.model.block import ChunkMajorBlock
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.residual import DeviceResidual
from lowpeak.kernels import reference
from lowpeak.kernels import triton as fast


def digest(x: torch.Tensor) -> str:
    return hashlib.sha256(x.cpu().contiguous().view(torch.uint8).numpy()).hexdigest()[:16]


def accuracy(kind: str) -> dict:
    """A narrow block: fast bf16 and plain bf16 against plain fp64 with the same weights."""
    config = ModelConfig(heads=4, head_dim=128, hidden=768, ffn=1024)
    weights = synthetic.block_weights(config, kind, "cuda")
    sizes = {"frames": 17, "grid": (6, 7), "global_rows": 90, "text_rows": 40}
    out = {}
    for name, ops, dtype in (
        ("fast", fast, torch.bfloat16),
        ("plain", reference, torch.bfloat16),
        ("truth", reference, torch.float32),
    ):
        c = synthetic.context(config, ops, "cuda", dtype, **sizes)
        x, table = synthetic.residual_and_table(config, c.total_rows, "cuda", torch.bfloat16)
        x = x.to(dtype)
        ChunkMajorBlock(c, "store").run(
            DeviceResidual(x), weights[0], lambda: weights[1], table.to(dtype)
        )
        out[name] = x.double()
    scale = out["truth"].abs().max()
    rms = out["truth"].square().mean().sqrt()
    result = {}
    for n in ("fast", "plain"):
        d = out[n] - out["truth"]
        result[n] = {
            "max": float(d.abs().max() / scale),
            "rms": float(d.square().mean().sqrt() / rms),
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=72)
    parser.add_argument("--grid", default="24x42")
    parser.add_argument("--globals", type=int, default=1310)
    parser.add_argument("--kind", default="fp8-rowwise")
    parser.add_argument("--sources", default="store,recompute")
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--out", default="")
    parser.add_argument("--no-accuracy", action="store_true")
    options = parser.parse_args()
    grid = tuple(map(int, options.grid.split("x")))
    report: dict = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    if not options.no_accuracy:
        report["accuracy"] = {k: accuracy(k) for k in ("plain", "fp8-rowwise")}
        print(json.dumps(report["accuracy"]), flush=True)
    config = ModelConfig()
    weights = synthetic.block_weights(config, options.kind, "cuda")
    sizes = {
        "frames": options.frames,
        "grid": grid,
        "global_rows": options.globals,
        "text_rows": 500,
    }
    c = synthetic.context(config, fast, "cuda", torch.bfloat16, **sizes)
    for source in options.sources.split(","):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        base = torch.cuda.memory_reserved()
        block = ChunkMajorBlock(c, source)
        x, table = synthetic.residual_and_table(config, c.total_rows, "cuda", torch.bfloat16)
        residual = DeviceResidual(x)
        block.run(residual, weights[0], lambda: weights[1], table)
        row = {"sha256": digest(x), "finite": bool(torch.isfinite(x).all())}
        times = []
        for _ in range(options.repeats):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in "ab")
            start.record()
            block.run(residual, weights[0], lambda: weights[1], table)
            stop.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(stop))
        times.sort()
        row["ms"] = times[len(times) // 2]
        row["spread"] = [times[0], times[-1]]
        row["reserved_gib"] = (torch.cuda.max_memory_reserved() - base) / 2**30
        report[source] = row
        print(source, json.dumps(row), flush=True)
        if source == options.sources.split(",")[0]:
            with torch.profiler.profile(
                activities=[
                    torch.profiler.ProfilerActivity.CUDA,
                    torch.profiler.ProfilerActivity.CPU,
                ]
            ) as profile:
                block.run(residual, weights[0], lambda: weights[1], table)
                torch.cuda.synchronize()
            rows = sorted(
                ((e.key, e.device_time_total / 1e3, e.count) for e in profile.key_averages()
                 if e.device_type == torch.autograd.DeviceType.CUDA),
                key=lambda e: -e[1],
            )  # fmt: skip
            report["kernels"] = [{"kernel": k, "ms": t, "calls": n} for k, t, n in rows]
            for k, t, n in rows[:40]:
                print(f"{t:9.3f} ms {n:5d}  {k[:100]}", flush=True)
        del block, x, residual
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
