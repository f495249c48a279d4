"""`lowpeak ...`: arguments in, engine called, answer out. Nothing is computed here.

Every command gives an Answer: a JSON document for `--json`, and the same in words. Standard output
carries the answer alone; messages go to standard error. Exit codes are those of engine/errors.py,
2 for bad arguments. The engine is imported inside the commands, so that `plan` and `--help` answer
without torch.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .engine.errors import Cancelled, CheckpointError, LowpeakError, RequestError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
DEFAULT_SECONDS = 10.0

app = typer.Typer(
    name="lowpeak",
    help="MiniMax H3 with Video DeltaNet on small cards: plan, generate, measure.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
models = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
bench = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
app.add_typer(bench, name="bench", help="Measure at real shapes; rows as JSON.")
app.add_typer(models, name="models", help="Model files: found, fetched, verified, converted.")


class NotBuilt(LowpeakError):
    """The command exists in the interface and has no body in this version."""


@dataclass(frozen=True)
class Answer:
    """What a command found. `document` is JSON-ready; `text` says the same to a person."""

    document: dict[str, Any]
    text: str
    exit_code: int = 0


def command(group: typer.Typer, name: str) -> Callable[[Callable[..., Answer]], Any]:
    """Register a function as a command that prints its Answer and returns its exit code."""

    def register(body: Callable[..., Answer]) -> Any:
        @functools.wraps(body)
        def answered(**options: Any) -> int:
            as_json = bool(options.get("as_json"))
            try:
                answer = body(**options)
            except KeyboardInterrupt:
                return report_error(Cancelled("start"), as_json=as_json)
            except LowpeakError as refused:
                return report_error(refused, as_json=as_json)
            print(json.dumps(answer.document) if as_json else answer.text)
            return answer.exit_code

        return group.command(name)(answered)

    return register


def report_error(error: LowpeakError, *, as_json: bool) -> int:
    """Say what went wrong; returns the exit code."""
    print(f"lowpeak: {type(error).__name__}: {ascii_only(str(error))}", file=sys.stderr)
    if as_json:
        fits = {"fits": False} if error.exit_code == 3 else {}
        print(json.dumps({**fits, **error.as_json()}))
    return error.exit_code


def ascii_only(text: str) -> str:
    """`text` for a console of any code page."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


# --- options -------------------------------------------------------------------------------------
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Width = Annotated[float, typer.Option(help="Pixels; snapped to a multiple of 32.")]
Height = Annotated[float, typer.Option(help="Pixels; snapped to a multiple of 32.")]
Seconds = Annotated[float | None, typer.Option(help="Length; default 10. Or give --frames.")]
Frames = Annotated[int | None, typer.Option(help="Length in frames, 24 a second, 17n+5.")]
QualityName = Annotated[str, typer.Option(help="light, medium, high or max.")]
TwoPass = Annotated[bool | None, typer.Option("--two-pass/--single-pass", help="Else by quality.")]
BaseSteps = Annotated[int | None, typer.Option(help="Evaluations of the first pass, 1..32.")]
RefineSteps = Annotated[int | None, typer.Option(help="Evaluations of the second pass, 1..31.")]
Checkpoint = Annotated[Path | None, typer.Option(help="Checkpoint folder.")]
VramGib = Annotated[float | None, typer.Option(help="Device memory to use, GiB.")]
RamGib = Annotated[float | None, typer.Option(help="Host memory to use, GiB.")]
System = Annotated[str | None, typer.Option(help="linux or windows; another machine's.")]
Capability = Annotated[str | None, typer.Option(help="Compute capability, such as 8.9.")]
LinkGbps = Annotated[float | None, typer.Option(help="Host to device, 10^9 bytes a second.")]
DiskGbps = Annotated[float | None, typer.Option(help="Disk reads, 10^9 bytes a second.")]
Folder = Annotated[Path | None, typer.Argument(help="Folder of model files.")]
Card = Annotated[str | None, typer.Option(help="A card of calibration/cards.toml.")]


def build_request(
    *,
    width: float,
    height: float,
    seconds: float | None,
    frames: int | None,
    **settings: Any,
) -> tuple[Any, list[str]]:
    """The Request of the size options, and a notice for each value that was snapped."""
    from .engine.geometry import plan_geometry
    from .engine.request import Request

    if seconds is None and frames is None:
        seconds = DEFAULT_SECONDS
    geometry, notices = plan_geometry(width, height, frames=frames, seconds=seconds)
    for notice in notices:
        print(f"lowpeak: {ascii_only(notice)}", file=sys.stderr)
    return Request(geometry=geometry, **settings), notices


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
    as_json: Json = False,
) -> Answer:
    """Forecast memory and time of a request, or say what would fit. Loads no weight."""
    from .engine.forecast import forecast, forecast_text, read_facts
    from .engine.snapshot import snapshot_from_options

    request, notices = build_request(
        width=width, height=height, seconds=seconds, frames=frames, quality=quality,
        two_pass=two_pass, base_steps=base_steps, refine_steps=refine_steps,
    )  # fmt: skip
    snapshot = snapshot_from_options(
        vram_gib, ram_gib, system, capability, link_gbps, disk_gbps, card
    )
    document = forecast(request, snapshot, read_facts(checkpoint))
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
    """Forecast on this machine as it is now."""
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
    document = forecast(request, snapshot, read_facts(checkpoint))
    document["notices"] = notices
    return Answer(document, forecast_text(document), 0 if document["fits"] else 3)


@command(app, "optimize")
def optimize(as_json: Json = False) -> Answer:
    """Measure this machine and keep the calibration of a validated run."""
    raise NotBuilt("optimize is not built yet: `lowpeak bench step` measures one placement")


# --- run -----------------------------------------------------------------------------------------
@command(app, "generate")
def generate(
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
    vram_gib: VramGib = None,
    ram_gib: RamGib = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    resume: Annotated[Path | None, typer.Option(help="V.request.json of an earlier run.")] = None,
    stop_after: Annotated[str | None, typer.Option(help="encode, first or sample.")] = None,
    keep_prompt: Annotated[bool, typer.Option(help="Keep the prompt in the report.")] = False,
    as_json: Json = False,
) -> Answer:
    """Make a video with sound: V.mp4, and V.request.json beside it."""
    from .engine.console import console_host, report_text
    from .engine.inputs import parse_loras, read_prompt, resumed_out
    from .engine.resume import read_request
    from .engine.run import RunOptions, run_request

    text = read_prompt(prompt, prompt_file, required=resume is None)
    notices: list[str] = []
    if resume is not None:
        request = read_request(resume, prompt=text, refine_steps=refine_steps)
    else:
        request, notices = build_request(
            width=width, height=height, seconds=seconds, frames=frames, quality=quality,
            two_pass=two_pass, base_steps=base_steps, refine_steps=refine_steps, prompt=text,
            seed=seed, first_frame=first_frame and str(first_frame),
            last_frame=last_frame and str(last_frame),
            references=tuple(map(str, reference or ())), loras=parse_loras(lora or ()),
        )  # fmt: skip
    options = RunOptions(
        checkpoint=find_checkpoint(checkpoint), out=resumed_out(out, resume), vram_gib=vram_gib,
        ram_gib=ram_gib, device=device, stop_after=stop_after, resume=resume,
        keep_prompt=keep_prompt,
    )  # fmt: skip
    with console_host(quiet=as_json) as host:
        report = run_request(request, options, host, tuple(notices))
    return Answer(report.as_json(), report_text(report, options.out))


@command(app, "demo")
def demo(
    out: Annotated[Path, typer.Option(help="Folder.")] = Path("out"),
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "cpu",
    as_json: Json = False,
) -> Answer:
    """One miniature request from prompt to MP4, on random weights."""
    from .engine.console import console_host
    from .engine.demo import run_demo

    with console_host(quiet=as_json) as host:
        document, text = run_demo(out, device, host)
    return Answer(document, text)


@command(app, "toy-checkpoint")
def toy_checkpoint(
    folder: Annotated[Path, typer.Argument(help="Created; must be empty.")],
    size: Annotated[str, typer.Option(help="tiny, block or full (22.5 GB).")] = "tiny",
    weight_format: Annotated[str, typer.Option("--format", help="A published layout.")] = (
        "edge-fp8-rowwise"
    ),
    seed: Annotated[int, typer.Option(help="Of the random weights.")] = 0,
    as_json: Json = False,
) -> Answer:
    """Write synthetic weights in a published layout."""
    from .engine.toy import write_toy

    document = write_toy(folder, size=size, weight_format=weight_format, seed=seed)
    return Answer(document, f"{folder}: {document['bytes'] / 1e9:.3f} GB, {size}, {weight_format}")


# --- benchmarks ----------------------------------------------------------------------------------
def _bench(name: str, help_text: str) -> None:
    """Register one benchmark; its body lives in engine/bench.py."""

    def body(
        checkpoint: Checkpoint = None,
        width: Width = 1344,
        height: Height = 768,
        frames: Annotated[int, typer.Option(help="17n+5.")] = 243,
        vram_gib: VramGib = None,
        ram_gib: RamGib = None,
        repeats: Annotated[int, typer.Option(help="Measured repetitions.")] = 5,
        as_json: Json = False,
    ) -> Answer:
        raise NotBuilt(f"bench {name} is not built yet")

    body.__doc__ = help_text
    command(bench, name)(body)


for _name, _help in {
    "step": "One sampling step under a placement.",
    "stream": "Blocks from disk and host to the device.",
    "encode": "The text encoder.",
    "decode": "The video decoder.",
    "grid": "The capacity heat maps.",
    "forecast": "Forecast against measurement.",
}.items():
    _bench(_name, _help)


# --- machine and files ---------------------------------------------------------------------------
@command(app, "doctor")
def doctor(
    probe: Annotated[bool, typer.Option("--probe", help="Measure link and disk.")] = False,
    as_json: Json = False,
) -> Answer:
    """This machine, its kernels with the reason each is in or out, versions, ComfyUI."""
    from .engine.doctor import doctor_text, examine

    document = examine(probe=probe)
    return Answer(document, doctor_text(document))


@command(models, "list")
def models_list(folder: Folder = None, as_json: Json = False) -> Answer:
    """What is needed, and what is here."""
    raise NotBuilt("models list is not built yet")


@command(models, "pull")
def models_pull(folder: Folder = None, as_json: Json = False) -> Answer:
    """Fetch what is missing, after its licence was accepted."""
    raise NotBuilt("models pull is not built yet")


@command(models, "verify")
def models_verify(folder: Folder = None, as_json: Json = False) -> Answer:
    """What is wrong with the files of a folder: file, tensor, expected, found."""
    raise NotBuilt("models verify is not built yet")


@command(models, "convert")
def models_convert(
    source: Annotated[Path, typer.Argument(help="OpenVDN folder or ComfyUI file.")],
    target: Annotated[Path, typer.Argument(help="Folder of the result.")],
    weight_format: Annotated[str, typer.Option("--format", help="An edge layout.")] = (
        "edge-fp8-rowwise"
    ),
    as_json: Json = False,
) -> Answer:
    """Write a checkpoint in an edge layout, block by block."""
    raise NotBuilt("models convert is not built yet")


@command(app, "inspect-lora")
def inspect_lora(
    file: Annotated[Path, typer.Argument(help="A LoRA file.")],
    checkpoint: Checkpoint = None,
    strength: Annotated[float, typer.Option(help="-4..4.")] = 1.0,
    as_json: Json = False,
) -> Answer:
    """What a LoRA binds to, target by target. Without a checkpoint only names are checked."""
    from .engine.lora.loading import inspect_lora as inspect
    from .engine.models import lora_shapes

    shapes = None if checkpoint is None else lora_shapes(checkpoint)
    report = inspect(file, shapes, strength=strength)
    return Answer(
        report.as_json(), report.table(), 0 if report.complete else CheckpointError.exit_code
    )


def find_checkpoint(given: Path | None) -> Path:
    """The checkpoint folder of the option, or of LOWPEAK_CHECKPOINT."""
    named = os.environ.get("LOWPEAK_CHECKPOINT")
    if given is None and not named:
        raise RequestError(
            "no checkpoint: give --checkpoint DIR, or make a miniature one with "
            "`lowpeak toy-checkpoint DIR`",
            field="checkpoint",
        )
    return given or Path(str(named))


def main() -> None:
    """Console entry point."""
    raise SystemExit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code."""
    program = typer.main.get_command(app)
    try:
        code = program.main(list(arguments), prog_name="lowpeak", standalone_mode=False)
    except UsageError as wrong:
        text = wrong.format_message() if hasattr(wrong, "format_message") else str(wrong)
        print(f"lowpeak: {ascii_only(text)}", file=sys.stderr)
        if "--json" in arguments:
            print(json.dumps(RequestError(text).as_json()))
        return 2
    except (typer.Abort, KeyboardInterrupt):
        return Cancelled("start").exit_code
    return int(code or 0)
