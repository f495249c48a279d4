"""Module paths of adapter files, and the modules of the model they stand for. Pure.

Three vocabularies name the same modules: diffusers names, the original names, and either of them
flattened with underscores. The original names fuse q, k and v and store the feed-forward halves the
other way round, so a target says which rows of the file's tensor it takes (facts: model sheet c.5
and h). Model-side names are diffusers names; `with_orig` gives those of a Video DeltaNet attention.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

PREFIXES = (
    "base_model.model.",
    "model.diffusion_model.",
    "diffusion_model.",
    "transformer.",
    "model.",
)
FLAT_PREFIXES = ("lora_unet_", "lora_transformer_", "lycoris_", "lora_")

RowKind = Literal["all", "third", "interleaved_third", "swap_halves"]
Naming = Literal["diffusers", "original"]


@dataclass(frozen=True)
class Rows:
    """Which output rows of a file's tensor a target takes. `part` is 0, 1, 2 for q, k, v."""

    kind: RowKind = "all"
    part: int = 0

    def slices(self, rows: int, head_dim: int) -> tuple[tuple[int, int], ...]:
        """(start, stop) pieces of `rows` file rows, in the order in which they are joined.

        Raises ValueError when `rows` cannot be divided as the layout needs.
        """
        if self.kind == "all":
            return ((0, rows),)
        if self.kind == "swap_halves":
            half = _divided(rows, 2)
            return ((half, rows), (0, half))
        third = _divided(rows, 3)
        if self.kind == "third":
            return ((self.part * third, (self.part + 1) * third),)
        heads = _divided(third, head_dim)
        first = self.part * head_dim
        return tuple(
            (head * 3 * head_dim + first, head * 3 * head_dim + first + head_dim)
            for head in range(heads)
        )

    def count(self, rows: int) -> int:
        """Rows of the target for `rows` file rows."""
        return _divided(rows, 3) if self.kind in ("third", "interleaved_third") else rows


@dataclass(frozen=True)
class Target:
    """A module of the model, in diffusers names, and the rows of the file's tensor it takes."""

    module: str
    rows: Rows = Rows()


_STACKED = tuple((f"attn.to_{name}", Rows("third", part)) for part, name in enumerate("qkv"))
_INTERLEAVED = tuple(
    (f"attn.to_{name}", Rows("interleaved_third", part)) for part, name in enumerate("qkv")
)
_BLOCK_TAILS: dict[str, tuple[str, Rows]] = {
    "attn.out_proj": ("attn.to_out.0", Rows()),
    "attn.q_norm": ("attn.norm_q", Rows()),
    "attn.k_norm": ("attn.norm_k", Rows()),
    "mlp.fc1": ("ff.net.0.proj", Rows("swap_halves")),
    "mlp.fc2": ("ff.net.2", Rows()),
    "norm1": ("norm1", Rows()),
    "norm2": ("norm2", Rows()),
    "adaln_proj.linear": ("adaln_proj.linear", Rows()),
}
_ROOTS = {
    "video_patch_proj": "proj_in",
    "audio_patch_proj": "audio_proj_in",
    "condition_proj": "context_embedder",
    "time_embedder.proj_in": "time_embedder.linear_1",
    "time_embedder.proj_out": "time_embedder.linear_2",
    "token_refiner.final_norm": "token_refiner.final_norm",
    "final_layer.norm": "norm_out.norm",
    "final_layer.adaln_proj.linear": "norm_out.linear",
    "final_layer.video_out": "proj_out",
    "final_layer.audio_out": "audio_proj_out",
}
# Tensors that Video DeltaNet adds to an attention, and their names before its second format.
BRANCH_TAILS = (
    "attn.to_out_linear",
    "attn.softmax_gate.up",
    "attn.linear_attention.beta_proj",
    "attn.linear_attention.norm",
    "attn.linear_attention.alpha.down",
    "attn.linear_attention.alpha.up",
    "attn.linear_attention.output_gate.down",
    "attn.linear_attention.output_gate.up",
    "attn.linear_attention.short_conv.k_sp",
    "attn.linear_attention.short_conv.k_tm",
    "attn.linear_attention.short_conv.v_sp",
    "attn.linear_attention.short_conv.v_tm",
)
_OLD_BRANCH = (
    ("attn.far.gate.", "attn.linear_attention.output_gate."),
    ("attn.far.", "attn.linear_attention."),
    ("attn.local_gate.", "attn.softmax_gate."),
    ("attn.w_o_far", "attn.to_out_linear"),
)
_BASE_ATTENTION = ("to_q", "to_k", "to_v", "to_out.0", "norm_q", "norm_k")
_REFINER_TAILS = (
    *(f"attn.{name}" for name in _BASE_ATTENTION),
    "ff.net.0.proj", "ff.net.2", "norm1", "norm2",
)  # fmt: skip
DIFFUSERS_TAILS = (*_REFINER_TAILS, "adaln_proj.linear", *BRANCH_TAILS)

_ORIGINAL_BLOCK = re.compile(
    r"(?P<refiner>token_refiner\.)?blocks\.(?P<index>\d{1,4})\.(?P<tail>.+)$"
)
_DIFFUSERS_BLOCK = re.compile(
    r"(?P<stack>transformer_blocks|token_refiner\.refiner_blocks)"
    r"\.(?P<index>\d{1,4})\.(?P<tail>.+)$"
)


def _vocabulary() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Every module path flattened with underscores: a pattern and the dotted path."""
    original = ("attn.qkv_proj", "attn.to_gate_compress", *_BLOCK_TAILS)
    paths = [f"{stack}blocks.#.{tail}" for stack in ("", "token_refiner.") for tail in original]
    paths += _ROOTS
    base = [f"attn.orig.{name}" for name in _BASE_ATTENTION]
    paths += [f"transformer_blocks.#.{tail}" for tail in (*DIFFUSERS_TAILS, *base)]
    paths += [f"token_refiner.refiner_blocks.#.{tail}" for tail in _REFINER_TAILS]
    paths += _ROOTS.values()
    return tuple(
        (re.compile(path.replace(".", "_").replace("#", r"(\d{1,4})")), path)
        for path in dict.fromkeys(paths)
    )


_FLAT = _vocabulary()


def strip_prefix(name: str) -> str:
    """`name` without the wrappers that trainers put before a module path, however many."""
    stripped = True
    while stripped:
        stripped = False
        for prefix in PREFIXES:
            if name.startswith(prefix) and len(name) > len(prefix):
                name, stripped = name[len(prefix) :], True
    return name


def dotted(module: str) -> tuple[str, bool]:
    """(dotted module path, whether it was flattened). An unknown flat name comes back as it is."""
    module = strip_prefix(module)
    for prefix in FLAT_PREFIXES:
        if not module.startswith(prefix):
            continue
        flat = module[len(prefix) :]
        for wrapper in ("diffusion_model_", "transformer_"):
            # `transformer_blocks_` is a module, not a wrapper.
            if flat.startswith(wrapper) and not flat.startswith("transformer_blocks_"):
                flat = flat[len(wrapper) :]
        for pattern, path in _FLAT:
            match = pattern.fullmatch(flat)
            if match:
                index = match.group(1) if match.groups() else ""
                return path.replace("#", index), True
        return module, True
    return module, False


def naming_of(module: str) -> Naming:
    """The vocabulary of a dotted module path."""
    if module in _ROOTS and module != "token_refiner.final_norm":
        return "original"
    return "original" if _ORIGINAL_BLOCK.match(module) else "diffusers"


def targets(module: str, *, interleaved: bool) -> tuple[Target, ...]:
    """The modules of the model, in plain diffusers names, that a module path of a file stands for.

    A fused q, k, v projection gives three. A name that is already a diffusers name gives itself,
    without the `.orig` level that Video DeltaNet puts around the base attention. Whether the model
    has such a module is not decided here.
    """
    if module in _ROOTS:
        return (Target(_ROOTS[module]),)
    match = _ORIGINAL_BLOCK.match(module)
    if match is None:
        return (Target(_plain(module)),)
    stack = "token_refiner.refiner_blocks" if match["refiner"] else "transformer_blocks"
    base, tail = f"{stack}.{int(match['index'])}.", match["tail"]
    if tail == "attn.qkv_proj":
        parts = _INTERLEAVED if interleaved else _STACKED
        return tuple(Target(base + name, rows) for name, rows in parts)
    renamed, rows = _BLOCK_TAILS.get(tail, (tail, Rows()))
    return (Target(_plain(base + renamed), rows),)


def _plain(module: str) -> str:
    """Diffusers name without the `.orig` level, with a canonical index and v2 branch names."""
    match = _DIFFUSERS_BLOCK.match(module)
    if match is None:
        return module
    tail = match["tail"].replace("attn.orig.", "attn.", 1)
    for old, new in _OLD_BRANCH:
        if (tail + ".").startswith(old) or tail == old:
            tail = (tail + ".").replace(old, new, 1).rstrip(".")
            break
    return f"{match['stack']}.{int(match['index'])}.{tail}"


def with_orig(module: str) -> str:
    """The name of a base-attention module inside a Video DeltaNet attention; others unchanged."""
    match = re.match(r"(transformer_blocks\.\d{1,4}\.attn\.)(.+)$", module)
    if match and match[2] in _BASE_ATTENTION:
        return f"{match[1]}orig.{match[2]}"
    return module


def other_spelling(name: str) -> str:
    """A base-attention name of a block, with `.orig.` put in or taken out."""
    if "attn.orig." in name:
        return name.replace("attn.orig.", "attn.", 1)
    return name.replace("attn.", "attn.orig.", 1)


def is_model_name(module: str) -> bool:
    """Whether a plain diffusers module path is one of this model's, for any number of blocks."""
    if module in _ROOTS.values():
        return True
    match = _DIFFUSERS_BLOCK.match(module)
    if match is None:
        return False
    tails = DIFFUSERS_TAILS if match["stack"] == "transformer_blocks" else _REFINER_TAILS
    return match["tail"] in tails


def block_index(module: str) -> int | None:
    """The index of the main block a module belongs to; None for the refiner and the root."""
    match = re.match(r"transformer_blocks\.(\d{1,4})\.", module)
    return int(match[1]) if match else None


def touches_adaln(module: str) -> bool:
    """Whether a change of this module changes the AdaLN tables of the blocks."""
    return module.endswith(".adaln_proj.linear") or module.startswith("time_embedder.")


def _divided(rows: int, parts: int) -> int:
    if parts <= 0 or rows % parts:
        raise ValueError(f"{rows} rows do not divide by {parts}")
    return rows // parts
