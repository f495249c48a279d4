"""Latents that outlive a run: on request, or because the second pass failed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from ..engine.request import Request
from .engine_seam import Latents

FIRST_PASS, FINAL = "first", "final"  # how files of saved latents are named
log = logging.getLogger(__name__)


class FirstPassKeeper:
    """Holds the first pass while the second runs; a context manager around both.

    If the second pass fails or is cancelled, the first is written to output/lowpeak, so that
    Lowpeak Refine can go on from it. `always` writes it at once.
    """

    def __init__(self, pack: Any, request: Request, *, always: bool) -> None:
        self._pack, self._note, self._always = pack, request.as_json(), always
        self._held: Latents | None = None

    def __enter__(self) -> FirstPassKeeper:
        return self

    def __call__(self, latents: Latents) -> None:
        """Take the finished first pass."""
        if self._always:
            self._write(latents)
        else:
            self._held = latents

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> None:
        if error is not None and self._held is not None:
            file = self._write(self._held)
            log.warning("Lowpeak: the first pass is kept as %s; Lowpeak Refine takes it", file.name)

    def _write(self, latents: Latents) -> Path:
        file: Path = self._pack.folders.new_latents(FIRST_PASS)
        self._pack.convert.save_latents(latents, file, self._note)
        return file


def save_final(pack: Any, request: Request, latents: Latents) -> None:
    """Write the latents of the last pass to output/lowpeak."""
    pack.convert.save_latents(latents, pack.folders.new_latents(FINAL), request.as_json())
