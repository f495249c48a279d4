"""Sampling steps with every path of the quantised linears, on synthetic checkpoints of few blocks.

    python -m lowpeak.benchmarks.gemm_steps FOLDER --out FILE [--blocks 10] [--repeats 3]
        [--seconds 110] [--tiny] [--only edge-int8:int8-triton,...]

Writes one checkpoint a format into FOLDER, measures, deletes it. Rows are those of `bench step`,
rewritten after each case; a failed case is a row with its error. Risky paths come last.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import time
from pathlib import Path
from typing import Any

import torch

from ..engine.bench_cases import Case, step_row
from ..engine.geometry import Geometry
from ..engine.toy import write_toy

CASES = {
    "edge-fp8-rowwise": ("fp8-rowwise", "storage", "scaled-tiled"),
    "edge-int8": ("int8-triton", "int8-library", "int8-convrot", "storage", "int8-kitchen"),
    "edge-fp8": ("fp8-tensor",),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=110)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--only", default="", help="format:path, by commas")
    asked = parser.parse_args()
    only = asked.only.split(",") if asked.only else None
    cases = {
        weight_format: [p for p in paths if only is None or f"{weight_format}:{p}" in only]
        for weight_format, paths in CASES.items()
    }
    until = time.perf_counter() + asked.seconds
    rows: list[dict[str, Any]] = []
    for weight_format, paths in cases.items():
        if not paths:
            continue
        folder = asked.folder / weight_format
        if time.perf_counter() > until:
            print(f"out of time before {weight_format}", flush=True)
            break
        began = time.perf_counter()
        write_toy(
            folder, size="tiny" if asked.tiny else "full", weight_format=weight_format, seed=5,
            device="cpu" if asked.tiny else "cuda", blocks=asked.blocks,
        )  # fmt: skip
        print(f"{weight_format} written in {time.perf_counter() - began:.1f} s", flush=True)
        for gemm in paths:
            if time.perf_counter() > until:
                print(f"out of time before {weight_format} {gemm}", flush=True)
                break
            rows.append(_row(folder, weight_format, gemm, asked))
            asked.out.write_text(json.dumps(rows, indent=1))
            seconds = rows[-1].get("seconds_per_step", rows[-1].get("failed"))
            print(weight_format, gemm, seconds, rows[-1].get("chosen"), flush=True)
        shutil.rmtree(folder)


def _row(folder: Path, weight_format: str, gemm: str, asked: Any) -> dict[str, Any]:
    geometry = Geometry(256, 256, 39) if asked.tiny else Geometry(1344, 768, 243)
    device = "cpu" if asked.tiny else "cuda"
    case = Case(folder, geometry, None, None, device, asked.repeats, gemm)
    about = {"gemm": gemm, "blocks": asked.blocks, "weight_format": weight_format}
    try:
        row = {**step_row(case, 500), **about}
    except Exception as failed:  # a row of its own, and on to the next path
        row = {**about, "failed": f"{type(failed).__name__}: {failed}"[:400]}
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    return row


if __name__ == "__main__":
    main()
