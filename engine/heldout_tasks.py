"""What a worker does for `bench forecast --cases`: plan for the caps, run that, give the row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .events import Event

if TYPE_CHECKING:
    from .worker.child import WorkerContext

PHASE = "sample_high"
RATE_BLOCKS = 6


def prepare(arguments: Mapping[str, Any], context: WorkerContext) -> bool:
    """Import everything; makes no context on a card."""
    from . import bench_cases, streamed  # noqa: F401

    return True


def rates(arguments: Mapping[str, Any], context: WorkerContext) -> dict[str, float | None]:
    """Bytes a second of the link and of the disk that the checkpoint lies on."""
    from .rates import block_files, block_read_rate, measure_link
    from .run import choose_device

    device = choose_device(arguments["device"])
    files = block_files(Path(arguments["checkpoint"]))
    return {"link": measure_link(device), "disk": block_read_rate(files, RATE_BLOCKS)}


def measure(arguments: Mapping[str, Any], context: WorkerContext) -> dict[str, Any]:
    """One case: its row, with the forecast. Raises DoesNotFit, MeasuredOverrun, Cancelled."""
    import torch

    from .bench import bench_step, context_bytes, disk_rate, limit_vram
    from .errors import MeasuredOverrun
    from .forecast import forecast_for_run, outside_bytes, phase_forecasts, placements_of
    from .geometry import Geometry
    from .heldout import TEXT_ROWS, machine_from
    from .meter import resident_bytes
    from .models import open_models
    from .request import Request
    from .run import choose_device
    from .sampling.schedules import schedule
    from .snapshot import cap_snapshot
    from .streamed import StreamedDenoiser

    case = arguments["case"]
    models = open_models(Path(arguments["checkpoint"]), choose_device(arguments["device"]))
    device = models.device  # with its number, which some calls insist on
    geometry = Geometry(case["width"], case["height"], case["frames"])
    request = Request(geometry, base_steps=8, two_pass=False, text_rows=TEXT_ROWS)
    machine = machine_from(arguments["machine"])
    on_card = device.type == "cuda"
    if on_card:
        machine = cap_snapshot(machine, vram_gib=case["vram_gib"], ram_gib=case["ram_gib"])
    plan = forecast_for_run(
        request, machine, models.facts(), device.type, process_bytes=resident_bytes()
    )
    placement = placements_of(plan)[PHASE]
    forecast = phase_forecasts(plan)[PHASE]
    own = 0
    if on_card:
        _give_back(torch)
        own = _libraries_loaded(torch, device, context_bytes)
        limit_vram(device, case["vram_gib"], max(own, outside_bytes(forecast)))
    times = (schedule(8).steps()[2].distinct,)
    denoiser = StreamedDenoiser(
        models.checkpoint, times, placement, device,
        is_cancelled=context.is_cancelled, open_stream=False,
    )  # fmt: skip
    shared = not case["own_process"] and not placement.disk_blocks
    # Like a second pass: the root is read beside all blocks, which are there already.
    blocks = models.checkpoint.config.layers
    kept = shared and "store" in context.kept and placement.pinned_blocks == blocks
    if kept and on_card:
        peak = forecast["ram_peak_bytes"] + models.facts().root_bytes
        forecast = {**forecast, "ram_peak_bytes": peak}
    try:
        denoiser.open_stream(_shared_store(denoiser, device, context) if shared else None)
        row = bench_step(
            denoiser, geometry, vram_gib=case["vram_gib"], ram_gib=case["ram_gib"], context=own,
            text_rows=TEXT_ROWS, repeats=case["repeats"],
            progress=lambda line: context.emit(Event("notice", PHASE, f"{case['name']}: {line}")),
        )  # fmt: skip
        after = context_bytes(device) if on_card else 0
        if placement.disk_blocks:
            row["disk_bytes_per_second"] = disk_rate(denoiser, RATE_BLOCKS)
    except torch.OutOfMemoryError as short:
        used = torch.cuda.max_memory_reserved(device) + own
        raise MeasuredOverrun(PHASE, "vram", forecast["vram_peak_bytes"], used) from short
    finally:
        denoiser.close()
        if on_card:
            torch.cuda.set_per_process_memory_fraction(1.0, device)
    if on_card:
        row["vram_peak_bytes"] += max(0, after - own)
        row["context_after_bytes"] = after
    else:
        row["vram_peak_bytes"] = None
    names = ("seconds_per_step", "vram_peak_bytes", "ram_peak_bytes", "limited_by")
    return {
        **row,
        "forecast": {name: forecast[name] for name in names},
        "terms": [term for term in forecast["terms"] if term["unit"] != "seconds"],
        "blocks": blocks,
        "kept_store": kept,
        "own_store": not shared,
        "link_bytes_per_second": machine.link_bytes_per_second,
    }


def _shared_store(denoiser: Any, device: Any, context: WorkerContext) -> Any:
    """The store of all blocks that the cases of one worker share."""
    store = context.kept.get("store")
    if store is None:
        from .blocks import BlockStore
        from .blocks.memory import device_for
        from .streamed import block_sources

        sources = block_sources(denoiser.checkpoint)
        store = BlockStore(
            sources,
            pinned=range(len(sources)),
            pin=device.type == "cuda",
            device=device_for(device),
        )
        context.keep("store", store, store.close)
    return store


def _give_back(torch: Any) -> None:
    """Free what earlier cases left in the allocator, the libraries' workspaces too."""
    import gc

    gc.collect()
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear is not None:
        clear()
    torch.cuda.empty_cache()


def _libraries_loaded(torch: Any, device: Any, context_bytes: Any) -> int:
    """Bytes beside the allocator once the matrix library is loaded, its workspace apart."""
    small = torch.ones(256, 256, dtype=torch.bfloat16, device=device)
    (small @ small).sum().item()
    del small
    return int(context_bytes(device))
