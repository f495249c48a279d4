"""A small text encoder in every weight format, with the tensors that each stands for."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from text_parts import CONFIG, LAYERS, comfy_name, random_model, settings, tiny_tokenizer
from torch import Tensor

from lowpeak.engine.checkpoint.header import write_tensors
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.text.qwen import open_qwen_encoder
from lowpeak.engine.text.qwen_shapes import linear_shapes
from lowpeak.kernels.reference.quantise import (
    convrot_group,
    dequantise_int8_convrot,
    quantise_int8_convrot,
)

PROMPT = "a red fox"
QUANTISED = [name for name in linear_shapes(CONFIG) if name != "embed_tokens"]
Pair = tuple[dict[str, Tensor], Tensor]  # what the file holds, what the weight means


def picture(seed: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (56, 64, 3), generator=generator, dtype=torch.uint8)


def write_single(
    folder: Path, tensors: dict[str, Tensor], *, config: bool = True, name: str = "encoder"
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.safetensors"
    write_tensors(file, {comfy_name(key): value for key, value in tensors.items()})
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    if config:
        (folder / "config.json").write_text(json.dumps(settings()))
    return file


def encode(path: Path, placement: Placement | None = None, *, layers: int = LAYERS) -> Tensor:
    encoder = open_qwen_encoder(path, "cpu", placement, layers=layers)
    try:
        return encoder.encode(PROMPT, images=[picture()]).embeds
    finally:
        encoder.close()


def note(**fields: object) -> Tensor:
    return torch.tensor(list(json.dumps(fields).encode()), dtype=torch.uint8)


def as_int8(weight: Tensor) -> Pair:
    codes, scale = quantise_int8_convrot(weight)
    group = convrot_group(weight.shape[1])
    about = note(format="int8_tensorwise", convrot=True, convrot_groupsize=group)
    held = {"weight": codes, "weight_scale": scale, "comfy_quant": about}
    return held, dequantise_int8_convrot(codes, scale)


def as_unrotated_int8(weight: Tensor) -> Pair:
    codes, scale = quantise_int8_convrot(weight, 1)
    held = {"weight": codes, "weight_scale": scale, "comfy_quant": note(format="int8_tensorwise")}
    return held, codes.float() * scale


def as_int8_of_one_scale(weight: Tensor) -> Pair:
    scale = weight.abs().max() / 127
    codes = (weight / scale).round().to(torch.int8)
    held = {"weight": codes, "weight_scale": scale, "comfy_quant": note(format="int8_tensorwise")}
    return held, codes.float() * scale


def as_nested_int8(weight: Tensor) -> Pair:
    held, meant = as_int8(weight)
    params = {"convrot": True, "convrot_groupsize": convrot_group(weight.shape[1])}
    return {**held, "comfy_quant": note(format="int8_tensorwise", params=params)}, meant


def as_fp8(weight: Tensor) -> Pair:
    scale = weight.abs().max() / 448
    codes = (weight / scale).to(torch.float8_e4m3fn)
    held = {"weight": codes, "weight_scale": scale, "comfy_quant": note(format="float8_e4m3fn")}
    return held, codes.float() * scale


def as_nvfp4(weight: Tensor) -> Pair:
    eager = pytest.importorskip("comfy_kitchen.backends.eager.quantization")
    smooth = 0.5 + torch.rand(weight.shape[1], generator=torch.Generator().manual_seed(1))
    tensor_scale = (weight / smooth).abs().max() / (448 * 6)
    codes, scales = eager.quantize_nvfp4(weight / smooth, tensor_scale)
    held = {
        "weight": codes,
        "weight_scale": scales,
        "weight_scale_2": tensor_scale,
        "pre_quant_scale": smooth,
        "comfy_quant": note(format="nvfp4"),
    }
    return held, eager.dequantize_nvfp4(codes, tensor_scale, scales, torch.float32) * smooth


def as_nvfp4_with_bytes(weight: Tensor) -> Pair:
    held, meant = as_nvfp4(weight)
    return {**held, "weight_scale": held["weight_scale"].view(torch.uint8)}, meant


def as_bf16(weight: Tensor) -> Pair:
    return {"weight": weight.bfloat16()}, weight.bfloat16().float()


FORMATS: dict[str, Callable[[Tensor], Pair]] = {
    "bf16": as_bf16,
    "int8 convrot": as_int8,
    "int8": as_unrotated_int8,
    "fp8": as_fp8,
    "nvfp4": as_nvfp4,
    "int8, one scale": as_int8_of_one_scale,
    "int8, note within": as_nested_int8,
    "nvfp4, scales as bytes": as_nvfp4_with_bytes,
}


def in_format(kind: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The random model as a file of that kind holds it, and what it means in fp32."""
    held, meant = made(kind)
    return dict(held), dict(meant)


@functools.cache
def made(kind: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    held, meant = random_model(), random_model()
    for name in QUANTISED:
        weight = held.pop(f"{name}.weight")
        parts, meant[f"{name}.weight"] = FORMATS[kind](weight)
        held |= {f"{name}.{end}": value for end, value in parts.items()}
    return held, meant
