"""A whole miniature: transformer, text encoder, upscaler and autoencoders of random weights.

The transformer's writer makes its part in any published layout; here the other models are put
beside it, so that one folder runs a request from prompt to video.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .checkpoint.toy import Extra, write_toy_checkpoint
from .checkpoint.toy_sizes import FORMATS, SIZES
from .events import Event, Host
from .model.config import ModelConfig
from .parts import AUDIO_VAE, OWN_NAMES, TEXT, UPSCALER, VIDEO_VAE
from .sampling.upscaler_file import write_toy_upscaler
from .text.toy import write_toy_text_encoder
from .vae.toy import write_toy_audio_vae, write_toy_video_vae

UPSCALER_SIZES = {"tiny": (32, 1)}  # (width, blocks a side); other sizes take the released ones
RELEASED_UPSCALER = (512, 12)

__all__ = ["FORMATS", "SIZES", "write_toy"]


def write_toy(
    folder: Path,
    *,
    size: str,
    weight_format: str,
    seed: int,
    device: str = "cpu",
    blocks: int | None = None,
    host: Host | None = None,
) -> dict[str, Any]:
    """Write the miniature into `folder`; gives what was written, JSON-ready.

    Equal arguments give equal bytes; `device` counts as one, its generator makes other numbers.
    blocks: how many, instead of the size's own. Raises RequestError for an unknown size or format.
    """

    def progress(done: int, steps: int, what: str) -> None:
        if host is not None:
            host.emit(Event("progress", "toy-checkpoint", what, step=done, steps=steps))

    extras: tuple[Extra, ...] = (_text_encoder, _upscaler(size), _autoencoders)
    write_toy_checkpoint(
        folder,
        size=size,
        format=weight_format,
        seed=seed,
        device=device,
        blocks=blocks,
        extras=extras,
        progress=progress,
    )
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {
        "folder": str(folder),
        "size": size,
        "format": weight_format,
        "seed": seed,
        "files": len(files),
        "bytes": sum(file.stat().st_size for file in files),
    }


def _text_encoder(folder: Path, config: ModelConfig, seed: int) -> None:
    write_toy_text_encoder(folder / OWN_NAMES[TEXT], text_dim=config.text_dim, seed=seed)


def _autoencoders(folder: Path, config: ModelConfig, seed: int) -> None:
    write_toy_video_vae(folder / OWN_NAMES[VIDEO_VAE], seed)
    write_toy_audio_vae(folder / OWN_NAMES[AUDIO_VAE], seed)


def _upscaler(size: str) -> Extra:
    width, depth = UPSCALER_SIZES.get(size, RELEASED_UPSCALER)

    def write(folder: Path, config: ModelConfig, seed: int) -> None:
        write_toy_upscaler(folder / OWN_NAMES[UPSCALER], seed, width=width, depth=depth)

    return write
