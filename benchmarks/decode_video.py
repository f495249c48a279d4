"""Times the video decoder at its published size on synthetic weights, blocks streamed or resident.

    python benchmarks/decode_video.py --width 1344 --height 768 --frames 243 --resident 0 --clips 1
    python benchmarks/decode_video.py --width 1920 --height 1088 --frames 345 --plan-gib 5,0 --out F

Prints one JSON row a run: seconds, VRAM peak, host memory beyond the weights, link bytes, stalls,
and hashes of the frames so far. --plan-gib: placements and peaks as the planner says under these
caps (0: none, all on the device; the least placement where none fits), later ones over the first
--check-clips clips alone, compared bit by bit with the first. Weights are random. --write FILE.mp4
encodes the frames too (H.264), as a run does; without it they are copied to the host, hashed and
dropped. --device cpu --small tries the script.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.media_queue import BackgroundFrames
from lowpeak.engine.meter import Meter, resident_bytes
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.cost import VRAM, total
from lowpeak.engine.planner.search import make_budget
from lowpeak.engine.planner.stacks import DecodeSearch, Machine
from lowpeak.engine.planner.types import ModelFacts, Placement
from lowpeak.engine.snapshot import cap_snapshot, read_snapshot
from lowpeak.engine.vae.config import PUBLISHED_VIDEO_MEAN, PUBLISHED_VIDEO_STD, VideoVaeConfig
from lowpeak.engine.vae.decoder import decode_video
from lowpeak.engine.vae.shapes import block_shapes, root_shapes
from lowpeak.engine.vae.streamed import StreamedBlocks
from lowpeak.engine.vae.tiles import split_axis

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

    path = Path("synthetic")

    def __init__(self, config: VideoVaeConfig) -> None:
        self.config = config
        self._block = random_tensors(block_shapes(config), 0)

    def block(self, index: int, device: str, dtype: torch.dtype) -> dict[str, Tensor]:
        """See VideoVaeFile.block."""
        return {name: value.to(device, dtype) for name, value in self._block.items()}


class Hashed:
    """Takes frames as a VideoWriter does, and keeps {frames so far: hash over all of them}."""

    def __init__(self, inner: Any = None) -> None:
        self._inner, self._digest, self.frames = inner, hashlib.sha256(), 0
        self.hashes: dict[int, str] = {}

    def write_frames(self, frames: Tensor) -> None:
        """See VideoWriter."""
        self._digest.update(frames.numpy().data)
        self.frames += len(frames)
        self.hashes[self.frames] = self._digest.hexdigest()
        if self._inner is not None:
            self._inner.write_frames(frames)


def plan_placement(geometry: Geometry, cap_gib: float, blocks: int) -> tuple[Placement, int, bool]:
    """The planner's placement under a cap of VRAM, its peak in bytes, and whether it fits: the
    least one where nothing does. No cap: everything on the device, two clips a group."""
    machine = cap_snapshot(read_snapshot(), vram_gib=cap_gib or None)
    calibration = choose_calibration(machine)
    search = DecodeSearch(
        Machine(ModelFacts(), calibration, make_budget(machine, calibration)), geometry
    )
    tiles = search.tiles
    if not cap_gib:
        placement = Placement(resident_blocks=blocks, tiles_per_group=2 * tiles)
        planned = total(search.fixed_terms(2 * tiles), VRAM) + blocks * search.block
        return placement, planned, True
    found = search.plan()
    if isinstance(found, list):
        least = Placement(pinned_blocks=blocks, transfer_slots=1, tiles_per_group=tiles)
        return least, search.least()[0], False
    assert found.placement is not None
    return found.placement, found.vram_peak_bytes, True


def measure(
    geometry: Geometry,
    placement: Placement,
    repeats: int,
    *,
    write: str = "",
    device_name: str = "cuda",
    config: VideoVaeConfig = CONFIG,
    clips: int = 0,
) -> dict[str, Any]:
    """One row: decode `geometry` (its first `clips` clips) `repeats` times after one clip."""
    device = torch.device(device_name)
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    file: Any = Synthetic(config)
    root = {k: v.float().to(device) for k, v in random_tensors(root_shapes(config), 1).items()}
    size = (geometry.latent_frames, geometry.latent_height, geometry.latent_width)
    latents = torch.randn(1, 24, *size, generator=torch.Generator().manual_seed(2))
    latents = latents[:, :, : 5 * clips + 2] if clips else latents
    tiles = split_axis(geometry.height_px).tiles * split_axis(geometry.width_px).tiles
    group = max(1, placement.tiles_per_group // tiles)
    resident = range(placement.resident_blocks)
    seconds: list[float] = []
    meter = Meter(device)
    with (
        torch.inference_mode(),
        StreamedBlocks(
            file, device, dtype, resident=resident, pinned=range(config.blocks),
            slots=max(1, placement.transfer_slots),
        ) as blocks,
    ):  # fmt: skip

        def decode(z: Tensor) -> Hashed:
            with ExitStack() as open_files:
                inner: Any = None
                if write:
                    from lowpeak.engine.media import VideoWriter  # needs the media library

                    inner = open_files.enter_context(
                        VideoWriter(write, geometry.width_px, geometry.height_px)
                    )
                sink = Hashed(inner)
                encode = open_files.enter_context(BackgroundFrames(sink))
                decode_video(
                    z,
                    root,
                    blocks,
                    config,
                    clips_per_group=group,
                    compute_dtype=dtype,
                    on_frames=encode,
                )
            return sink

        decode(latents[:, :, :7])
        blocks.stream.stalls()
        gc.collect()
        before_bytes = resident_bytes()
        with meter.phase("decode") as measured:
            for _ in range(repeats):
                begin, linked = time.perf_counter(), blocks.stream.link_bytes
                sink = decode(latents)
                seconds.append(time.perf_counter() - begin)
        stalls = blocks.stream.stalls()
        linked = blocks.stream.link_bytes - linked
    return {
        **about(geometry, placement, group, device),
        "frames": sink.frames,
        "seconds": sorted(seconds)[len(seconds) // 2],
        "spread": [min(seconds), max(seconds)],
        "repeats": repeats,
        "vram_peak_bytes": measured.vram_peak_bytes,
        "context_bytes": meter.context_bytes,
        "ram_peak_bytes": measured.ram_peak_bytes,
        "ram_before_bytes": before_bytes,
        "ram_added_bytes": (measured.ram_peak_bytes or 0) - before_bytes,
        "written": bool(write),
        "link_bytes": linked,
        "stall_seconds": {name: value / repeats for name, value in stalls.items()},
        "hashes": sink.hashes,
    }


def about(
    geometry: Geometry, placement: Placement, group: int, device: torch.device
) -> dict[str, Any]:
    """What was run, and on what."""
    on_card = device.type == "cuda"
    return {
        "bench": "decode",
        "device": torch.cuda.get_device_name() if on_card else "cpu",
        "versions": {"torch": torch.__version__, "python": sys.version.split()[0]},
        "command": " ".join(sys.argv),
        "width": geometry.width_px,
        "height": geometry.height_px,
        "placement": {
            "resident_blocks": placement.resident_blocks,
            "transfer_slots": placement.transfer_slots,
            "clips_per_group": group,
        },
        "vram_allocated_bytes": torch.cuda.max_memory_allocated() if on_card else None,
        "checkpoint": {"kind": "toy", "format": "fp16"},
    }


def planned_rows(geometry: Geometry, caps: list[float], check_clips: int, **more: Any) -> Any:
    """Rows of the planner's placements under `caps`, each when it is there; one that fails says
    why. All but the first decode `check_clips` clips and are compared with the first."""
    first: dict[str, Any] = {}
    for cap in caps:
        on_card = more.get("device_name") == "cuda"
        if on_card:
            torch.cuda.empty_cache()
        placement, planned, fits = plan_placement(geometry, cap, more["config"].blocks)
        try:
            row = measure(geometry, placement, 1, clips=check_clips if first else 0, **more)
        except (RuntimeError, MemoryError) as failed:  # out of memory too
            yield {"bench": "decode", "cap_gib": cap, "error": f"{type(failed).__name__}: {failed}"}
            continue
        row |= {"cap_gib": cap or None, "plan_fits": fits}
        row["vram_planned_bytes"] = planned if on_card else None
        if first:
            frames = 17 * check_clips
            row["same_bits"] = row["hashes"][frames] == first["hashes"][frames]
        first = first or row
        yield row


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
        sink: Any = Hashed()
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
    parser.add_argument("--plan-gib", default="", help="caps of VRAM in GiB, 0 for none")
    parser.add_argument("--check-clips", type=int, default=5)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    geometry = Geometry(given.width, given.height, given.frames)
    config = replace(CONFIG, heads=2, head_width=32, ffn_width=128, blocks=3)
    how: dict[str, Any] = {
        "write": given.write, "device_name": given.device,
        "config": config if given.small else CONFIG,
    }  # fmt: skip
    if given.frames_only:
        rows: Any = [frame_path(geometry, given.write)]
    elif given.plan_gib:
        caps = [float(part) for part in given.plan_gib.split(",")]
        rows = planned_rows(geometry, caps, given.check_clips, **how)
    else:
        tiles = split_axis(geometry.height_px).tiles * split_axis(geometry.width_px).tiles
        placement = Placement(
            resident_blocks=given.resident, transfer_slots=2, tiles_per_group=tiles * given.clips
        )
        rows = [measure(geometry, placement, given.repeats, **how)]
    for row in rows:
        hashes = row.pop("hashes", {})
        shown = {**row, "frames_sha256": hashes.get(row.get("frames"))}
        row["hashes"] = hashes  # later rows are compared with it
        print(json.dumps(shown), flush=True)
        if given.out is not None:
            kept = json.loads(given.out.read_text()) if given.out.is_file() else []
            given.out.write_text(json.dumps([*kept, shown], indent=1))


if __name__ == "__main__":
    main()
