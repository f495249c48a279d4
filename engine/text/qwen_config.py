"""Sizes and constants of a Qwen3-VL encoder: from its config.json, else from the header's shapes.

ComfyUI's single files carry no config. What shapes cannot say (vision heads, which vision blocks
feed the language model, rotary base) is then the published model's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import CheckpointError

LAYERS_USED = 50  # of the published 64: hidden_states[50] is the conditioning (facts: sheet f)
MODEL_TYPES = ("qwen3_vl", "qwen3_vl_text")
ROPE_BASE = 5e6
VISION_HEADS = 16
DEEPSTACK = {27: (8, 16, 24), 24: (5, 11, 17)}  # vision depth -> blocks that are tapped

Shapes = Mapping[str, tuple[int, ...]]  # normalised name -> [out, in] of the weight as used


@dataclass(frozen=True)
class TextConfig:
    """The language model. sections: rotary frequencies that follow time, height, width."""

    vocab: int
    hidden: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    sections: tuple[int, int, int]
    rope_base: float = ROPE_BASE
    eps: float = 1e-6

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads or sum(self.sections) != self.head_dim // 2:
            raise CheckpointError(
                "impossible text encoder",
                expected="heads in equal groups, sections that cover half a head",
                found=f"{self.heads} heads over {self.kv_heads}, {self.sections}",
            )


@dataclass(frozen=True)
class VisionConfig:
    """The vision tower. grid: side of the learned position table. taps: blocks whose output is
    added to the first layers of the language model."""

    hidden: int
    ffn: int
    blocks: int
    heads: int
    patch: int
    merge: int
    frames: int  # that one patch spans; a still picture fills it by repetition
    out: int
    grid: int
    taps: tuple[int, ...]
    rope_base: float = 10_000.0
    eps: float = 1e-6

    @property
    def cell(self) -> int:
        """Patches that become one row."""
        return self.merge**2


@dataclass(frozen=True)
class QwenConfig:
    """Both halves; vision is None for a file that holds the language model alone."""

    text: TextConfig
    vision: VisionConfig | None


def read_sizes(shapes: Shapes, settings: Mapping[str, Any], *, layers: int) -> QwenConfig:
    """The config of a model with these tensors.

    settings: its config.json, or {}. layers: how many decoder layers to run at most. Raises
    CheckpointError when a tensor that must be there is missing, or when settings and shapes differ.
    """
    text = _text(shapes, dict(settings.get("text_config", settings)), layers)
    has_vision = any(name.startswith("visual.") for name in shapes)
    vision = _vision(shapes, dict(settings.get("vision_config", {}))) if has_vision else None
    if vision is not None and vision.out != text.hidden:
        raise CheckpointError(
            "vision tower and language model do not fit together",
            tensor="visual.merger.linear_fc2.weight",
            expected=f"rows of width {text.hidden}",
            found=f"rows of width {vision.out}",
        )
    return QwenConfig(text, vision)


def _text(shapes: Shapes, settings: dict[str, Any], layers: int) -> TextConfig:
    vocab, hidden = _shape(shapes, "embed_tokens.weight", 2)
    (head_dim,) = _shape(shapes, "layers.0.self_attn.q_norm.weight", 1)
    ffn, _ = _shape(shapes, "layers.0.mlp.gate_proj.weight", 2)
    heads = _shape(shapes, "layers.0.self_attn.q_proj.weight", 2)[0] // head_dim
    kv_heads = _shape(shapes, "layers.0.self_attn.k_proj.weight", 2)[0] // head_dim
    stored = _count(shapes, "layers.")
    _agree(
        settings,
        {
            "vocab_size": vocab,
            "hidden_size": hidden,
            "intermediate_size": ffn,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "head_dim": head_dim,
        },
    )
    wanted = min(layers, int(settings.get("num_hidden_layers", stored)))
    if stored < wanted:
        raise CheckpointError(
            "the text encoder has too few layers", expected=f"{wanted} or more", found=stored
        )
    rope = dict(settings.get("rope_parameters") or settings.get("rope_scaling") or {})
    axis = head_dim // 2 * 5 // 16
    sections = rope.get("mrope_section", (head_dim // 2 - 2 * axis, axis, axis))
    base = rope.get("rope_theta", settings.get("rope_theta", ROPE_BASE))
    eps = float(settings.get("rms_norm_eps", 1e-6))
    return TextConfig(
        vocab, hidden, ffn, wanted, heads, kv_heads, head_dim, _three(sections), float(base), eps
    )


def _vision(shapes: Shapes, settings: dict[str, Any]) -> VisionConfig:
    hidden, _, frames, patch, _ = _shape(shapes, "visual.patch_embed.proj.weight", 5)
    rows, _ = _shape(shapes, "visual.pos_embed.weight", 2)
    ffn, _ = _shape(shapes, "visual.blocks.0.mlp.linear_fc1.weight", 2)
    out, wide = _shape(shapes, "visual.merger.linear_fc2.weight", 2)
    blocks = _count(shapes, "visual.blocks.")
    taps = _count(shapes, "visual.deepstack_merger_list.")
    grid, merge = round(rows**0.5), round((wide / hidden) ** 0.5)
    _agree(
        settings,
        {
            "depth": blocks,
            "hidden_size": hidden,
            "intermediate_size": ffn,
            "patch_size": patch,
            "temporal_patch_size": frames,
            "spatial_merge_size": merge,
            "num_position_embeddings": grid * grid,
            "out_hidden_size": out,
        },
    )
    tapped = tuple(settings.get("deepstack_visual_indexes", DEEPSTACK.get(blocks, ())))
    if len(tapped) != taps or any(not 0 <= index < blocks for index in tapped):
        raise CheckpointError(
            "which vision blocks feed the language model is unknown",
            tensor="visual.deepstack_merger_list",
            expected=f"{taps} of {blocks} blocks",
            found=list(tapped),
            remedy="Put the model's config.json beside it.",
        )
    heads = int(settings.get("num_heads", VISION_HEADS))
    if hidden % heads or hidden // heads % 4:
        raise CheckpointError(
            "impossible vision tower", expected=f"{heads} heads of a multiple of 4", found=hidden
        )
    return VisionConfig(hidden, ffn, blocks, heads, patch, merge, frames, out, grid, tapped)


def _shape(shapes: Shapes, name: str, axes: int) -> tuple[int, ...]:
    found = shapes.get(name)
    if found is None or len(found) != axes:
        raise CheckpointError(
            "not a Qwen3-VL encoder, or incomplete",
            tensor=name,
            expected=f"{axes} axes",
            found="nothing" if found is None else list(found),
        )
    return found


def _count(shapes: Shapes, prefix: str) -> int:
    """Numbers in use behind `prefix`; a gap ends the count and shows as a missing tensor later."""
    numbers = {name[len(prefix) :].split(".")[0] for name in shapes if name.startswith(prefix)}
    return 1 + max((int(number) for number in numbers if number.isdigit()), default=-1)


def _agree(settings: Mapping[str, Any], found: Mapping[str, int]) -> None:
    for key, value in found.items():
        if settings.get(key, value) != value:
            raise CheckpointError(
                f"config and tensors disagree about {key}", expected=settings[key], found=value
            )


def _three(values: Sequence[int]) -> tuple[int, int, int]:
    time, height, width = (int(value) for value in values)
    return time, height, width
