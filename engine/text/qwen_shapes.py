"""Every tensor of a Qwen3-VL encoder that is read, and its shape. Normalised names."""

from __future__ import annotations

from .qwen_config import QwenConfig, TextConfig, VisionConfig

Linears = dict[str, tuple[int, int]]  # layer -> [out, in]
Vectors = dict[str, tuple[int, ...]]  # whole name -> shape, of all that is no linear's weight


def linear_shapes(config: QwenConfig) -> Linears:
    """Every linear, and the embedding table, which is stored like one."""
    text = config.text
    found: Linears = {"embed_tokens": (text.vocab, text.hidden)}
    for index in range(text.layers):
        found |= {f"layers.{index}.{name}": size for name, size in _layer(text).items()}
    if config.vision is not None:
        found |= _vision(config.vision)
    return found


def vector_shapes(config: QwenConfig) -> Vectors:
    """Norms, biases, and the vision tower's patch kernel and position table."""
    text = config.text
    widths = {
        "input_layernorm": text.hidden,
        "post_attention_layernorm": text.hidden,
        "self_attn.q_norm": text.head_dim,
        "self_attn.k_norm": text.head_dim,
    }
    found: Vectors = {
        f"layers.{index}.{name}.weight": (width,)
        for index in range(text.layers)
        for name, width in widths.items()
    }
    vision = config.vision
    if vision is None:
        return found
    kernel = (vision.hidden, 3, vision.frames, vision.patch, vision.patch)
    found["visual.patch_embed.proj.weight"] = kernel
    found["visual.patch_embed.proj.bias"] = (vision.hidden,)
    found["visual.pos_embed.weight"] = (vision.grid**2, vision.hidden)
    norms = {
        f"visual.blocks.{index}.norm{number}": vision.hidden
        for index in range(vision.blocks)
        for number in (1, 2)
    }
    norms["visual.merger.norm"] = vision.hidden
    for index in range(len(vision.taps)):
        norms[f"visual.deepstack_merger_list.{index}.norm"] = vision.hidden * vision.cell
    for name, width in norms.items():
        found |= {f"{name}.{end}": (width,) for end in ("weight", "bias")}
    return found | {f"{name}.bias": (rows,) for name, (rows, _) in _vision(vision).items()}


def _layer(text: TextConfig) -> Linears:
    inner, shared = text.heads * text.head_dim, text.kv_heads * text.head_dim
    return {
        "self_attn.q_proj": (inner, text.hidden),
        "self_attn.k_proj": (shared, text.hidden),
        "self_attn.v_proj": (shared, text.hidden),
        "self_attn.o_proj": (text.hidden, inner),
        "mlp.gate_proj": (text.ffn, text.hidden),
        "mlp.up_proj": (text.ffn, text.hidden),
        "mlp.down_proj": (text.hidden, text.ffn),
    }


def _vision(vision: VisionConfig) -> Linears:
    wide = vision.hidden * vision.cell
    found: Linears = {}
    for index in range(vision.blocks):
        prefix = f"visual.blocks.{index}."
        found |= {
            f"{prefix}attn.qkv": (3 * vision.hidden, vision.hidden),
            f"{prefix}attn.proj": (vision.hidden, vision.hidden),
            f"{prefix}mlp.linear_fc1": (vision.ffn, vision.hidden),
            f"{prefix}mlp.linear_fc2": (vision.hidden, vision.ffn),
        }
    mergers = ["visual.merger."]
    mergers += [f"visual.deepstack_merger_list.{index}." for index in range(len(vision.taps))]
    for prefix in mergers:
        found |= {f"{prefix}linear_fc1": (wide, wide), f"{prefix}linear_fc2": (vision.out, wide)}
    return found
