"""Lowpeak References: prompt with reference pictures, videos and sounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.errors import RequestError
from ..engine.geometry import plan_geometry
from . import tables
from .asking import make_request, size_problem
from .engine_seam import Pictures
from .handles import ModelHandle


class References:
    """References enter in a fixed order: pictures, videos, sounds; the prompt counts from 1."""

    table = tables.REFERENCES
    pack: Any

    @classmethod
    def execute(
        cls, model: ModelHandle, prompt: str, width: int, height: int, seconds: float,
        images: Mapping[str, Any] | None = None, videos: Mapping[str, Any] | None = None,
        sounds: Mapping[str, Any] | None = None,
    ) -> tuple[Any]:  # fmt: skip
        """CONDITIONING with its references."""
        to = cls.pack.convert
        pictures = Pictures(
            images=tuple(to.frames_in(item)[:1] for item in _given(images)),
            videos=tuple(to.video_in(item) for item in _given(videos)),
            sounds=tuple(to.audio_in(item) for item in _given(sounds)),
        )
        if pictures.is_empty:
            raise RequestError("connect at least one reference", field="images")
        geometry, _ = plan_geometry(width, height, seconds=seconds)
        count = len(pictures.images) + len(pictures.videos) + len(pictures.sounds)
        names = tuple(f"reference {number + 1}" for number in range(count))
        request = make_request(model, geometry, prompt=prompt, references=names)
        with cls.pack.host(cls.pack, cls.hidden.unique_id) as host:
            conditions = cls.pack.engine.encode(model, request, pictures, host)
        return (to.conditioning_out(conditions),)

    @classmethod
    def validate_inputs(
        cls, width: int | None = None, height: int | None = None, seconds: float | None = None,
        images: Any = None, videos: Any = None, sounds: Any = None,
    ) -> bool | str:  # fmt: skip
        """Before queueing: the size can run. Growing rows are handed over whether asked or not."""
        return size_problem(width, height, seconds) or True


def _given(row: Mapping[str, Any] | None) -> list[Any]:
    """What is connected, in the order of the sockets."""
    return [item for item in (row or {}).values() if item is not None]
