"""Which device a run uses."""

from __future__ import annotations

import torch

from .errors import RequestError


def choose_device(name: str) -> torch.device:
    """auto takes CUDA when there is any. Raises RequestError for a device that is not here."""
    if name not in ("auto", "cpu", "cuda"):
        raise RequestError(f"device {name!r} is none of auto, cpu, cuda", field="device")
    if name == "cuda" and not torch.cuda.is_available():
        raise RequestError("no CUDA device is usable here; try --device cpu", field="device")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")
