"""Lowpeak Load Model: a checkpoint's handle."""

from __future__ import annotations

from typing import Any

from ..engine.errors import RequestError
from . import tables
from .asking import budget_bytes, budget_problem
from .handles import ModelHandle, file_identity


class LoadModel:
    """Reads headers, loads no weight."""

    table = tables.LOAD_MODEL
    pack: Any

    @classmethod
    def execute(
        cls, checkpoint: str, vram_gib: float = 0.0, ram_gib: float = 0.0, keep_warm: bool = False
    ) -> tuple[Any]:
        """The handle of a folder of models/lowpeak."""
        folder = cls.pack.folders.checkpoint(checkpoint)
        handle = ModelHandle(
            checkpoint=folder,
            identity=file_identity(folder),
            vram_bytes=budget_bytes(vram_gib),
            ram_bytes=budget_bytes(ram_gib),
            keep_warm=keep_warm,
            facts=cls.pack.engine.describe(folder),
        )
        return (handle,)

    @classmethod
    def validate_inputs(
        cls, checkpoint: str | None = None, vram_gib: float | None = None,
        ram_gib: float | None = None,
    ) -> bool | str:  # fmt: skip
        """Before queueing: the folder is there and the budgets are amounts of memory."""
        if checkpoint is not None:
            try:
                cls.pack.folders.checkpoint(checkpoint)
            except RequestError as problem:
                return str(problem)
        return budget_problem(vram_gib=vram_gib, ram_gib=ram_gib) or True

    @classmethod
    def fingerprint_inputs(cls, checkpoint: str | None = None, **others: Any) -> Any:
        """Changes when a file of the checkpoint does."""
        return checkpoint and file_identity(cls.pack.folders.checkpoint(checkpoint))
