"""The engine of a graph: facts and plans here, heavy stages in a worker process each.

ComfyUI's process owns none of our weights: when a node ends its worker has ended, so its memory is
back, an out-of-memory or a crash cannot take ComfyUI along, and stop always works. After an
out-of-memory a stage is tried again in a fresh process with a smaller budget (worker/ladder.py); a
first pass that was finished is not sampled again.

Where the user allows it, a sampling worker stays with its blocks for the next run of the same model
(warm.py). It counts as free memory in every plan, and leaves when that memory is needed.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..engine.errors import Cancelled, DoesNotFit, Shortage
from ..engine.events import Event, Host
from ..engine.planner.types import HardwareSnapshot
from ..engine.request import Request
from ..engine.worker.attempts import tell_next, told
from ..engine.worker.ladder import Attempted, next_try
from ..engine.worker.protocol import request_to_json
from ..engine.worker.supervisor import TaskFailed, Worker
from .engine_seam import Conditions, Decoded, Latents, Pictures, Sampled
from .handles import ModelHandle, model_to_json
from .local_engine import LocalEngine, decode_request
from .parcel import FIRST, INPUT, PREVIEW, RESULT, read_parcel, write_parcel
from .warm import WARM_SECONDS, WarmWorker, warm_key, with_held

STAGE_TASK = ".nodes.worker_tasks:run_stage"
WARM_STAGES = ("sample", "refine")
STAGE_PHASE = {"encode": "encode", "sample": "sample_high", "refine": "sample_high",
               "decode": "decode"}  # fmt: skip
ENDING_SECONDS = 30.0  # for a worker that was ended to be gone
LIGHTEST = 0.7  # of the budget that failed twice; the planner refuses what cannot be done with it


class WorkerEngine(LocalEngine):
    """A LocalEngine whose stages run elsewhere. start: makes a worker; scratch: parcels' folder."""

    def __init__(
        self,
        device: Callable[[], str] = lambda: "auto",
        *,
        start: Callable[[], Worker] = Worker,
        scratch: Callable[[], Path | None] = lambda: None,
    ) -> None:
        super().__init__(device)
        self._start, self._scratch = start, scratch
        self._warm: WarmWorker | None = None
        self._ending: list[threading.Thread] = []
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None

    def encode(
        self, model: ModelHandle, request: Request, pictures: Pictures, host: Host
    ) -> Conditions:
        """Prompt and keyframes."""
        self._make_room(host, model, request, "encode")
        made = self._stage("encode", model, request, {"pictures": vars(pictures)}, host)
        rows = {name: tuple(made[name]) for name in ("keyframes", "references")}
        return Conditions(**{**made, **rows})

    def sample(
        self, model: ModelHandle, request: Request, conditions: Conditions, host: Any,
        keep_first: Callable[[Latents], None],
    ) -> Sampled:  # fmt: skip
        """Plan here, then sample there. DoesNotFit before a process is started."""
        self._plan(model, request, host)
        given = {"conditions": vars(conditions)}
        kept: list[Latents] = []

        def keep(latents: Latents) -> None:
            kept.append(latents)
            keep_first(latents)

        made = self._stage("sample", model, request, given, host, keep_first=keep)
        return Sampled(Latents(**made["latents"]), kept[-1] if kept else None, made["report"])

    def refine(
        self, model: ModelHandle, request: Request, conditions: Conditions, first: Latents,
        host: Any,
    ) -> Sampled:  # fmt: skip
        """The second pass alone."""
        self._plan(model, request, host)
        given = {"conditions": vars(conditions), "first": vars(first)}
        made = self._stage("refine", model, request, given, host)
        return Sampled(Latents(**made["latents"]), first, made["report"])

    def decode(
        self, model: ModelHandle, latents: Latents, out: Path, host: Host, *, with_sound: bool
    ) -> Decoded:
        """Frames streamed into `out`."""
        self._make_room(host, model, decode_request(latents), "decode")
        given = {"latents": vars(latents)}
        made = self._stage(
            "decode", model, None, given, host, out=str(out), with_sound=with_sound
        )  # fmt: skip
        return Decoded(**{**made, "file": Path(made["file"])})

    def release(self) -> int:
        """End a warm worker; gives the device bytes that come back."""
        with self._lock:
            warm = self._taken(None)
            if warm is None:
                return 0
            warm.worker.close()
            return warm.held[0]

    def held_bytes(self) -> tuple[int, int]:
        """(device, host) bytes of a warm worker."""
        warm = self._warm
        return (0, 0) if warm is None else warm.held

    def _plan(self, model: ModelHandle, request: Request, host: Any) -> None:
        """Make room, plan, tell the host. Raises DoesNotFit."""
        if self._warm is not None and self._warm.key != warm_key(model, self._device_type()):
            self.release()
        self._make_room(host)
        plan = self.forecast(request, model, {"brief": True})
        host.describe(request.as_json(), plan)
        if not plan["fits"]:
            keys = ("axis", "phase", "need_bytes", "have_bytes")
            short = [Shortage(**{key: item[key] for key in keys}) for item in plan["short"]]
            raise DoesNotFit(short, plan["fits_instead"])

    def _make_room(
        self, host: Host, model: ModelHandle | None = None, request: Request | None = None,
        phase: str = "",
    ) -> None:  # fmt: skip
        """ComfyUI's own models leave the device before a worker enters it, and a warm worker does
        where this stage could not stand beside it."""
        _check(host)
        for thread in self._ending:
            thread.join(ENDING_SECONDS)
        self._ending.clear()
        host.release_memory(self._snapshot().vram_total_bytes)
        self._machine = None  # what was just released counts
        if self._warm is not None and model is not None and request is not None:
            plan = self.forecast(request, model, {"brief": True})
            needs = next((p for p in plan.get("phases", ()) if p["phase"] == phase), None)
            free = super()._snapshot()
            if (
                needs is None
                or (needs["ram_peak_bytes"] or 0) > free.ram_available_bytes
                or (needs["vram_peak_bytes"] or 0) > free.vram_free_bytes
            ):
                self.release()
                self._machine = None

    def _snapshot(self) -> HardwareSnapshot:
        """This machine; what a warm worker holds can be had back."""
        return with_held(super()._snapshot(), self.held_bytes())

    def _taken(self, key: Any) -> WarmWorker | None:
        """The warm worker, no longer kept here; None when there is none for `key` (None: any)."""
        with self._lock:
            warm = self._warm
            if warm is None or (key is not None and warm.key != key):
                return None
            if self._timer is not None:
                self._timer.cancel()
            self._warm = self._timer = None
            return warm

    def _keep(self, worker: Worker, key: Any, held: tuple[int, int]) -> None:
        with self._lock:
            self._warm = WarmWorker(worker, key, held)
            self._timer = threading.Timer(WARM_SECONDS, self.release)
            self._timer.daemon = True
            self._timer.start()

    def _stage(
        self, stage: str, model: ModelHandle, request: Request | None, given: Mapping[str, Any],
        host: Any, *, keep_first: Callable[[Latents], None] | None = None, **more: Any,
    ) -> Any:  # fmt: skip
        """One stage with its retries. Gives the result parcel."""
        with tempfile.TemporaryDirectory(prefix="lowpeak-", dir=self._scratch()) as name:
            folder = Path(name)
            write_parcel(folder, INPUT, given)
            arguments = {
                "stage": stage, "folder": name, "device": self._device(),
                "request": None if request is None else request_to_json(request),
                "previews": getattr(host, "wants_previews", lambda: False)(),
                "keep_warm": model.keep_warm and stage in WARM_STAGES, **more,
            }  # fmt: skip
            try:
                self._with_retries(model, arguments, given, host)
            finally:
                first = read_parcel(folder, FIRST)
                if first is not None and keep_first is not None:
                    keep_first(Latents(**first))
            return read_parcel(folder, RESULT)

    def _with_retries(
        self, model: ModelHandle, arguments: Mapping[str, Any], given: Mapping[str, Any], host: Any
    ) -> None:
        """The stage, each time in a fresh process and with less, until it is through.

        given: the stage's inputs. The host gets every attempt for its report. Raises the TaskFailed
        after which nothing lighter is left.
        """
        folder, machine = Path(arguments["folder"]), self._capped(model)
        tries = [Attempted(machine.vram_free_bytes, machine.ram_available_bytes)]
        attempts: list[dict[str, Any]] = []
        try:
            while True:
                try:
                    with told(attempts, arguments["stage"]):
                        return self._once(model, arguments, folder, host)
                except TaskFailed as failed:
                    step = next_try(failed.ending, tries)
                    if isinstance(step, str):
                        raise
                    notice = f"{failed.kind}: {step.reason}"
                arguments = _from_first(arguments, given)
                if arguments["stage"] != attempts[-1]["stage"]:
                    notice += "; the first pass is kept"
                host.emit(Event("notice", STAGE_PHASE[arguments["stage"]], notice))
                tell_next(attempts, step)
                tries.append(step.attempt)
                model = _lighter(model, step.attempt)
        finally:
            host.keep({"attempts": attempts})

    def _once(
        self, model: ModelHandle, arguments: Mapping[str, Any], folder: Path, host: Any
    ) -> None:
        shown = 0

        def on_event(event: Event) -> None:
            """Pass an event on, and the preview that came with it where there is a new one."""
            nonlocal shown
            host.emit(event)
            file = folder / f"{PREVIEW}.json"
            stamp = file.stat().st_mtime_ns if file.exists() else 0
            if stamp != shown:
                shown = stamp
                host.preview(lambda: read_parcel(folder, PREVIEW))

        _check(host)
        key = warm_key(model, self._device_type())
        warm = self._taken(key) if arguments["stage"] in WARM_STAGES else None
        worker = self._start() if warm is None else warm.worker
        whole = {**arguments, "model": model_to_json(model)}
        try:
            worker.run(STAGE_TASK, whole, on_event=on_event, is_cancelled=host.is_cancelled)
        except Cancelled:
            self._ending.append(worker.abandon())  # it holds nothing that is wanted
            raise
        except BaseException:
            worker.close()
            raise
        held = (read_parcel(folder, RESULT) or {}).get("held") if arguments["keep_warm"] else None
        if held is not None and any(held):
            self._keep(worker, key, (int(held[0]), int(held[1])))
        else:
            worker.close()


def _check(host: Host) -> None:
    """Raise Cancelled when stop was pressed before a worker has begun."""
    if host.is_cancelled():
        raise Cancelled("the plan")


def _from_first(arguments: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the next attempt is called with: the second pass alone once the first is whole."""
    folder = Path(arguments["folder"])
    first = read_parcel(folder, FIRST) if arguments["stage"] == "sample" else None
    if first is None:
        return arguments
    write_parcel(folder, INPUT, {**given, "first": first})
    return {**arguments, "stage": "refine"}


def _lighter(model: ModelHandle, attempt: Attempted) -> ModelHandle:
    """The model with the budgets of the next attempt."""
    share = LIGHTEST if attempt.lightest else 1.0
    vram, ram = attempt.vram_cap_bytes, attempt.ram_cap_bytes
    return replace(
        model,
        vram_bytes=model.vram_bytes if vram is None else int(vram * share),
        ram_bytes=model.ram_bytes if ram is None else int(ram * share),
    )
