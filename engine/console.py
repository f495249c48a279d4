"""The command line as a host: progress and notices on standard error, Ctrl-C as a request to stop.

Standard output belongs to results. The first Ctrl-C asks the engine to stop at the next block
border; the second one interrupts at once. Bars appear only on a terminal, and only for a phase that
has gone on for two seconds, so that short work leaves no flicker. All own text is ASCII.
"""

from __future__ import annotations

import base64
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from .errors import LowpeakError, SaveFailed
from .events import Event
from .files import RunFiles, replacing
from .units import format_gib, format_seconds

BAR_AFTER_SECONDS = 2.0
FileProgress = Callable[[int, int, str], None]  # done, all, name


class ConsoleHost:
    """Shows events on standard error. `quiet` leaves only notices. preview: a JPEG that is
    rewritten with every preview picture."""

    def __init__(self, *, quiet: bool = False, preview: Path | None = None) -> None:
        self._preview = preview
        self._bars_wanted = not quiet and sys.stderr.isatty()
        self._quiet = quiet
        self._stop = False
        self._progress: Any = None
        self._task: Any = None
        self._phase = ""
        self._phase_began_seconds = 0.0

    def is_cancelled(self) -> bool:
        """True after the first Ctrl-C."""
        return self._stop

    def cancel(self) -> None:
        """Ask the engine to stop."""
        self._stop = True

    def release_memory(self, need_bytes: int) -> None:
        """A console owns no device memory."""

    def emit(self, event: Event) -> None:
        """Show one event."""
        if event.kind == "preview":
            self._show_preview(event)
            return
        if event.phase != self._phase:
            self._end_bar()
            self._phase, self._phase_began_seconds = event.phase, time.monotonic()
        if event.kind == "progress":
            self._show_progress(event)
        elif event.kind == "notice":
            self._say(event.message)
        elif event.kind == "measured" and not self._quiet:
            self._end_bar()
            self._say(measured_line(event))

    def close(self) -> None:
        """Take the bar away."""
        self._end_bar()

    def _show_preview(self, event: Event) -> None:
        """Write the picture; the first that cannot be written is the last, the run goes on."""
        if self._preview is None:
            return
        try:
            with replacing(self._preview) as partial:
                partial.write_bytes(base64.b64decode(event.picture))
        except SaveFailed as failure:
            self._say(f"no more previews: {failure.path}: {failure.detail}")
            self._preview = None

    def _show_progress(self, event: Event) -> None:
        lasted_seconds = time.monotonic() - self._phase_began_seconds
        if not self._bars_wanted or event.steps is None or lasted_seconds < BAR_AFTER_SECONDS:
            return
        total = event.steps or None  # 0: nobody knows yet, the bar only shows that work goes on
        label = f"{event.phase} {ascii_name(event.message)}".rstrip()
        if self._progress is None:
            from rich.console import Console
            from rich.progress import Progress

            self._progress = Progress(console=Console(stderr=True), transient=True)
            self._progress.start()
            self._task = self._progress.add_task(label, total=total)
        self._progress.update(self._task, completed=event.step or 0, total=total, description=label)

    def _end_bar(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = self._task = None

    def _say(self, text: str) -> None:
        if text:
            print(text, file=sys.stderr, flush=True)


def ascii_name(name: str, most: int = 32) -> str:
    """A file's name for a bar: ASCII, its end when it is long."""
    plain = name.encode("ascii", "replace").decode("ascii")
    return plain if len(plain) <= most else f"...{plain[3 - most :]}"


def measured_line(event: Event) -> str:
    """'decode  3.20 s, VRAM 1.20 GiB, RAM 0.80 GiB': what a phase took."""
    parts = [format_seconds(event.seconds)] if event.seconds is not None else []
    if event.vram_peak_bytes:
        parts.append(f"VRAM {format_gib(event.vram_peak_bytes)}")
    if event.ram_peak_bytes:
        parts.append(f"RAM {format_gib(event.ram_peak_bytes)}")
    return f"{event.phase:<12} {', '.join(parts)}"


@contextmanager
def console_host(*, quiet: bool = False, preview: Path | None = None) -> Iterator[ConsoleHost]:
    """A host whose first Ctrl-C cancels and whose second one interrupts; handlers are put back."""
    host = ConsoleHost(quiet=quiet, preview=preview)

    def interrupt(number: int, frame: FrameType | None) -> None:
        if host.is_cancelled():
            raise KeyboardInterrupt
        host.cancel()
        print("stopping at the next block; Ctrl-C again stops at once", file=sys.stderr)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield host
    finally:
        signal.signal(signal.SIGINT, before)
        host.close()


@contextmanager
def hint_to_resume(out: Path, resume: Path | None = None) -> Iterator[None]:
    """Say how to go on when the body fails and left something to go on from.

    What lay there before is another run's, unless it is the one that is resumed.
    """
    files = RunFiles(out)
    own = resume is not None and RunFiles.of(resume).report == files.report
    before = _written(files.report)
    try:
        yield
    except LowpeakError:
        now = _written(files.report)
        if now is not None and (own or now != before) and files.kept():
            say(f"to go on from what was kept: lowpeak generate --resume {files.report} ...")
        raise


def _written(file: Path) -> tuple[int, int] | None:
    """What tells a file from one that was written anew in its place; None without a file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def report_text(report: Mapping[str, Any], out: Path) -> str:
    """What a run made, for a terminal. report: as in V.request.json."""
    lines = [f"{kind}: {out.with_name(name)}" for kind, name in report["files"].items()]
    lines.append(f"report: {RunFiles(out).report}")
    if report["latents_sha256"]:
        lines.append(f"latents sha256: {report['latents_sha256']}")
    return "\n".join(lines)


def say(text: str) -> None:
    """A message for a person, on standard error."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def console_progress(
    what: str, *, quiet: bool = False
) -> Iterator[Callable[[int, int, str], None]]:
    """A progress function (done, all, name) for long file work, drawn like that of a run."""
    host = ConsoleHost(quiet=quiet)
    try:
        yield lambda done, whole, name: host.emit(
            Event("progress", what, name, step=done, steps=whole)
        )
    finally:
        host.close()
