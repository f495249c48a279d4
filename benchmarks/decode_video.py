"""Times the video decoder at its published size on synthetic weights, blocks streamed or resident.

    python benchmarks/decode_video.py --width 1344 --height 768 --frames 243 --resident 0 --clips 1

Prints one JSON row a run: seconds, VRAM peak, host memory beyond the weights, link bytes, stalls.
Weights are random. --write FILE.mp4 encodes the frames too (H.264), as a run does; without it they
are copied to the host and dropped.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.media_queue import BackgroundFrames
from lowpeak.engine.meter import Meter, resident_bytes
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


class Dropped:
    """Takes frames as a VideoWriter does, and forgets them."""

    def write_frames(self, frames: Tensor) -> None:
        """See VideoWriter."""


def measure(
    geometry: Geometry, resident: int, clips: int, repeats: int, write: str = ""
) -> dict[str, Any]:
    """One row: decode `geometry` `repeats` times after a warm-up of one clip."""
    device = torch.device("cuda")
    file: Any = Synthetic()
    root = {k: v.float().to(device) for k, v in random_tensors(root_shapes(CONFIG), 1).items()}
    size = (geometry.latent_frames, geometry.latent_height, geometry.latent_width)
    latents = torch.randn(1, 24, *size, generator=torch.Generator().manual_seed(2))
    seconds, frames = [], 0
    meter = Meter(device)
    with (
        torch.inference_mode(),
        StreamedBlocks(
            file, device, torch.float16, resident=range(resident), pinned=range(CONFIG.blocks)
        ) as blocks,
    ):

        def decode(z: Tensor) -> None:
            nonlocal frames
            with ExitStack() as open_files:
                sink: Any = Dropped()
                if write:
                    from lowpeak.engine.media import VideoWriter  # needs the media library

                    sink = open_files.enter_context(
                        VideoWriter(write, geometry.width_px, geometry.height_px)
                    )
                encode = open_files.enter_context(BackgroundFrames(sink))

                def take(part: Tensor) -> None:
                    nonlocal frames
                    frames += len(part)
                    encode(part)

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
        gc.collect()
        before_bytes = resident_bytes()
        with meter.phase("decode") as measured:
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
        "ram_peak_bytes": measured.ram_peak_bytes,
        "ram_before_bytes": before_bytes,
        "ram_added_bytes": (measured.ram_peak_bytes or 0) - before_bytes,
        "written": bool(write),
        "vram_allocated_bytes": torch.cuda.max_memory_allocated(),
        "link_bytes": linked,
        "stall_seconds": {name: value / repeats for name, value in stalls.items()},
        "checkpoint": {"kind": "toy", "format": "fp16"},
    }


def frame_path(geometry: Geometry, write: str) -> dict[str, Any]:
    """Host memory of the frames' way alone, without decoder or device: ring, encoder, muxer."""
    size = (17, geometry.height_px, geometry.width_px, 3)
    coarse = torch.randint(0, 256, (1, 3, 34, 60), dtype=torch.uint8)
    picture = torch.nn.functional.interpolate(coarse, size[1:3])[0].permute(1, 2, 0)
    clip = torch.stack([picture.roll(8 * frame, 1) for frame in range(size[0])])
    meter, done = Meter(torch.device("cpu")), 0
    gc.collect()
    before_bytes, began = resident_bytes(), time.perf_counter()
    with meter.phase("decode") as measured, ExitStack() as open_files:
        sink: Any = Dropped()
        if write:
            from lowpeak.engine.media import VideoWriter  # needs the media library

            sink = open_files.enter_context(
                VideoWriter(write, geometry.width_px, geometry.height_px)
            )
        encode = open_files.enter_context(BackgroundFrames(sink, copies=True))
        while done < geometry.frames:
            part = clip[: geometry.frames - done]
            encode(part)
            done += len(part)
    return {
        "bench": "frame_path",
        "device": "cpu",
        "versions": {"torch": torch.__version__, "python": sys.version.split()[0]},
        "command": " ".join(sys.argv),
        "width": geometry.width_px,
        "height": geometry.height_px,
        "frames": done,
        "seconds": time.perf_counter() - began,
        "ram_added_bytes": (measured.ram_peak_bytes or 0) - before_bytes,
        "written": bool(write),
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
    parser.add_argument("--write", default="", help="FILE.mp4")
    parser.add_argument("--frames-only", action="store_true", help="no decoder, no device")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    geometry = Geometry(given.width, given.height, given.frames)
    if given.frames_only:
        row = frame_path(geometry, given.write)
    else:
        row = measure(geometry, given.resident, given.clips, given.repeats, given.write)
    print(json.dumps(row), flush=True)
    if given.out is not None:
        rows = json.loads(given.out.read_text()) if given.out.is_file() else []
        given.out.write_text(json.dumps([*rows, row], indent=1))


if __name__ == "__main__":
    main()
