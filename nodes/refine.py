"""Lowpeak Refine: the second pass alone."""

from __future__ import annotations

from typing import Any

from ..engine.errors import RequestError
from ..engine.geometry import plan_geometry
from . import tables
from .asking import make_request, size_problem
from .handles import ModelHandle, RunHandle, file_identity
from .sample import complete
from .saving import save_final


class Refine:
    """From first-pass latents, connected or saved, to full size."""

    table = tables.REFINE
    pack: Any

    @classmethod
    def execute(
        cls, model: ModelHandle, conditioning: Any, saved: str, seed: int, width: int, height: int,
        refine_steps: int = 0, save_latents: bool = False, first_pass: Any = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """(latent, run)."""
        to = cls.pack.convert
        if saved != tables.FROM_INPUT:
            first = to.load_latents(cls.pack.folders.saved(saved))
        elif first_pass is not None:
            first = to.latent_in(first_pass)
        else:
            raise RequestError("connect first_pass, or choose saved latents", field="first_pass")
        frames = to.latent_geometry(first).frames
        geometry, _ = plan_geometry(width, height, frames=frames)
        conditions = to.conditioning_in(conditioning)
        request = make_request(model, geometry, passes="two", refine_steps=refine_steps)
        request = complete(request, model, seed, conditions)
        with cls.pack.host(cls.pack, cls.hidden.unique_id) as host:
            sampled = cls.pack.engine.refine(model, request, conditions, first, host)
            host.keep(sampled.report)
        if save_latents:
            save_final(cls.pack, request, sampled.latents)
        return to.latent_out(sampled.latents), RunHandle(host.run_id)

    @classmethod
    def validate_inputs(
        cls, saved: str | None = None, width: int | None = None, height: int | None = None
    ) -> bool | str:
        """Before queueing: the size can run and the saved file is there."""
        if saved not in (None, tables.FROM_INPUT):
            try:
                cls.pack.folders.saved(saved)
            except RequestError as problem:
                return str(problem)
        return size_problem(width, height, None) or True

    @classmethod
    def fingerprint_inputs(cls, saved: str | None = None, **others: Any) -> Any:
        """Changes when the chosen file does, or when a newer one appears."""
        if saved in (None, tables.FROM_INPUT):
            return saved
        return file_identity(cls.pack.folders.saved(saved))
