"""A real worker that stands still at an event, so that a test can end it just there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lowpeak.engine.worker.supervisor import Patience, Worker

HERE = str(Path(__file__).resolve().parent)
At = tuple[str | None, str | None, int | None]


class HoldingWorker(Worker):
    """A Worker whose tasks stand still after their first event `at`: (kind, phase, step).

    None in `at` fits any; no `at` holds nothing. A held task goes on when it is asked to stop, or
    after a minute.
    """

    def __init__(self, at: At | None = None, patience: Patience | None = None) -> None:
        super().__init__(environment={"PYTHONPATH": HERE}, patience=patience)
        self.at = at

    def run(self, task: str, arguments: Mapping[str, Any], **hooks: Any) -> Any:
        """As Worker.run."""
        if self.at is None:
            return super().run(task, arguments, **hooks)
        held = {"task": task, "arguments": dict(arguments), "at": self.at}
        return super().run("worker_tasks:hold_at", held, **hooks)
