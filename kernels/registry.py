"""Which implementation of the engine's operations runs on a device, and why not another."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from types import ModuleType

import torch

TRITON_MIN_CAPABILITY = (8, 0)
FP8_MIN_CAPABILITY = (8, 9)


@dataclass(frozen=True)
class Choice:
    """The operations that will run, and the reasons against the others."""

    name: str
    ops: ModuleType
    against: dict[str, str] = field(default_factory=dict)


def choose_ops(device: torch.device, *, head_dim: int, kind: str) -> Choice:
    """Triton kernels where the device and the head width allow them, else plain PyTorch."""
    reference = importlib.import_module(".reference", __package__)
    reason = _against_triton(device, head_dim, kind)
    if reason:
        return Choice("reference", reference, {"triton": reason})
    try:
        fast = importlib.import_module(".triton", __package__)
    except ImportError as failed:
        return Choice("reference", reference, {"triton": f"import failed: {failed}"})
    return Choice("triton", fast, {"reference": "slower"})


def _against_triton(device: torch.device, head_dim: int, kind: str) -> str:
    if device.type != "cuda":
        return f"needs a CUDA device, this is {device.type}"
    capability = torch.cuda.get_device_capability(device)
    if capability < TRITON_MIN_CAPABILITY:
        return f"needs capability 8.0, this device has {'.'.join(map(str, capability))}"
    if kind.startswith("fp8") and capability < FP8_MIN_CAPABILITY:
        return f"FP8 needs capability 8.9, this device has {'.'.join(map(str, capability))}"
    if head_dim < 16 or head_dim & (head_dim - 1):
        return f"head width {head_dim} is no power of two from 16 up"
    return ""
