"""Lowpeak Report: the memory picture and the report of a plan or a run."""

from __future__ import annotations

import json
from typing import Any

from ..engine.errors import RequestError
from . import tables
from .handles import PlanHandle, RunHandle
from .picture import draw


class Report:
    """Draws peaks by phase; measured beside forecast where there is a measurement."""

    table = tables.REPORT
    pack: Any

    @classmethod
    def execute(
        cls, run: RunHandle | None = None, plan: PlanHandle | None = None
    ) -> dict[str, Any]:
        """(image, JSON text)."""
        if run is None and plan is None:
            raise RequestError("connect run or plan", field="run")
        report: dict[str, Any] = {} if plan is None else {"plan": dict(plan.document)}
        phases = report.get("plan", {}).get("phases", [])
        bars = {item["phase"]: {"forecast": item} for item in phases}
        if run is not None:
            book = cls.pack.runs.get(run.run_id)
            if book is None:
                raise RequestError(f"run {run.run_id} is no longer in the run book", field="run")
            report["run"] = book
            bars.update(book["phases"])
        text = json.dumps(report, indent=2, default=str)
        image = cls.pack.convert.image_out(draw(bars))
        return {"result": (image, text), "ui": {"text": (text,)}}

    @classmethod
    def fingerprint_inputs(cls, **constants: Any) -> Any:
        """The run book grows while a run goes on, so the report is always read anew."""
        return float("nan")
