"""What a worker does for `optimize`: one whole sampling pass under a given placement."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .events import Event

if TYPE_CHECKING:
    from .worker.child import WorkerContext

TEXT_ROWS = 256


def rates(arguments: Mapping[str, Any], context: WorkerContext) -> dict[str, float | None]:
    """Link and disk, measured and kept; in a worker, so that its context does not stay."""
    from .doctor import measured_rates

    return measured_rates(Path(arguments["checkpoint"]))


def kernels(arguments: Mapping[str, Any], context: WorkerContext) -> str:
    """Judge and time the kernels of this card where they never were, or always when `again`."""
    from ..kernels.machine import read_machine
    from .kernels_here import probe_kernels, verdict_cache
    from .run import choose_device

    device = choose_device(arguments["device"])
    if not arguments["again"] and verdict_cache().read(read_machine(device)):
        return "known"
    probe_kernels(device, progress=lambda line: context.emit(Event("notice", "", line)))
    return "probed"


def run_pass(arguments: Mapping[str, Any], context: WorkerContext) -> dict[str, Any]:
    """All evaluations of a pass from noise, random text rows; its times, peaks and a checksum.

    Raises MeasuredOverrun out of memory, Cancelled, and what a checkpoint raises.
    """
    import torch

    from .bench import limit_vram
    from .errors import MeasuredOverrun
    from .meter import Meter
    from .model.layout import build_layout
    from .models import open_models
    from .planner.types import Placement
    from .run import choose_device
    from .sampling.noise import draw_pass_noise
    from .sampling.quality import plan_request
    from .sampling.schedules import NO_CONDITIONS
    from .sampling.solver import StepResult, euler
    from .sampling.two_pass import start_first_pass
    from .versions import read_versions
    from .worker.protocol import request_from_json

    request, phase = request_from_json(arguments["request"]), arguments["phase"]
    models = open_models(Path(arguments["checkpoint"]), choose_device(arguments["device"]))
    device = models.device  # with its number, which some calls insist on
    meter = Meter(device)
    if device.type == "cuda":
        outside = max(meter.context_bytes, int(arguments["context_bytes"]))
        limit_vram(device, arguments["vram_gib"], outside)
    item = next(one for one in plan_request(request).passes if one.phase == phase)
    size, rows = item.geometry, request.text_rows or TEXT_ROWS
    layout = build_layout(
        latent_frames=size.latent_frames, latent_height=size.latent_height,
        latent_width=size.latent_width, audio_latents=size.audio_latents, text_tags=[1] * rows,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(request.seed)
    text = torch.randn(rows, models.checkpoint.config.text_dim, generator=generator)
    start = start_first_pass(draw_pass_noise(request.seed + item.seed_offset, size))
    places = {phase: Placement(**arguments["placement"])}
    seconds: list[float] = []
    began = time.perf_counter()

    def finished(result: StepResult) -> None:
        nonlocal began
        now = time.perf_counter()
        seconds.append(now - began)
        began = now
        context.emit(Event("notice", phase, f"step {len(seconds)}: {seconds[-1]:.2f} s"))

    measured = None
    try:
        with (
            models.denoiser(item.schedule.table_times(NO_CONDITIONS), places) as denoisers,
            meter.phase(phase) as measured,
        ):
            denoiser = denoisers.for_phase(phase, context.is_cancelled)
            model = denoiser.bind(layout, text, start.condition_rows)
            began = time.perf_counter()
            video, audio = euler(
                model, start.video, start.audio, item.schedule, finished, context.is_cancelled
            )
            steps = list(denoiser.telemetry)
    except torch.OutOfMemoryError as short:
        used = getattr(measured, "vram_peak_bytes", None) or 0
        raise MeasuredOverrun(phase, "vram", int(arguments["forecast_bytes"]), used) from short
    digest = hashlib.sha256(b"".join(t.contiguous().numpy().tobytes() for t in (video, audio)))
    steady = seconds[1:] or seconds
    stalls = {
        name: statistics.median(step.stall_seconds[name] for step in steps[1:] or steps)
        for name in ("link", "disk")
    }
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "versions": read_versions(),
        "width": size.width_px,
        "height": size.height_px,
        "frames": size.frames,
        "text_rows": rows,
        "seconds": sum(seconds),
        "step_seconds": seconds,
        "seconds_per_step": statistics.median(steady),
        "vram_peak_bytes": measured.vram_peak_bytes,
        "context_bytes": measured.vram_outside_bytes,
        "stall_seconds": stalls,
        "sha256": digest.hexdigest(),
        "kernels": models.kernels()["transformer"]["implementation"],
    }
