"""One random adapter of a small model, and the ways in which it can be written down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from lowpeak.engine.lora.loading import load_loras
from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.request import LoraChoice

CONFIG = ModelConfig(
    layers=2, refiner_layers=1, heads=3, head_dim=16, hidden=20, ffn=28, text_dim=12,
    freq_dim=10, time_hidden=14, time_dim=11,
)  # fmt: skip
RANK = 4
SHAPES = ModelShapes.from_config(CONFIG)
Adapter = dict[str, tuple[Tensor, Tensor]]  # original module name -> (down, up), stacked rows


def adapter(seed: int = 11) -> Adapter:
    """Random factors for every linear of the model under its original name."""
    draw = torch.Generator().manual_seed(seed)
    inner, hidden, ffn = CONFIG.inner, CONFIG.hidden, CONFIG.ffn
    sizes = {
        "attn.qkv_proj": (3 * inner, hidden), "attn.out_proj": (hidden, inner),
        "mlp.fc1": (2 * ffn, hidden), "mlp.fc2": (hidden, ffn),
    }  # fmt: skip
    linears = {f"blocks.{i}.{n}": s for i in range(2) for n, s in sizes.items()}
    linears |= {f"token_refiner.blocks.0.{n}": s for n, s in sizes.items()}
    linears |= {f"blocks.{i}.adaln_proj.linear": (18 * hidden, CONFIG.time_dim) for i in range(2)}
    linears |= {
        "final_layer.adaln_proj.linear": (2 * hidden, CONFIG.time_dim),
        "condition_proj": (hidden, CONFIG.text_dim),
        "video_patch_proj": (hidden, 96),
        "time_embedder.proj_in": (14, 10),
        "final_layer.audio_out": (32, hidden),
    }
    return {
        name: (
            torch.randn(RANK, columns, generator=draw),
            torch.randn(rows, RANK, generator=draw),
        )
        for name, (rows, columns) in linears.items()
    }


RENAMED = {
    "attn.out_proj": "attn.to_out.0", "mlp.fc1": "ff.net.0.proj", "mlp.fc2": "ff.net.2",
    "final_layer.adaln_proj.linear": "norm_out.linear", "condition_proj": "context_embedder",
    "video_patch_proj": "proj_in", "time_embedder.proj_in": "time_embedder.linear_1",
    "final_layer.audio_out": "audio_proj_out",
}  # fmt: skip


def split(weights: Adapter) -> Adapter:
    """The same adapter under diffusers names: an independent spelling of the layout rules."""
    found: Adapter = {}
    for name, (down, up) in weights.items():
        new = name.replace("token_refiner.blocks", "token_refiner.refiner_blocks")
        new = "transformer_" + new if new.startswith("blocks.") else new
        if name.endswith("qkv_proj"):
            for letter, rows in zip("qkv", up.chunk(3), strict=True):
                found[new.replace("qkv_proj", f"to_{letter}")] = (down, rows)
            continue
        if name.endswith("fc1"):
            gate, value = up.chunk(2)
            up = torch.cat([value, gate])
        for old, renamed in RENAMED.items():
            new = new.replace(old, renamed)
        found[new] = (down, up)
    return found


def interleave(up: Tensor) -> Tensor:
    """Stacked [q; k; v] rows to per-head [q0 k0 v0 q1 ...]."""
    return torch.cat(
        [part[head * 16 : head * 16 + 16] for head in range(CONFIG.heads) for part in up.chunk(3)]
    )


def pairs(weights: Adapter, down: str, up: str, name: Callable[[str], str] = str) -> dict:
    return {
        f"{name(module)}.{part}": tensor.clone()
        for module, factors in weights.items()
        for part, tensor in zip((down, up), factors, strict=True)
    }


def diffusers(prefix: str, down: str = "lora_A.weight", up: str = "lora_B.weight") -> Callable:
    return lambda a: pairs(split(a), down, up, lambda m: prefix + m)


def original(prefix: str, down: str = "lora_A.weight", up: str = "lora_B.weight") -> Callable:
    return lambda a: pairs(a, down, up, lambda m: prefix + m)


def flat(prefix: str, source: Callable[[Adapter], Adapter] = dict) -> Callable:
    def write(weights: Adapter) -> dict[str, Tensor]:
        named = source(weights)
        found = pairs(
            named, "lora_down.weight", "lora_up.weight", lambda m: prefix + m.replace(".", "_")
        )
        alphas = {f"{prefix}{m.replace('.', '_')}.alpha": torch.tensor(float(RANK)) for m in named}
        return found | alphas

    return write


def interleaved(prefix: str) -> Callable:
    def write(weights: Adapter) -> dict[str, Tensor]:
        raw = {
            name: (down, interleave(up) if name.endswith("qkv_proj") else up)
            for name, (down, up) in weights.items()
        }
        return original(prefix, "lora_A.default.weight", "lora_B.default.weight")(raw)

    return write


def with_orig(prefix: str, adapter_name: str) -> Callable:
    def write(weights: Adapter) -> dict[str, Tensor]:
        names = diffusers(prefix, f"lora_A.{adapter_name}.weight", f"lora_B.{adapter_name}.weight")(
            weights
        )
        return {
            n.replace(".attn.", ".attn.orig.") if "refiner" not in n else n: t
            for n, t in names.items()
        }

    return write


def expanded(prefix: str) -> Callable:
    return lambda a: {f"{prefix}{m}.diff": up @ down for m, (down, up) in a.items()}


def write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> Path:
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata)
    return path


def one(path: Path, strength: float = 1.0, shapes: ModelShapes = SHAPES):
    return load_loras([LoraChoice(str(path), strength)], shapes)
