"""Cases of `lowpeak bench`: a plan made and obeyed, work done and timed, one JSON row.

The placement is the planner's own for the given caps, so a row answers "how fast is this request
here", and beside its forecast "how good was the plan". Matrices of hand-made placements are
benchmarks/step_matrix.py's business. Inputs are random numbers.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .bench import bench_step, context_bytes, disk_rate, limit_ram, limit_vram, ram_peak_bytes
from .bench_weights import transformer_weights
from .device import choose_device
from .doctor import link_rate
from .errors import MeasuredOverrun
from .forecast import forecast_for_run, phase_forecasts, placements_of
from .geometry import Geometry
from .kernels_here import linear_options
from .meter import Meter, resident_bytes
from .models import ModelSet, open_models
from .planner.types import Placement
from .request import Request
from .sampling.schedules import schedule
from .snapshot import cap_snapshot, read_snapshot
from .streamed import StreamedDenoiser
from .units import format_gib, format_seconds
from .versions import read_versions

PHASE = "sample_high"


@dataclass(frozen=True)
class Case:
    """What to measure: files, size, caps in GiB, device, repetitions."""

    checkpoint: Path
    geometry: Geometry
    vram_gib: float | None
    ram_gib: float | None
    device: str
    repeats: int
    gemm: str | None = None  # a weight format or a path of kernels.catalogue; None: as chosen here


def step_row(case: Case, text_rows: int) -> dict[str, Any]:
    """A measured sampling step under the plan of a single pass of 8. Raises DoesNotFit."""
    return _step(case, text_rows)[0]


def forecast_row(case: Case, text_rows: int) -> dict[str, Any]:
    """A measured step and its forecast; ratios are measured / forecast, None where unknown."""
    row, forecast = _step(case, text_rows)
    names = ("seconds_per_step", "vram_peak_bytes", "ram_peak_bytes")
    planned = {name: forecast[name] for name in names}
    ratios = {
        name: None if not planned[name] or not row[name] else row[name] / planned[name]
        for name in names
    }
    return {**row, "bench": "forecast", "forecast": planned, "ratio": ratios}


def stream_row(folder: Path, device_name: str) -> dict[str, Any]:
    """Rates of the disk and of the link, bytes a second; None where there is no link."""
    models = open_models(folder, choose_device(device_name))
    disk = disk_rate(models.checkpoint, models.device)
    return {
        **_about(models, "stream"),
        "disk_bytes_per_second": disk,
        "link_bytes_per_second": link_rate(),
        "block_bytes": models.facts().block_bytes,
    }


def decode_row(case: Case) -> dict[str, Any]:
    """The video decoder on random latents, frames dropped. The first run warms up."""
    models = open_models(case.checkpoint, choose_device(case.device))
    context = _limit(case, models.device)
    size = case.geometry
    latents = torch.randn(
        1, 24, size.latent_frames, size.latent_height, size.latent_width,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip

    def run() -> None:
        models.decode_video(latents, lambda frames: None, lambda: False)

    timing = _timed(models, case.repeats, run, context)
    return {**_about(models, "decode"), **_sizes(case), **timing}


def row_text(row: Mapping[str, Any]) -> str:
    """A row in words."""
    parts = [f"{row['bench']} on {row['device']}"]
    for name in ("seconds_per_step", "seconds"):
        if row.get(name) is not None:
            low, high = row["spread"]
            spread = f"({format_seconds(low)} to {format_seconds(high)}, {row['repeats']} runs)"
            parts.append(f"{format_seconds(row[name])} {spread}")
    for name, title in (("vram_peak_bytes", "VRAM peak"), ("ram_peak_bytes", "RAM peak")):
        if row.get(name):
            parts.append(f"{title} {format_gib(row[name])}")
    for name, title in (("disk_bytes_per_second", "disk"), ("link_bytes_per_second", "link")):
        if row.get(name):
            parts.append(f"{title} {row[name] / 1e9:.2f} GB/s")
    for name, ratio in row.get("ratio", {}).items():
        text = "unknown" if ratio is None else f"{ratio:.3f}"
        parts.append(f"{name} measured / forecast {text}")
    return "\n".join(parts)


def _step(case: Case, text_rows: int) -> tuple[dict[str, Any], Mapping[str, Any]]:
    models = open_models(case.checkpoint, choose_device(case.device))
    request = Request(case.geometry, base_steps=8, two_pass=False, text_rows=text_rows)
    machine = cap_snapshot(read_snapshot(), vram_gib=case.vram_gib, ram_gib=case.ram_gib)
    plan = forecast_for_run(
        request, machine, models.facts(), models.device.type, process_bytes=resident_bytes(),
        checkpoint=case.checkpoint,
    )  # fmt: skip
    context = _limit(case, models.device)
    denoiser = _open(models, placements_of(plan)[PHASE], case.gemm)
    try:
        row = bench_step(
            denoiser, case.geometry, vram_gib=case.vram_gib, ram_gib=case.ram_gib,
            context=context, text_rows=text_rows, repeats=case.repeats,
        )  # fmt: skip
    except torch.OutOfMemoryError as short:
        forecast = phase_forecasts(plan)[PHASE]["vram_peak_bytes"]
        used = torch.cuda.max_memory_reserved() + context
        raise MeasuredOverrun(PHASE, "vram", forecast, used) from short
    finally:
        denoiser.close()
    if denoiser.placement.disk_blocks:  # read ahead by nobody any more: the disk is this one's
        row["disk_bytes_per_second"] = disk_rate(models.checkpoint, models.device)
    return row, phase_forecasts(plan)[PHASE]


def _open(models: ModelSet, placement: Placement, gemm: str | None = None) -> StreamedDenoiser:
    times = (schedule(8).steps()[2].distinct,)
    options = gemm and linear_options(gemm, models.checkpoint.weight_format)
    return StreamedDenoiser(
        models.checkpoint, times, placement, models.device, kernels=options or None
    )


def _limit(case: Case, device: torch.device) -> int:
    """Set both caps for this process; the context's bytes."""
    if case.ram_gib is not None:
        limit_ram(case.ram_gib)
    if device.type != "cuda":
        return 0
    context = context_bytes(device)
    limit_vram(device, case.vram_gib, context)
    return context


def _timed(
    models: ModelSet, repeats: int, run: Callable[[], Any], context: int = 0
) -> dict[str, Any]:
    """Median and spread of `repeats` runs after one that warms up, and the peaks of all."""
    seconds = []
    with Meter(models.device).phase("bench") as measured:
        for index in range(repeats + 1):
            began = time.perf_counter()
            run()
            if models.device.type == "cuda":
                torch.cuda.synchronize(models.device)
            if index:
                seconds.append(time.perf_counter() - began)
    seconds.sort()
    return {
        "seconds": statistics.median(seconds),
        "spread": [seconds[0], seconds[-1]],
        "repeats": repeats,
        "vram_peak_bytes": measured.vram_peak_bytes,
        "ram_peak_bytes": max(measured.ram_peak_bytes or 0, ram_peak_bytes()),
    }


def _sizes(case: Case) -> dict[str, Any]:
    size = case.geometry
    return {
        "width": size.width_px,
        "height": size.height_px,
        "frames": size.frames,
        "video_tokens": size.video_tokens,
        "vram_gib": case.vram_gib,
        "ram_gib": case.ram_gib,
    }


def _about(models: ModelSet, name: str) -> dict[str, Any]:
    cuda = models.device.type == "cuda"
    return {
        "bench": name,
        "device": torch.cuda.get_device_name(models.device) if cuda else "cpu",
        "versions": read_versions(),
        "command": " ".join(sys.argv),
        "checkpoint": transformer_weights(models.checkpoint),
    }
