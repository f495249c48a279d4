"""Times one training step of the transformer for every size, eager and, if it works, compiled.

python -m lowpeak.benchmarks.miniature.probe --out FILE.json [--compile] [--scale N]
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from . import data, twin
from .loop import Run, State
from .models import MODEL, model_state
from .pool import Bucket, Size
from .train_dit import Batches, cast, draw_batch, sizes, velocity_losses
from .words import Words


def random_bucket(run: Run, size: Size, count: int) -> Bucket:
    """Noise in place of latents: times do not depend on values."""
    f, h, w = size.latent
    scenes = data.Scenes.of(torch.arange(count, device=run.device))

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(count, *shape, device=run.device, dtype=run.fast)

    rows = 2 * data.audio_latents(size.frames)
    return Bucket(size, scenes, noise(24, f, h, w), noise(rows, 32), noise(2, 2, 24, h, w),
                  noise(2, 16, 3).float(), noise(f * h * w // 4) > 0)  # fmt: skip


def time_size(
    run: Run, batches: Batches, state: State, size: Size, count: int, steps: int = 6
) -> dict[str, Any]:
    """Milliseconds of forward and backward, and the peak of memory."""
    bucket = random_bucket(run, size, count)
    generator = torch.Generator().manual_seed(1)
    cuda = run.device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    began = first = 0.0
    for step in range(steps):
        if step == 2:
            if cuda:
                torch.cuda.synchronize()
            began = time.perf_counter()
        if step == 0:
            first = time.perf_counter()
        _, inputs, pack = draw_batch(run, batches, bucket, count, generator, False)
        velocity_losses(cast(state, run.fast), pack, inputs).sum().backward()
        if step == 0:
            if cuda:
                torch.cuda.synchronize()
            first = time.perf_counter() - first
    if cuda:
        torch.cuda.synchronize()
    took = (time.perf_counter() - began) / (steps - 2)
    peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else 0.0
    return {"size": list(size), "batch": count, "ms": round(1000 * took, 1),
            "first_s": round(first, 1), "peak_gib": round(peak, 1)}  # fmt: skip


def main() -> None:
    """Write the times as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--scale", type=int, default=1)
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    run = Run(options.out.parent, device, options.scale, name="probe")
    state = {k: v.to(device).requires_grad_(True) for k, v in model_state(0).items()}
    batches = Batches(run, Words(device))
    rows: list[dict[str, Any]] = []
    plain = twin.block
    for compiled in (False, True) if options.compile else (False,):
        twin.block = torch.compile(plain, dynamic=False) if compiled else plain
        for size, _, count, _ in sizes(run):
            try:
                row = time_size(run, batches, state, size, run.batch(count))
            except Exception:
                row = {"size": list(size), "error": traceback.format_exc()[-600:]}
            rows.append({"compiled": compiled} | row)
            run.say(json.dumps(rows[-1]))
            options.out.write_text(json.dumps({"hidden": MODEL.hidden, "rows": rows}) + "\n")
    twin.block = plain


if __name__ == "__main__":
    main()
