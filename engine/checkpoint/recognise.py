"""Say what a file is from its header alone: names and shapes of tensors, never the file name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import CheckpointError
from . import comfy, edge
from .header import TensorFile, read_header
from .openvdn import base_folder, stage_folder
from .walk import Walk, walk

MAX_FILES = 5000
_TEXT_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.self_attn\.q_proj\.")
_VIDEO_BLOCK = re.compile(r"decoder\.transformer_blocks\.\d+\.attn\.(?:to_qkv|to_q)\.")


@dataclass(frozen=True)
class FoundModel:
    """One model on disk. `problem` says why it cannot be used, empty when nothing is wrong."""

    kind: str  # transformer | vdn_stage | text_encoder | video_vae | audio_vae | upscaler | lora
    path: Path
    detail: str
    size_bytes: int
    weight_format: str | None = None
    problem: str = ""


def recognise(path: Path) -> FoundModel | None:
    """What a .safetensors file is; None for a model of another family.

    A damaged file comes back with kind `damaged`.
    """
    try:
        file = read_header(path)
    except CheckpointError as damage:
        return FoundModel("damaged", path, "unreadable", _size(path), problem=str(damage))
    return recognise_header(file)


def recognise_header(file: TensorFile) -> FoundModel | None:
    """As `recognise`, from a header that was read."""
    for kind, test in (
        ("transformer", _transformer),
        ("upscaler", _upscaler),
        ("audio_vae", _audio_vae),
        ("video_vae", _video_vae),
        ("text_encoder", _text_encoder),
        ("lora", _lora),
    ):
        detail = test(file)
        if detail is not None:
            form = {"int8": "int8-convrot", "fp8": "fp8-tensor"}.get(precision(file), "plain")
            return FoundModel(kind, file.path, detail, file.identity.size_bytes, form)
    return None


def precision(file: TensorFile) -> str:
    """The precision that most bytes of a file are in: bf16, fp16, fp32, fp8, int8 or nvfp4."""
    sizes: Counter[str] = Counter()
    for span in file.tensors.values():
        sizes[span.dtype] += span.nbytes
    names = {"F8_E4M3": "fp8", "I8": "int8", "U8": "nvfp4", "F32": "fp32", "F16": "fp16"}
    return names.get(max(sizes, key=lambda key: sizes[key], default=""), "bf16")


def find_models(folders: Sequence[Path]) -> list[FoundModel]:
    """Everything of this family in or below `folders`, each file once, in order of path."""
    found: dict[Path, FoundModel] = {}
    taken: list[Path] = []
    for folder in folders:
        for cache in edge.find_caches(folder) if folder.is_dir() else []:
            taken.append(cache)
            found.setdefault(cache.resolve(), _edge_cache(cache))
        if folder.is_dir():
            for path, kind in ((base_folder(folder), "transformer"),
                               (stage_folder(folder), "vdn_stage")):  # fmt: skip
                if path is not None and path.resolve() not in found:
                    taken.append(path)
                    form = "plain" if kind == "transformer" else None
                    detail = "diffusers base" if kind == "transformer" else "OpenVDN stage"
                    found[path.resolve()] = FoundModel(kind, path, detail, _size(path), form)
    for folder in folders:
        for path in weight_files(folder):
            if path.resolve() in found or any(path.is_relative_to(item) for item in taken):
                continue
            model = recognise(path)
            if model is not None:
                found[path.resolve()] = model
    return sorted(found.values(), key=lambda item: (item.kind, str(item.path)))


def weight_files(folder: Path) -> Iterator[Path]:
    """Every .safetensors file below a folder, bounded, without caches and repositories."""
    if folder.is_file():
        yield folder
        return
    yield from files_in(walk(folder))


def files_in(found: Walk) -> Iterator[Path]:
    """Every .safetensors file in the folders of a walk, at most MAX_FILES."""
    count = 0
    for here in found.folders:
        for path in sorted(here.glob("*.safetensors")):
            # Folders and pipes hold no tensors; a link to nowhere is a file that is missing.
            if path.name.startswith(".") or (path.exists() and not path.is_file()):
                continue
            count += 1
            if count > MAX_FILES:
                return
            yield path


def _edge_cache(cache: Path) -> FoundModel:
    size = _size(cache)
    try:
        checkpoint = edge.open_edge(cache, cache)
    except CheckpointError as damage:
        return FoundModel("transformer", cache, "edge cache", size, None, str(damage))
    detail = f"edge cache, {len(checkpoint.table_sets)} AdaLN table sets"
    return FoundModel("transformer", cache, detail, size, checkpoint.weight_format)


def _transformer(file: TensorFile) -> str | None:
    if not comfy.is_comfy(file):
        return None
    pruned = any(name.endswith("adaln_t_table") for name in file.tensors)
    form = "pruned " if pruned else ""
    return f"ComfyUI single file, {form}{precision(file)}"


def _upscaler(file: TensorFile) -> str | None:
    for prefix in ("", "upscaler."):
        first = file.tensors.get(f"{prefix}conv_in.weight")
        embed = file.tensors.get(f"{prefix}embed.0.weight")
        if first and embed and len(first.shape) == 5 and embed.shape == (64, 1):
            return f"latent upscaler, width {first.shape[0]}"
    return None


def _audio_vae(file: TensorFile) -> str | None:
    tails = ("dec_in_proj.weight", "dec_in_proj.weight_v", "dec_in_proj.parametrizations.weight"
             ".original1")  # fmt: skip
    found = any(name.endswith(tails) for name in file.tensors)
    return f"audio autoencoder, {precision(file)}" if found else None


def _video_vae(file: TensorFile) -> str | None:
    found = any(_VIDEO_BLOCK.search(name) for name in file.tensors) and any(
        name.endswith("register_tokens") for name in file.tensors
    )
    return f"video autoencoder, {precision(file)}" if found else None


def _text_encoder(file: TensorFile) -> str | None:
    if set(file.tensors) == {"table", "colours"}:
        return "toy text encoder"
    layers = {int(m[1]) for name in file.tensors if (m := _TEXT_LAYER.search(name))}
    vision = any(name.startswith(("visual.", "model.visual.")) for name in file.tensors)
    if not layers or not vision:
        return None
    return f"Qwen3-VL text encoder, {len(layers)} layers, {precision(file)}"


def _lora(file: TensorFile) -> str | None:
    marks = (".lora_A.", ".lora_down.", ".lora_A", ".lora_up.")
    names = [name for name in file.tensors if any(mark in name for mark in marks)]
    ours = any("transformer_blocks" in n or "blocks" in n or "norm_out" in n for n in names)
    return f"LoRA, {len(names)} tensors" if names and ours else None


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(item.stat().st_size for item in path.rglob("*") if item.is_file())
