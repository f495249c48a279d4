"""`lowpeak ...`: arguments in, engine called, answer out. Nothing is computed here.

Every command gives an Answer: a JSON document for `--json`, and the same in words. Standard output
carries the answer alone; messages go to standard error. Exit codes are those of engine/errors.py,
2 for bad arguments. The engine is imported inside the commands, so that `plan` and `--help` answer
without torch.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .engine.errors import Cancelled, LowpeakError, RequestError

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
    from .engine.forecast import Capacities, forecast, forecast_text

    request, notices = build_request(
        width=width, height=height, seconds=seconds, frames=frames, quality=quality,
        two_pass=two_pass, base_steps=base_steps, refine_steps=refine_steps,
    )  # fmt: skip
    capacities = Capacities.of(
        vram_gib=vram_gib, ram_gib=ram_gib, system=system, capability=capability,
        link_gbps=link_gbps, disk_gbps=disk_gbps, card=card,
    )  # fmt: skip
    document = forecast(request, capacities, checkpoint)
    document["notices"] = notices
    return Answer(document, forecast_text(document))


def main() -> None:
    """Console entry point."""
    raise SystemExit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code."""
    program = typer.main.get_command(app)
    try:
        code = program.main(list(arguments), prog_name="lowpeak", standalone_mode=False)
    except UsageError as wrong:
        print(f"lowpeak: {ascii_only(str(wrong) or 'bad arguments')}", file=sys.stderr)
        if "--json" in arguments:
            print(json.dumps(RequestError(str(wrong)).as_json()))
        return 2
    except (typer.Abort, KeyboardInterrupt):
        return Cancelled("start").exit_code
    return int(code or 0)
