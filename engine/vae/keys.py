"""Names of the autoencoders' tensors: diffusers' layout, split in parts, and ComfyUI's single file.

ComfyUI's video file (facts: model sheet e.6) stacks q, k and v per head, [q k v] of head 0 first,
and stores the two halves of the gated linear as [gate; value] where diffusers has [value; gate].
Its audio file differs from diffusers' by folded convolutions alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from .config import count_indexed

BLOCK_PREFIX = "decoder.transformer_blocks."
Take = Callable[[Tensor, int], Tensor]  # (stored tensor, heads) -> tensor in diffusers' layout
_LEVEL = re.compile(r"encoder\.down_blocks\.(\d+)\.(resnets|downsamplers)\.(\d+)\.(.+)")
_COMFY_LEVEL = re.compile(r"encoder\.down\.(\d+)\.(?:block\.(\d+)|downsample)\.(.+)")


def split_video_state(
    state: Mapping[str, Tensor],
) -> tuple[dict[str, Tensor], dict[str, Tensor], list[dict[str, Tensor]]]:
    """(encoder, root, blocks) of a state in diffusers' names.

    encoder keeps its names without `encoder.`, plus `quant_conv.*`; root holds `post_quant_conv.*`
    and the decoder's own tensors without `decoder.`; blocks[i] has the names inside a block.
    """
    encoder: dict[str, Tensor] = {}
    root: dict[str, Tensor] = {}
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    blocks: list[dict[str, Tensor]] = [{} for _ in range(count_indexed(shapes, BLOCK_PREFIX))]
    pattern = re.compile(re.escape(BLOCK_PREFIX) + r"(\d+)\.(.+)")
    for name, value in state.items():
        match = pattern.match(name)
        if match:
            blocks[int(match[1])][match[2]] = value
        elif name.startswith("encoder."):
            encoder[name.removeprefix("encoder.")] = value
        elif name.startswith("quant_conv."):
            encoder[name] = value
        else:
            root[name.removeprefix("decoder.")] = value
    return encoder, root, blocks


def is_comfy_video(names: Mapping[str, object]) -> bool:
    """Whether these are ComfyUI's names of the video autoencoder."""
    return "decoder.x_embedder.weight" in names


def to_comfy(name: str) -> tuple[str, Take]:
    """Where a tensor of diffusers' name lies in ComfyUI's file, and how to take it out of there."""
    if name.startswith("decoder.proj_in."):
        return name.replace("proj_in", "x_embedder"), _whole
    match = _LEVEL.match(name)
    if match:
        level, kind, index, rest = match.groups()
        where = f"block.{index}" if kind == "resnets" else "downsample"
        rest = rest.replace("conv_shortcut", "nin_shortcut")
        return f"encoder.down.{level}.{where}.{rest}", _whole
    if name.startswith(BLOCK_PREFIX):
        for part, letter in enumerate("qkv"):
            if f".attn.to_{letter}." in name:
                fused = name.replace(f"to_{letter}.", "to_qkv.")
                return fused, partial(_take_of_heads, part=part)
        name = name.replace(".to_out.0.", ".to_out.")
        if ".ff.net.0.proj." in name:
            return name.replace("ff.net.0.proj", "ff.w1"), lambda stored, heads: _swap(stored)
        return name.replace("ff.net.2", "ff.w2"), _whole
    return name, _whole


def comfy_video_state(state: Mapping[str, Tensor], heads: int) -> dict[str, Tensor]:
    """A whole state in diffusers' names as ComfyUI's file holds it."""
    out: dict[str, Tensor] = {}
    parts: dict[str, dict[str, Tensor]] = {}
    for name, value in state.items():
        target, _ = to_comfy(name)
        if ".to_qkv." in target:
            letter = name.split(".attn.to_")[1][0]
            parts.setdefault(target, {})[letter] = value
        else:
            out[target] = _swap(value) if ".ff.w1." in target else value
    for target, by_letter in parts.items():
        stacked = torch.stack([by_letter[letter].unflatten(0, (heads, -1)) for letter in "qkv"], 1)
        out[target] = stacked.flatten(0, 2)
    return out


def infer_names(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """diffusers' names and shapes of a ComfyUI file's tensors: enough to infer a configuration."""
    out: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        match = _COMFY_LEVEL.match(name)
        if match:
            level, block, rest = match.groups()
            where = f"resnets.{block}" if block is not None else "downsamplers.0"
            name = f"encoder.down_blocks.{level}.{where}.{rest}"
        name = name.replace("decoder.x_embedder", "decoder.proj_in")
        out[name.replace(".ff.w2.", ".ff.net.2.")] = shape
    return out


def fuse_qkv(block: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A block with q, k and v in one linear, [q; k; v]: one wide product is faster than three."""
    names = [f"attn.to_{letter}." for letter in "qkv"]
    fused = {name: value for name, value in block.items() if not name.startswith(tuple(names))}
    for kind in ("weight", "bias"):
        fused[f"attn.to_qkv.{kind}"] = torch.cat([block[name + kind] for name in names])
    return fused


def _whole(stored: Tensor, heads: int) -> Tensor:
    return stored


def _take_of_heads(stored: Tensor, heads: int, part: int) -> Tensor:
    return stored.unflatten(0, (heads, 3, -1))[:, part].flatten(0, 1)


def _swap(stored: Tensor) -> Tensor:
    first, second = stored.chunk(2)
    return torch.cat([second, first])
