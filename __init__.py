"""Lowpeak: MiniMax H3 with Video DeltaNet inside ComfyUI, planned before it runs.

ComfyUI loads this folder as a custom node and calls `comfy_entrypoint`. Nothing heavy is imported
here: no torch, no comfy, no thread, no CUDA context.
"""

from __future__ import annotations

from typing import Any

WEB_DIRECTORY = "./web/dist"

__all__ = ["WEB_DIRECTORY", "comfy_entrypoint"]


async def comfy_entrypoint() -> Any:
    """The V3 extension object ComfyUI asks for."""
    from .nodes import extension

    return extension()
