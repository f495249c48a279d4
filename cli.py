"""`lowpeak ...`: arguments in, engine called, answer out. Nothing is computed here.

What commands share is in cli_base.py; the groups `models` and `bench` are in cli_models.py and
cli_bench.py. The engine is imported inside the commands, so that `plan` and `--help` answer without
torch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .cli_base import (
    Answer,
    BaseSteps,
    Capability,
    Card,
    Checkpoint,
    Device,
    DiskGbps,
    Frames,
    Height,
    Json,
    LinkGbps,
    QualityName,
    RamGib,
    RefineSteps,
    Seconds,
    System,
    TwoPass,
    VramGib,
    Width,
    ascii_only,
    build_request,
    check_checkpoint,
    command,
    find_checkpoint,
    say,
    show,
    written,
)
from .cli_bench import bench
from .cli_models import models
from .engine.errors import Cancelled, CheckpointError, RequestError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="lowpeak",
    help="MiniMax H3 with Video DeltaNet on small cards: plan, generate, measure.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(bench, name="bench", help="Measure at real shapes; rows as JSON.")
app.add_typer(models, name="models", help="Model files: found, fetched, verified, converted.")


# --- plan ----------------------------------------------------------------------------------------
@command(app, "plan")
def plan(
    vram_gib: VramGib = None,
    ram_gib: RamGib = None,
    width: Width = 1344,
    height: Height = 768,
    seconds: Seconds = None,
    frames: Frames = None,
    quality: QualityName = "light",
    two_pass: TwoPass = None,
    base_steps: BaseSteps = None,
    refine_steps: RefineSteps = None,
    checkpoint: Checkpoint = None,
    system: System = None,
    capability: Capability = None,
    link_gbps: LinkGbps = None,
    disk_gbps: DiskGbps = None,
    card: Card = None,
    lora_rank: Annotated[
        list[int] | None, typer.Option(help="Rank of a LoRA to count; repeatable.")
    ] = None,
    as_json: Json = False,
) -> Answer:
    """Forecast memory and time of a request, or say what would fit. Loads no weight."""
    from .engine.forecast import forecast, forecast_text, read_facts
    from .engine.request import LoraChoice
    from .engine.snapshot import snapshot_from_options

    request, notices = build_request(
        width=width, height=height, seconds=seconds, frames=frames, quality=quality,
        two_pass=two_pass, base_steps=base_steps, refine_steps=refine_steps,
    )  # fmt: skip
    loras = (LoraChoice(f"LoRA {at + 1}", rank=rank) for at, rank in enumerate(lora_rank or ()))
    request = replace(request, loras=tuple(loras))
    snapshot = snapshot_from_options(
        vram_gib, ram_gib, system, capability, link_gbps, disk_gbps, card
    )
    if snapshot.vram_total_bytes == 0:
        raise RequestError(
            "no CUDA GPU was found here: name one with --vram-gib or --card", field="vram_gib"
        )
    facts = read_facts(checkpoint and check_checkpoint(checkpoint))
    document = forecast(request, snapshot, facts)
    document["notices"] = notices
    return Answer(document, forecast_text(document), 0 if document["fits"] else 3)


@command(app, "predict")
def predict(
    width: Width = 1344,
    height: Height = 768,
    seconds: Seconds = None,
    frames: Frames = None,
    quality: QualityName = "light",
    two_pass: TwoPass = None,
    base_steps: BaseSteps = None,
    refine_steps: RefineSteps = None,
    checkpoint: Checkpoint = None,
    vram_gib: VramGib = None,
    ram_gib: RamGib = None,
    as_json: Json = False,
) -> Answer:
    """Forecast on this machine as it is now, with what its own runs have taught."""
    from .engine.forecast import forecast, forecast_text, read_facts
    from .engine.snapshot import cap_snapshot, read_snapshot

    request, notices = build_request(
        width=width, height=height, seconds=seconds, frames=frames, quality=quality,
        two_pass=two_pass, base_steps=base_steps, refine_steps=refine_steps,
    )  # fmt: skip
    snapshot = cap_snapshot(read_snapshot(), vram_gib=vram_gib, ram_gib=ram_gib)
    if snapshot.capability is None:
        raise RequestError(
            "no CUDA GPU was found here; ask about another machine with `lowpeak plan --vram-gib`",
            field="vram_gib",
        )
    facts = read_facts(checkpoint and check_checkpoint(checkpoint))
    document = forecast(request, snapshot, facts, learned=True, checkpoint=checkpoint)
    say(document["notices"])  # the request's own are said
    document["notices"] = [*notices, *document["notices"]]
    return Answer(document, forecast_text(document), 0 if document["fits"] else 3)


@command(app, "optimize")
def optimize(
    width: Width = 1344,
    height: Height = 768,
    seconds: Seconds = None,
    frames: Frames = None,
    quality: QualityName = "light",
    two_pass: TwoPass = None,
    base_steps: BaseSteps = None,
    refine_steps: RefineSteps = None,
    checkpoint: Checkpoint = None,
    vram_gib: VramGib = None,
    ram_gib: RamGib = None,
    most: Annotated[int, typer.Option(min=1, help="Placements to try for each pass.")] = 3,
    kernels: Annotated[
        bool | None, typer.Option(help="Probe kernels first; default where they never were.")
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> Answer:
    """Measure link and disk, run the best placements whole, keep it unless bits differ."""
    from .engine.optimize import optimize_here, optimize_text
    from .engine.options import check_device_name

    check_device_name(device)
    request, _ = build_request(
        width=width, height=height, seconds=seconds, frames=frames, quality=quality,
        two_pass=two_pass, base_steps=base_steps, refine_steps=refine_steps,
    )  # fmt: skip
    document = optimize_here(
        request, find_checkpoint(checkpoint), device, vram_gib=vram_gib, ram_gib=ram_gib, most=most,
        kernels=kernels, progress=lambda line: print(line, file=sys.stderr, flush=True),
    )  # fmt: skip
    return Answer(document, optimize_text(document), 0 if document["stored"] else 1)


# --- run -----------------------------------------------------------------------------------------
@command(app, "generate")
def generate(
    context: typer.Context,
    out: Annotated[Path | None, typer.Option(help="The video, V.mp4.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Taken verbatim; may be empty.")] = None,
    prompt_file: Annotated[Path | None, typer.Option(help="UTF-8 text instead.")] = None,
    checkpoint: Checkpoint = None,
    width: Width = 1344,
    height: Height = 768,
    seconds: Seconds = None,
    frames: Frames = None,
    quality: QualityName = "light",
    two_pass: TwoPass = None,
    base_steps: BaseSteps = None,
    refine_steps: RefineSteps = None,
    seed: Annotated[int, typer.Option(help="0..2^53-1.")] = 0,
    first_frame: Annotated[Path | None, typer.Option(help="A picture.")] = None,
    last_frame: Annotated[Path | None, typer.Option(help="A picture.")] = None,
    reference: Annotated[list[Path] | None, typer.Option(help="Repeatable.")] = None,
    lora: Annotated[list[str] | None, typer.Option(help="FILE[:STRENGTH]; repeatable.")] = None,
    lora_mode: Annotated[str, typer.Option(help="auto, merged or online.")] = "auto",
    vram_gib: VramGib = None,
    ram_gib: RamGib = None,
    device: Device = "auto",
    resume: Annotated[Path | None, typer.Option(help="V.request.json of an earlier run.")] = None,
    stop_after: Annotated[str | None, typer.Option(help="encode, first or sample.")] = None,
    codec: Annotated[
        str | None,
        typer.Option(
            help="h264, h264_nvenc, webm, or png: --out is then a folder. Else by --out's ending."
        ),
    ] = None,
    preview: Annotated[
        Path | None, typer.Option(help="A JPEG, rewritten while sampling, twice a second at most.")
    ] = None,
    keep_prompt: Annotated[bool, typer.Option(help="Keep the prompt in the report.")] = False,
    workers: Annotated[
        bool | None,
        typer.Option("--workers/--in-process", help="A process a stage; default on a card."),
    ] = None,
    as_json: Json = False,
) -> Answer:
    """Make a video with sound: V.mp4, and V.request.json beside it."""
    from dataclasses import replace

    from .engine.console import console_host, hint_to_resume, report_text
    from .engine.inputs import choose_codec, named_files, read_prompt, resumed_out
    from .engine.launch import generate as launch
    from .engine.options import SUFFIXES, RunOptions, check_files, check_outputs
    from .engine.resume import read_request
    from .engine.resumed import SETTINGS, check_settings

    text = read_prompt(prompt, prompt_file, required=resume is None)
    notices: list[str] = []
    named = named_files(first_frame, last_frame, reference, lora)
    if resume is not None:
        saved = read_request(resume, prompt=text, refine_steps=refine_steps)
        check_settings(saved, written(context, SETTINGS))
        request = replace(saved, **named)
    else:
        request, notices = build_request(
            width=width, height=height, seconds=seconds, frames=frames, quality=quality,
            two_pass=two_pass, base_steps=base_steps, refine_steps=refine_steps, prompt=text or "",
            seed=seed, **named,
        )  # fmt: skip
    codec = choose_codec(codec, out, resume)
    options = RunOptions(
        checkpoint=find_checkpoint(checkpoint), vram_gib=vram_gib,
        out=resumed_out(out, resume, SUFFIXES.get(codec, ".mp4")), ram_gib=ram_gib,
        device=device, stop_after=stop_after, resume=resume,
        keep_prompt=keep_prompt, prompt_given=text is not None, lora_mode=lora_mode,
        previews=preview is not None, codec=codec,
    )  # fmt: skip
    check_files(request, options)
    check_outputs(request, options, preview)
    hint = hint_to_resume(options.out, resume)
    with console_host(quiet=as_json, preview=preview) as host, hint:
        report = launch(request, options, host, tuple(notices), workers=workers)
    return Answer(report, report_text(report, options.out))


@command(app, "demo")
def demo(
    out: Annotated[Path, typer.Option(help="Folder.")] = Path("out"),
    prompt: Annotated[str, typer.Option(help="Of the miniature's world; docs/miniature.md.")] = "",
    device: Device = "cpu",
    as_json: Json = False,
) -> Answer:
    """One request to the miniature, from prompt to MP4."""
    from .engine.console import console_host
    from .engine.options import check_device_name, make_folder

    check_device_name(device)
    make_folder(out)
    from .engine.demo import run_demo

    with console_host(quiet=as_json) as host:
        document, text = run_demo(out, device, host, prompt)
    return Answer(document, text)


@command(app, "toy-checkpoint")
def toy_checkpoint(
    folder: Annotated[Path, typer.Argument(help="Created; refused where one is finished.")],
    size: Annotated[str, typer.Option(help="tiny, block or full (22.5 GB).")] = "tiny",
    weight_format: Annotated[str, typer.Option("--format", help="A published layout.")] = (
        "edge-fp8-rowwise"
    ),
    seed: Annotated[int, typer.Option(help="Of the random weights.")] = 0,
    device: Annotated[str, typer.Option(help="Makes the weights; cuda is fast for full.")] = "cpu",
    blocks: Annotated[int | None, typer.Option(min=1, help="Instead of the size's own.")] = None,
    as_json: Json = False,
) -> Answer:
    """Write synthetic weights in a published layout."""
    from .engine.checkpoint.toy_sizes import check_toy
    from .engine.options import check_device_name, make_folder

    check_toy(size, weight_format)
    check_device_name(device)
    make_folder(folder)
    from .engine.device import choose_device
    from .engine.toy import write_toy

    document = write_toy(
        folder, size=size, weight_format=weight_format, seed=seed,
        device=choose_device(device).type, blocks=blocks,
    )  # fmt: skip
    return Answer(document, f"{folder}: {document['bytes'] / 1e9:.3f} GB, {size}, {weight_format}")


# --- machine and files ---------------------------------------------------------------------------
@command(app, "doctor")
def doctor(
    probe: Annotated[
        bool, typer.Option("--probe", help="Judge and time kernels; measure link and disk.")
    ] = False,
    rates: Annotated[bool, typer.Option("--rates", help="Measure link and disk.")] = False,
    checkpoint: Checkpoint = None,
    as_json: Json = False,
) -> Answer:
    """This machine, its kernels with the reason each is in or out, versions, ComfyUI."""
    from .engine.doctor import doctor_text, examine

    if checkpoint is not None:
        check_checkpoint(checkpoint)
    document = examine(
        probe=probe, rates=rates, checkpoint=checkpoint,
        progress=lambda line: typer.echo(line, err=True),
    )  # fmt: skip
    return Answer(document, doctor_text(document))


@command(app, "inspect-lora")
def inspect_lora(
    file: Annotated[Path, typer.Argument(help="A LoRA file.")],
    checkpoint: Checkpoint = None,
    strength: Annotated[float, typer.Option(help="-4..4.")] = 1.0,
    as_json: Json = False,
) -> Answer:
    """What a LoRA binds to, target by target. Without a checkpoint only names are checked."""
    from .engine.lora.header import read_header

    read_header(file)  # what is no LoRA file is said before PyTorch is imported
    if checkpoint is not None:
        check_checkpoint(checkpoint)
    from .engine.lora.loading import inspect_lora as inspect
    from .engine.models import lora_shapes

    shapes = None if checkpoint is None else lora_shapes(checkpoint)
    report = inspect(file, shapes, strength=strength)
    return Answer(
        report.as_json(), report.table(), 0 if report.complete else CheckpointError.exit_code
    )


def main() -> None:
    """Console entry point."""
    raise SystemExit(run(sys.argv[1:]))


def _only_what_is_asked(arguments: Sequence[str]) -> typer.Typer:
    """The app with the one command that the arguments name; whole for help and for mistakes.

    Typer evaluates every option of every command it is given, which costs more than a plan does.
    """
    named = [item for item in app.registered_commands if arguments and item.name == arguments[0]]
    if not named:
        return app
    small = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    small.callback()(lambda: None)  # one command alone would lose its name
    small.registered_commands = named
    return small


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code."""
    program = typer.main.get_command(_only_what_is_asked(arguments))
    try:
        code = program.main(list(arguments), prog_name="lowpeak", standalone_mode=False)
    except UsageError as wrong:
        text = wrong.format_message() if hasattr(wrong, "format_message") else str(wrong)
        if not arguments:  # the whole help is the message
            text = "give a command; `lowpeak --help` lists them"
        print(f"lowpeak: {ascii_only(text)}", file=sys.stderr)
        if "--json" in arguments:
            show(json.dumps(RequestError(text).as_json()))
        return 2
    except (typer.Abort, KeyboardInterrupt):
        return Cancelled("start").exit_code
    return int(code or 0)
