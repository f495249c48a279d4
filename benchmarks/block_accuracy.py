"""What a quantised block costs in accuracy: one block at real width, every format and path.

    python -m lowpeak.benchmarks.block_accuracy --out FILE [--device cuda] [--tiny] [--seconds 60]

Truth is the plain block in float32 with the unquantised weights, activations with outlier channels
and offset channels. For each path: the cosine of the block's output and of what the block adds to
x, and the same for bfloat16 weights. A failed path is a row with its error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
import synthetic

from lowpeak.engine.model.block import ChunkMajorBlock
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.residual import DeviceResidual
from lowpeak.engine.versions import read_versions
from lowpeak.kernels import reference
from lowpeak.kernels.compose import choose_ops

PATHS = {
    "plain": ("plain",),
    "fp8-rowwise": ("scaled-rowwise", "scaled-tiled", "storage"),
    "fp8-tensor": ("scaled-tensor", "scaled-tiled", "storage"),
    "int8-convrot": ("int8-triton", "int8-library", "int8-kitchen", "storage"),
}
OUTLIERS, OUTLIER_GAIN, OFFSET = 12, 40.0, 3.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--seconds", type=float, default=60)
    asked = parser.parse_args()
    config = ModelConfig()
    sizes = {"frames": 17, "grid": (8, 14), "global_rows": 200, "text_rows": 80}
    if asked.tiny:
        config = ModelConfig(heads=2, head_dim=32, hidden=96, ffn=128, rope_freqs=4)
        sizes = {"frames": 17, "grid": (3, 4), "global_rows": 30, "text_rows": 12}
    until = time.perf_counter() + asked.seconds
    rows: list[dict[str, Any]] = []
    run = Run(config, asked.device, sizes)
    with torch.inference_mode():
        truth = run.block("plain", reference, torch.float32)
        for kind, paths in PATHS.items():
            for path in paths:
                if time.perf_counter() > until:
                    print(f"out of time before {kind} {path}")
                    break
                rows.append(run.row(kind, path, truth))
                print(json.dumps(rows[-1]), flush=True)
                document = {"about": run.about(), "rows": rows}
                asked.out.write_text(json.dumps(document, indent=1))


class Run:
    """One block's inputs; weights of a format are made when they are asked for."""

    def __init__(self, config: ModelConfig, device: str, sizes: dict[str, Any]) -> None:
        self.config, self.device, self.sizes = config, device, sizes
        self.dtype = torch.bfloat16 if device == "cuda" else torch.float32
        grid = sizes["grid"]
        self.rows = sizes["global_rows"] + sizes["frames"] * grid[0] * grid[1]
        x, self.table = synthetic.residual_and_table(config, self.rows, device, torch.bfloat16)
        for column in (2, 5):  # gates of size one: the block changes x by as much as x is
            self.table[:, column * config.hidden : (column + 1) * config.hidden] *= 5
        generator = torch.Generator(device).manual_seed(4)
        channels = torch.randperm(config.hidden, generator=generator, device=device)
        x[:, channels[:OUTLIERS]] *= OUTLIER_GAIN
        x[:, channels[OUTLIERS : 2 * OUTLIERS]] += OFFSET
        self.x = x
        self.kept: tuple[str, Any] = ("", None)
        self.half: torch.Tensor | None = None  # the block with bfloat16 weights

    def block(self, kind: str, ops: Any, dtype: torch.dtype) -> torch.Tensor:
        """x after the block, in `dtype`."""
        if self.kept[0] != kind:
            self.kept = ("", None)
            self.kept = (kind, synthetic.block_weights(self.config, kind, self.device))
        weights = self.kept[1]
        c = synthetic.context(self.config, ops, self.device, dtype, **self.sizes)
        x = self.x.to(dtype)
        x = x.clone() if x is self.x else x
        ChunkMajorBlock(c, "store").run(
            DeviceResidual(x), weights[0], lambda: weights[1], self.table.to(dtype)
        )
        return x

    def row(self, kind: str, path: str, truth: torch.Tensor) -> dict[str, Any]:
        """One path against the truth."""
        row: dict[str, Any] = {"kind": kind, "path": path}
        try:
            choice = choose_ops(
                torch.device(self.device), head_dim=self.config.head_dim, kind=kind,
                dtype=self.dtype, force={"linear": path},
            )  # fmt: skip
            got = self.block(kind, choice.ops, self.dtype)
        except Exception as failed:  # a row of its own, and on to the next path
            return {**row, "failed": f"{type(failed).__name__}: {failed}"[:400]}
        if kind == "plain":
            self.half = got
        start = self.x.to(torch.float32)
        added, right = got.float() - start, truth - start
        cosine = torch.nn.functional.cosine_similarity
        assert self.half is not None
        half = self.half.float() - start
        return {
            **row,
            "cosine_to_bf16": float(
                cosine(got.double().flatten(), self.half.double().flatten(), dim=0)
            ),
            "cosine_added_to_bf16": float(
                cosine(added.double().flatten(), half.double().flatten(), dim=0)
            ),
            "chosen": dict(choice.chosen),
            "cosine": float(cosine(got.double().flatten(), truth.double().flatten(), dim=0)),
            "cosine_added": float(
                cosine(added.double().flatten(), right.double().flatten(), dim=0)
            ),
            "worst_row_cosine": float(cosine(got.double(), truth.double(), dim=1).min()),
            "relative_error_added": float((added - right).norm() / right.norm()),
            "finite": bool(torch.isfinite(got).all()),
        }

    def about(self) -> dict[str, Any]:
        """What was measured, on what."""
        cuda = self.device == "cuda"
        return {
            "device": torch.cuda.get_device_name() if cuda else "cpu",
            "versions": read_versions(),
            "hidden": self.config.hidden,
            "rows": self.rows,
            "outliers": {"channels": OUTLIERS, "gain": OUTLIER_GAIN, "offset": OFFSET},
        }


if __name__ == "__main__":
    main()
