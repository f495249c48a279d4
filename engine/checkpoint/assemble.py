"""From named tensors to weights, by views only: it works on a device slot as on a host copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...kernels.weights import Weight
from ..errors import CheckpointError
from ..model.config import ModelConfig
from .names import block_linears, root_linears

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from .index import Checkpoint

PATCH_LINEARS = ("proj_in", "audio_proj_in", "proj_out", "audio_proj_out")


def assemble(
    tensors: Mapping[str, Tensor], weight_format: str, config: ModelConfig
) -> dict[str, Weight | Tensor]:
    """A block's raw tensors (local names) as weights and tensors. No byte is copied.

    Keys of the result: the big linears by plain name (`attn.orig.to_q`, `attn.orig.to_k`,
    `attn.orig.to_v`, `attn.orig.to_out.0`, `ff.net.0.proj`, `ff.net.2`, and `attn.to_out_linear`
    with VDN) are Weights; everything else stays a Tensor under its full local name. The dense
    model uses the same names. Raises CheckpointError for a linear without weight or scale.
    """
    return _assemble(tensors, weight_format, block_linears(config))


def assemble_present(
    tensors: Mapping[str, Tensor], weight_format: str, config: ModelConfig
) -> dict[str, Weight | Tensor]:
    """As `assemble`, for a part of a block: only linears that are there are made."""
    stems = {name.rpartition(".")[0] for name in tensors}
    present = tuple(name for name in block_linears(config) if name in stems)
    return _assemble(tensors, weight_format, present)


def assemble_root(
    tensors: Mapping[str, Tensor], weight_format: str, config: ModelConfig
) -> dict[str, Weight | Tensor]:
    """The root's raw tensors (diffusers names) as weights and tensors. No byte is copied.

    `proj_in`, `audio_proj_in`, `context_embedder`, `proj_out`, `audio_proj_out` and the refiner's
    linears (`token_refiner.refiner_blocks.{i}.attn.to_q`, `...ff.net.0.proj`, ...) are Weights.
    Everything else is a Tensor under its full name: norms, and `time_embedder.*` and
    `norm_out.linear.*`, which are evaluated once a step and never quantised.
    """
    return _assemble(tensors, weight_format, (*root_linears(config), *PATCH_LINEARS))


def plain_state(checkpoint: Checkpoint, dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """The whole model as a state dictionary of plain tensors, for oracles and miniature models.

    Names are the published ones (`transformer_blocks.{i}.attn.orig.to_q.weight`; the dense model
    keeps `.orig.`). Quantised weights come back in fp32 and in the original basis. dtype: cast
    everything, None keeps each tensor's own.
    """
    from torch import Tensor

    from ...kernels.reference.quantise import dequantise

    found: dict[str, Tensor] = {}
    parts = [("", checkpoint.load_root())]
    parts += [
        (f"transformer_blocks.{i}.", checkpoint.load_block(i))
        for i in range(checkpoint.config.layers)
    ]
    for prefix, part in parts:
        for name, value in part.items():
            if isinstance(value, Tensor):
                found[prefix + name] = value
                continue
            plain = value.codes if value.kind == "plain" else dequantise(value)
            found[f"{prefix}{name}.weight"] = plain
            if value.bias is not None:
                found[f"{prefix}{name}.bias"] = value.bias
    return found if dtype is None else {name: value.to(dtype) for name, value in found.items()}


def _assemble(
    tensors: Mapping[str, Tensor], weight_format: str, linears: tuple[str, ...]
) -> dict[str, Weight | Tensor]:
    found: dict[str, Weight | Tensor] = {}
    used: set[str] = set()
    for name in linears:
        found[name], names = _weight(tensors, name, weight_format)
        used |= names
    return found | {name: tensor for name, tensor in tensors.items() if name not in used}


def _weight(
    tensors: Mapping[str, Tensor], name: str, weight_format: str
) -> tuple[Weight, set[str]]:
    used = {f"{name}.bias", f"{name}.original.bias"} & tensors.keys()
    bias = tensors[next(iter(used))] if used else None
    for suffix in ("weight_fp8", "weight_int8", "weight"):
        codes = tensors.get(f"{name}.{suffix}")
        if codes is not None:
            break
    else:
        raise CheckpointError("a linear has no weight", tensor=name, expected="weight")
    used.add(f"{name}.{suffix}")
    if suffix == "weight":
        return Weight("plain", codes, None, bias), used
    scale = tensors.get(f"{name}.weight_scale")
    if scale is None:
        raise CheckpointError("missing scale", tensor=f"{name}.weight_scale", expected="fp32")
    used.add(f"{name}.weight_scale")
    if suffix == "weight_int8":
        return Weight("int8-convrot", codes, scale.view(-1, 1), bias), used
    rowwise = weight_format == "fp8-rowwise" and scale.numel() == codes.shape[0]
    kind = "fp8-rowwise" if rowwise else "fp8-tensor"
    return Weight(kind, codes, scale.view(1, -1), bias), used
