"""What a run ran on: versions of the software that can change a result or a speed."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

NAMES = (
    "lowpeak", "torch", "triton", "comfy-kitchen", "sageattention", "flash-attn", "flash-attn-4",
    "safetensors", "numpy", "av",
)  # fmt: skip


def read_versions() -> dict[str, str]:
    """{name: version}; what is not installed is left out. CUDA as torch was built for it."""
    found = {"python": platform.python_version(), "system": platform.platform(terse=True)}
    for name in NAMES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    import torch

    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
    return found
