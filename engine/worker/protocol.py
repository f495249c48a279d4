"""What a worker and its supervisor say to each other: one JSON object a line.

To the worker:  start {task, arguments}, cancel, release, exit.
From it:        ready {pid}, beat {rss_bytes}, event {...}, result {value}, failure {kind, error}.
A task is named "module:function"; arguments and results are plain JSON, because bulk lies in files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .. import errors
from ..errors import LowpeakError, Shortage
from ..events import Event
from ..geometry import Geometry
from ..request import LoraChoice, Request

TO_WORKER = ("start", "cancel", "release", "exit")
FROM_WORKER = ("ready", "beat", "event", "result", "failure")


@dataclass(frozen=True)
class Message:
    """One line of the protocol."""

    kind: str
    body: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in TO_WORKER + FROM_WORKER:
            raise ValueError(f"message kind {self.kind!r} is unknown")

    def encode(self) -> str:
        """The message as a line."""
        return json.dumps({"kind": self.kind, "body": dict(self.body)}) + "\n"


def decode(line: str) -> Message | None:
    """A line as a message; None for anything else, which a library may have printed."""
    try:
        data = json.loads(line)
        return Message(data["kind"], data["body"])
    except (ValueError, KeyError, TypeError):
        return None


def event_from(body: Mapping[str, Any]) -> Event:
    """The event of an `event` message."""
    # What is empty was left out: a notice between two phases has none.
    return Event(**{"phase": "", **body, "terms": tuple(body.get("terms", ()))})


def request_to_json(request: Request) -> dict[str, Any]:
    """The whole request, prompt included: it goes to a child process and nowhere else."""
    return asdict(request)


def request_from_json(data: Mapping[str, Any]) -> Request:
    """The request of `request_to_json`."""
    fields = dict(data)
    fields["geometry"] = Geometry(**fields["geometry"])
    fields["loras"] = tuple(LoraChoice(**item) for item in fields["loras"])
    fields["references"] = tuple(fields["references"])
    return Request(**fields)


def error_from_json(data: Mapping[str, Any]) -> LowpeakError | None:
    """The error of `LowpeakError.as_json`, with its fields; None when it is none of ours."""
    kind = getattr(errors, str(data.get("error")), None)
    if not (isinstance(kind, type) and issubclass(kind, LowpeakError)):
        return None
    error = kind.__new__(kind)
    Exception.__init__(error, str(data.get("message", "")))
    for name, value in data.items():
        if name in ("error", "message"):
            continue
        if name == "short":
            keys = ("axis", "phase", "need_bytes", "have_bytes")
            value = tuple(Shortage(**{key: item[key] for key in keys}) for item in value)
        elif isinstance(value, list):
            value = tuple(value)
        setattr(error, name, value)
    return error


def log_tail(path: Path, most_bytes: int = 4000) -> str:
    """The end of a worker's log."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - most_bytes))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
