"""The real engine behind nodes/engine_seam.py: one stage of engine/stages.py a call.

Each call opens what its stage needs, runs it and closes everything, so nothing is held between
nodes. The plan is made anew from the memory that is free at that moment.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..engine.errors import DoesNotFit
from ..engine.events import Host
from ..engine.geometry import AUDIO_SAMPLE_RATE_HZ, Geometry
from ..engine.planner.calibration import Calibration
from ..engine.planner.types import HardwareSnapshot, ModelFacts
from ..engine.request import Request
from ..engine.units import GIB
from .engine_seam import Conditions, Decoded, Latents, Pictures, Sampled
from .handles import ModelHandle
from .keyframe_media import engine_conditioning, keyframes_in
from .teaching import teaching

SNAPSHOT_SECONDS = 2.0  # a panel that asks again sooner gets the same machine
DECODE_REPORT = ("phases", "notices", "audio_health")  # the rest is the sampling node's to say
DECODE_QUALITY = "max"  # one pass: the plan of a decode alone should not price an upscaler


def _plain_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """Run a stage outside inference mode, without gradients.

    ComfyUI runs nodes in inference mode, which belongs to a thread: the engine's reader threads are
    outside and may not write to tensors made inside.
    """

    @functools.wraps(method)
    def stage(*given: Any, **named: Any) -> Any:
        import torch

        with torch.inference_mode(False), torch.no_grad():
            return method(*given, **named)

    return stage


class LocalEngine:
    """Runs stages in this process. `device` says which device ComfyUI chose: "cuda" or "cpu"."""

    def __init__(self, device: Callable[[], str] = lambda: "auto") -> None:
        self._device = device
        self._machine: tuple[float, HardwareSnapshot] | None = None
        self._sizes: tuple[Any, Any] = (None, None)

    def describe(self, checkpoint: Path) -> Mapping[str, Any]:
        """Layout, format and sizes of a checkpoint."""
        models = self._models(checkpoint)
        return {**models.headers(), **vars(models.facts()), "notices": list(models.notices())}

    def bind_lora(self, model: ModelHandle, lora: Path, *, allow_partial: bool) -> Sequence[str]:
        """The binding report as lines; raises below 100 % unless `allow_partial`."""
        from ..engine.lora.loading import inspect_lora
        from ..engine.lora.report import require_complete
        from ..engine.models import lora_shapes

        report = inspect_lora(lora, lora_shapes(model.checkpoint))
        require_complete(report, allow_partial=allow_partial)
        return report.table().splitlines()

    def machine(self) -> Mapping[str, Any]:
        """This machine now."""
        return self._snapshot().as_json()

    def forecast(
        self, request: Request, model: ModelHandle | None, capacities: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The plan document of a request, here or on another machine, LoRAs counted."""
        from ..engine.adapter_plan import plan_with_sizes

        facts, sizes = ModelFacts(), None
        if model is not None:
            models = self._models(model.checkpoint)
            facts, sizes = models.facts(), self._lora_sizes(model, models)
        rows, plan = self._planner(request, model, capacities)
        timed = self._device_type() != "cpu"
        return plan_with_sizes(sizes, "auto", request, facts, rows, plan, timed=timed)

    def _planner(
        self, request: Request, model: ModelHandle | None, capacities: Mapping[str, Any]
    ) -> tuple[Calibration, Callable[[ModelFacts], dict[str, Any]]]:
        """The rows of the machine that is asked about, and what plans a model of given sizes."""
        from ..engine.forecast import forecast, forecast_for_run, planning_rows
        from ..engine.planner.jsonform import refusal_document
        from ..engine.snapshot import snapshot_from_options

        elsewhere = {key: capacities[key] for key in ("card", "system") if key in capacities}
        for axis in ("vram", "ram"):
            if f"{axis}_bytes" in capacities:
                elsewhere[f"{axis}_gib"] = capacities[f"{axis}_bytes"] / GIB
        if elsewhere:
            machine = snapshot_from_options(**elsewhere, here=self._snapshot)
            if "card" not in elsewhere:  # other memory, but the speed is this card's
                here = self._snapshot()
                machine = replace(machine, device_name=here.device_name, capability=here.capability)
            more = not capacities.get("brief")
            rows = planning_rows(machine, learned=False)
            return rows, lambda facts: forecast(request, machine, facts, what_if=more)
        limits = {axis: capacities.get(f"{axis}_limit_bytes") for axis in ("vram", "ram")}
        machine = self._capped(model, **limits)
        folder, on_card = model and model.checkpoint, self._device_type() != "cpu"
        rows = planning_rows(machine, learned=on_card, checkpoint=folder)
        if on_card:
            return rows, lambda facts: forecast(
                request, machine, facts, learned=True, checkpoint=folder
            )

        def on_cpu(facts: ModelFacts) -> dict[str, Any]:
            try:
                return forecast_for_run(request, machine, facts, "cpu")
            except DoesNotFit as refusal:
                return refusal_document(request, machine, refusal)

        return rows, on_cpu

    def _lora_sizes(self, model: ModelHandle, models: Any) -> Any:
        """What the model's LoRAs add, from headers; None without any. Read once a file."""
        from ..engine.lora.planned import sizes_of_files
        from ..engine.models import lora_shapes_of

        if not model.loras:
            return None
        key = (model.identity, model.loras)
        if self._sizes[0] != key:
            shapes = lora_shapes_of(models.checkpoint)
            self._sizes = key, sizes_of_files(model.lora_choices, shapes)
        return self._sizes[1]

    @_plain_tensors
    def encode(
        self, model: ModelHandle, request: Request, pictures: Pictures, host: Host
    ) -> Conditions:
        """Prompt and keyframes."""
        from contextlib import closing

        from ..engine.condition_encoder import ConditionEncoder, with_reference_transformer
        from ..engine.stages import encode_prompt
        from .reference_media import media_of, references_out

        models = self._models(model.checkpoint)
        media: tuple[Any, ...] = ()
        said: list[str] = []
        if pictures.images or pictures.videos or pictures.sounds:
            with_reference_transformer(models)  # says so at once when there is none
            media = media_of(pictures, request.geometry.frames, said.append)
        with self._session(model, models, request, host, must_fit=False) as session:
            for notice in said:
                session.notice(notice)
            fitted = keyframes_in(request.geometry, pictures, session.notice)
            sees = ConditionEncoder(models.folder, models.device, host.is_cancelled)
            with closing(sees), models.text_encoder(session.placement("encode")) as encoder:
                made = encode_prompt(
                    session, request, encoder, fitted, sees.picture,
                    references=media, encode_reference=sees.reference,
                )  # fmt: skip
        last = request.geometry.frames - 1
        keyframes = tuple(
            {"frame": 0 if item.name == "first" else last, "latent": item.latents}
            for item in made.keyframes
        )
        hidden, tags = made.text.embeds.float().cpu(), made.text.tags.cpu()
        return Conditions(hidden, tags, keyframes, references_out(made.references))

    def sample(
        self, model: ModelHandle, request: Request, conditions: Conditions, host: Host,
        keep_first: Callable[[Latents], None],
    ) -> Sampled:  # fmt: skip
        """The passes that the request's quality asks for."""
        return self._sample(model, request, conditions, host, None, keep_first)

    def refine(
        self, model: ModelHandle, request: Request, conditions: Conditions, first: Latents,
        host: Host,
    ) -> Sampled:  # fmt: skip
        """The second pass alone."""
        return self._sample(model, request, conditions, host, first, lambda latents: None)

    @_plain_tensors
    def decode(
        self, model: ModelHandle, latents: Latents, out: Path, host: Host, *, with_sound: bool
    ) -> Decoded:
        """Frames streamed into `out`."""
        from ..engine.decoding import decode
        from ..engine.files import SampledLatents

        request = decode_request(latents)
        geometry = request.geometry
        models = self._models(model.checkpoint)
        with self._session(model, models, request, host, must_fit=False) as session:
            given = SampledLatents(latents.video.clone(), latents.audio.clone())
            sound = decode(session, geometry, given, models, out, with_sound=with_sound)
            report = session.report.as_json()
        own = {name: report[name] for name in DECODE_REPORT}
        return Decoded(out, sound if with_sound else None, AUDIO_SAMPLE_RATE_HZ, _new(own))

    def release(self) -> int:
        """Nothing is held between calls."""
        return 0

    def held_bytes(self) -> tuple[int, int]:
        """Nothing is held between calls."""
        return 0, 0

    @_plain_tensors
    def _sample(
        self, model: ModelHandle, request: Request, conditions: Conditions, host: Host,
        first: Latents | None, keep_first: Callable[[Latents], None],
    ) -> Sampled:  # fmt: skip
        from ..engine.files import SampledLatents
        from ..engine.forecast import placements_of
        from ..engine.planner.adapters import planned_mode
        from ..engine.sampling.quality import plan_request
        from ..engine.stages import sample

        models = self._models(model.checkpoint)
        if conditions.references:
            from ..engine.condition_encoder import with_reference_transformer

            models = with_reference_transformer(models)
        conditioning = engine_conditioning(request, conditions)
        passes = plan_request(request)
        times = [
            step for item in passes.passes for step in item.schedule.table_times(conditioning.times)
        ]
        kept = [] if first is None else [Latents(first.video.clone(), first.audio.clone())]

        def keep(latents: SampledLatents) -> None:
            kept.append(Latents(latents.video, latents.audio))
            keep_first(kept[0])

        partial = any(item.allow_partial for item in model.loras)
        loras = models.bind_loras(request.loras, allow_partial=partial)
        with self._session(model, models, request, host, must_fit=True, loras=loras) as session:
            session.report.lora = [item.as_json() for item in loras.reports]
            placed, mode = placements_of(session.plan), planned_mode(session.plan)
            with self._denoiser(model, models, times, placed, loras, mode) as denoiser:
                made = sample(
                    session,
                    request,
                    conditioning,
                    denoiser,
                    lift=models.lift(host.is_cancelled) if passes.upscaling else None,
                    first_pass=SampledLatents(kept[0].video, kept[0].audio) if kept else None,
                    keep_first_pass=keep,
                )
            session.report.latents_sha256 = made.sha256
            report = session.report.as_json()
        first_pass = kept[0] if kept else None
        return Sampled(Latents(made.video, made.audio), first_pass, _new(report))

    def _denoiser(
        self, model: ModelHandle, models: Any, times: Any, placed: Mapping[str, Any], loras: Any,
        mode: str,
    ) -> AbstractContextManager[Any]:  # fmt: skip
        """The transformer of a run; nothing of it outlives the body."""
        return models.denoiser(times, placed, loras, mode)

    @contextmanager
    def _session(
        self, model: ModelHandle, models: Any, request: Request, host: Any, *, must_fit: bool,
        loras: Any = (),
    ) -> Iterator[Any]:  # fmt: skip
        """An open Session with its plan. A stage that is not the whole request may start anyway."""
        from ..engine.forecast import forecast_for_run, phase_forecasts, planning_rows
        from ..engine.learning import open_history
        from ..engine.lora.planned import plan_with_loras
        from ..engine.meter import resident_bytes
        from ..engine.report import RunReport
        from ..engine.session import Session
        from ..engine.versions import read_versions

        started_unix, machine, plan = time.time(), self._capped(model), {}
        host.release_memory(machine.vram_total_bytes)
        machine = self._capped(model)
        on_card, learns = models.device.type == "cuda", self._learns(models.device.type)
        rows = planning_rows(machine, learned=on_card, checkpoint=model.checkpoint)
        history = open_history() if learns else None

        def plan_for(facts: ModelFacts) -> dict[str, Any]:
            return forecast_for_run(
                request,
                machine,
                facts,
                models.device.type,
                process_bytes=resident_bytes(),
                history=history,
                checkpoint=model.checkpoint,
            )

        try:
            plan = plan_with_loras(
                loras, "auto", request, models.facts(), rows, plan_for, timed=on_card
            )
        except DoesNotFit:
            if must_fit:
                raise
        report = RunReport(
            request=request.as_json(), geometry=request.geometry.as_json(),
            snapshot=machine.as_json(), kernels=models.kernels(), checkpoint=models.headers(),
            versions=read_versions(),
        )  # fmt: skip
        if must_fit:
            host.describe(report.request, plan)
        recorded = teaching(report, request, machine, started_unix, host)
        with (
            recorded if learns else nullcontext(),
            Session(models.device, host, report, phase_forecasts(plan or {"phases": ()})) as open_,
        ):
            open_.plan = plan
            for notice in history.notices if history is not None else ():
                open_.notice(notice)
            yield open_

    def _learns(self, device_type: str) -> bool:
        """Whether stages read and write this machine's history: a CPU has no times to learn."""
        return device_type == "cuda"

    def _models(self, checkpoint: Path) -> Any:
        from ..engine.device import choose_device
        from ..engine.models import open_models

        return open_models(checkpoint, choose_device(self._device()))

    def _device_type(self) -> str:
        from ..engine.device import choose_device

        return choose_device(self._device()).type

    def _snapshot(self) -> HardwareSnapshot:
        from ..engine.snapshot import read_snapshot

        now = time.monotonic()
        if self._machine is None or now - self._machine[0] > SNAPSHOT_SECONDS:
            self._machine = now, read_snapshot()
        return self._machine[1]

    def _capped(self, model: ModelHandle | None, **limits: int | None) -> HardwareSnapshot:
        """This machine, as far as the model's budgets and the given limits let it be used."""
        from ..engine.snapshot import cap_snapshot

        caps: dict[str, float] = {}
        for axis in ("vram", "ram"):
            own = None if model is None else getattr(model, f"{axis}_bytes")
            given = [value for value in (own, limits.get(axis)) if value]
            if given:
                caps[f"{axis}_gib"] = min(given) / GIB
        return cap_snapshot(self._snapshot(), **caps)


def decode_request(latents: Latents) -> Request:
    """A request whose decoding is that of `latents`."""
    frames, height, width = latents.video.shape[2:]
    geometry = Geometry(width * 16, height * 16, (frames - 2) // 5 * 17 + 5)
    return Request(geometry, quality=DECODE_QUALITY)


def _new(report: Mapping[str, Any]) -> dict[str, Any]:
    """What a stage adds to a run's report: fields that say something."""
    return {key: value for key, value in report.items() if value not in (None, [], {}, "")}
