"""What a worker can be asked to do. Imports happen inside: a worker loads what its task needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .protocol import request_from_json

if TYPE_CHECKING:
    from ..run import RunOptions
    from .child import WorkerContext

GENERATE = ".engine.worker.tasks:generate"
_PATHS = ("checkpoint", "out", "resume")


def options_to_json(options: RunOptions) -> dict[str, Any]:
    """RunOptions as plain JSON."""
    data = asdict(options)
    data.update({name: None if data[name] is None else str(data[name]) for name in _PATHS})
    data["metadata"] = dict(options.metadata)
    return data


def generate(arguments: Mapping[str, Any], context: WorkerContext) -> dict[str, Any]:
    """One stage of a request, as its options say. Gives the report as JSON."""
    from ..run import RunOptions, run_request

    fields = dict(arguments["options"])
    fields.update({name: None if fields[name] is None else Path(fields[name]) for name in _PATHS})
    request = request_from_json(arguments["request"])
    report = run_request(request, RunOptions(**fields), context, tuple(arguments["notices"]))
    return report.as_json()
