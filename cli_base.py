"""What every command shares: options, the Answer, exit codes, and how an error is said.

Standard output carries the answer alone, in words or, with --json, as one document; messages go to
standard error. All own text is ASCII.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .engine.errors import Cancelled, LowpeakError, RequestError

DEFAULT_SECONDS = 10.0


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
            """Run the command, print what it found or why it refused; returns the exit code."""
            as_json = bool(options.get("as_json"))
            try:
                answer = body(**options)
            except KeyboardInterrupt:
                return report_error(Cancelled(f"`{name}`"), as_json=as_json)
            except LowpeakError as refused:
                return report_error(refused, as_json=as_json)
            except OSError as refused:  # a path that cannot be read or made; no traceback for that
                return report_error(RequestError(str(refused)), as_json=as_json)
            text = json.dumps(answer.document) if as_json else printable(answer.text)
            return answer.exit_code if show(text) else 1

        return group.command(name)(answered)

    return register


def report_error(error: LowpeakError, *, as_json: bool) -> int:
    """Say what went wrong; returns the exit code."""
    print(f"lowpeak: {type(error).__name__}: {ascii_only(str(error))}", file=sys.stderr)
    if as_json:
        fits = {"fits": False} if error.exit_code == 3 else {}
        show(json.dumps({**fits, **error.as_json()}))
    return error.exit_code


def show(text: str) -> bool:
    """Print to standard output; False, and a word on standard error, where nobody takes it."""
    try:
        print(text, flush=True)
    except OSError as refused:  # a full disk, or a reader that has gone
        print(f"lowpeak: standard output cannot be written: {refused.strerror}", file=sys.stderr)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (the interpreter flushes it at its end)
        return False
    return True


def ascii_only(text: str) -> str:
    """`text` for a console of any code page."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


def printable(text: str) -> str:
    """`text` for standard output as it is encoded here: paths may hold letters that it lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


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
Format = Annotated[str, typer.Option("--format", help="A published layout.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Folder = Annotated[Path | None, typer.Argument(help="Folder of model files.")]
Card = Annotated[str | None, typer.Option(help="A card of calibration/cards.toml.")]


def say(notices: Iterable[str]) -> None:
    """Notices as lines on standard error."""
    for notice in notices:
        print(f"lowpeak: {ascii_only(notice)}", file=sys.stderr)


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
    say(notices)
    return Request(geometry=geometry, **settings), notices


def written(context: typer.Context, names: Iterable[str]) -> dict[str, Any]:
    """Options of `names` that stand on the command line, with their values; no default is one."""
    return {
        name: context.params[name]
        for name in names
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }


def find_checkpoint(given: Path | None) -> Path:
    """The checkpoint folder of the option, or of LOWPEAK_CHECKPOINT; it is there."""
    named = os.environ.get("LOWPEAK_CHECKPOINT")
    if given is None and not named:
        raise RequestError(
            "no checkpoint: give --checkpoint DIR, or make a miniature one with "
            "`lowpeak toy-checkpoint DIR`",
            field="checkpoint",
        )
    return check_checkpoint(given or Path(str(named)))


def check_checkpoint(folder: Path) -> Path:
    """`folder`, or CheckpointError when nothing is there."""
    from .engine.options import check_checkpoint as check

    return check(folder)
