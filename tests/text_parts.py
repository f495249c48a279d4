"""A miniature Qwen3-VL with every parameter random, its folder on disk, and a tiny tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from lowpeak.engine.checkpoint.header import write_tensors
from lowpeak.engine.text.qwen_config import QwenConfig, TextConfig, VisionConfig
from lowpeak.engine.text.qwen_shapes import linear_shapes, vector_shapes

SPECIALS = ("<|endoftext|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
VOCAB = 256 + len(SPECIALS) + 4
LAYERS = 6
CONFIG = QwenConfig(
    TextConfig(
        vocab=VOCAB, hidden=64, ffn=96, layers=LAYERS, heads=8, kv_heads=2, head_dim=16,
        sections=(4, 2, 2),
    ),
    VisionConfig(
        hidden=64, ffn=80, blocks=4, heads=4, patch=4, merge=2, frames=2, out=64, grid=6,
        taps=(0, 2),
    ),
)  # fmt: skip


def random_model(config: QwenConfig = CONFIG, *, seed: int = 7) -> dict[str, Tensor]:
    """Normalised names; weights keep a row's size, norms are near one."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {f"{name}.weight": size for name, size in linear_shapes(config).items()}
    shapes |= vector_shapes(config)
    found = {}
    for name, shape in shapes.items():
        value = torch.randn(shape, generator=generator)
        if name == "visual.patch_embed.proj.weight" or len(shape) == 2:
            value = value / value[0].numel() ** 0.5
        elif name.endswith("weight"):
            value = 1 + 0.3 * value
        found[name] = value
    return found


def settings(config: QwenConfig = CONFIG) -> dict[str, Any]:
    """The config.json of a transformers folder."""
    text, vision = config.text, config.vision
    assert vision is not None
    return {
        "model_type": "qwen3_vl",
        "image_token_id": 258,
        "vision_start_token_id": 257,
        "vision_end_token_id": 259,
        "text_config": {
            "model_type": "qwen3_vl_text",
            "vocab_size": text.vocab,
            "hidden_size": text.hidden,
            "intermediate_size": text.ffn,
            "num_hidden_layers": text.layers,
            "num_attention_heads": text.heads,
            "num_key_value_heads": text.kv_heads,
            "head_dim": text.head_dim,
            "rms_norm_eps": text.eps,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": text.rope_base,
                "mrope_section": list(text.sections),
                "mrope_interleaved": True,
            },
        },
        "vision_config": {
            "model_type": "qwen3_vl_vision",
            "depth": vision.blocks,
            "hidden_size": vision.hidden,
            "intermediate_size": vision.ffn,
            "num_heads": vision.heads,
            "patch_size": vision.patch,
            "spatial_merge_size": vision.merge,
            "temporal_patch_size": vision.frames,
            "out_hidden_size": vision.out,
            "num_position_embeddings": vision.grid**2,
            "deepstack_visual_indexes": list(vision.taps),
        },
    }


def published_name(name: str) -> str:
    """As transformers stores it."""
    return f"model.{name}" if name.startswith("visual.") else f"model.language_model.{name}"


def comfy_name(name: str) -> str:
    """As ComfyUI's single files have it."""
    return name if name.startswith("visual.") else f"model.{name}"


def tiny_tokenizer() -> Tokenizer:
    """Bytes are tokens 0..255 (plus one merge, so that spaces matter), specials behind them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {letter: index for index, letter in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS])
    return tokenizer


def write_pair(folder: Path) -> Path:
    """vocab.json and merges.txt, the form in which ComfyUI has its tokenizer. Gives vocab.json."""
    merges = [("f", "o"), ("fo", "x"), ("Ġ", "fox"), ("Ã", "©"), ("Ġ", "Ġ"), ("e", "Ì"), ("'", "s")]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet()) + [a + b for a, b in merges]
    folder.mkdir(parents=True, exist_ok=True)
    vocab = {letter: index for index, letter in enumerate(letters)}
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    lines = ["#version: 0.2", *(f"{a} {b}" for a, b in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "vocab.json"


def write_folder(
    folder: Path, tensors: dict[str, Tensor], *, shards: int = 2, config: QwenConfig = CONFIG
) -> Path:
    """A transformers folder with an index, a head that nobody needs, and a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    named = {published_name(name): value for name, value in tensors.items()}
    named["lm_head.weight"] = torch.randn(config.text.vocab, config.text.hidden)
    index: dict[str, str] = {}
    for shard in range(shards):
        own = dict(list(named.items())[shard::shards])
        file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        write_tensors(folder / file, own)
        index |= dict.fromkeys(own, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    (folder / "config.json").write_text(json.dumps(settings(config)))
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    return folder
