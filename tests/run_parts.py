"""A small request on the miniature, and a host that cancels it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lowpeak.engine.events import Event, QuietHost
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.request import Request
from lowpeak.engine.run import RunOptions

SMALL = Request(
    Geometry(256, 256, 22), prompt="a red fox", seed=11, base_steps=2, refine_steps=1,
    two_pass=True,
)  # fmt: skip


def options(checkpoint: Path, out: Path, **more: Any) -> RunOptions:
    return RunOptions(checkpoint=checkpoint, out=out, device="cpu", **more)


class CancelledAt(QuietHost):
    """Asks to stop once `phase` has reported `step` steps."""

    def __init__(self, phase: str, step: int | None) -> None:
        super().__init__()
        self.phase, self.step, self.stop = phase, step, False

    def is_cancelled(self) -> bool:
        return self.stop

    def emit(self, event: Event) -> None:
        super().emit(event)
        if event.phase == self.phase and event.step == self.step:
            self.stop = True
