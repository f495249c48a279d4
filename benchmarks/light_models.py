"""The models of a whole request at full size, synthetic: what is missing in a folder is written.

The transformer of `toy-checkpoint --size full` (22.5 GB), autoencoders of the published sizes (4.9
and 0.5 GB), a small text encoder of the right width, the upscaler.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor

from lowpeak.engine.checkpoint.header import write_tensors
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.parts import AUDIO_VAE, OWN_NAMES, TEXT, UPSCALER, VIDEO_VAE
from lowpeak.engine.sampling.upscaler_file import write_toy_upscaler
from lowpeak.engine.text.toy import write_toy_text_encoder
from lowpeak.engine.toy import RELEASED_UPSCALER, UPSCALER_SIZES, write_toy
from lowpeak.engine.vae.config import (
    PUBLISHED_VIDEO_MEAN,
    PUBLISHED_VIDEO_STD,
    AudioVaeConfig,
    VideoVaeConfig,
)
from lowpeak.engine.vae.keys import BLOCK_PREFIX
from lowpeak.engine.vae.shapes import block_shapes, root_shapes
from lowpeak.engine.vae.toy import FILE, audio_settings, toy_audio_state, video_settings

AUDIO = AudioVaeConfig((0.0,) * 32, (1.0,) * 32)


def write_full_video_vae(folder: Path, config: VideoVaeConfig, device: str) -> None:
    """The video decoder at `config`, float16; all blocks hold one set of numbers."""
    generator = torch.Generator(device).manual_seed(0)

    def draw(name: str, shape: tuple[int, ...]) -> Tensor:
        noise = torch.randn(shape, generator=generator, device=device)
        gain = shape[1] ** -0.5 if len(shape) > 1 else 0.1
        centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        return (centre + gain * noise).half().cpu()

    state = {
        name if name.startswith("post_quant_conv.") else f"decoder.{name}": draw(name, shape)
        for name, shape in root_shapes(config).items()
    }
    block = {name: draw(name, shape) for name, shape in block_shapes(config).items()}
    for index in range(config.blocks):
        state |= {f"{BLOCK_PREFIX}{index}.{name}": value for name, value in block.items()}
    write_tensors(folder / FILE, state, {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(video_settings(config)), encoding="utf-8")


def prepare(models: Path, size: str, device: str, blocks: int | None = None) -> Path:
    """The folder of the request's models; parts that are there already stay."""
    kind = "" if blocks is None else f"-{blocks}"
    checkpoint, folder = models / f"transformer{kind}", models / f"request{kind}"
    if not checkpoint.is_dir():
        write_toy(
            checkpoint, size=size, weight_format="edge-fp8-rowwise", seed=0, device=device,
            blocks=blocks,
        )  # fmt: skip
        print(f"{checkpoint.name} is written", flush=True)
    if blocks is not None:
        return checkpoint
    if folder.is_dir():
        return folder
    folder.mkdir()
    own = {OWN_NAMES[VIDEO_VAE], OWN_NAMES[AUDIO_VAE]}
    for entry in checkpoint.iterdir():
        if size != "full" or entry.name not in own:
            (folder / entry.name).symlink_to(entry.resolve())
    extras(folder, size)
    if size == "full":
        config = VideoVaeConfig(PUBLISHED_VIDEO_MEAN, PUBLISHED_VIDEO_STD)
        write_full_video_vae(folder / OWN_NAMES[VIDEO_VAE], config, device)
        audio = folder / OWN_NAMES[AUDIO_VAE]
        write_tensors(audio / FILE, toy_audio_state(0, AUDIO), {"format": "pt"})
        (audio / "config.json").write_text(json.dumps(audio_settings(AUDIO)), encoding="utf-8")
        print("autoencoders are written", flush=True)
    return folder


def extras(folder: Path, size: str) -> None:
    """Text encoder and upscaler, where the transformer came without them."""
    if not (folder / OWN_NAMES[TEXT]).exists():
        width = open_checkpoint(folder).config.text_dim
        write_toy_text_encoder(folder / OWN_NAMES[TEXT], text_dim=width, seed=0)
    if not (folder / OWN_NAMES[UPSCALER]).exists():
        width, depth = UPSCALER_SIZES.get(size, RELEASED_UPSCALER)
        write_toy_upscaler(folder / OWN_NAMES[UPSCALER], 0, width=width, depth=depth)
        print("upscaler is written", flush=True)
