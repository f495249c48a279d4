"""Sizes and formats of synthetic checkpoints, known without PyTorch."""

from __future__ import annotations

from ..errors import RequestError
from ..model.config import ModelConfig

SIZES: dict[str, ModelConfig] = {
    "tiny": ModelConfig(
        layers=3,
        refiner_layers=1,
        heads=2,
        head_dim=32,
        hidden=96,
        ffn=128,
        text_dim=64,
        freq_dim=32,
        time_hidden=48,
        time_dim=40,
        rope_freqs=4,
    ),
    "block": ModelConfig(layers=2),
    "full": ModelConfig(),
}
FORMATS = {
    "edge-fp8": "fp8-tensor",
    "edge-fp8-rowwise": "fp8-rowwise",
    "edge-int8": "int8-convrot",
    "openvdn": "plain",
    "comfy": "plain",
}


def check_toy(size: str, format: str) -> None:
    """Raise RequestError for an unknown size or format."""
    if size not in SIZES:
        raise RequestError(f"size {size!r} is none of {', '.join(SIZES)}", field="size")
    if format not in FORMATS:
        raise RequestError(f"format {format!r} is none of {', '.join(FORMATS)}", field="format")
