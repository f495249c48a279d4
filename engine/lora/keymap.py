"""Names of adapter tensors, read as what they mean. Pure: names in, names out, no file is opened.

    file key  ->  Key(module, role)  or  Payload(kind, reason)

The suffix says which part of an adapter a tensor is, the rest is a module path (modules.py). Things
that travel in adapter files without being adapters are recognised and named.

Whether fused q, k, v rows are stacked or interleaved per head is decided from the names alone:
shapes are equal. Only one producer trains on the interleaved form, and its mark is the adapter name
`default` over original module names (facts: model sheet h.4).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .modules import Naming, dotted, naming_of, strip_prefix


@dataclass(frozen=True)
class Key:
    """One tensor of an adapter. `module` is its dotted path, in the file's naming."""

    name: str
    module: str
    role: str
    naming: Naming
    adapter: str = ""
    flat: bool = False


@dataclass(frozen=True)
class Payload:
    """A tensor that is not a part of an adapter this model can take: what it is."""

    name: str
    kind: str
    reason: str
    module: str = ""


_ADAPTER = r"(?:\.(?P<adapter>(?!weight$|bias$)[^.]+))?"
_SUFFIXES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (role, re.compile(rf"(?:{pattern})$"))
    for role, pattern in (
        ("down", rf"\.lora_(?:A|down){_ADAPTER}(?:\.weight)?"),
        ("up", rf"\.lora_(?:B|up){_ADAPTER}(?:\.weight)?"),
        ("down", r"[._]lora\.down\.weight|\.lora_linear_layer\.down\.weight"),
        ("up", r"[._]lora\.up\.weight|\.lora_linear_layer\.up\.weight"),
        ("mid", rf"\.lora_mid{_ADAPTER}(?:\.weight)?"),
        ("up_bias", rf"\.lora_(?:B|up){_ADAPTER}\.bias"),
        ("down_bias", rf"\.lora_(?:A|down){_ADAPTER}\.bias"),
        ("alpha", r"\.alpha"),
        ("magnitude", rf"\.lora_magnitude_vector{_ADAPTER}(?:\.weight)?"),
        ("magnitude", r"\.dora_scale"),
        ("diff", r"\.diff|\.w_norm"),
        ("diff_b", r"\.diff_b|\.b_norm"),
        *(
            (part, rf"\.{part}{_ADAPTER}")
            for part in (
                "lokr_w1", "lokr_w2", "lokr_w1_a", "lokr_w1_b", "lokr_w2_a", "lokr_w2_b",
                "lokr_t1", "lokr_t2", "hada_w1_a", "hada_w1_b", "hada_w2_a", "hada_w2_b",
                "hada_t1", "hada_t2",
            )
        ),
    )
)  # fmt: skip

# Adapters of other kinds, and things that travel in adapter files without being adapters.
_OTHER_SUFFIXES: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (kind, reason, re.compile(pattern))
    for kind, reason, pattern in (
        ("oft", "an orthogonal (OFT/BOFT) adapter, not a low-rank one", r"\.oft_|\.boft_"),
        ("glora", "a GLoRA adapter, not a plain low-rank one", r"\.[ab][12]\.weight$"),
        ("ia3", "an IA3 adapter: scales, not differences", r"\.ia3_l|\.on_input$"),
        ("vera", "a VeRA adapter: its shared matrices are not here", r"\.vera_lambda_|^vera_"),
        ("replacement", "a replacement for a weight, not a difference", r"\.set_weight$"),
        ("reshape", "an adapter that changes the size of a weight", r"\.reshape_weight$"),
        ("embedding", "a low-rank embedding; the model has none", r"\.lora_embedding_[AB]"),
        ("textual-inversion", "a textual-inversion embedding", r"^emb_params$|string_to_param"),
        ("quantised-weight", "a part of a quantised checkpoint, not of an adapter",
         r"\.(?:comfy_quant|weight_scale|weight_scale_2|scale_weight|weight_fp8|weight_int8)$"),
    )
)  # fmt: skip

_FOREIGN_MODULES: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (kind, reason, re.compile(pattern))
    for kind, reason, pattern in (
        ("text-encoder", "for a text encoder, not for the transformer",
         r"^(?:lora_te\d?_|text_encoder(?:_\d)?\.|te\d?\.|text_model\.|clip_[lgh]\.)"),
        ("reference-transformer", "for the reference transformer, which this model does not use",
         r"^transformer_ref\."),
        ("vsa-gate", "a gate of the sparse-attention variant (to_gate_compress), which is not here",
         r"to_gate_compress"),
        ("interval-heads", "output heads for single time intervals (a PDD head bank), not a LoRA",
         r"(?:^|[._])pdd(?:[._]|$)|interval_heads?|head_bank|heads_by_interval"),
        ("pruned-adaln-table", "the time table of a pruned AdaLN, not a LoRA", r"adaln_t_table"),
        ("vae", "for the VAE, not for the transformer", r"^(?:vae|first_stage_model|decoder)\."),
        ("control", "a control or image-adapter branch, not a LoRA",
         r"^(?:control_model|controlnet|ip_adapter|image_proj|control_blocks)\b"),
    )
)  # fmt: skip


def read_key(name: str) -> Key | Payload:
    """What one tensor of an adapter file is, from its name."""
    for kind, reason, pattern in _FOREIGN_MODULES:
        if pattern.search(strip_prefix(name)) or pattern.search(name):
            return Payload(name, kind, reason, module=strip_prefix(name))
    for role, pattern in _SUFFIXES:
        match = pattern.search(name)
        if match is None or not match.start():
            continue
        module, flat = dotted(name[: match.start()])
        adapter = match.groupdict().get("adapter") or ""
        return Key(name, module, role, naming_of(module), adapter, flat)
    for kind, reason, pattern in _OTHER_SUFFIXES:
        if pattern.search(name):
            return Payload(name, kind, reason, module=strip_prefix(name))
    if name.endswith((".weight", ".bias")):
        module = strip_prefix(name).rpartition(".")[0]
        return Payload(name, "full-weight", "a whole weight, not a difference from one", module)
    return Payload(name, "unknown", "no known part of an adapter")


def interleaved_by_marks(keys: Iterable[Key]) -> bool:
    """Whether fused q, k, v rows of this file are interleaved per head: its names say so.

    True when the adapter name `default` stands over original, dotted module names: the mark of the
    one producer which trains on the raw layout.
    """
    return any(
        key.adapter == "default" and key.naming == "original" and not key.flat for key in keys
    )
