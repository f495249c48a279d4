"""Values with tensors, as two files: how a node and its worker hand things to each other.

A tree of mappings, sequences, numbers, texts and tensors becomes NAME.json, in which each tensor is
a reference, and NAME.safetensors. Written under temporary names, the JSON last, so that a parcel
that can be found is whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REFERENCE = "__tensor__"
INPUT, RESULT, FIRST, PREVIEW = "input", "result", "first", "preview"  # parcels of a stage


def write_parcel(folder: Path, name: str, tree: Any) -> None:
    """Write `tree`. Paths become text and tuples lists."""
    from safetensors.torch import save_file

    tensors: dict[str, Any] = {}
    text = json.dumps(_without_tensors(tree, tensors))
    for suffix, write in (
        (".safetensors", lambda part: save_file(tensors, part)),
        (".json", lambda part: part.write_text(text, encoding="utf-8")),
    ):
        part = folder / f"{name}{suffix}.part"
        write(part)
        part.replace(folder / f"{name}{suffix}")


def read_parcel(folder: Path, name: str) -> Any:
    """The tree of a parcel, or None when it is not there. Tensors are on the CPU."""
    from safetensors.torch import load_file

    try:
        tree = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return _with_tensors(tree, load_file(folder / f"{name}.safetensors"))


def _without_tensors(value: Any, tensors: dict[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _without_tensors(item, tensors) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_tensors(item, tensors) for item in value]
    if hasattr(value, "contiguous") and hasattr(value, "detach"):
        name = str(len(tensors))
        # Copies: safetensors refuses tensors that share memory, and a caller may reuse its own.
        tensors[name] = value.detach().cpu().clone().contiguous()
        return {REFERENCE: name}
    return str(value) if isinstance(value, Path) else value


def _with_tensors(value: Any, tensors: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        if set(value) == {REFERENCE}:
            return tensors[value[REFERENCE]]
        return {key: _with_tensors(item, tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_tensors(item, tensors) for item in value]
    return value
