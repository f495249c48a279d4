"""In this process or in workers: how a request of the command line is run.

On a card every stage gets a process of its own, so that its memory comes back whole, its measured
peaks are its own, and an out-of-memory is tried again more lightly. On a CPU one process does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .checkpoint.header import read_header
from .events import Host
from .files import RunFiles
from .forecast import read_facts
from .learning import machine_calibration
from .options import RunOptions
from .parts import AUDIO_VAE, TEXT, UPSCALER, VIDEO_VAE, find_part
from .planner.least import least_needs
from .planner.passes import sampling_passes
from .planner.types import HardwareSnapshot
from .request import Request
from .snapshot import read_snapshot


def parts_ahead(request: Request, options: RunOptions) -> list[str]:
    """Kinds of engine.parts that the rest of a run reads; kept files count by their names."""
    held = RunFiles.of(options.resume).present() if options.resume is not None else {}
    kinds = []
    if not {"latents", "conditioning"} & set(held):
        kinds.append(TEXT)
    lifts = any(item.geometry != request.geometry for item in sampling_passes(request))
    if lifts and "latents" not in held and options.stop_after not in ("encode", "first"):
        kinds.append(UPSCALER)
    if options.stop_after is None:
        kinds += [VIDEO_VAE, AUDIO_VAE]
    return kinds


def check_part(path: Path) -> None:
    """Read the headers of a part, file or folder. CheckpointError for a file that is cut short."""
    for file in sorted(path.glob("*.safetensors")) if path.is_dir() else [path]:
        if file.suffix == ".safetensors":
            read_header(file)


def generate(
    request: Request,
    options: RunOptions,
    host: Host,
    notices: tuple[str, ...] = (),
    *,
    workers: bool | None = None,
) -> dict[str, Any]:
    """Run a request; gives its report, JSON-ready. workers: None decides by the device.

    A part that it will need and that is nowhere, or cut short, is a CheckpointError before anything
    runs. Raises any LowpeakError; WorkerDied (exit code 5) when every retry failed.
    """
    for kind in parts_ahead(request, options):
        check_part(find_part(options.checkpoint, kind))  # said now, not after minutes of sampling
    if workers is None:
        workers = options.device != "cpu" and read_snapshot().capability is not None
    if not workers:
        from .run import run_request

        return run_request(request, options, host, notices).as_json()
    from .worker.stages import Launch, run_in_workers

    def least(machine: HardwareSnapshot) -> Mapping[str, Mapping[str, int]]:
        rows = machine_calibration(machine, options.checkpoint)
        return least_needs(request, machine, read_facts(options.checkpoint), rows)

    return run_in_workers(request, options, Launch(host, notices, least_needs=least))
