"""`lowpeak bench ...`: measurements at real shapes, one JSON row a case. Bodies in engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .cli_base import (
    Answer,
    Checkpoint,
    Device,
    Json,
    RamGib,
    VramGib,
    command,
    find_checkpoint,
)
from .engine.errors import RequestError

if TYPE_CHECKING:
    from .engine.geometry import Geometry

bench = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
Width = Annotated[int, typer.Option(help="Pixels, a multiple of 32.")]
Height = Annotated[int, typer.Option(help="Pixels, a multiple of 32.")]
Frames = Annotated[int, typer.Option(help="17n+5.")]
Repeats = Annotated[int, typer.Option(min=1, help="Measured repetitions after a warm-up.")]
TextRows = Annotated[int, typer.Option(min=1, help="Rows of the prompt.")]


def _checked(
    checkpoint: Path | None, device: str, width: int = 1344, height: int = 768, frames: int = 243
) -> tuple[Path, Geometry]:
    """Checkpoint and size; what is wrong with the options is said before PyTorch is imported."""
    from .engine.geometry import Geometry
    from .engine.options import check_device_name

    check_device_name(device)
    return find_checkpoint(checkpoint), Geometry(width, height, frames)


@command(bench, "step")
def bench_step(
    checkpoint: Checkpoint = None,
    width: Width = 1344,
    height: Height = 768,
    frames: Frames = 243,
    vram_gib: VramGib = None,
    ram_gib: RamGib = None,
    text_rows: TextRows = 500,
    repeats: Repeats = 5,
    device: Device = "auto",
    gemm: Annotated[
        str | None,
        typer.Option(help="int8-convrot, fp8-rowwise, fp8-tensor, storage, or another path."),
    ] = None,
    as_json: Json = False,
) -> Answer:
    """One sampling step as it is planned here, both memory caps honoured for real."""
    folder, geometry = _checked(checkpoint, device, width, height, frames)
    from .engine.bench_cases import Case, row_text, step_row

    case = Case(folder, geometry, vram_gib, ram_gib, device, repeats, gemm)
    row = step_row(case, text_rows)
    return Answer(row, row_text(row))


@command(bench, "forecast")
def bench_forecast(
    checkpoint: Checkpoint = None,
    width: Width = 1344,
    height: Height = 768,
    frames: Frames = 243,
    vram_gib: VramGib = None,
    ram_gib: RamGib = None,
    text_rows: TextRows = 500,
    repeats: Repeats = 3,
    device: Device = "auto",
    cases: Annotated[
        str | None,
        typer.Option(
            help="Kept cases instead, most wanted first: step, calibration, held-out, floor, all, "
            "or names."
        ),
    ] = None,
    attention: Annotated[str | None, typer.Option(help="Run the cases with this one.")] = None,
    out: Annotated[Path | None, typer.Option(help="Rows of the cases as they come.")] = None,
    budget_seconds: Annotated[float, typer.Option(help="For all cases together.")] = 300,
    published: Annotated[
        bool, typer.Option("--published", help="Forecasts of cards beside published times.")
    ] = False,
    as_json: Json = False,
) -> Answer:
    """A measured step beside its forecast, all of the kept cases, or published times."""
    if published:
        from .engine.published import plausibility_rows, plausibility_table

        rows = plausibility_rows()
        return Answer({"bench": "forecast", "rows": rows}, plausibility_table(rows))
    if cases is not None:
        return _forecast_cases(checkpoint, cases, out, budget_seconds, device, attention)
    if attention is not None or out is not None:
        raise RequestError("--attention and --out belong to --cases", field="cases")
    folder, geometry = _checked(checkpoint, device, width, height, frames)
    from .engine.bench_cases import Case, forecast_row, row_text

    case = Case(folder, geometry, vram_gib, ram_gib, device, repeats)
    row = forecast_row(case, text_rows)
    return Answer(row, row_text(row))


def _forecast_cases(
    checkpoint: Path | None,
    cases: str,
    out: Path | None,
    budget_seconds: float,
    device: str,
    attention: str | None,
) -> Answer:
    from .engine.heldout import Bench, run_cases
    from .engine.heldout_cases import choose_cases
    from .engine.heldout_table import held_out_table
    from .engine.options import check_attention_name, check_device_name

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    chosen = choose_cases(cases)
    check_device_name(device)
    if attention is not None:
        check_attention_name(attention)
    if out is not None and not out.parent.is_dir():
        raise RequestError(f"--out {out}: there is no folder {out.parent}; make it", field="out")
    folder = find_checkpoint(checkpoint)
    say(f"{len(chosen)} cases, about {sum(case.seconds for case in chosen):.0f} s")
    setting = Bench(folder, out, device, budget_seconds, say, attention=attention)
    rows = run_cases(setting, chosen)
    return Answer({"bench": "forecast", "rows": rows}, held_out_table(rows))


@command(bench, "stream")
def bench_stream(
    checkpoint: Checkpoint = None, device: Device = "auto", as_json: Json = False
) -> Answer:
    """Blocks from the disk by the store's own reader, and from host memory to the device."""
    folder = _checked(checkpoint, device)[0]
    from .engine.bench_cases import row_text, stream_row

    row = stream_row(folder, device)
    return Answer(row, row_text(row))


@command(bench, "encode")
def bench_encode(
    checkpoint: Checkpoint = None,
    text_rows: TextRows = 300,
    repeats: Repeats = 3,
    device: Device = "auto",
    as_json: Json = False,
) -> Answer:
    """The text encoder."""
    folder = _checked(checkpoint, device)[0]
    from .engine.bench_cases import row_text
    from .engine.bench_encode import encode_row

    row = encode_row(folder, device, text_rows, repeats)
    return Answer(row, row_text(row))


@command(bench, "decode")
def bench_decode(
    checkpoint: Checkpoint = None,
    width: Width = 1344,
    height: Height = 768,
    frames: Frames = 243,
    vram_gib: VramGib = None,
    ram_gib: RamGib = None,
    repeats: Repeats = 3,
    device: Device = "auto",
    as_json: Json = False,
) -> Answer:
    """The video decoder, without the muxer."""
    folder, geometry = _checked(checkpoint, device, width, height, frames)
    from .engine.bench_cases import Case, decode_row, row_text

    case = Case(folder, geometry, vram_gib, ram_gib, device, repeats)
    row = decode_row(case)
    return Answer(row, row_text(row))


@command(bench, "grid")
def bench_grid(
    width: Width = 1344,
    height: Height = 768,
    frames: Frames = 243,
    card: Annotated[str, typer.Option(help="Whose rates.")] = "h200",
    as_json: Json = False,
) -> Answer:
    """The capacity grid: seconds a step for 8 to 32 GiB of VRAM and of RAM."""
    from .engine.capacity_grid import grid_rows, grid_text
    from .engine.geometry import Geometry

    rows = grid_rows(Geometry(width, height, frames), card)
    return Answer({"bench": "grid", "card": card, "rows": rows}, grid_text(rows))


@command(bench, "kernels")
def bench_kernels(
    only: Annotated[
        list[str] | None, typer.Option("--op", help="An op of kernels/tuning.toml; all without.")
    ] = None,
    as_json: Json = False,
) -> Answer:
    """Launch parameters of our kernels, timed on this card; the best as rows of tuning.toml."""
    from .engine.snapshot import read_snapshot

    if read_snapshot().capability is None:
        raise RequestError("launch parameters are measured on a card with Triton", field="device")
    from .engine.kernels_here import tune_kernels

    rows, text = tune_kernels(tuple(only or ()), lambda line: typer.echo(line, err=True))
    return Answer({"bench": "kernels", "rows": rows}, text)
