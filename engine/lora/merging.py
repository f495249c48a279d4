"""Merges into a checkpoint's raw tensors, under the names and formats they are stored in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ..errors import CheckpointError
from .apply import Difference, merge_into, merge_quantised
from .errors import LoraBindingError
from .modules import other_spelling


def merge_raw(
    tensors: Mapping[str, Tensor],
    merges: Mapping[str, Sequence[Difference]],
    weight_format: str,
    device: torch.device | str = "cpu",
    *,
    in_place: bool = False,
) -> dict[str, Tensor]:
    """Raw tensors of a block or the root (`X.weight_fp8`, `X.weight_scale`, ...) with merges added.

    Names, dtypes and shapes stay; untouched tensors are the same objects. in_place: quantised codes
    are overwritten, by work that may still be queued on a card. Raises LoraBindingError for a
    parameter without a tensor.
    """
    device = torch.device(device)
    merged = dict(tensors)
    for parameter, differences in merges.items():
        name = next((n for n in _stored_names(parameter) if n in merged), None)
        if name is None:
            raise LoraBindingError("the checkpoint stores no such tensor", names=(parameter,))
        old = merged[name]
        if not name.endswith((".weight_fp8", ".weight_int8")):
            merged[name] = merge_into(old.to(device), differences).to(old.device)
            continue
        scale_name = name.rpartition(".")[0] + ".weight_scale"
        scale = merged.get(scale_name)
        if scale is None:
            raise CheckpointError("missing scale", tensor=scale_name, expected="fp32")
        kind = _kind(name, old, scale, weight_format)
        codes, new_scale = merge_quantised(
            old, scale, kind, differences, device=device, in_place=in_place
        )
        assert new_scale is not None
        merged[name], merged[scale_name] = codes, new_scale
    return merged


def _stored_names(parameter: str) -> tuple[str, ...]:
    names: list[str] = []
    for spelling in (parameter, other_spelling(parameter)):
        module, _, part = spelling.rpartition(".")
        names.append(spelling)
        if part == "bias":
            names.append(f"{module}.original.bias")
        else:
            names += [f"{module}.weight_fp8", f"{module}.weight_int8"]
    return tuple(names)


def _kind(name: str, codes: Tensor, scale: Tensor, weight_format: str) -> str:
    if name.endswith(".weight_int8"):
        return "int8-convrot"
    # One output row: both granularities look alike, and the checkpoint says which it is.
    rowwise = weight_format == "fp8-rowwise" and scale.numel() == codes.shape[0]
    return "fp8-rowwise" if rowwise else "fp8-tensor"
