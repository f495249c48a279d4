"""What a worker does for `bench forecast --cases`: plan for the caps, run that, give the row."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .events import Event

if TYPE_CHECKING:
    from .worker.child import WorkerContext

PHASE = "sample_high"
RATE_BLOCKS = 6
SETTLED_BYTES = 256 << 20
FORECAST = ("seconds_per_step", "vram_peak_bytes", "ram_peak_bytes", "limited_by")


def prepare(arguments: Mapping[str, Any], context: WorkerContext) -> bool:
    """Import everything; makes no context on a card."""
    from . import bench_cases, streamed  # noqa: F401

    return True


def rates(arguments: Mapping[str, Any], context: WorkerContext) -> dict[str, float | None]:
    """Bytes a second of the link and of the disk that the checkpoint lies on."""
    from .device import choose_device
    from .rates import block_files, block_read_rate, measure_link

    device = choose_device(arguments["device"])
    files = block_files(Path(arguments["checkpoint"]))
    return {"link": measure_link(device), "disk": block_read_rate(files, RATE_BLOCKS)}


def settle(arguments: Mapping[str, Any], context: WorkerContext) -> bool:
    """Give back what a failed case left; whether the device still computes and is free again."""
    import torch

    from .device import choose_device

    device = choose_device(arguments["device"])
    if device.type != "cuda":
        return True
    try:
        _give_back(torch)
        right = torch.ones(256, device=device).sum().item() == 256
        return right and torch.cuda.memory_reserved(device) < SETTLED_BYTES
    except RuntimeError:  # a failed capture, or a launch that failed, can end a context
        return False


def measure(arguments: Mapping[str, Any], context: WorkerContext) -> dict[str, Any]:
    """One case: its row, with the forecast. Raises DoesNotFit, MeasuredOverrun, Cancelled."""
    import torch

    from .bench import bench_step, context_bytes, disk_rate, limit_vram
    from .device import choose_device
    from .errors import MeasuredOverrun
    from .forecast import outside_bytes
    from .geometry import Geometry
    from .heldout import TEXT_ROWS
    from .kernels_here import attention_options
    from .models import open_models
    from .planner.types import Placement
    from .sampling.schedules import schedule
    from .streamed import StreamedDenoiser

    began = time.perf_counter()
    case, left = arguments["case"], arguments["left_seconds"]
    models = open_models(Path(arguments["checkpoint"]), choose_device(arguments["device"]))
    device = models.device  # with its number, which some calls insist on
    on_card = device.type == "cuda"
    forecast = _forecast(case, arguments["machine"], models)
    placement = Placement(**forecast["placement"])
    own = 0
    if on_card:
        _give_back(torch)
        own = _libraries_loaded(torch, device, context_bytes)
        limit_vram(device, case["vram_gib"], max(own, outside_bytes(forecast)))
    denoiser = StreamedDenoiser(
        models.checkpoint, tuple(step.distinct for step in schedule(8).steps()), placement, device,
        is_cancelled=context.is_cancelled, open_stream=False,
        kernels=attention_options(arguments["attention"]),
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
            denoiser, Geometry(case["width"], case["height"], case["frames"]),
            vram_gib=case["vram_gib"], ram_gib=case["ram_gib"], context=own,
            text_rows=TEXT_ROWS, repeats=case["repeats"],
            progress=lambda line: context.emit(Event("notice", PHASE, f"{case['name']}: {line}")),
            enough=lambda last: time.perf_counter() - began + last > left,
        )  # fmt: skip
        after = context_bytes(device) if on_card else 0
    except torch.OutOfMemoryError as short:
        used = torch.cuda.max_memory_reserved(device) + own
        raise MeasuredOverrun(PHASE, "vram", forecast["vram_peak_bytes"], used) from short
    finally:
        denoiser.close()
        if on_card:
            torch.cuda.set_per_process_memory_fraction(1.0, device)
    if placement.disk_blocks:  # the store has ended: its read-ahead would take a share of the disk
        row["disk_bytes_per_second"] = disk_rate(models.checkpoint, device, RATE_BLOCKS)
    row["vram_peak_bytes"] = row["vram_peak_bytes"] + max(0, after - own) if on_card else None
    return {
        **row,
        **({"context_after_bytes": after} if on_card else {}),
        "forecast": {name: forecast[name] for name in FORECAST},
        "terms": [term for term in forecast["terms"] if term["unit"] != "seconds"],
        "attention": arguments["attention"],
        "blocks": blocks,
        "kept_store": kept,
        "own_store": not shared,
        "link_bytes_per_second": arguments["machine"]["link_bytes_per_second"],
    }


def _forecast(case: Mapping[str, Any], machine: Mapping[str, Any], models: Any) -> dict[str, Any]:
    """The sampling phase of the plan for a case's caps, or of a given placement priced alone.

    Raises DoesNotFit.
    """
    from .forecast import forecast_for_run, phase_forecasts
    from .geometry import Geometry
    from .heldout import TEXT_ROWS, machine_from
    from .learning import machine_calibration
    from .meter import resident_bytes
    from .planner.plan import price_placement
    from .planner.types import Placement
    from .request import Request
    from .snapshot import cap_snapshot

    geometry = Geometry(case["width"], case["height"], case["frames"])
    request = Request(geometry, base_steps=8, two_pass=False, text_rows=TEXT_ROWS)
    here, facts = machine_from(machine), models.facts()
    if case["place"]:
        place = Placement(**case["place"], pinned_blocks=facts.blocks)
        rows = machine_calibration(here, models.folder)
        return price_placement(request, here, facts, rows, place).as_json()
    if models.device.type == "cuda":
        here = cap_snapshot(here, vram_gib=case["vram_gib"], ram_gib=case["ram_gib"])
    plan = forecast_for_run(
        request, here, facts, models.device.type, process_bytes=resident_bytes(),
        checkpoint=models.folder,
    )  # fmt: skip
    return dict(phase_forecasts(plan)[PHASE])


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
