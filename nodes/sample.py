"""Lowpeak Sample: picture and sound latents from conditioning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..engine.geometry import Geometry, plan_geometry
from ..engine.request import Request
from . import tables
from .asking import make_request, size_problem
from .engine_seam import Conditions
from .handles import ModelHandle, PlanHandle, RunHandle
from .reference_media import rows_of
from .saving import FirstPassKeeper, save_final


class Sample:
    """The first pass and, if quality says so, the second."""

    table = tables.SAMPLE
    pack: Any

    @classmethod
    def execute(
        cls, model: ModelHandle, conditioning: Any, seed: int, width: int, height: int,
        seconds: float, quality: str = "light", save_latents: bool = False,
        plan: PlanHandle | None = None, size_from: Any = None, **steps: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        """(latent, first_pass, run)."""
        to, conditions = cls.pack.convert, cls.pack.convert.conditioning_in(conditioning)
        if plan is not None:
            request = plan.request
        else:
            if size_from is None:
                geometry, _ = plan_geometry(width, height, seconds=seconds)
            else:
                geometry = _checked(to.latent_geometry(to.latent_in(size_from)))
            request = make_request(model, geometry, quality=quality, **steps)
        request = complete(request, model, seed, conditions)
        keeper = FirstPassKeeper(cls.pack, request, always=save_latents)
        with cls.pack.host(cls.pack, cls.hidden.unique_id) as host, keeper:
            sampled = cls.pack.engine.sample(model, request, conditions, host, keeper)
            host.keep(sampled.report)
        first = sampled.first_pass or sampled.latents
        if save_latents:
            save_final(cls.pack, request, sampled.latents)
        return to.latent_out(sampled.latents), to.latent_out(first), RunHandle(host.run_id)

    @classmethod
    def validate_inputs(
        cls, width: int | None = None, height: int | None = None, seconds: float | None = None
    ) -> bool | str:
        """Before queueing: the size can run."""
        return size_problem(width, height, seconds) or True


def _checked(geometry: Geometry) -> Geometry:
    """The geometry of a latent, held to the same limits as widgets are."""
    width, height, frames = geometry.width_px, geometry.height_px, geometry.frames
    return plan_geometry(width, height, frames=frames)[0]


def complete(request: Request, model: ModelHandle, seed: int, conditions: Conditions) -> Request:
    """The request with what is known only now: seed, LoRAs, text rows, what the prompt carries."""
    frames = {int(item["frame"]) for item in conditions.keyframes}
    return replace(
        request,
        seed=seed,
        loras=model.lora_choices,
        text_rows=int(conditions.hidden.shape[0]),
        first_frame="first_frame" if 0 in frames else None,
        last_frame="last_frame" if frames - {0} else None,
        references=tuple(f"reference {n + 1}" for n in range(len(conditions.references))),
        reference_rows=rows_of(conditions.references),
    )
