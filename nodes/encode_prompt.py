"""Lowpeak Encode Prompt: text to conditioning."""

from __future__ import annotations

from typing import Any

from ..engine.geometry import Geometry
from . import tables
from .asking import make_request
from .engine_seam import Pictures
from .handles import ModelHandle

ANY_SIZE = Geometry(1344, 768, 124)  # text alone does not depend on the canvas


class EncodePrompt:
    """The prompt alone."""

    table = tables.ENCODE_PROMPT
    pack: Any

    @classmethod
    def execute(cls, model: ModelHandle, prompt: str) -> tuple[Any]:
        """Core's CONDITIONING of a prompt."""
        request = make_request(model, ANY_SIZE, prompt=prompt)
        with cls.pack.host(cls.pack, cls.hidden.unique_id) as host:
            conditions = cls.pack.engine.encode(model, request, Pictures(), host)
        return (cls.pack.convert.conditioning_out(conditions),)
