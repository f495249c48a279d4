"""Launch parameters of Triton kernels, read from tuning.toml: data with provenance, no autotuner.

A row names an operation, a capability and the values; `status` says whether they were measured.
The row of the exact capability serves, else the nearest lower one, else "any".
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

FILE = Path(__file__).with_name("tuning.toml")
Capability = tuple[int, int]


@cache
def tuned(op: str, device: torch.device) -> dict[str, int]:
    """Launch parameters of `op` on a device, for reading: every launch is given the same dict.

    Raises KeyError for an operation without rows.
    """
    capability = None if device.type != "cuda" else torch.cuda.get_device_capability(device)
    return pick(read_rows(), op, capability)


def for_width(op: str, width: int) -> str:
    """The op whose rows serve heads `width` wide: narrow ones, of miniatures, have their own."""
    return op if width >= 128 else f"{op}_narrow"


@cache
def read_rows() -> tuple[Mapping[str, Any], ...]:
    """Every row of the file."""
    return tuple(tomllib.loads(FILE.read_text(encoding="utf-8"))["row"])


def pick(
    rows: Sequence[Mapping[str, Any]], op: str, capability: Capability | None
) -> dict[str, int]:
    """The values that serve `op` at a capability; None takes the row of "any"."""
    found = {_parse(row["capability"]): row["values"] for row in rows if row["op"] == op}
    if not found:
        raise KeyError(f"{FILE.name} has no row for {op!r}")
    fitting = [at for at in found if at is None or (capability is not None and at <= capability)]
    if not fitting:
        raise KeyError(f"{FILE.name} has no row for {op!r} at {capability}")
    best = max(fitting, key=lambda at: at or (0, 0))
    return dict(found[best])


def _parse(text: str) -> Capability | None:
    if text == "any":
        return None
    major, minor = text.split(".")
    return int(major), int(minor)
