"""Adapter files read, checked and made ready: `inspect_lora` for a look, `load_loras` for a run.

Order of checks: header, names and pairs, binding to the model, then the values one tensor at a time
(NaN, Inf, all zero). Nothing is applied here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor

from ..request import LoraChoice
from .apply import Difference
from .binding import Binding, Part, bind
from .header import Header, read_header
from .layers import Contents, Layer, read_contents
from .loraset import ONLINE_TAILS, LoraSet
from .modules import touches_adaln
from .report import BindingReport, BoundTarget, Skipped, file_label, require_complete
from .scale import ScaleRule, scale_rule
from .shapes import ModelShapes
from .values import file_identity, is_zero, read_tensor


def inspect_lora(
    file: str | Path, model: ModelShapes | None = None, *, strength: float = 1.0
) -> BindingReport:
    """What `file` would do to `model`; None: names only, against the model's vocabulary.

    An incomplete binding is reported, not raised (`report.complete`, `require_complete`).
    Raises LoraFileError for damaged files, LoraBindingError when nothing binds, RequestError for a
    strength out of range.
    """
    LoraChoice(str(file), strength)
    return _Reader(file, model or ModelShapes.unknown(), strength).read(keep=False)[0]


def bound_parts(file: str | Path, model: ModelShapes) -> tuple[Part, ...]:
    """What `file` reaches of `model`, from its header: no value is read.

    Raises LoraFileError, LoraBindingError.
    """
    return _Reader(file, model, 1.0).binding.parts


def load_loras(
    choices: Sequence[LoraChoice], model: ModelShapes, *, allow_partial: bool = False
) -> LoraSet:
    """Read every adapter of a request and bind it to `model`.

    Strength 0 is checked and reported, and does no work. Raises LoraFileError, LoraBindingError.
    """
    reports: list[BindingReport] = []
    gathered: list[Difference] = []
    for choice in choices:
        reader = _Reader(choice.file, model, choice.strength)
        report, differences = reader.read(keep=choice.strength != 0)
        require_complete(report, allow_partial=allow_partial)
        reports.append(report)
        gathered += differences
    gathered.sort(key=lambda item: (item.identity, item.strength, item.part.layer.kind))
    found: dict[str, list[Difference]] = {}
    for item in gathered:
        found.setdefault(item.parameter, []).append(item)
    ordered = {name: tuple(found[name]) for name in sorted(found)}
    return LoraSet(tuple(reports), MappingProxyType(ordered), _set_identity(reports))


def _set_identity(reports: Sequence[BindingReport]) -> str:
    """One name for the set as it acts, whatever its order: for caches of merged weights."""
    acting = sorted(
        f"{item.identity}:{float(item.strength).hex()}" for item in reports if item.strength
    )
    return hashlib.sha256("\n".join(acting).encode()).hexdigest() if acting else ""


class _Reader:
    """One pass over one file."""

    def __init__(self, file: str | Path, model: ModelShapes, strength: float) -> None:
        self.model, self.strength = model, strength
        self.header: Header = read_header(file)
        self.contents: Contents = read_contents(self.header)
        self.binding: Binding = bind(self.header, self.contents, model)
        self.rule: ScaleRule = scale_rule(
            self.header, has_alpha_tensors=self.contents.has_alpha_tensors
        )

    def read(self, *, keep: bool) -> tuple[BindingReport, list[Difference]]:
        """Read all values; keep those that act when `keep`."""
        identity = file_identity(self.header.file)
        by_layer: dict[int, list[Part]] = {}
        for part in self.binding.parts:
            by_layer.setdefault(id(part.layer), []).append(part)
        targets: list[BoundTarget] = []
        differences: list[Difference] = []
        zero: dict[str, bool] = {}
        with open(self.header.file, "rb") as stream:
            for layer in self.contents.layers:
                tensors = {
                    role: tensor
                    for role, name in layer.tensors.items()
                    if (tensor := read_tensor(stream, self.header, name)) is not None
                }
                scale = self._scale(layer, tensors)
                nothing = is_zero(tensors, scale)
                zero |= {name: zero.get(name, True) and nothing for name in layer.names}
                for part in by_layer.get(id(layer), ()):
                    targets.append(
                        BoundTarget(part.parameter, _kind(layer), layer.rank, scale, nothing)
                    )
                    if keep and not nothing:
                        kept = {r: t for r, t in tensors.items() if r != "alpha"}
                        differences.append(
                            Difference(
                                part, kept, scale, self.strength, self.model.head_dim, identity
                            )
                        )
            for item in self.contents.payloads:
                tensor = read_tensor(stream, self.header, item.name, check=False)
                zero[item.name] = tensor is not None and not bool(tensor.to(torch.float32).any())
        return self._report(identity, targets, zero), differences

    def _scale(self, layer: Layer, tensors: Mapping[str, Tensor]) -> float:
        if layer.kind == "diff" or "diff_b" in layer.tensors:
            return 1.0
        if "alpha" in tensors:
            # A product of two whole matrices has no rank; its trainer ignores alpha then.
            return float(tensors["alpha"].reshape(-1)[0]) / layer.rank if layer.rank else 1.0
        return self.rule.scale(layer.module, layer.rank)

    def _report(
        self, identity: str, targets: Sequence[BoundTarget], zero: Mapping[str, bool]
    ) -> BindingReport:
        skipped = [
            replace(
                item, matters=item.matters and not all(zero.get(n, False) for n in item.tensors)
            )
            for item in self.binding.skipped
        ]
        left = {name for item in skipped for name in item.tensors}
        bound = [name for name in self.header.tensors if name not in left]
        modules = {item.parameter.rpartition(".")[0] for item in targets}
        merge_only = {
            part.parameter
            for part in self.binding.parts
            if part.layer.kind != "lora"
            or "magnitude" in part.layer.tensors
            or not part.module.endswith(ONLINE_TAILS)
        }
        return BindingReport(
            file=file_label(self.header.file),
            strength=self.strength,
            tensors=len(self.header.tensors),
            bound_tensors=len(bound),
            modules=len(modules),
            naming=self.contents.naming,
            targets=tuple(targets),
            skipped=tuple(skipped),
            merge_only=tuple(sorted(merge_only)),
            adaln_modules=tuple(sorted(name for name in modules if touches_adaln(name))),
            notes=(*self.binding.notes, *self.rule.notes, *_zero_notes(skipped, targets)),
            scale_source=self.rule.source,
            identity=identity,
        )


def _zero_notes(skipped: Sequence[Skipped], targets: Sequence[BoundTarget]) -> tuple[str, ...]:
    still = sum(item.zero for item in targets)
    return (f"{still} bound parameters have an all-zero difference",) if still else ()


def _kind(layer: Layer) -> str:
    return f"dora ({layer.kind})" if "magnitude" in layer.tensors else layer.kind
