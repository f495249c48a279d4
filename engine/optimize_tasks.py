"""What a worker does for `optimize`: one whole sampling pass under a given placement."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .events import Event

if TYPE_CHECKING:
    import torch

    from .geometry import Geometry
    from .request import Request
    from .worker.child import WorkerContext

TEXT_ROWS = 256


def rates(arguments: Mapping[str, Any], context: WorkerContext) -> dict[str, float | None]:
    """Link and disk, measured and kept; in a worker, so that its context does not stay."""
    from .doctor import measured_rates

    return measured_rates(Path(arguments["checkpoint"]))


def kernels(arguments: Mapping[str, Any], context: WorkerContext) -> str:
    """Judge and time the kernels of this card where they never were, or always when `again`."""
    from ..kernels.machine import read_machine
    from .device import choose_device
    from .kernels_here import probe_kernels, verdict_cache

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
    from .device import choose_device
    from .errors import MeasuredOverrun
    from .meter import Meter
    from .models import open_models
    from .planner.types import Placement
    from .sampling.quality import plan_request
    from .sampling.schedules import NO_CONDITIONS
    from .sampling.solver import euler
    from .worker.protocol import request_from_json

    request, phase = request_from_json(arguments["request"]), arguments["phase"]
    models = open_models(Path(arguments["checkpoint"]), choose_device(arguments["device"]))
    device = models.device  # with its number, which some calls insist on
    meter = Meter(device)
    if device.type == "cuda":
        outside = max(meter.context_bytes, int(arguments["context_bytes"]))
        limit_vram(device, arguments["vram_gib"], outside)
    item = next(one for one in plan_request(request).passes if one.phase == phase)
    layout, text, start = _random_start(request, item, models.checkpoint.config.text_dim)
    places = {phase: Placement(**arguments["placement"])}
    lap = _Laps(phase, context)
    measured = None
    try:
        with (
            models.denoiser(item.schedule.table_times(NO_CONDITIONS), places) as denoisers,
            meter.phase(phase) as measured,
        ):
            denoiser = denoisers.for_phase(phase, context.is_cancelled)
            model = denoiser.bind(layout, text, start.condition_rows)
            lap.begin()
            found = euler(model, start.video, start.audio, item.schedule, lap, context.is_cancelled)
            steps = list(denoiser.telemetry)
    except torch.OutOfMemoryError as short:
        used = getattr(measured, "vram_peak_bytes", None) or 0
        raise MeasuredOverrun(phase, "vram", int(arguments["forecast_bytes"]), used) from short
    sums = hashlib.sha256(b"".join(t.contiguous().numpy().tobytes() for t in found))
    return {
        **_ran_on(device, item.geometry),
        "text_rows": len(text),
        **lap.figures(),
        "vram_peak_bytes": measured.vram_peak_bytes,
        "context_bytes": measured.vram_outside_bytes,
        "stall_seconds": _stalls(steps),
        "sha256": sums.hexdigest(),
        "kernels": models.kernels()["transformer"]["implementation"],
    }


class _Laps:
    """Seconds of each evaluation; called after every one with its result."""

    def __init__(self, phase: str, context: WorkerContext) -> None:
        self.phase, self.context, self.seconds = phase, context, list[float]()
        self.begin()

    def begin(self) -> None:
        """The next evaluation starts now."""
        self._began = time.perf_counter()

    def __call__(self, result: Any) -> None:
        self.seconds.append(time.perf_counter() - self._began)
        text = f"step {len(self.seconds)}: {self.seconds[-1]:.2f} s"
        self.begin()
        self.context.emit(Event("notice", self.phase, text))

    def figures(self) -> dict[str, Any]:
        """Seconds as a row has them; the first evaluation, which reads blocks, is no usual one."""
        return {
            "seconds": sum(self.seconds),
            "step_seconds": self.seconds,
            "seconds_per_step": statistics.median(self.seconds[1:] or self.seconds),
        }


def _random_start(request: Request, item: Any, text_dim: int) -> tuple[Any, Any, Any]:
    """Layout, text rows [rows, text_dim] float32 and start of a pass, all from the seed."""
    import torch

    from .model.layout import build_layout
    from .sampling.noise import draw_pass_noise
    from .sampling.two_pass import start_first_pass

    size, rows = item.geometry, request.text_rows or TEXT_ROWS
    layout = build_layout(
        latent_frames=size.latent_frames, latent_height=size.latent_height,
        latent_width=size.latent_width, audio_latents=size.audio_latents, text_tags=[1] * rows,
    )  # fmt: skip
    text = torch.randn(rows, text_dim, generator=torch.Generator().manual_seed(request.seed))
    noise = draw_pass_noise(request.seed + item.seed_offset, size)
    return layout, text, start_first_pass(noise)


def _ran_on(device: torch.device, size: Geometry) -> dict[str, Any]:
    """What a row says of the machine and of the size."""
    import torch

    from .versions import read_versions

    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "versions": read_versions(),
        "width": size.width_px,
        "height": size.height_px,
        "frames": size.frames,
        "grouped": size.grouped,
    }


def _stalls(steps: Sequence[Any]) -> dict[str, float]:
    """Seconds that a usual step waited, for each resource."""
    return {
        name: statistics.median(step.stall_seconds[name] for step in steps[1:] or steps)
        for name in ("link", "disk")
    }
