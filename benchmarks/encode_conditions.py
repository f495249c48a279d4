"""Times the video autoencoder's encoder at its published size on random weights, and its memory.

    python benchmarks/encode_conditions.py --out rows.json

A keyframe of 1344x768, then one clip of 17 frames at 512x512: memory follows the tile, not the
canvas. Whole float32, as in a run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lowpeak.engine.meter import Meter
from lowpeak.engine.vae.config import PUBLISHED_VIDEO_MEAN, PUBLISHED_VIDEO_STD, VideoVaeConfig
from lowpeak.engine.vae.encoder import encode_frames
from lowpeak.engine.vae.shapes import encoder_shapes
from lowpeak.engine.vae.space import exact_convolutions
from lowpeak.engine.versions import read_versions

CONFIG = VideoVaeConfig(PUBLISHED_VIDEO_MEAN, PUBLISHED_VIDEO_STD)
CASES = {"keyframe": (1, 768, 1344), "clip": (17, 512, 512)}


def random_encoder(device: torch.device) -> dict[str, Tensor]:
    """Weights of unit gain, float32."""
    generator = torch.Generator(device).manual_seed(0)
    found = {}
    for name, shape in encoder_shapes(CONFIG).items():
        noise = torch.randn(shape, generator=generator, device=device)
        if len(shape) > 1:
            found[name] = noise * torch.Size(shape[1:]).numel() ** -0.5
        else:
            found[name] = 0.1 * noise + (1.0 if name.endswith("weight") else 0.0)
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    device = torch.device("cuda")
    meter, rows = Meter(device), []
    tensors = random_encoder(device)
    for name, (count, height, width) in CASES.items():
        frames = torch.randint(0, 256, (count, height, width, 3), dtype=torch.uint8)
        seconds = []
        with (
            meter.phase("encode") as measured,
            torch.inference_mode(),
            exact_convolutions(),
        ):
            for _ in range(2):
                began = time.perf_counter()
                found = encode_frames(frames, tensors, CONFIG).cpu()
                seconds.append(time.perf_counter() - began)
        row: dict[str, Any] = {
            "bench": "encode_conditions",
            "case": name,
            "device": torch.cuda.get_device_name(device),
            "versions": read_versions(),
            "command": " ".join(sys.argv),
            "width": width,
            "height": height,
            "frames": count,
            "seconds": seconds[-1],
            "first_seconds": seconds[0],
            "vram_peak_bytes": measured.vram_peak_bytes,
            "context_bytes": meter.context_bytes,
            "finite": bool(found.isfinite().all()),
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
        torch.cuda.empty_cache()
        if given.out is not None:
            given.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
