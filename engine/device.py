"""Which device a run uses."""

from __future__ import annotations

import torch

from .errors import RequestError
from .options import check_device_name


def choose_device(name: str) -> torch.device:
    """auto takes CUDA when there is any. Raises RequestError for a device that is not here."""
    check_device_name(name)
    if name == "cuda" and not torch.cuda.is_available():
        raise RequestError("no CUDA device is usable here; try --device cpu", field="device")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def free_workspaces(device: torch.device) -> None:
    """Give back what the matrix library and the allocator hold for streams that are gone.

    The library keeps a workspace of 32 MiB for every stream it ever ran on, and each pass has four
    streams of its own: without this a second pass starts with 128 MiB less. Nothing may be running,
    and no captured graph that uses a workspace may be replayed afterwards.
    """
    if device.type != "cuda":
        return
    torch.cuda.synchronize(device)
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear is not None:
        clear()
    torch.cuda.empty_cache()
