"""A text encoder of the published widths as ComfyUI's NVFP4 file: random codes, a byte tokenizer.

    python benchmarks/synthetic_text.py FOLDER --seconds 25

Writes FOLDER/text_encoder. All layers hold one set of numbers. `--seconds` bounds the time of
writing: the disk's rate is measured first, and the number of layers follows from it. The embedding
table has only the rows that the byte tokenizer can ask for; the vision tower is left out.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from lowpeak.engine.checkpoint.header import write_tensors
from lowpeak.engine.text.qwen_config import QwenConfig, TextConfig
from lowpeak.engine.text.qwen_shapes import linear_shapes
from lowpeak.engine.text.qwen_weights import Form

SPECIALS = ("<|endoftext|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
PUBLISHED = TextConfig(
    vocab=256 + len(SPECIALS) + 4, hidden=5120, ffn=25600, layers=50, heads=64, kv_heads=8,
    head_dim=128, sections=(24, 20, 20),
)  # fmt: skip
SMALL = TextConfig(
    vocab=PUBLISHED.vocab, hidden=256, ffn=512, layers=4, heads=4, kv_heads=2, head_dim=64,
    sections=(12, 10, 10),
)  # fmt: skip
CODE_RMS = 2.9  # of E2M1 values with every code equally likely
PROBE_LAYERS = 3


def nvfp4_linear(rows: int, columns: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Codes, swizzled block scales near one, and the tensor's scale; unit gain."""
    shapes = {end: shape for end, (_, shape) in Form("nvfp4", rows, columns).expected().items()}
    codes = torch.randint(0, 256, shapes["weight"], generator=generator, dtype=torch.uint8)
    noise = torch.rand(shapes["weight_scale"], generator=generator)
    return {
        "weight": codes,
        "weight_scale": (0.75 + 0.5 * noise).to(torch.float8_e4m3fn),
        "weight_scale_2": torch.tensor(1.0 / (CODE_RMS * columns**0.5)),
    }


def layer_tensors(text: TextConfig) -> dict[str, Tensor]:
    """One decoder layer by its names within the layer."""
    generator = torch.Generator().manual_seed(0)
    found: dict[str, Tensor] = {}
    for name, (rows, columns) in linear_shapes(QwenConfig(text, None)).items():
        if name.startswith("layers.0."):
            parts = nvfp4_linear(rows, columns, generator)
            inner = name.removeprefix("layers.0.")
            found |= {f"{inner}.{end}": value for end, value in parts.items()}
    for name, width in (
        ("input_layernorm", text.hidden),
        ("post_attention_layernorm", text.hidden),
        ("self_attn.q_norm", text.head_dim),
        ("self_attn.k_norm", text.head_dim),
    ):
        weight = 1 + 0.1 * torch.randn(width, generator=generator)
        found[f"{name}.weight"] = weight.bfloat16()
    return found


def byte_tokenizer() -> Tokenizer:
    """Bytes are tokens 0..255, the specials behind them."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {letter: index for index, letter in enumerate(letters)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS])
    return tokenizer


def write_text_encoder(folder: Path, text: TextConfig, seconds: float) -> int:
    """Write `folder` in at most about `seconds`; gives the number of layers."""
    folder.mkdir(parents=True, exist_ok=True)
    layer = layer_tensors(text)
    size = sum(value.numel() * value.element_size() for value in layer.values())
    probe, began = folder / "probe.safetensors", time.perf_counter()
    _write(probe, layer, PROBE_LAYERS, text)
    took = time.perf_counter() - began
    probe.unlink()
    layers = max(2, min(text.layers, int(PROBE_LAYERS * (seconds - took) / took)))
    print(f"{size / 1e6:.0f} MB a layer, {PROBE_LAYERS * size / took / 1e9:.2f} GB/s written,"
          f" {layers} layers", flush=True)  # fmt: skip
    _write(folder / "synthetic_nvfp4.safetensors", layer, layers, text)
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    return layers


def _write(file: Path, layer: dict[str, Tensor], layers: int, text: TextConfig) -> None:
    generator = torch.Generator().manual_seed(1)
    tensors = {
        f"model.layers.{index}.{name}": value
        for index in range(layers)
        for name, value in layer.items()
    }
    table = torch.randn(text.vocab, text.hidden, generator=generator)
    tensors["model.embed_tokens.weight"] = table.bfloat16()
    write_tensors(file, tensors, {"format": "pt"})
    with file.open("rb+") as written:  # direct reads would wait for the page cache to be flushed
        os.fsync(written.fileno())


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    text = SMALL if given.small else PUBLISHED
    write_text_encoder(given.folder / "text_encoder", text, given.seconds)


if __name__ == "__main__":
    main()
