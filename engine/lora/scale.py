"""The scale of a low-rank pair: alpha / rank. Where alpha comes from, in order:

the module's own `.alpha` tensor; else, when the file has none at all, the adapter configuration or
the `alpha` entry of the file's metadata; else alpha equals the rank, so the scale is 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .header import Header

CONFIGURATION_NAMES = ("adapter_config.json", "adapter_spec.json")
MAX_CONFIGURATION_BYTES = 4 << 20


@dataclass(frozen=True)
class ScaleRule:
    """Scales of the modules that have no `.alpha` tensor. `source` says where the rule is from."""

    alpha: float | None = None
    module_alpha: Mapping[str, float] = field(default_factory=dict)
    root_of_rank: bool = False
    rank: int = 0  # of a configuration, for products of whole matrices that show none
    source: str = "alpha equals rank"
    notes: tuple[str, ...] = ()

    def scale(self, module: str, rank: int) -> float:
        """The scale of `module`, a dotted path as the file has it, for a pair of `rank`."""
        alpha = self.alpha
        for pattern, value in self.module_alpha.items():
            if module == pattern or module.endswith("." + pattern):
                alpha = value
        rank = rank or self.rank
        if alpha is None or rank <= 0:
            return 1.0
        return alpha / (math.sqrt(rank) if self.root_of_rank else rank)


def scale_rule(header: Header, *, has_alpha_tensors: bool) -> ScaleRule:
    """The rule of a file: from its metadata, or from the configuration beside a PEFT file."""
    if has_alpha_tensors:
        return ScaleRule(source="alpha tensors")
    packed = header.metadata.get("lora_adapter_metadata")
    if packed is not None:
        rule = _from_configuration(_json_object(packed), "adapter configuration in the metadata")
        if rule is not None:
            return rule
    for key in ("alpha", "lora_alpha"):
        if key in header.metadata:
            value = _number(header.metadata[key])
            if value is None:
                text = header.metadata[key][:40]
                return ScaleRule(
                    notes=(f"metadata {key} {text!r} is not a number: alpha taken as rank",)
                )
            return ScaleRule(alpha=value, source=f"metadata {key} {value:g}")
    return _beside(Path(header.file)) or ScaleRule()


def _beside(file: Path) -> ScaleRule | None:
    """A PEFT folder holds the adapter and its configuration, under one of two names."""
    if file.name != "adapter_model.safetensors":
        return None
    for name in CONFIGURATION_NAMES:
        path = file.with_name(name)
        try:
            if not path.is_file() or path.stat().st_size > MAX_CONFIGURATION_BYTES:
                continue
            text = path.read_text("utf-8", errors="replace")
        except OSError:
            continue
        rule = _from_configuration(_json_object(text), name)
        if rule is not None:
            return rule
    return None


def _from_configuration(data: Mapping[str, Any], source: str) -> ScaleRule | None:
    data = {str(key).removeprefix("transformer."): value for key, value in data.items()}
    # Kronecker and Hadamard configurations write `alpha`, low-rank ones `lora_alpha`.
    alpha = _number(data.get("lora_alpha", data.get("alpha")))
    if alpha is None:
        return None
    rank = int(_number(data.get("r")) or 0)
    pattern = data.get("alpha_pattern")
    own = {
        str(key).lstrip("^").replace("\\.", "."): number
        for key, value in (pattern.items() if isinstance(pattern, dict) else ())
        if (number := _number(value)) is not None
    }
    root = data.get("use_rslora") is True
    return ScaleRule(alpha, own, root, rank, f"{source}: alpha {alpha:g}")


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
