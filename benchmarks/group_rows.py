"""A block of a small picture with row groups of several sizes, in one run: time, parts, bits.

    python benchmarks/group_rows.py OUT.json [--groups 1,4] [--frames 72 --grid 12x21]

For each size: the median time of a block as the engine runs it (a graph of each sweep, side
streams), also without reading a group ahead; the same queued kernel by kernel without side streams,
the sum of kernels by name, the reserved peak, and whether all of these and recomputed keys give the
same bits. OUT is written after every case; a case that fails leaves its error there.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
import synthetic

from lowpeak.engine.model import sweep
from lowpeak.engine.model.block import ChunkMajorBlock
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.replays import Replays
from lowpeak.engine.model.residual import DeviceResidual
from lowpeak.engine.model.sweep import SweepContext
from lowpeak.kernels import reference
from lowpeak.kernels import triton as fast

CUDA = torch.cuda.is_available()


class Case:
    """One group size and key source, with its own buffers and stream."""

    def __init__(self, options, config, weights, chunks: int, keys: str, *, beside: bool) -> None:
        sweep.grouped_chunks = lambda tokens, chunk: chunks
        device = "cuda" if CUDA else "cpu"
        dtype = torch.bfloat16 if CUDA else torch.float32
        grid = tuple(map(int, options.grid.split("x")))
        context = synthetic.context(
            config, fast if CUDA else reference, device, dtype, frames=options.frames, grid=grid,
            global_rows=options.globals, text_rows=options.globals * 5 // 13,
        )  # fmt: skip
        self.context: SweepContext = dataclasses.replace(context, beside=beside)
        self.stream = torch.cuda.Stream() if CUDA else None
        self.block = ChunkMajorBlock(self.context, keys)
        self.x, self.table = synthetic.residual_and_table(
            config, self.context.total_rows, device, dtype
        )
        self.residual, self.weights = DeviceResidual(self.x), weights
        self.start = self.x.clone()
        self.replays = Replays(self.stream)

    def write(self) -> None:
        self.block.write(self.residual, self.weights[0], self.table)

    def read(self) -> None:
        self.block.read(self.residual, *self.weights, self.table)

    def replayed(self) -> None:
        """As the engine runs a block: direct the first time, captured the second, then replayed."""
        with self.replays.on_stream():
            self.replays.run("write", 0, self.write, lambda: 0)
            self.replays.run("read", 0, self.read, lambda: 0)

    def direct(self) -> None:
        """Kernel by kernel."""
        with self.replays.on_stream(), self.replays.memory():
            self.write()
            self.read()

    def digest(self, work: Callable[[], None]) -> str:
        """Of x after one block."""
        self.x.copy_(self.start)
        synchronize()
        work()
        synchronize()
        return hashlib.sha256(self.x.cpu().view(torch.uint8).numpy()).hexdigest()[:16]


def synchronize() -> None:
    if CUDA:
        torch.cuda.synchronize()


def median_ms(work, repeats: int) -> list[float]:
    """Median, least and largest milliseconds; ten blocks are queued behind one another."""
    for _ in range(3):
        work()
    synchronize()
    times = []
    for _ in range(repeats):
        begin, blocks = time.perf_counter(), 10 if CUDA else 1
        for _ in range(blocks):
            work()
        synchronize()
        times.append((time.perf_counter() - begin) * 1e3 / blocks)
    return [sorted(times)[len(times) // 2], min(times), max(times)]


def kernels(case: Case) -> list[list]:
    """[name, milliseconds, launches] of one block, the longest first."""
    activities = [
        torch.profiler.ProfilerActivity.CUDA if CUDA else torch.profiler.ProfilerActivity.CPU
    ]
    with torch.profiler.profile(activities=activities) as profile:
        case.direct()
        synchronize()
    rows = [
        [
            event.key[:90],
            (event.device_time_total if CUDA else event.cpu_time_total) / 1e3,
            event.count,
        ]
        for event in profile.key_averages()
        if not CUDA or event.device_type == torch.autograd.DeviceType.CUDA
    ]
    return sorted(rows, key=lambda row: -row[1])


def measure(options, config, weights, chunks: int) -> dict:
    found: dict = {"chunks": chunks}
    if CUDA:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved() if CUDA else 0
    case = Case(options, config, weights, chunks, "store", beside=CUDA)
    found["ms_engine"] = median_ms(case.replayed, options.repeats)
    if CUDA:
        found["reserved_gib"] = (torch.cuda.max_memory_reserved() - before) / 2**30
        found["notices"] = case.replays.notices
    found["sha256"] = case.digest(case.replayed)
    found["same_bits_direct"] = case.digest(case.direct) == found["sha256"]
    case.replays.close()
    del case
    if CUDA and chunks > 1:
        case = Case(options, config, weights, chunks, "store", beside=True)
        case.block.ahead = False
        found["ms_not_ahead"] = median_ms(case.replayed, options.repeats)
        found["same_bits_not_ahead"] = case.digest(case.replayed) == found["sha256"]
        case.replays.close()
        del case
    case = Case(options, config, weights, chunks, "store", beside=False)
    found["ms_direct"] = median_ms(case.direct, options.repeats)
    rows = kernels(case)
    found["kernel_sum_ms"] = sum(row[1] for row in rows)
    found["launches"] = sum(row[2] for row in rows)
    found["kernels"] = rows[:40]
    case.replays.close()
    del case
    case = Case(options, config, weights, chunks, "recompute", beside=False)
    found["same_bits_recomputed"] = case.digest(case.direct) == found["sha256"]
    found["ms_recompute"] = median_ms(case.replayed, options.repeats)
    case.replays.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--groups", default="1,4")
    parser.add_argument("--frames", type=int, default=72)
    parser.add_argument("--grid", default="12x21")
    parser.add_argument("--globals", type=int, default=1310)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--narrow", action="store_true", help="two heads, for a CPU")
    options = parser.parse_args()
    stop = time.monotonic() + options.seconds
    config = (
        ModelConfig(heads=2, head_dim=16, hidden=64, ffn=96, rope_freqs=2)
        if options.narrow
        else ModelConfig()
    )
    kind = "fp8-rowwise" if CUDA else "plain"
    weights = synthetic.block_weights(config, kind, "cuda" if CUDA else "cpu")
    device = torch.cuda.get_device_name() if CUDA else "cpu"
    report: dict = {"device": device, "torch": torch.__version__, "grid": options.grid, "cases": []}
    for chunks in map(int, options.groups.split(",")):
        if time.monotonic() > stop:
            report["stopped"] = f"before {chunks}: the time was up"
            break
        begin = time.monotonic()
        try:
            found = measure(options, config, weights, chunks)
        except Exception as failed:  # the other sizes still run
            found = {"chunks": chunks, "error": f"{type(failed).__name__}: {failed}"[:400]}
        found["seconds"] = time.monotonic() - begin
        report["cases"].append(found)
        print(json.dumps({k: v for k, v in found.items() if k != "kernels"}), flush=True)
        for name, ms, count in found.get("kernels", [])[:30]:
            print(f"{ms:9.3f} ms {count:5d}  {name}", flush=True)
        Path(options.out).write_text(json.dumps(report, indent=1))
    Path(options.out).write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
