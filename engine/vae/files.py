"""Open the files of the two autoencoders: checked by their headers, read part by part.

Video: a diffusers folder (config.json and safetensors), the same as one file, or ComfyUI's single
file, in float or with int8 ConvRot linears. Audio: a diffusers folder or one file, convolutions
folded or weight-normalised. Every shape is compared before any tensor is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...kernels.reference.quantise import convrot_group, dequantise_int8_convrot
from ..checkpoint.header import FLOAT_NAMES, read_header
from ..checkpoint.sources import Source, Sources, check_sources, read_json, read_sources, sources_of
from ..errors import CheckpointError
from .audio import fold_weight_norm, norm_names
from .config import AudioVaeConfig, Shape, VideoVaeConfig
from .keys import BLOCK_PREFIX, fuse_qkv, infer_names, is_comfy_video, to_comfy
from .shapes import audio_shapes, block_shapes, encoder_shapes, root_shapes

QUANTISED = (*FLOAT_NAMES, "I8")
SAMPLED_VALUES = 4096  # of a tensor, spread over it: enough for holes and shifted bytes
LARGEST_WEIGHT = 1e4
WEIGHT_ENDINGS = ("weight", "weight_v", "weight.original1")


@dataclass(frozen=True)
class VideoVaeFile:
    """The video autoencoder on disk. Nothing is kept in memory."""

    path: Path
    config: VideoVaeConfig
    sources: Sources  # names as stored
    comfy: bool
    has_encoder: bool

    def root(
        self, device: torch.device | str = "cpu", dtype: torch.dtype | None = torch.float32
    ) -> dict[str, Tensor]:
        """The decoder outside its blocks, as `decode_video` takes it."""
        return self._read(_root_names(self.config), device, dtype)

    def block(
        self, index: int, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
    ) -> dict[str, Tensor]:
        """Block `index` of the decoder, as stored unless `dtype` says otherwise.

        Int8 weights come as float16 in the original basis.
        """
        names = {name: f"{BLOCK_PREFIX}{index}.{name}" for name in block_shapes(self.config)}
        return self._read(names, device, dtype)

    def blocks(
        self, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
    ) -> Iterator[dict[str, Tensor]]:
        """All blocks in order, one in memory at a time: `functools.partial(file.blocks, device)` is
        what `decode_video` asks for."""
        for index in range(self.config.blocks):
            yield self.block(index, device, dtype)

    def stored_block(self, index: int) -> dict[str, Source]:
        """Where the tensors of block `index` lie, by their names in the file within the block."""
        prefix = f"{BLOCK_PREFIX}{index}."
        names = (prefix + name for name in block_shapes(self.config))
        stored = {to_comfy(name)[0] if self.comfy else name for name in names}
        return {name.removeprefix(prefix): self.sources[name] for name in sorted(stored)}

    def from_stored(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A block under the names and in the order that `decode_video` wants, q, k and v in one
        linear, from its tensors as stored (`stored_block`). Those that need no change are views."""
        if not self.comfy:
            return fuse_qkv(tensors)
        prefix, found = f"{BLOCK_PREFIX}0.", {}
        for name in block_shapes(self.config):
            stored, take = to_comfy(prefix + name)
            found[name] = take(tensors[stored.removeprefix(prefix)], self.config.heads)
        return fuse_qkv(found)

    def encoder(self, device: torch.device | str = "cpu") -> dict[str, Tensor]:
        """The encoder in float32. Raises CheckpointError when the file holds none."""
        if not self.has_encoder:
            raise CheckpointError("the file holds no encoder", file=self.path)
        return self._read(_encoder_names(self.config), device, torch.float32)

    @property
    def block_bytes(self) -> int:
        """Bytes of the largest block as `block` gives it."""
        shapes = block_shapes(self.config)
        return max(
            sum(self._stored_bytes(f"{BLOCK_PREFIX}{i}.{name}", shapes[name]) for name in shapes)
            for i in range(self.config.blocks)
        )

    def _stored_bytes(self, name: str, shape: Shape) -> int:
        dtype = self.sources[to_comfy(name)[0] if self.comfy else name].span.torch_dtype
        size = torch.float16.itemsize if dtype == torch.int8 else dtype.itemsize
        return size * torch.Size(shape).numel()

    def _read(
        self,
        names: Mapping[str, str],
        device: torch.device | str,
        dtype: torch.dtype | None,
    ) -> dict[str, Tensor]:
        """names: local name -> diffusers' name."""
        where = {name: to_comfy(name)[0] if self.comfy else name for name in names.values()}
        wanted = {stored: self.sources[stored] for stored in where.values()}
        for stored in tuple(wanted):
            scale = _scale_name(stored)
            if wanted[stored].span.dtype == "I8":
                wanted[scale] = self.sources[scale]
        read = read_sources(wanted)
        found: dict[str, Tensor] = {}
        for stored, value in read.items():
            check_numbers(value, self.sources[stored])
        for local, name in names.items():
            value = read[where[name]]
            if value.dtype == torch.int8:
                value = dequantise_int8_convrot(value, read[_scale_name(where[name])]).half()
            if self.comfy:
                value = to_comfy(name)[1](value, self.config.heads)
            found[local] = value.to(device, dtype or value.dtype).contiguous()
        return found


def open_video_vae(path: str | Path) -> VideoVaeFile:
    """Open the video autoencoder. Raises CheckpointError naming file, tensor, expected, found."""
    path = Path(path)
    sources, settings = _open(path)
    shapes = {name: source.span.shape for name, source in sources.items()}
    comfy = is_comfy_video(shapes)
    if comfy:
        for name in ("latents_mean", "latents_std"):
            if name in sources and name not in settings:
                settings[name] = sources[name].file.read(name).float().tolist()
    try:
        config = VideoVaeConfig.infer(infer_names(shapes) if comfy else shapes, settings)
    except CheckpointError as unknown:
        raise _named(unknown, path) from None
    has_encoder = any(name.startswith("encoder.") for name in sources)
    _check_video(sources, config, path, comfy=comfy, encoder=has_encoder)
    return VideoVaeFile(path, config, sources, comfy, has_encoder)


@dataclass(frozen=True)
class AudioVaeFile:
    """The audio autoencoder on disk."""

    path: Path
    config: AudioVaeConfig
    sources: Sources

    def tensors(self, device: torch.device | str = "cpu") -> dict[str, Tensor]:
        """All tensors, float32 and folded, as `decode_audio` and `encode_audio` take them."""
        read = read_sources(self.sources)
        for name, value in read.items():
            check_numbers(value, self.sources[name])
        read = {name: value.float() for name, value in read.items()}
        return {name: value.to(device) for name, value in fold_weight_norm(read).items()}


def open_audio_vae(path: str | Path) -> AudioVaeFile:
    """Open the audio autoencoder. Raises CheckpointError naming file, tensor, expected, found."""
    path = Path(path)
    sources, settings = _open(path)
    for name in ("latents_mean", "latents_std"):
        source = sources.pop(name, None)
        if source is not None and name not in settings:
            settings[name] = source.file.read(name).float().tolist()
    folded, gains = _folded(sources)
    try:
        config = AudioVaeConfig.infer(
            {name: source.span.shape for name, source in folded.items()}, settings
        )
    except CheckpointError as unknown:
        raise _named(unknown, path) from None
    shapes = audio_shapes(config)
    check_sources(folded, {n: (FLOAT_NAMES, s) for n, s in shapes.items()}, where=path)
    first_axis = {
        gain: (FLOAT_NAMES, (shapes[name][0], *(1,) * (len(shapes[name]) - 1)))
        for gain, name in gains.items()
        if name in shapes
    }
    check_sources(sources, first_axis, where=path)
    used = {source.name for name, source in folded.items() if name in shapes} | set(first_axis)
    return AudioVaeFile(path, config, {n: s for n, s in sources.items() if n in used})


def check_numbers(value: Tensor, source: Source) -> None:
    """Statistics of a sample: right sizes with wrong bytes are a CheckpointError.

    Not finite, absurdly large, or, for a weight, nothing but zeros: a hole that a broken download
    left looks like that.
    """
    flat = value.flatten()
    sample = flat[:: max(1, flat.numel() // SAMPLED_VALUES)].float()
    largest = float(sample.abs().max())
    hole = largest == 0 and value.ndim > 1 and source.name.endswith(WEIGHT_ENDINGS)
    if hole or not largest <= LARGEST_WEIGHT:
        raise CheckpointError(
            "wrong bytes in a tensor",
            file=source.file.path,
            tensor=source.name,
            expected=f"numbers up to {LARGEST_WEIGHT:g}, not all zero",
            found="zeros only" if hole else f"a value of {largest:g}",
            remedy="Fetch this file again.",
        )


def _open(path: Path) -> tuple[Sources, dict[str, Any]]:
    """All tensors of a folder or a file, and its config.json where there is one."""
    if path.is_file():
        return sources_of([read_header(path)]), {}
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise CheckpointError(
            "no model file",
            file=path,
            expected="*.safetensors",
            found="an empty folder" if path.is_dir() else "nothing",
        )
    index = path / "diffusion_pytorch_model.safetensors.index.json"
    if index.is_file():
        listed = sorted(set(read_json(index).get("weight_map", {}).values()))
        files = [path / name for name in listed]
    settings = path / "config.json"
    return (
        sources_of(read_header(file) for file in files),
        dict(read_json(settings)) if settings.is_file() else {},
    )


def _check_video(
    sources: Sources, config: VideoVaeConfig, path: Path, *, comfy: bool, encoder: bool
) -> None:
    shapes: dict[str, Shape] = {}
    root = root_shapes(config)
    shapes |= {full: root[name] for name, full in _root_names(config).items()}
    for index in range(config.blocks):
        prefix = f"{BLOCK_PREFIX}{index}."
        shapes |= {prefix + name: shape for name, shape in block_shapes(config).items()}
    if encoder:
        inner = encoder_shapes(config)
        shapes |= {full: inner[name] for name, full in _encoder_names(config).items()}
    expected: dict[str, tuple[tuple[str, ...], Shape]] = {}
    for name, shape in shapes.items():
        stored = to_comfy(name)[0] if comfy else name
        if ".to_qkv." in stored:
            shape = (3 * shape[0], *shape[1:])
        linear = comfy and stored.startswith(BLOCK_PREFIX) and len(shape) == 2
        expected[stored] = (QUANTISED if linear else FLOAT_NAMES, shape)
        if linear and stored in sources and sources[stored].span.dtype == "I8":
            expected[_scale_name(stored)] = (("F32",), (shape[0],))
            _check_rotation(sources, stored)
    check_sources(sources, expected, where=path)


def _check_rotation(sources: Sources, weight: str) -> None:
    """Int8 without rotation looks the same: read what the file says of it (a few bytes)."""
    note = sources.get(weight.removesuffix("weight") + "comfy_quant")
    group = convrot_group(sources[weight].span.shape[1])
    found: object = "nothing"
    if note is not None:
        text = bytes(note.file.read(note.name).to(torch.uint8).tolist())
        try:
            found = json.loads(text)
        except (UnicodeDecodeError, json.JSONDecodeError):
            found = text[:80]
        wanted = {"format": "int8_tensorwise", "convrot": True, "convrot_groupsize": group}
        if isinstance(found, dict) and all(found.get(k) == v for k, v in wanted.items()):
            return
    raise CheckpointError(
        "unknown int8 rule",
        file=sources[weight].file.path,
        tensor=weight,
        expected=f"int8_tensorwise, convrot, groups of {group}",
        found=found,
        remedy="This file needs a newer Lowpeak.",
    )


def _folded(sources: Sources) -> tuple[Sources, dict[str, str]]:
    """Sources under folded names (a direction has the shape of its weight), gain -> folded name."""
    folded: Sources = {}
    gains: dict[str, str] = {}
    for name, source in sources.items():
        kind, target = norm_names(name)
        if kind == "gain":
            gains[name] = target
        else:
            folded[target] = Source(source.file, source.name)
    return folded, gains


def _root_names(config: VideoVaeConfig) -> dict[str, str]:
    return {
        name: name if name.startswith("post_quant_conv.") else f"decoder.{name}"
        for name in root_shapes(config)
    }


def _encoder_names(config: VideoVaeConfig) -> dict[str, str]:
    return {
        name: name if name.startswith("quant_conv.") else f"encoder.{name}"
        for name in encoder_shapes(config)
    }


def _scale_name(weight: str) -> str:
    return f"{weight}_scale"


def _named(error: CheckpointError, path: Path) -> CheckpointError:
    return CheckpointError(
        "not this kind of autoencoder, or incomplete",
        file=error.file or path,
        tensor=error.tensor,
        expected=error.expected,
        found=error.found if error.found is not None else str(error),
    )
