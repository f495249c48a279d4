"""Lowpeak Load LoRA: one more adapter on a model handle."""

from __future__ import annotations

from typing import Any

from ..engine.errors import RequestError
from . import tables
from .handles import LoraHandle, ModelHandle, file_identity


class LoadLora:
    """Reads the file's names and shapes; factors are read when sampling starts."""

    table = tables.LOAD_LORA
    pack: Any

    @classmethod
    def execute(
        cls, model: ModelHandle, lora: str, strength: float = 1.0, allow_partial: bool = False
    ) -> tuple[Any, str]:
        """The model with this LoRA, and the binding report."""
        file = cls.pack.folders.lora(lora)
        lines = cls.pack.engine.bind_lora(model, file, allow_partial=allow_partial)
        added = LoraHandle(file, strength, allow_partial, file_identity(file))
        return model.with_lora(added), "\n".join(lines)

    @classmethod
    def validate_inputs(cls, lora: str | None = None) -> bool | str:
        """Before queueing: the file is there."""
        if lora is not None:
            try:
                cls.pack.folders.lora(lora)
            except RequestError as problem:
                return str(problem)
        return True

    @classmethod
    def fingerprint_inputs(cls, lora: str | None = None, **others: Any) -> Any:
        """Changes when the file does."""
        return lora and file_identity(cls.pack.folders.lora(lora))
