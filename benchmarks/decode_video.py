"""Times the video decoder at its published size on synthetic weights, blocks streamed or resident.

    python benchmarks/decode_video.py --width 1344 --height 768 --frames 243 --resident 0 --clips 1

Prints one JSON row a run: seconds, VRAM peak, link bytes, stalls. Weights are random; nothing is
written to disk.
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

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.vae.config import PUBLISHED_VIDEO_MEAN, PUBLISHED_VIDEO_STD, VideoVaeConfig
from lowpeak.engine.vae.decoder import decode_video
from lowpeak.engine.vae.shapes import block_shapes, root_shapes
from lowpeak.engine.vae.streamed import StreamedBlocks

CONFIG = VideoVaeConfig(PUBLISHED_VIDEO_MEAN, PUBLISHED_VIDEO_STD)


def random_tensors(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, Tensor]:
    """Half-precision tensors of unit gain."""
    generator = torch.Generator().manual_seed(seed)
    out = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=generator)
        gain = shape[1] ** -0.5 if len(shape) > 1 else 0.1
        centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        out[name] = (centre + gain * noise).half()
    return out


class Synthetic:
    """Looks like a VideoVaeFile; all blocks share one set of numbers."""

    config = CONFIG
    path = Path("synthetic")

    def __init__(self) -> None:
        self._block = random_tensors(block_shapes(CONFIG), 0)

    def block(self, index: int, device: str, dtype: torch.dtype) -> dict[str, Tensor]:
        """See VideoVaeFile.block."""
        return {name: value.to(device, dtype) for name, value in self._block.items()}


def measure(geometry: Geometry, resident: int, clips: int, repeats: int) -> dict[str, Any]:
    """One row: decode `geometry` `repeats` times after a warm-up of one clip."""
    device = torch.device("cuda")
    file: Any = Synthetic()
    root = {k: v.float().to(device) for k, v in random_tensors(root_shapes(CONFIG), 1).items()}
    size = (geometry.latent_frames, geometry.latent_height, geometry.latent_width)
    latents = torch.randn(1, 24, *size, generator=torch.Generator().manual_seed(2))
    seconds, frames = [], 0
    side = (geometry.height_px, geometry.width_px, 3)
    host = torch.empty((17, *side), dtype=torch.uint8, pin_memory=True)
    torch.cuda.reset_peak_memory_stats()
    with (
        torch.inference_mode(),
        StreamedBlocks(
            file, device, torch.float16, resident=range(resident), pinned=range(CONFIG.blocks)
        ) as blocks,
    ):

        def take(part: Tensor) -> None:
            nonlocal frames
            frames += len(part)
            # as BackgroundFrames does it: page-locked, and nobody waits
            host[: len(part)].copy_(part, non_blocking=True)

        def decode(z: Tensor) -> None:
            decode_video(
                z,
                root,
                blocks,
                CONFIG,
                clips_per_group=clips,
                compute_dtype=torch.float16,
                on_frames=take,
            )
            torch.cuda.synchronize()

        decode(latents[:, :, :7])
        blocks.stream.stalls()
        for _ in range(repeats):
            begin, frames = time.perf_counter(), 0
            linked = blocks.stream.link_bytes
            decode(latents)
            seconds.append(time.perf_counter() - begin)
        stalls = blocks.stream.stalls()
        linked = blocks.stream.link_bytes - linked
    assert frames == geometry.frames
    ordered = sorted(seconds)
    return {
        "bench": "decode",
        "device": torch.cuda.get_device_name(),
        "versions": {"torch": torch.__version__, "python": sys.version.split()[0]},
        "command": " ".join(sys.argv),
        "width": geometry.width_px,
        "height": geometry.height_px,
        "frames": geometry.frames,
        "video_tokens": geometry.video_tokens,
        "placement": {"resident_blocks": resident, "clips_per_group": clips},
        "seconds": ordered[len(ordered) // 2],
        "spread": [ordered[0], ordered[-1]],
        "repeats": repeats,
        "vram_peak_bytes": torch.cuda.max_memory_reserved(),
        "vram_allocated_bytes": torch.cuda.max_memory_allocated(),
        "link_bytes": linked,
        "stall_seconds": {name: value / repeats for name, value in stalls.items()},
        "checkpoint": {"kind": "toy", "format": "fp16"},
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=1344)
    parser.add_argument("--height", type=int, default=768)
    parser.add_argument("--frames", type=int, default=243)
    parser.add_argument("--resident", type=int, default=0)
    parser.add_argument("--clips", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    geometry = Geometry(given.width, given.height, given.frames)
    print(json.dumps(measure(geometry, given.resident, given.clips, given.repeats)))


if __name__ == "__main__":
    main()
