"""Measure at real shapes: `lowpeak bench ...`. One row a case, both budgets honoured for real.

VRAM is capped by the allocator's limit, the CUDA context counted in; RAM by a cgroup (as root).
Inputs are random numbers: zeros would flatter the figures.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .bench_weights import transformer_weights
from .blocks.reading import read_alone
from .cgroups import MemoryGroup, group_folder, group_peak_bytes, own_group_name
from .checkpoint.index import Checkpoint
from .errors import RequestError
from .geometry import Geometry
from .meter import resident_bytes
from .model.layout import build_layout
from .model.waiting import IN_RING
from .planner.types import Placement
from .sampling.schedules import schedule
from .streamed import StreamedDenoiser, block_sources
from .units import gib_to_bytes
from .versions import read_versions

GROUP = "bench"


def limit_ram(ram_gib: float) -> None:
    """Put this process into a cgroup of `ram_gib` GiB without swap. Raises RequestError."""
    group = MemoryGroup(own_group_name(GROUP), ram_gib)
    try:
        group.add(os.getpid())
    except RequestError:
        group.close()
        raise


def context_bytes(device: torch.device) -> int:
    """What the CUDA context and its libraries took on the card, beside the allocator."""
    torch.zeros(1, device=device)
    torch.cuda.synchronize(device)
    free, total = torch.cuda.mem_get_info(device)
    return total - free - torch.cuda.memory_reserved(device)


def limit_vram(device: torch.device, vram_gib: float | None, context: int) -> None:
    """Cap the allocator so that context and reserved memory stay within `vram_gib` GiB."""
    total = torch.cuda.mem_get_info(device)[1]
    allowed = total if vram_gib is None else gib_to_bytes(vram_gib) - context
    if allowed <= 0:
        raise RequestError(f"{vram_gib} GiB is less than the CUDA context takes", field="vram_gib")
    torch.cuda.set_per_process_memory_fraction(min(1.0, allowed / total), device)


def random_pass(checkpoint: Checkpoint, geometry: Geometry, text_rows: int, seed: int = 0):
    """Layout and random inputs of a pass: (layout, text, video rows, audio rows)."""
    config = checkpoint.config
    layout = build_layout(
        latent_frames=geometry.latent_frames,
        latent_height=geometry.latent_height,
        latent_width=geometry.latent_width,
        audio_latents=geometry.audio_latents,
        text_tags=[1] * text_rows,
    )
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    return (
        layout,
        draw(text_rows, config.text_dim),
        draw(geometry.video_tokens, config.video_row),
        draw(2 * geometry.audio_latents, config.audio_channels),
    )


def bench_step(
    denoiser: StreamedDenoiser,
    geometry: Geometry,
    *,
    vram_gib: float | None,
    ram_gib: float | None,
    context: int,
    text_rows: int = 500,
    repeats: int = 5,
    progress: Callable[[str], None] = lambda line: None,
    enough: Callable[[float], bool] = lambda last_seconds: False,
) -> dict[str, Any]:
    """One row: `repeats` evaluations after a warm-up, under the caps that are already set.

    enough: with the last evaluation's seconds, whether one is enough where more were asked for.
    """
    layout, text, video, audio = random_pass(denoiser.checkpoint, geometry, text_rows)
    step = schedule(8).steps()[2]
    velocity = denoiser.bind(layout, text, torch.empty(0, denoiser.config.video_row))
    digest = ""
    peak = allocated = 0
    for index in range(repeats + 1):
        found = velocity(video, audio, step)
        record = denoiser.telemetry[-1]
        peak = max(peak, record.vram_peak_bytes or 0)
        if denoiser.device.type == "cuda":
            allocated = max(allocated, torch.cuda.max_memory_allocated(denoiser.device))
        progress(f"step {index}: {record.seconds:.3f} s, stalls {record.stall_seconds}")
        digest = hashlib.sha256(b"".join(t.numpy().tobytes() for t in found)).hexdigest()
        if not all(bool(torch.isfinite(t).all()) for t in found):
            raise RequestError("the step gave numbers that are not finite", field="checkpoint")
        if index and enough(record.seconds):
            repeats = index
            break
    records = denoiser.telemetry[-repeats:]
    seconds = sorted(record.seconds for record in records)
    return {
        "bench": "step",
        "device": _device_name(denoiser.device),
        "versions": read_versions(),
        "command": " ".join(sys.argv),
        "width": geometry.width_px,
        "height": geometry.height_px,
        "frames": geometry.frames,
        "video_tokens": geometry.video_tokens,
        "grouped": geometry.grouped,
        "in_ring": IN_RING,
        "text_rows": text_rows,
        "vram_gib": vram_gib,
        "ram_gib": ram_gib,
        "placement": denoiser.placement.as_json(),
        "seconds_per_step": statistics.median(seconds),
        "spread": [seconds[0], seconds[-1]],
        "repeats": repeats,
        "vram_peak_bytes": peak + context,
        "vram_allocated_bytes": allocated or None,  # of the peak, what tensors took at once
        "context_bytes": context,
        "ram_peak_bytes": ram_peak_bytes(),
        "link_bytes": int(statistics.median(record.link_bytes for record in records)),
        "disk_bytes": int(statistics.median(record.disk_bytes for record in records)),
        "prepare_seconds": statistics.median(record.prepare_seconds for record in records),
        "stall_seconds": {
            name: statistics.median(record.stall_seconds[name] for record in records)
            for name in ("link", "disk")
        },
        "output_sha256": digest,
        "kernels": denoiser.choice.name,
        "chosen": dict(denoiser.choice.chosen),
        "notices": denoiser.notices,
        "checkpoint": transformer_weights(denoiser.checkpoint),
    }


def disk_rate(checkpoint: Checkpoint, device: torch.device, blocks: int = 12) -> float:
    """Bytes a second that a store could read at most, over whole block files, past the page cache.

    Close whoever reads ahead first: it would take a share of the disk, and of this one's memory.
    """
    sources = block_sources(checkpoint)[:blocks]
    done, seconds = read_alone(sources, pin=device.type == "cuda")
    return done / seconds


def ram_peak_bytes() -> int:
    """Peak of this process's cgroup where it has one of its own, else resident bytes now."""
    peak_bytes = group_peak_bytes(group_folder(own_group_name(GROUP)))
    return resident_bytes() if peak_bytes is None else peak_bytes


def pinned_placement(blocks: int, **settings: Any) -> Placement:
    """Every block in page-locked memory, unless settings say otherwise."""
    rest = blocks - settings.get("resident_blocks", 0) - settings.get("disk_blocks", 0)
    return Placement(pinned_blocks=rest, **settings)


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
