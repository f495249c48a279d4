"""The story of a request: geometry, snapshot, facts, plan; then condition, sample, decode; report.

What can be resumed is on disk before the stage that might fail begins, and so is the report that
names it: a process that is killed, or a full disk, takes neither away. A run that ends early - on
request, cancelled, or by an error - still leaves a whole V.request.json when there is something to
go on from, and no half-written file in any case.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from .checkpoint.schedule_tables import check_tables
from .condition_encoder import ConditionEncoder, with_reference_transformer
from .decoding import decode
from .device import choose_device
from .errors import Cancelled, LowpeakError, SaveFailed
from .events import Host
from .files import RunFiles, SampledLatents, save_latents, write_json
from .forecast import forecast_for_run, phase_forecasts, placements_of, planning_rows
from .kernels_here import name_changes
from .learning import learn, open_history
from .lora.loraset import LoraSet
from .lora.planned import plan_with_loras
from .media_encode import FORMATS, choose_encoder
from .meter import resident_bytes
from .models import ModelSet, open_models
from .options import RunOptions, make_folder
from .pictures import load_pictures
from .planner.adapters import planned_mode
from .planner.types import ModelFacts
from .previews import Previewer, find_factors
from .references import ReferenceMedia, load_references
from .report import RunReport
from .request import Request
from .resume import Saved, load_saved, save_conditioning, settings_of
from .sampling.quality import plan_request
from .sampling.schedules import ConditionTimes
from .session import Session
from .snapshot import cap_snapshot, read_snapshot
from .stages import Conditioning, encode_prompt, sample
from .versions import read_versions


def run_request(
    request: Request, options: RunOptions, host: Host, notices: tuple[str, ...] = ()
) -> RunReport:
    """Make the video of `request`. Raises any LowpeakError; see the module's first lines."""
    started_unix = time.time()
    if options.stop_after is None and FORMATS[options.codec].encoders:
        choose_encoder(FORMATS[options.codec])  # refused now, not after the sampling
    files = RunFiles(options.out)
    make_folder(files.video.parent)
    saved = load_saved(request, options.resume, prompt_given=options.prompt_given)
    models = open_models(options.checkpoint, choose_device(options.device))
    if refers(request, saved):
        models = with_reference_transformer(models)
    said: list[str] = []
    media = load_media(request, saved, said.append)
    if refers(request, saved):
        request = replace(request, reference_rows=reference_rows(media, saved))
    if saved.latents is None:
        check_tables(models.checkpoint, plan_request(request), condition_times(media, saved))
    loras = models.bind_loras(request.loras)
    machine = cap_snapshot(read_snapshot(), vram_gib=options.vram_gib, ram_gib=options.ram_gib)
    on_card = models.device.type == "cuda"
    rows = planning_rows(machine, learned=on_card, checkpoint=options.checkpoint)
    history = open_history() if on_card else None

    def plan_for(facts: ModelFacts) -> dict[str, Any]:
        return forecast_for_run(
            request,
            machine,
            facts,
            models.device.type,
            process_bytes=resident_bytes(),
            history=history,
            checkpoint=options.checkpoint,
        )

    plan = plan_with_loras(
        loras, options.lora_mode, request, models.facts(), rows, plan_for, timed=on_card
    )
    report = begin_report(request, options, plan, models, notices)
    report.started_unix = started_unix
    report.add_span("headers, snapshot, plan", "", started_unix, time.time() - started_unix)
    report.lora = [item.as_json() for item in loras.reports]
    report.run_id = saved.run_id
    saved.keep_record(report)
    if options.resume is not None and RunFiles.of(options.resume).report == files.report:
        report.files = dict(saved.files)
    teach = partial(learn, request=request, snapshot=machine, started_unix=started_unix)
    with (
        closing_report(report, files, teach if on_card else None),
        Session(models.device, host, report, phase_forecasts(plan)) as session,
    ):
        session.limit_device(options.vram_gib)
        past = history.notices if history is not None else ()
        for notice in (*models.notices(), *said, *past):
            session.notice(notice)
        if saved.latents is None:
            condition_and_sample(
                session, request, options, models, files, saved, plan, loras, media
            )
        if options.stop_after is None:
            assert saved.latents is not None
            report.latents_sha256 = saved.latents.sha256
            decode(
                session, request.geometry, saved.latents, models, files.video, options.metadata,
                codec=options.codec,
            )  # fmt: skip
            report.files["video"] = files.video.name
    return report


def condition_and_sample(
    session: Session,
    request: Request,
    options: RunOptions,
    models: ModelSet,
    files: RunFiles,
    saved: Saved,
    plan: Mapping[str, Any],
    loras: LoraSet,
    media: Media,
) -> None:
    """From the prompt to latents on disk, starting at what `saved` holds; stops where asked."""
    if saved.conditioning is None:
        saved.conditioning = _encode(session, request, models, media)
    conditioning, kept, bound = saved.conditioning, session.report.files, session.report.lora

    def keep_conditioning() -> None:
        save_conditioning(files.conditioning, conditioning, saved.run_id)
        kept["conditioning"] = files.conditioning.name

    if options.stop_after in ("encode", "first"):
        keep_conditioning()
    if options.stop_after == "encode":
        return

    if options.previews:
        _offer_previews(session, models)

    def keep_first_pass(latents: SampledLatents) -> None:
        about = {"run": saved.run_id, "settings": settings_of(request, bound, first=True)}
        with session.span("save first pass"):
            save_latents(files.first_pass, latents, about)
            kept["first_pass"] = files.first_pass.name
            keep_conditioning()
            write_json(files.report, session.report.as_json())

    def keep_step(steps: int, latents: SampledLatents) -> None:
        about = {"run": saved.run_id, "settings": settings_of(request, bound), "steps": steps}
        try:
            save_latents(files.unfinished, latents, about)
        except SaveFailed as full:  # the failure that led here is the one to report
            session.notice(f"the last whole step could not be kept: {full}")
            return
        kept["unfinished"] = files.unfinished.name
        session.notice(f"latents after step {steps} are in {files.unfinished.name}")

    session.keep_step = keep_step
    passes = plan_request(request)
    times = [
        step for item in passes.passes for step in item.schedule.table_times(conditioning.times)
    ]
    with ExitStack() as resources:
        with session.span("transformer's headers"):
            denoiser = resources.enter_context(
                models.denoiser(times, placements_of(plan), loras, planned_mode(plan))
            )
        saved.latents = sample(
            session,
            request,
            conditioning,
            denoiser,
            lift=models.lift(session.host.is_cancelled) if passes.upscaling else None,
            first_pass=saved.first_pass,
            keep_first_pass=keep_first_pass,
            stop_after_first=options.stop_after == "first",
        )
        with session.span("give back the transformer"):
            resources.close()
    if options.stop_after == "first":
        return
    session.report.latents_sha256 = saved.latents.sha256
    about = {"run": saved.run_id, "settings": settings_of(request, bound)}
    with session.span("save latents"):
        save_latents(files.latents, saved.latents, about)
    kept["latents"] = files.latents.name
    kept.pop("unfinished", None)
    write_json(files.report, session.report.as_json())
    files.unfinished.unlink(missing_ok=True)  # also one of an earlier try
    if kept.pop("conditioning", None):
        files.conditioning.unlink(missing_ok=True)


def _encode(session: Session, request: Request, models: ModelSet, media: Media) -> Conditioning:
    sees = ConditionEncoder(models.folder, models.device, session.host.is_cancelled)
    with closing(sees), models.text_encoder(session.placement("encode")) as encoder:
        return encode_prompt(
            session,
            request,
            encoder,
            media.pictures,
            sees.picture,
            references=media.references,
            encode_reference=sees.reference,
        )


def _offer_previews(session: Session, models: ModelSet) -> None:
    with session.span("preview factors"):
        factors = find_factors(models)
        session.release_device_cache()
    if factors is not None:
        session.previewer = Previewer(factors, session.host)


@dataclass(frozen=True)
class Media:
    """Files of a request, read and fitted."""

    pictures: Sequence[Tensor] = ()
    references: Sequence[ReferenceMedia] = ()


def refers(request: Request, saved: Saved) -> bool:
    """Whether the sampling that is left has references."""
    if saved.latents is not None:
        return False
    if saved.conditioning is not None:
        return bool(saved.conditioning.references)
    return bool(request.references)


def load_media(request: Request, saved: Saved, notice: Callable[[str], None]) -> Media:
    """Keyframes or references, unless what they became was kept. Raises RequestError."""
    if saved.conditioning is not None or saved.latents is not None:
        return Media()
    references = load_references(
        request.references, request.geometry.frames, notice, keyframes=request.keyframes
    )
    return Media(load_pictures(request, notice), references)


def reference_rows(media: Media, saved: Saved) -> int:
    """Rows that references take in the packed sequence."""
    if saved.conditioning is None:
        return sum(item.rows for item in media.references)
    return sum(item.rows for item in saved.conditioning.references)


def condition_times(media: Media, saved: Saved) -> ConditionTimes:
    """Which condition rows the sampling that is left has, before they are encoded."""
    if saved.conditioning is not None:
        return saved.conditioning.times
    seen = any(item.frames is not None for item in media.references)
    heard = any(item.sound is not None for item in media.references)
    return ConditionTimes(bool(media.pictures) or seen, heard)


def begin_report(
    request: Request,
    options: RunOptions,
    plan: Mapping[str, Any],
    models: ModelSet,
    notices: tuple[str, ...],
) -> RunReport:
    """The report as far as it is known before the run."""
    heads = ("request", "geometry", "snapshot")
    kernels = models.kernels()
    plan = name_changes(plan, kernels)
    return RunReport(
        request=request.as_json(keep_prompt=options.keep_prompt),
        geometry=request.geometry.as_json(),
        snapshot=dict(plan["snapshot"]),
        plan={key: value for key, value in plan.items() if key not in heads},
        kernels=kernels,
        checkpoint=models.headers(),
        versions=read_versions(),
        notices=list(notices),
        codec=options.codec,
    )


@contextmanager
def closing_report(
    report: RunReport, files: RunFiles, teach: Callable[[dict[str, Any]], list[str]] | None = None
) -> Iterator[None]:
    """Write V.request.json at the end; after a failure only when something can be resumed.

    teach: takes the finished report, for this machine's history; gives notices about it. The report
    is written before, and again where there are any.
    """
    attempt: dict[str, Any] = {"outcome": "failed"}
    report.attempts.append(attempt)
    try:
        yield
        attempt.update(outcome="done")
    except KeyboardInterrupt as interrupt:
        attempt.update(outcome="Cancelled")
        raise Cancelled("the run", saved=sorted(report.files.values())) from interrupt
    except Cancelled as stopped:
        attempt.update(outcome="Cancelled", message=str(stopped))
        raise Cancelled(stopped.where, saved=sorted(report.files.values())) from stopped
    except LowpeakError as failure:
        attempt.update(outcome=type(failure).__name__, message=str(failure))
        raise
    finally:
        done = attempt["outcome"] == "done"
        wanted = done or bool(report.files)
        try:
            if wanted:
                write_json(files.report, report.as_json())
        except SaveFailed:
            if done:
                raise  # else the failure that led here is the one to tell
        if teach is not None:
            said = [text for text in teach(report.as_json()) if text not in report.notices]
            report.notices += said
            if said and wanted:
                with suppress(SaveFailed):  # what it says before is on the disk
                    write_json(files.report, report.as_json())
