"""Which tensors a checkpoint must hold, with their shapes, and how other layouts name them.

Names here are local: a block's tensors without `transformer_blocks.{i}.`, the base attention
always at `attn.orig.` (also for the dense model), the root's tensors by their full diffusers name.
Shapes are those of weights [out, in] (facts: model sheet a.2, c.1, c.5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..model.config import ModelConfig

Shapes = dict[str, tuple[int, ...]]
ATTENTION_LINEARS = ("attn.orig.to_q", "attn.orig.to_k", "attn.orig.to_v", "attn.orig.to_out.0")
FEED_FORWARD_LINEARS = ("ff.net.0.proj", "ff.net.2")
LINEAR_OUT = "attn.to_out_linear"
ADALN = "adaln_proj.linear"
MODALITIES, COMPONENTS = 3, 6

# Linears of the root that the published files quantise; the others stay at their own precision.
REFINER_LINEARS = ("attn.to_q", "attn.to_k", "attn.to_v", "attn.to_out.0", *FEED_FORWARD_LINEARS)
FP32_ROOT = ("proj_in", "audio_proj_in", "time_embedder", "proj_out", "audio_proj_out")

_BLOCK = re.compile(r"transformer_blocks\.(\d+)\.(.+)")
_BASE_ATTENTION = re.compile(r"^attn\.(?=(?:to_q|to_k|to_v|to_out\.0|norm_q|norm_k)\.)")
_OLD_BRANCH = (  # names before OpenVDN's v2 format; the longer ones first
    ("attn.far.gate.", "attn.linear_attention.output_gate."),
    ("attn.far.", "attn.linear_attention."),
    ("attn.local_gate.", "attn.softmax_gate."),
    ("attn.w_o_far.", "attn.to_out_linear."),
)


def part_groups(names: Iterable[str]) -> list[list[str]]:
    """A block's names in three groups of like size: AdaLN, attention, feed-forward."""
    groups: list[list[str]] = [[], [], []]
    for name in names:
        forward = name.startswith(("ff.", "mlp."))
        groups[0 if name.startswith("adaln_proj") else 1 + forward].append(name)
    return [group for group in groups if group]


def block_linears(config: ModelConfig) -> tuple[str, ...]:
    """Names of a block's big linears, in the order attention half, feed-forward half."""
    branch = config.vdn is not None and config.vdn.linear
    return (*ATTENTION_LINEARS, *([LINEAR_OUT] if branch else []), *FEED_FORWARD_LINEARS)


def root_linears(config: ModelConfig) -> tuple[str, ...]:
    """Names of the root's linears that the published files quantise."""
    return (
        "context_embedder",
        *(
            f"token_refiner.refiner_blocks.{i}.{tail}"
            for i in range(config.refiner_layers)
            for tail in REFINER_LINEARS
        ),
    )


def linear_shapes(config: ModelConfig) -> Shapes:
    """[out, in] of every big linear of a block, by plain name."""
    hidden, inner, ffn = config.hidden, config.inner, config.ffn
    sizes = {
        "attn.orig.to_q": (inner, hidden),
        "attn.orig.to_k": (inner, hidden),
        "attn.orig.to_v": (inner, hidden),
        "attn.orig.to_out.0": (hidden, inner),
        LINEAR_OUT: (hidden, inner),
        "ff.net.0.proj": (2 * ffn, hidden),
        "ff.net.2": (hidden, ffn),
    }
    return {name: sizes[name] for name in block_linears(config)}


def branch_shapes(config: ModelConfig) -> Shapes:
    """What VDN adds to the attention of a block, by local name; empty for the dense model."""
    if config.vdn is None:
        return {}
    heads, head_dim, hidden, inner = config.heads, config.head_dim, config.hidden, config.inner
    shapes: Shapes = {}
    if config.vdn.softmax_gate:
        shapes["attn.softmax_gate.up.weight"] = (heads, hidden)
        shapes["attn.softmax_gate.up.bias"] = (heads,)
    if config.vdn.linear:
        tail = "attn.linear_attention."
        shapes |= {
            f"{tail}alpha.A_log": (heads,),
            f"{tail}alpha.down.weight": (head_dim, hidden),
            f"{tail}alpha.up.weight": (inner, head_dim),
            f"{tail}alpha.dt_bias": (inner,),
            f"{tail}beta_proj.weight": (heads, hidden),
            f"{tail}norm.weight": (head_dim,),
            f"{tail}output_gate.down.weight": (head_dim, hidden),
            f"{tail}output_gate.up.weight": (inner, head_dim),
            f"{tail}output_gate.up.bias": (inner,),
            f"{LINEAR_OUT}.weight": (hidden, inner),
        }
        for target in config.vdn.short_conv:
            shapes[f"{tail}short_conv.{target}_sp.weight"] = (inner, 1, 5, 5)
            shapes[f"{tail}short_conv.{target}_tm.weight"] = (inner, 1, 5)
    return shapes


def block_shapes(config: ModelConfig, *, projection: bool = False) -> Shapes:
    """Every unquantised tensor of a block by local name; `projection` adds adaln_proj."""
    shapes: Shapes = {f"{name}.weight": shape for name, shape in linear_shapes(config).items()}
    shapes |= branch_shapes(config)
    shapes |= {
        "norm1.weight": (config.hidden,),
        "norm2.weight": (config.hidden,),
        "attn.orig.norm_q.weight": (config.head_dim,),
        "attn.orig.norm_k.weight": (config.head_dim,),
    }
    if projection:
        shapes |= projection_shapes(config)
    return shapes


def projection_shapes(config: ModelConfig, width: int | None = None) -> Shapes:
    """The AdaLN projection of a block; `width` is the pruned files' narrow input."""
    rows = MODALITIES * COMPONENTS * config.hidden
    return {
        f"{ADALN}.weight": (rows, config.time_dim if width is None else width),
        f"{ADALN}.bias": (rows,),
    }


def root_shapes(config: ModelConfig, *, pruned_rows: tuple[int, int] | None = None) -> Shapes:
    """Every unquantised tensor of the root.

    pruned_rows: [entries, width] of ComfyUI's pruned time table, which replaces time_embedder.
    """
    hidden, inner = config.hidden, config.inner
    time_dim = config.time_dim if pruned_rows is None else pruned_rows[1]
    shapes: Shapes = {
        "proj_in.weight": (hidden, config.video_row),
        "proj_in.bias": (hidden,),
        "audio_proj_in.weight": (hidden, config.audio_channels),
        "audio_proj_in.bias": (hidden,),
        "context_embedder.weight": (hidden, config.text_dim),
        "context_embedder.bias": (hidden,),
        "token_refiner.final_norm.weight": (hidden,),
        "norm_out.norm.weight": (hidden,),
        "norm_out.linear.weight": (2 * hidden, time_dim),
        "norm_out.linear.bias": (2 * hidden,),
        "proj_out.weight": (config.video_row, hidden),
        "proj_out.bias": (config.video_row,),
        "audio_proj_out.weight": (config.audio_channels, hidden),
        "audio_proj_out.bias": (config.audio_channels,),
    }
    if pruned_rows is None:
        shapes |= {
            "time_embedder.linear_1.weight": (config.time_hidden, config.freq_dim),
            "time_embedder.linear_1.bias": (config.time_hidden,),
            "time_embedder.linear_2.weight": (config.time_dim, config.time_hidden),
            "time_embedder.linear_2.bias": (config.time_dim,),
        }
    else:
        shapes["adaln_t_table"] = pruned_rows
    for i in range(config.refiner_layers):
        prefix = f"token_refiner.refiner_blocks.{i}."
        shapes |= {
            f"{prefix}norm1.weight": (hidden,),
            f"{prefix}norm2.weight": (hidden,),
            f"{prefix}attn.to_q.weight": (inner, hidden),
            f"{prefix}attn.to_k.weight": (inner, hidden),
            f"{prefix}attn.to_v.weight": (inner, hidden),
            f"{prefix}attn.norm_q.weight": (config.head_dim,),
            f"{prefix}attn.norm_k.weight": (config.head_dim,),
            f"{prefix}attn.to_out.0.weight": (hidden, inner),
            f"{prefix}ff.net.0.proj.weight": (2 * config.ffn, hidden),
            f"{prefix}ff.net.2.weight": (hidden, config.ffn),
        }
    return shapes


def split_block_name(name: str) -> tuple[int, str] | None:
    """(block, local name) of a diffusers or OpenVDN tensor name, None for the root's tensors.

    The dense model's `attn.to_q` and the old branch names become the names used here.
    """
    match = _BLOCK.fullmatch(name)
    if match is None:
        return None
    local = (
        _BASE_ATTENTION.sub("attn.orig.", match[2]) if match[2].startswith("attn.") else match[2]
    )
    for old, new in _OLD_BRANCH:
        if local.startswith(old):
            local = new + local[len(old) :]
            break
    return int(match[1]), local


def stored_tensors(
    shapes: Mapping[str, tuple[int, ...]], linears: tuple[str, ...], kind: str
) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
    """Names and shapes as an edge file stores them: `X.weight_fp8` with `X.weight_scale`, ...

    Returns {name: (dtype names, shape)}; a scale's shape is [rows] or [1], whatever its axes.
    """
    stored: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {}
    for name, shape in shapes.items():
        linear = name.removesuffix(".weight")
        if kind == "plain" or linear not in linears or linear == name:
            stored[name] = (("F32", "BF16", "F16"), shape)
            continue
        suffix, dtype = (
            ("weight_int8", "I8") if kind == "int8-convrot" else ("weight_fp8", "F8_E4M3")
        )
        stored[f"{linear}.{suffix}"] = ((dtype,), shape)
        stored[f"{linear}.weight_scale"] = (("F32",), (1 if kind == "fp8-tensor" else shape[0],))
    return stored
