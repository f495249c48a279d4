"""Times the video autoencoder's encoder at its published size on random weights, and its memory.

    python benchmarks/encode_conditions.py --out rows.json

A keyframe of 1344x768; a clip of 17 frames at 512x512 (memory follows the tile, not the canvas);
and a clip of a reference video at 1344x768, of which a video of ten seconds has fifteen. Whole
float32, as in a run. A case that takes longer than --seconds is stopped between tiles, and its row
says how many were done. --device cpu --small tries the script.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lowpeak.engine.errors import Cancelled
from lowpeak.engine.meter import Meter
from lowpeak.engine.vae.config import PUBLISHED_VIDEO_MEAN, PUBLISHED_VIDEO_STD, VideoVaeConfig
from lowpeak.engine.vae.encoder import encode_frames
from lowpeak.engine.vae.shapes import encoder_shapes
from lowpeak.engine.vae.space import exact_convolutions
from lowpeak.engine.vae.tiles import split_axis
from lowpeak.engine.versions import read_versions

CONFIG = VideoVaeConfig(PUBLISHED_VIDEO_MEAN, PUBLISHED_VIDEO_STD)
CASES = {
    "keyframe": (1, 768, 1344),
    "clip": (17, 512, 512),
    "reference video, a clip": (17, 768, 1344),
}
SMALL = replace(CONFIG, encoder_widths=(32,) * 6, encoder_layers=1)


def random_encoder(config: VideoVaeConfig, device: torch.device) -> dict[str, Tensor]:
    """Weights of unit gain, float32."""
    generator = torch.Generator(device).manual_seed(0)
    found = {}
    for name, shape in encoder_shapes(config).items():
        noise = torch.randn(shape, generator=generator, device=device)
        if len(shape) > 1:
            found[name] = noise * torch.Size(shape[1:]).numel() ** -0.5
        else:
            found[name] = 0.1 * noise + (1.0 if name.endswith("weight") else 0.0)
    return found


def timed(
    frames: Tensor, tensors: dict[str, Tensor], config: VideoVaeConfig, most_seconds: float
) -> tuple[float, int, bool | None]:
    """Seconds, tiles begun, and whether all latents are finite (None: stopped before the end)."""
    began, tiles = time.perf_counter(), 0

    def is_late() -> bool:
        nonlocal tiles
        if tensors["conv_in.weight"].is_cuda:
            torch.cuda.synchronize()
        if time.perf_counter() - began > most_seconds:
            return True
        tiles += 1
        return False

    try:
        found = encode_frames(frames, tensors, config, is_cancelled=is_late).cpu()
    except Cancelled:
        return time.perf_counter() - began, tiles, None
    return time.perf_counter() - began, tiles, bool(found.isfinite().all())


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    device, config = torch.device(given.device), SMALL if given.small else CONFIG
    on_card = device.type == "cuda"
    meter, rows = Meter(device), []
    tensors = random_encoder(config, device)
    for name, (count, height, width) in CASES.items():
        frames = torch.randint(0, 256, (count, height, width, 3), dtype=torch.uint8)
        all_tiles = split_axis(height).tiles * split_axis(width).tiles
        row: dict[str, Any] = {
            "bench": "encode_conditions",
            "case": name,
            "device": torch.cuda.get_device_name(device) if on_card else "cpu",
            "versions": read_versions(),
            "command": " ".join(sys.argv),
            "width": width,
            "height": height,
            "frames": count,
            "tiles": all_tiles,
        }
        try:
            with (
                meter.phase("encode") as measured,
                torch.inference_mode(),
                exact_convolutions(),
            ):
                runs = [timed(frames[:, :256, :256], tensors, config, given.seconds)]
                runs.append(timed(frames, tensors, config, given.seconds))
            seconds, tiles, finite = runs[1]
            row |= {
                "tiles_done": tiles,
                "seconds": seconds if finite is not None else None,
                "seconds_a_tile": seconds / max(1, tiles),
                "first_tile_seconds": runs[0][0],
                "vram_peak_bytes": measured.vram_peak_bytes,
                "context_bytes": meter.context_bytes,
                "finite": finite,
            }
        except RuntimeError as failed:  # out of memory too: the next case may still run
            row["error"] = f"{type(failed).__name__}: {failed}"
        rows.append(row)
        print(json.dumps(row), flush=True)
        if on_card:
            torch.cuda.empty_cache()
        if given.out is not None:
            given.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
