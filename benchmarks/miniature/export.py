"""Trained state to a checkpoint folder in the published layouts, bfloat16:

python -m lowpeak.benchmarks.miniature.export --state DIR --out miniature

h3-base/transformer, stage-miniature    OpenVDN's layout: base and linear branch
vae, audio_vae                          diffusers' layout
upscaler.safetensors, text_encoder      as the engine's own folder has them
loras                                   diffusers' names
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from lowpeak.engine.checkpoint.header import write_tensors
from lowpeak.engine.checkpoint.names import FP32_ROOT, branch_shapes
from lowpeak.engine.parts import AUDIO_VAE, OWN_NAMES, TEXT, UPSCALER, VIDEO_VAE
from lowpeak.engine.text.toy import write_toy_text_encoder
from lowpeak.engine.vae.toy import FILE as VAE_FILE
from lowpeak.engine.vae.toy import audio_settings, video_settings

from .models import AUDIO, MODEL, TEXT_SEED, VIDEO

State = dict[str, torch.Tensor]
STAGE = "stage-miniature"
HALF = torch.bfloat16


def export(state: Path, out: Path) -> dict[str, Any]:
    """Write what `state` holds into `out` (replaced); gives bytes by part."""
    if out.exists():
        shutil.rmtree(out)
    write_model(out, load_file(state / "model.safetensors"))
    for name, kind in (("video", VIDEO_VAE), ("audio", AUDIO_VAE)):
        write_autoencoder(out / OWN_NAMES[kind], name, load_file(state / f"{name}.safetensors"))
    write_text_encoder(out / OWN_NAMES[TEXT])
    extras = load_file(state / "extras.safetensors")
    write_tensors(out / OWN_NAMES[UPSCALER], _take(extras, "upscaler.", torch.float16))
    for style in ("night", "outline"):
        pairs = {
            f"transformer.{name.replace('.attn.orig.', '.attn.')}": value
            for name, value in _take(extras, f"{style}.", HALF).items()
        }
        (out / "loras").mkdir(exist_ok=True)
        if pairs:
            save_file(pairs, out / "loras" / f"{style}.safetensors", {"format": "pt"})
    return {
        path.relative_to(out).as_posix(): path.stat().st_size
        for path in sorted(out.rglob("*"))
        if path.is_file()
    }


def write_model(out: Path, model: State) -> None:
    """The transformer in OpenVDN's layout."""
    base, branch = out / "h3-base" / "transformer", out / STAGE
    added = set(branch_shapes(MODEL))
    stored: State = {}
    beside: State = {}
    for name, value in model.items():
        local = name.split(".", 2)[2] if name.startswith("transformer_blocks.") else ""
        value = value.float() if name.startswith(FP32_ROOT) else value.to(HALF)
        if local in added:
            beside[name] = value.contiguous()
        else:
            stored[name.replace(".attn.orig.", ".attn.")] = value.contiguous()
    base.mkdir(parents=True)
    write_tensors(base / VAE_FILE, stored, {"format": "pt"})
    config = {"_class_name": "MiniMaxH3Transformer3DModel", **MODEL.as_json()}
    _json(base / "config.json", config)
    (branch / "linear_branch").mkdir(parents=True)
    write_tensors(branch / "linear_branch" / "model.safetensors", beside)
    assert MODEL.vdn is not None
    transform = MODEL.vdn.as_json()
    _json(branch / "linear_branch" / "config.json", transform)
    _json(branch / "model_spec.json", {"transform": transform, "adapters": []})


def write_autoencoder(folder: Path, name: str, state: State) -> None:
    """One autoencoder in diffusers' layout, its statistics in config.json."""
    folder.mkdir(parents=True)
    mean, std = (tuple(state.pop(f"latents_{n}").tolist()) for n in ("mean", "std"))
    write_tensors(folder / VAE_FILE, {k: v.to(HALF) for k, v in state.items()}, {"format": "pt"})
    if name == "video":
        _json(
            folder / "config.json",
            video_settings(replace(VIDEO, latents_mean=mean, latents_std=std)),
        )
    else:
        _json(
            folder / "config.json",
            audio_settings(replace(AUDIO, latents_mean=mean, latents_std=std)),
        )


def write_text_encoder(folder: Path) -> None:
    """The hash encoder that training used, its table as bfloat16."""
    write_toy_text_encoder(folder, text_dim=MODEL.text_dim, seed=TEXT_SEED)
    file = folder / "model.safetensors"
    save_file({k: v.to(HALF) for k, v in load_file(file).items()}, file)


def _take(state: State, prefix: str, dtype: torch.dtype) -> State:
    return {
        k.removeprefix(prefix): v.to(dtype).contiguous()
        for k, v in state.items()
        if k.startswith(prefix)
    }


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    written = export(options.state, options.out)
    print(json.dumps(written, indent=1))
    print(f"{sum(written.values())} bytes")


if __name__ == "__main__":
    main()
