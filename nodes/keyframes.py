"""Lowpeak Keyframes: prompt with a first and a last frame."""

from __future__ import annotations

from typing import Any

from ..engine.errors import RequestError
from ..engine.geometry import plan_geometry
from . import tables
from .asking import make_request, size_problem
from .engine_seam import Pictures
from .handles import ModelHandle


class Keyframes:
    """Encodes the pictures both as the text encoder and as the transformer see them."""

    table = tables.KEYFRAMES
    pack: Any

    @classmethod
    def execute(
        cls, model: ModelHandle, prompt: str, width: int, height: int, seconds: float,
        first_frame: Any = None, last_frame: Any = None,
    ) -> tuple[Any]:  # fmt: skip
        """CONDITIONING with one or two keyframes."""
        if first_frame is None and last_frame is None:
            raise RequestError("connect first_frame, last_frame, or both", field="first_frame")
        geometry, _ = plan_geometry(width, height, seconds=seconds)
        frames_in = cls.pack.convert.frames_in
        pictures = Pictures(first_frame=frames_in(first_frame), last_frame=frames_in(last_frame))
        request = make_request(
            model, geometry, prompt=prompt,
            first_frame=None if first_frame is None else "first_frame",
            last_frame=None if last_frame is None else "last_frame",
        )  # fmt: skip
        with cls.pack.host(cls.pack, cls.hidden.unique_id) as host:
            conditions = cls.pack.engine.encode(model, request, pictures, host)
        return (cls.pack.convert.conditioning_out(conditions),)

    @classmethod
    def validate_inputs(
        cls, width: int | None = None, height: int | None = None, seconds: float | None = None
    ) -> bool | str:
        """Before queueing: the size can run."""
        return size_problem(width, height, seconds) or True
