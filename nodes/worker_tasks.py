"""Inside a worker process: one stage of a graph. Its inputs and results are parcels in a folder.

Knows no ComfyUI; the worker is a bare interpreter that loaded the package by path.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..engine.events import Event
from ..engine.sampling.preview import PreviewPace
from ..engine.worker.child import WorkerContext
from ..engine.worker.protocol import request_from_json
from .engine_seam import Conditions, Latents, Pictures
from .handles import model_from_json
from .parcel import FIRST, INPUT, PREVIEW, RESULT, read_parcel, write_parcel
from .warm import KEPT, KeepingEngine, Warm


class _StageHost:
    """The worker's host, as a stage of a graph needs it."""

    def __init__(self, context: WorkerContext, folder: Path, *, previews: bool) -> None:
        self._context, self._folder, self._previews = context, folder, previews
        self._pace = PreviewPace(time.monotonic)

    def is_cancelled(self) -> bool:
        return self._context.is_cancelled()

    def release_memory(self, need_bytes: int) -> None:
        """The parent made room; what this process keeps is for the stage that begins."""

    def emit(self, event: Event) -> None:
        self._context.emit(event)

    def describe(self, request: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
        """The parent planned too and has told already."""

    def preview(self, make_latents: Callable[[], Any]) -> None:
        """Leave the middle of the clip where the parent looks after each event."""
        if self._previews and self._pace.is_due():
            latents = make_latents()
            middle = latents.shape[1] // 2
            write_parcel(self._folder, PREVIEW, latents[:, middle : middle + 1])


def run_stage(arguments: Mapping[str, Any], context: WorkerContext) -> None:
    """Run `stage` (encode, sample, refine or decode); the result is the parcel RESULT."""
    warm = context.kept.get(KEPT)
    if warm is None:
        warm = Warm()
        context.keep(KEPT, warm, warm.close)
    folder = Path(arguments["folder"])
    engine = KeepingEngine(lambda: arguments["device"], warm, keep=bool(arguments.get("keep_warm")))
    model = model_from_json(arguments["model"])
    given = read_parcel(folder, INPUT)
    host = _StageHost(context, folder, previews=arguments["previews"])
    if arguments["stage"] == "decode":
        decoded = engine.decode(
            model, Latents(**given["latents"]), Path(arguments["out"]), host,
            with_sound=arguments["with_sound"],
        )  # fmt: skip
        write_parcel(folder, RESULT, vars(decoded))
        return
    request = request_from_json(arguments["request"])
    if arguments["stage"] == "encode":
        made = engine.encode(model, request, _pictures(given["pictures"]), host)
        write_parcel(folder, RESULT, vars(made))
        return
    conditions = Conditions(**given["conditions"])

    def keep_first(latents: Latents) -> None:
        write_parcel(folder, FIRST, vars(latents))

    if arguments["stage"] == "refine":
        first = Latents(**given["first"])
        sampled = engine.refine(model, request, conditions, first, host)
    else:
        sampled = engine.sample(model, request, conditions, host, keep_first)
    made = {"latents": vars(sampled.latents), "report": sampled.report, "held": warm.held}
    write_parcel(folder, RESULT, made)


def _pictures(given: Mapping[str, Any]) -> Pictures:
    rows = ("images", "videos", "sounds")
    return Pictures(**{**given, **{name: tuple(map(_tuple, given[name])) for name in rows}})


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
