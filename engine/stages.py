"""The three stages of a request as plain functions: encode, sample, decode.

`run` tells the whole story with them and the ComfyUI nodes call them one by one, so a graph and a
command line do the same. Each takes an open Session and frozen values, and gives frozen values on
the CPU. Which model runs a stage is the Checkpoint's matter, where its bytes wait the plan's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from .denoiser import Denoiser, Denoisers
from .errors import Cancelled, RequestError
from .files import SampledLatents
from .geometry import Geometry
from .model.layout import PackedLayout, build_layout, unpatchify
from .references import ReferenceMedia, references_shown
from .report import PhaseMeasurement
from .request import Request
from .sampling.condition_latents import ConditionSet, EncodedReference
from .sampling.noise import draw_pass_noise, rows_to_audio
from .sampling.quality import PassPlan, SamplingPlan, plan_request
from .sampling.schedules import ConditionTimes
from .sampling.solver import StepResult, euler
from .sampling.two_pass import (
    Lift,
    PassStart,
    lift_and_crop,
    shrink_keyframe,
    start_first_pass,
    start_refine,
)
from .session import Session
from .text.encoder import TextConditioning, TextEncoder

KEYFRAME_NAMES = ("first", "last")


@dataclass(frozen=True)
class Keyframe:
    """An encoded first or last frame. latents: [1, 24, 1, H/16, W/16] float32, normalised."""

    name: str
    latents: Tensor

    def __post_init__(self) -> None:
        if self.name not in KEYFRAME_NAMES:
            raise RequestError(f"keyframe {self.name!r} is neither first nor last", field="prompt")


@dataclass(frozen=True)
class Conditioning:
    """All that a pass is conditioned on. Keyframes in packed order, first before last; or
    references in the request's order."""

    text: TextConditioning
    keyframes: tuple[Keyframe, ...] = ()
    references: tuple[EncodedReference, ...] = ()

    @property
    def conditions(self) -> ConditionSet:
        """Condition rows in packed order. Raises RequestError for keyframes and references."""
        if self.references and not self.keyframes:
            return ConditionSet.of_references(self.references)
        return ConditionSet(
            tuple(item.name for item in self.keyframes),
            tuple(item.block for item in self.references),
            tuple(item.latents for item in self.keyframes),
        )

    @property
    def times(self) -> ConditionTimes:
        """Which condition rows there are, as far as times go."""
        return self.conditions.times


def encode_prompt(
    session: Session,
    request: Request,
    encoder: TextEncoder,
    pictures: Sequence[Tensor] = (),
    encode_picture: Callable[[Tensor], Tensor] | None = None,
    *,
    references: Sequence[ReferenceMedia] = (),
    encode_reference: Callable[[ReferenceMedia], EncodedReference] | None = None,
) -> Conditioning:
    """Phase `encode`: the prompt with its keyframes or references.

    pictures: uint8 [H, W, 3] on the target's canvas, one for each keyframe of the request, first
    before last. encode_picture: gives a picture's normalised latents [1, 24, 1, H/16, W/16].
    references: fitted media in the request's order. encode_reference: gives their latents.
    """
    names = [name for name in KEYFRAME_NAMES if getattr(request, f"{name}_frame") is not None]
    if len(names) != len(pictures):
        raise RequestError(f"{len(names)} keyframes but {len(pictures)} pictures", field="prompt")
    with session.phase("encode") as measured:
        with session.span("text encoder"):
            shown = references_shown(references)
            text = encoder.encode(request.prompt, images=pictures, shown=shown)
        measured.add(encoder.traffic())
        if pictures or references:
            encoder.close()  # its layers leave the device before an autoencoder's encoder comes
        keyframes = []
        for name, picture in zip(names, pictures, strict=True):
            assert encode_picture is not None
            with session.span(f"{name} frame"):
                keyframes.append(Keyframe(name, encode_picture(picture).float().cpu()))
            session.check_cancelled("encode")
        encoded = []
        for item in references:
            assert encode_reference is not None
            with session.span(f"reference, {item.kind}"):
                encoded.append(encode_reference(item))
            session.check_cancelled("encode")
        measured.steps = 1
    return Conditioning(text, tuple(keyframes), tuple(encoded))


def sample(
    session: Session,
    request: Request,
    conditioning: Conditioning,
    denoisers: Denoisers,
    *,
    lift: Lift | None = None,
    first_pass: SampledLatents | None = None,
    keep_first_pass: Callable[[SampledLatents], None] | None = None,
    stop_after_first: bool = False,
) -> SampledLatents:
    """Phases `sample_low`, `upscale`, `sample_high`, or `sample_high` alone.

    lift: the latent upscaler, needed when the first pass is smaller than the target.
    first_pass: continue from these instead of sampling them. keep_first_pass: called with the
    first pass of two before the second begins. stop_after_first: give the first pass.
    """
    plan = plan_request(request)
    if plan.refine is None:
        return sample_pass(session, plan.first, request.seed, conditioning, denoisers)
    if first_pass is None:
        small = _for_first_pass(conditioning, plan)
        first_pass = sample_pass(session, plan.first, request.seed, small, denoisers)
        if keep_first_pass is not None:
            keep_first_pass(first_pass)
    if stop_after_first:
        return first_pass
    return refine(session, plan, request.seed, first_pass, conditioning, denoisers, lift)


def refine(
    session: Session,
    plan: SamplingPlan,
    seed: int,
    first_pass: SampledLatents,
    conditioning: Conditioning,
    denoisers: Denoisers,
    lift: Lift | None,
) -> SampledLatents:
    """Phases `upscale` and `sample_high` from finished first-pass latents."""
    assert plan.refine is not None and plan.canvas is not None
    lifted = first_pass.video
    if plan.upscaling:
        with session.span("give back device memory"):
            denoisers.release()
            session.release_device_cache()
        with session.phase("upscale") as measured:
            measured.steps = 1
            with session.span("lift"):
                lifted = lift_and_crop(first_pass.video, plan.canvas, lift).cpu()
            session.check_cancelled("upscale")
    else:
        lifted = lift_and_crop(lifted, plan.canvas, None)
    return sample_pass(
        session,
        plan.refine,
        seed,
        conditioning,
        denoisers,
        lifted=SampledLatents(lifted, first_pass.audio),
    )


def sample_pass(
    session: Session,
    item: PassPlan,
    seed: int,
    conditioning: Conditioning,
    denoisers: Denoisers,
    *,
    lifted: SampledLatents | None = None,
) -> SampledLatents:
    """One pass: from noise, or with `lifted` from a finished first pass on this canvas."""
    geometry = item.geometry
    held = conditioning.conditions
    conditions = held.latents
    with session.phase(item.phase) as measured:
        noise = draw_pass_noise(seed + item.seed_offset, geometry, held.shapes)
        if lifted is None:
            start = start_first_pass(noise, conditions)
        else:
            audio = lifted.audio[0].transpose(0, 1)
            start = start_refine(lifted.video, audio, noise, item.schedule, conditions)
        with session.span("open transformer"):
            denoiser = denoisers.for_phase(item.phase, session.host.is_cancelled)
        video, audio_rows = _walk(session, item, conditioning, denoiser, start, measured)
    return _sampled(video, audio_rows, geometry)


def build_pass_layout(geometry: Geometry, conditioning: Conditioning) -> PackedLayout:
    """The packed sequence of a pass."""
    return build_layout(
        latent_frames=geometry.latent_frames,
        latent_height=geometry.latent_height,
        latent_width=geometry.latent_width,
        audio_latents=geometry.audio_latents,
        text_tags=conditioning.text.tags,
        keyframes=conditioning.conditions.keyframes,
        references=conditioning.conditions.references,
    )


def _walk(
    session: Session,
    item: PassPlan,
    conditioning: Conditioning,
    denoiser: Denoiser,
    start: PassStart,
    measured: PhaseMeasurement,
) -> tuple[Tensor, Tensor]:
    layout = build_pass_layout(item.geometry, conditioning)
    with session.span("bind sequence"):
        sounds = conditioning.conditions.packed_audio()
        heard = () if sounds is None else (sounds,)
        model = denoiser.bind(layout, conditioning.text.embeds, start.condition_rows, *heard)
    session.progress(0, item.evaluations)
    measured.steps_started_unix = time.time()
    began = time.perf_counter()
    last: StepResult | None = None

    def finished(result: StepResult) -> None:
        """A step is over: its time, the progress, a preview, and what could be kept of it."""
        nonlocal began, last
        last = result
        now = time.perf_counter()
        measured.step_seconds.append(now - began)
        measured.steps += 1
        began = now
        session.progress(measured.steps, result.times.steps, measured.step_seconds[-1])
        session.preview(lambda: _latents(result.denoised_video, item.geometry)[0])

    try:
        return euler(
            model,
            start.video,
            start.audio,
            item.schedule,
            on_step=finished,
            is_cancelled=session.host.is_cancelled,
            conditions=conditioning.times,
        )
    except Cancelled:
        raise  # whoever stops a run wants nothing of it
    except BaseException:
        if last is not None and session.keep_step is not None:  # the last whole step is not lost
            session.keep_step(measured.steps, _sampled(last.video, last.audio, item.geometry))
        raise
    finally:
        for notice in denoiser.notices:
            session.notice(notice)
        _add_telemetry(measured, denoiser)


def _sampled(video: Tensor, audio: Tensor, geometry: Geometry) -> SampledLatents:
    """Rows of a pass as latents."""
    sound = rows_to_audio(audio).transpose(0, 1).unsqueeze(0).contiguous()
    return SampledLatents(_latents(video, geometry), sound)


def _latents(rows: Tensor, geometry: Geometry) -> Tensor:
    """Target rows [F * S, 96] as latents [1, 24, F, H/16, W/16]."""
    size = geometry.latent_frames, geometry.latent_height, geometry.latent_width
    return unpatchify(rows, *size).unsqueeze(0)


def _add_telemetry(measured: PhaseMeasurement, denoiser: Denoiser) -> None:
    """Bytes and stalls of all steps of a pass."""
    for step in denoiser.telemetry:
        measured.add(step)
        if step.vram_peak_bytes is not None:
            measured.step_vram_peak_bytes.append(step.vram_peak_bytes)


def _for_first_pass(conditioning: Conditioning, plan: SamplingPlan) -> Conditioning:
    assert plan.canvas is not None
    canvas = plan.canvas
    return Conditioning(
        conditioning.text,
        tuple(
            Keyframe(item.name, shrink_keyframe(item.latents, canvas))
            for item in conditioning.keyframes
        ),
        conditioning.references,
    )
