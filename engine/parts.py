"""Where the other models of a checkpoint lie: beside it under our names, else found by header.

A miniature, or a folder put together by hand, keeps every part in the checkpoint folder. Downloads
and ComfyUI spread them over folders of their own (text_encoders, vae, ...); those below the given
folder and below the models folders are searched, and a file counts by its tensors, not its name.
"""

from __future__ import annotations

from pathlib import Path

from .checkpoint.inventory import model_folders
from .checkpoint.recognise import find_models
from .errors import CheckpointError
from .model_files import models_roots

TEXT, VIDEO_VAE, AUDIO_VAE, UPSCALER = "text_encoder", "video_vae", "audio_vae", "upscaler"
OWN_NAMES = {
    TEXT: "text_encoder",
    VIDEO_VAE: "vae",
    AUDIO_VAE: "audio_vae",
    UPSCALER: "upscaler.safetensors",
}
BESIDE = ("config.json", "model.safetensors.index.json")


def find_part(folder: Path, kind: str) -> Path:
    """The file or folder of a part. Raises CheckpointError naming where it was looked for."""
    own = folder / OWN_NAMES[kind]
    if own.exists():
        return own
    roots = [root for root in models_roots(None) if root.is_dir()]
    folders = [folder, *(item for root in roots for item in model_folders(root))]
    for found in find_models([item for item in folders if item.is_dir()]):
        if found.kind == kind and not found.problem:
            home = found.path.parent
            whole = any((home / name).is_file() for name in BESIDE)
            return home if found.path.is_file() and whole else found.path
    raise CheckpointError(
        f"there is no {kind.replace('_', ' ')}",
        file=own,
        expected=f"{own.name} in the checkpoint folder, or a file of that kind in "
        + ", ".join(str(root) for root in roots or models_roots(None)),
        found="nothing",
        remedy="`lowpeak models list` says what is needed and where it comes from.",
    )
