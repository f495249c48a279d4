"""The step benchmark over many cases of one checkpoint, for a machine that is lent by the minute.

    python benchmarks/step_matrix.py CHECKPOINT --cases base,8,6,4 --out rows.json
    python benchmarks/step_matrix.py CHECKPOINT --cases ram16 --ram-gib 16 --out rows.json

Cases with every block in page-locked memory share one host store, so blocks are read once.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from lowpeak.engine import bench
from lowpeak.engine.blocks import BlockStore
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.errors import LowpeakError
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.streamed import StreamedDenoiser

REFERENCE = (1344, 768, 243)
LONG, WIDE, FIRST = (1344, 768, 345), (1920, 1088, 345), (672, 384, 243)
STORE = Placement(keys="store")
RING = Placement(keys="recompute")
HALF = Placement(keys="recompute", transfer_slots=3, half_slots=True)
# name: (geometry, vram_gib, placement, repeats); pinned_blocks are filled in
CASES = {
    "base": (REFERENCE, None, STORE, 5),
    "quick": (REFERENCE, None, STORE, 2),
    "quickring": (REFERENCE, None, RING, 2),
    "quickhalf": (REFERENCE, None, HALF, 1),
    "resident": (REFERENCE, None, replace(STORE, resident_blocks=8), 2),
    "8": (REFERENCE, 8.0, STORE, 5),
    "6": (REFERENCE, 6.0, RING, 5),
    "5": (REFERENCE, 5.0, RING, 3),
    "4": (REFERENCE, 4.0, HALF, 5),
    "345": (LONG, 8.0, RING, 3),
    "345store": (LONG, 8.0, STORE, 3),
    "1080": (WIDE, 8.0, HALF, 1),
    "1080free": (WIDE, None, STORE, 2),
    "first": (FIRST, 8.0, STORE, 8),
    "hostkeys": (REFERENCE, None, Placement(keys="host"), 2),
    "hostx": (REFERENCE, None, Placement(keys="recompute", residual="host"), 2),
    "ram16": (REFERENCE, 8.0, replace(STORE, disk_blocks=22), 5),
    "ram8": (REFERENCE, 8.0, replace(RING, resident_blocks=8, disk_blocks=34), 4),
}

PRINTED = (
    "case", "seconds_per_step", "spread", "vram_peak_bytes", "context_bytes", "ram_peak_bytes",
    "stall_seconds", "output_sha256", "error", "disk_bytes", "disk_bytes_per_second", "capture",
    "context_growth_bytes", "notices",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("--cases", default="base")
    parser.add_argument("--ram-gib", type=float)
    parser.add_argument("--disk-blocks", type=int)
    parser.add_argument("--resident", type=int)
    parser.add_argument("--no-capture", action="store_true", help="queue kernels one by one")
    parser.add_argument("--text-rows", type=int, default=500)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    if options.ram_gib:
        bench.limit_ram(options.ram_gib)
    device = torch.device("cuda", torch.cuda.current_device())
    checkpoint = open_checkpoint(Path(options.checkpoint))
    blocks = checkpoint.config.layers
    times = tuple(step.distinct for step in schedule(8).steps())
    torch.randn(256, 256, device=device) @ torch.randn(256, 256, device=device)
    context = bench.context_bytes(device)
    rows: list[dict] = []
    shared: BlockStore | None = None
    for name in options.cases.split(","):
        geometry, vram_gib, placement, repeats = CASES[name]
        changes = {}
        if options.disk_blocks is not None:
            changes["disk_blocks"] = options.disk_blocks
        if options.resident is not None:
            changes["resident_blocks"] = options.resident
        placement = replace(placement, **changes)
        pinned = blocks - placement.resident_blocks - placement.disk_blocks
        placement = replace(placement, pinned_blocks=pinned)
        gc.collect()
        torch.cuda.empty_cache()
        context = bench.context_bytes(device)  # libraries that earlier cases loaded are in it
        bench.limit_vram(device, vram_gib, context)
        begin = time.perf_counter()
        denoiser = None
        try:
            denoiser = StreamedDenoiser(
                checkpoint, times, placement, device, open_stream=False,
                capture=not options.no_capture,
            )  # fmt: skip
            if pinned == blocks:
                shared = shared or denoiser.open_store()
                denoiser.open_stream(shared)
            else:
                denoiser.open_stream()
            row = bench.bench_step(
                denoiser,
                Geometry(*geometry),
                vram_gib=vram_gib,
                ram_gib=options.ram_gib,
                context=context,
                text_rows=options.text_rows,
                repeats=repeats,
                progress=lambda line: print("   ", line, flush=True),
            )
            row["context_after_bytes"] = bench.context_bytes(device)  # graphs are still there
            row["vram_peak_bytes"] += max(0, row["context_after_bytes"] - context)
        except (LowpeakError, torch.OutOfMemoryError) as failed:
            row = {"case": name, "error": str(failed)[:600], "vram_gib": vram_gib}
        finally:
            if denoiser is not None:
                denoiser.close()
        if placement.disk_blocks and "error" not in row:
            row["disk_bytes_per_second"] = bench.disk_rate(checkpoint, device)
        row["capture"] = not options.no_capture
        row["context_growth_bytes"] = bench.context_bytes(device) - context  # libraries and graphs
        row["case"], row["setup_and_run_seconds"] = name, time.perf_counter() - begin
        rows.append(row)
        print(json.dumps({k: row[k] for k in PRINTED if k in row}), flush=True)
        if options.out:
            Path(options.out).write_text(json.dumps(rows, indent=1))
    if shared is not None:
        shared.close()


if __name__ == "__main__":
    sys.exit(main())
