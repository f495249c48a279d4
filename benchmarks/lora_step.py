"""A sampling step without a LoRA, with one online, and with one merged, over the same blocks.

    python benchmarks/lora_step.py CHECKPOINT --out lora.json [--rank 64] [--blocks 25]

The adapter is random, of one rank on attention and feed-forward of every block. Modes run one after
another in one process; each first fills its store with no step beside it, so the time of reading
the stack once stands against the time of reading and merging it. Rows are written as they come.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from lowpeak.engine import bench
from lowpeak.engine.blocks import BlockStore
from lowpeak.engine.checkpoint.index import Checkpoint, open_checkpoint
from lowpeak.engine.errors import LowpeakError
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.lora.adapted import with_loras
from lowpeak.engine.lora.loading import load_loras
from lowpeak.engine.lora.loraset import LoraSet
from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.request import LoraChoice
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.streamed import StreamedDenoiser

MODES = ("plain", "online", "merged")
PRINTED = (
    "mode", "fill_seconds", "seconds_per_step", "spread", "vram_peak_bytes", "ram_peak_bytes",
    "link_bytes", "stall_seconds", "output_sha256", "error",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rank", type=int, default=64)
    parser.add_argument("--blocks", type=int, help="The first so many blocks as a model.")
    parser.add_argument("--size", default="1344x768x243", help="WIDTHxHEIGHTxFRAMES")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--keys", default="store")
    parser.add_argument("--seconds", type=float, default=100, help="No mode begins after this.")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    begin = time.perf_counter()
    device = torch.device(options.device)
    if device.type == "cuda":
        device = torch.device("cuda", torch.cuda.current_device())
    base = cut(open_checkpoint(options.checkpoint), options.blocks)
    context = bench.context_bytes(device) if device.type == "cuda" else 0
    found: dict[str, Any] = {"rank": options.rank, "blocks": base.config.layers, "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        file = adapter_file(Path(folder) / "rank.safetensors", base.config, options.rank, device)
        started = time.perf_counter()
        shapes = ModelShapes.from_config(base.config, adaln_projections=base.has_projections)
        loras = load_loras([LoraChoice(str(file), 0.8)], shapes)
        found |= {
            "adapter_bytes": file.stat().st_size,
            "bind_seconds": time.perf_counter() - started,
            "slot_bytes": loras.slot_bytes(),
        }
        print(json.dumps({k: v for k, v in found.items() if k != "rows"}), flush=True)
        outputs: dict[str, list[torch.Tensor]] = {}
        for mode in options.modes.split(","):
            if time.perf_counter() - begin > options.seconds:
                row: dict[str, Any] = {"error": "no time left"}
            else:
                row = measured(base, loras, mode, options, device, context, outputs)
            found["rows"].append({"mode": mode, **row})
            print(json.dumps({k: v for k, v in found["rows"][-1].items() if k in PRINTED}))
            found |= compared(found["rows"], outputs)
            found["seconds"] = time.perf_counter() - begin
            options.out.write_text(json.dumps(found, indent=1))
    kept = ("online_ratio", "merged_ratio", "fill_ratio", "differences", "seconds")
    print(json.dumps({name: found[name] for name in kept if name in found}, indent=1), flush=True)


class Remembering(StreamedDenoiser):
    """A denoiser that keeps what its last evaluation gave."""

    last: list[torch.Tensor]

    def bind(self, *given: Any, **named: Any) -> Any:
        """See StreamedDenoiser."""
        velocity = super().bind(*given, **named)

        def remembered(*inputs: Any) -> Any:
            found = velocity(*inputs)
            self.last = list(found)
            return found

        return remembered


def cut(checkpoint: Checkpoint, blocks: int | None) -> Checkpoint:
    """The first blocks of an edge checkpoint as a model of their own."""
    if blocks is None or blocks >= checkpoint.config.layers:
        return checkpoint
    return replace(
        checkpoint,
        config=replace(checkpoint.config, layers=blocks),
        block_files=checkpoint.block_files[:blocks],
    )


def adapter_file(path: Path, config: ModelConfig, rank: int, device: torch.device) -> Path:
    """Random factors in bfloat16, sized so that a difference is a tenth of its weight."""
    inner, hidden, ffn = config.inner, config.hidden, config.ffn
    sizes = {"attn.to_q": (inner, hidden), "attn.to_k": (inner, hidden),
             "attn.to_v": (inner, hidden), "attn.to_out.0": (hidden, inner),
             "ff.net.0.proj": (2 * ffn, hidden), "ff.net.2": (hidden, ffn)}  # fmt: skip
    draw = torch.Generator(device).manual_seed(9)
    tensors = {}
    for block in range(config.layers):
        for name, (rows, columns) in sizes.items():
            module = f"transformer.transformer_blocks.{block}.{name}"
            for side, shape, scale in (("A", (rank, columns), columns**-0.5),
                                       ("B", (rows, rank), 0.15 * rank**-0.5)):  # fmt: skip
                value = torch.randn(*shape, generator=draw, device=device) * scale
                tensors[f"{module}.lora_{side}.weight"] = value.bfloat16().cpu()
    save_file(tensors, path)
    return path


def measured(
    base: Checkpoint, loras: LoraSet, mode: str, options: Any, device: torch.device, context: int,
    outputs: dict[str, list[torch.Tensor]],
) -> dict[str, Any]:  # fmt: skip
    """One mode: its store filled, then steps over it."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    checkpoint = base
    if mode != "plain":
        checkpoint = with_loras(base, loras, mode=mode, device=device)  # type: ignore[arg-type]
    times = tuple(step.distinct for step in schedule(8).steps())
    placement = Placement(keys=options.keys, pinned_blocks=base.config.layers)
    denoiser: Remembering | None = None
    store: BlockStore | None = None
    try:
        denoiser = Remembering(checkpoint, times, placement, device, open_stream=False)
        before = time.perf_counter()
        store = denoiser.open_store()
        store.take(base.config.layers - 1)  # blocks are read in order: this is the last
        fill = time.perf_counter() - before
        print(f"    {mode}: store filled in {fill:.2f} s", flush=True)
        peak = torch.cuda.max_memory_reserved(device) if device.type == "cuda" else 0
        denoiser.open_stream(store)
        row = bench.bench_step(
            denoiser,
            Geometry(*map(int, options.size.split("x"))),
            vram_gib=None,
            ram_gib=None,
            context=context,
            repeats=options.repeats,
            progress=lambda line: print("   ", line, flush=True),
        )
        outputs[mode] = denoiser.last
        return {"fill_seconds": fill, "fill_vram_bytes": peak, **row}
    except (LowpeakError, torch.OutOfMemoryError, RuntimeError) as failed:
        return {"error": f"{type(failed).__name__}: {failed}"[:800]}
    finally:
        if denoiser is not None:
            denoiser.close()
        if store is not None:
            store.close()


def compared(rows: list[dict[str, Any]], outputs: dict[str, list[torch.Tensor]]) -> dict[str, Any]:
    """Ratios to the plain row, and how far the outputs are from one another."""
    by_mode = {row["mode"]: row for row in rows if "error" not in row}
    plain, found = by_mode.get("plain"), {}
    for mode in ("online", "merged"):
        row = by_mode.get(mode)
        if plain and row:
            found[f"{mode}_ratio"] = {
                "step": row["seconds_per_step"] / plain["seconds_per_step"],
                "vram_bytes": row["vram_peak_bytes"] - plain["vram_peak_bytes"],
                "link_bytes": row["link_bytes"] - plain["link_bytes"],
            }
            if mode == "merged":
                found["fill_ratio"] = row["fill_seconds"] / plain["fill_seconds"]
    names = sorted(outputs)
    found["differences"] = {
        f"{one} - {two}": max(
            float((a - b).norm() / b.norm())
            for a, b in zip(outputs[one], outputs[two], strict=True)
        )
        for index, one in enumerate(names)
        for two in names[index + 1 :]
    }
    return found


if __name__ == "__main__":
    sys.exit(main())
