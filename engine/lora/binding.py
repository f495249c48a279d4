"""Which layers of an adapter file reach which parameters of the model, from headers alone.

`bind` finds a parameter for every layer or says why there is none. A file whose names belong to
another model family is refused at once, with the family's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .errors import LoraBindingError
from .header import Header
from .layers import Contents, Layer
from .marks import OWN, looks_like
from .modules import Rows, Target, block_index, touches_adaln
from .report import FETCH_PROJECTIONS, BindingReport, BoundTarget, Skipped, require_complete
from .shapes import ModelShapes

__all__ = [
    "Binding", "BindingReport", "BoundTarget", "Part", "Skipped", "bind", "require_complete",
]  # fmt: skip

_PRUNED_WIDTH = 8  # input of the pruned AdaLN (facts: model sheet c.5)


@dataclass(frozen=True)
class Part:
    """One layer of the file on one parameter of the model. `size` is that of the parameter."""

    parameter: str
    layer: Layer
    rows: Rows
    size: tuple[int, ...]

    @property
    def module(self) -> str:
        """The module of the parameter."""
        return self.parameter.rpartition(".")[0]


@dataclass(frozen=True)
class Binding:
    """Result of `bind`: names only, values are not read yet."""

    parts: tuple[Part, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...] = ()


def bind(header: Header, contents: Contents, model: ModelShapes) -> Binding:
    """Find the parameters of `model` that the layers of a file change.

    Raises LoraBindingError when nothing binds or the names are those of another model family.
    """
    parts: list[Part] = []
    skipped = [
        Skipped(item.module or item.name, item.kind, item.reason, (item.name,))
        for item in contents.payloads
    ]
    skipped += [
        Skipped(key.module, "orphan", "a scale without factors", (key.name,), matters=False)
        for key in contents.orphans
    ]
    for layer in contents.layers:
        for target in layer.targets:
            outcome = _bind_one(layer, target, model)
            (parts if isinstance(outcome, Part) else skipped).append(outcome)  # type: ignore
    _refuse_other_models(header, contents, parts, skipped, model)
    return Binding(tuple(parts), tuple(skipped), _notes(parts, model))


def _bind_one(layer: Layer, target: Target, model: ModelShapes) -> Part | Skipped:
    """One target of a layer: the parameter it changes, or the reason why it cannot."""

    def skip(kind: str, reason: str) -> Skipped:
        return Skipped(target.module, kind, reason, layer.names)

    try:
        rows = target.rows.count(layer.shape[0]) if layer.shape else 0
        if layer.shape:
            target.rows.slices(layer.shape[0], model.head_dim)
    except ValueError as problem:
        return skip("shape", f"fused rows do not split: {problem}")
    size = (rows, *layer.shape[1:]) if layer.shape else ()
    parameter = model.find(target.module, "bias" if layer.kind == "bias" else "weight")
    if parameter is None:
        return _without_parameter(layer, target, model, size, skip)
    expected = model.expected(parameter)
    if expected is not None and tuple(expected) != size:
        return _wrong_size(target.module, expected, size, skip)
    if touches_adaln(target.module) and _tables_only(model):
        return skip("adaln-tables", "changes AdaLN, and the checkpoint has only tables of it")
    if layer.kind != "bias" and layer.kind != "diff" and len(expected or size) != 2:
        return skip("shape", "a low-rank pair on a parameter that is not a matrix")
    if layer.by_column and len(layer.targets) > 1:
        return skip("dora-columns", "a DoRA magnitude per input column of a fused projection")
    return Part(parameter, layer, target.rows, size)


def _without_parameter(
    layer: Layer, target: Target, model: ModelShapes, size: tuple[int, ...], skip: Any
) -> Skipped:
    adaln = model.adaln_by_table(target.module)
    if adaln is not None:
        if layer.kind != "bias" and adaln != (0, 0) and size != adaln:
            return _wrong_size(target.module, adaln, size, skip)
        return skip("adaln-tables", "changes AdaLN, and the checkpoint has only tables of it")
    if layer.kind == "bias" and model.has_module(target.module):
        return skip("no-bias", "the model has no bias there")
    index = block_index(target.module)
    blocks = {block_index(name) for name in model.parameters} - {None}
    if index is not None and blocks and index not in blocks:
        return skip("no-block", f"the model has {len(blocks)} blocks only")
    return skip("no-module", "the model has no module of that name")


def _wrong_size(
    module: str, expected: tuple[int, ...], size: tuple[int, ...], skip: Any
) -> Skipped:
    sizes = f"expected {list(expected)}, found {list(size)}"
    if module.endswith(".adaln_proj.linear") and size[-1:] == (_PRUNED_WIDTH,):
        return skip(
            "pruned-adaln",
            f"trained on a pruned AdaLN (input {_PRUNED_WIDTH}), this one is whole: {sizes}",
        )
    if module.endswith(".adaln_proj.linear") and tuple(expected[-1:]) == (_PRUNED_WIDTH,):
        return skip(
            "pruned-adaln",
            f"trained on a whole AdaLN, this checkpoint's is pruned (input {_PRUNED_WIDTH}): "
            f"{sizes}",
        )
    if (
        module in ("proj_out", "audio_proj_out")
        and size[1:] == tuple(expected[1:])
        and size[0] > expected[0]
        and size[0] % expected[0] == 0
    ):
        return skip(
            "interval-heads",
            f"{size[0] // expected[0]} output heads for single time intervals, not one: {sizes}",
        )
    return skip("shape", f"another size: {sizes}")


def _tables_only(model: ModelShapes) -> bool:
    """Whether tables stand in for the projections, so that nothing can recompute them."""
    return model.adaln_tables and not any(
        name.endswith(".adaln_proj.linear.weight") for name in model.parameters
    )


def _refuse_other_models(
    header: Header, contents: Contents, parts: Sequence[Part], skipped: Sequence[Skipped],
    model: ModelShapes,
) -> None:  # fmt: skip
    family = looks_like({name: entry.shape for name, entry in header.tensors.items()})
    foreign = family not in ("", OWN)
    if parts and not (foreign and skipped and family != "a text encoder"):
        return
    names = sorted({item.what for item in skipped})
    if foreign:
        raise LoraBindingError(
            f"the adapter is made for {family}, not for {OWN}",
            names=names, looks_like=family, file=header.file,
            remedy=f"Choose an adapter trained on {OWN}.",
        )  # fmt: skip
    if not header.tensors:
        raise LoraBindingError("the file holds no tensors", file=header.file)
    if not contents.layers:
        kinds = Counter(item.kind for item in contents.payloads)
        held = ", ".join(f"{count} x {kind}" for kind, count in kinds.most_common())
        reason = skipped[0].reason if skipped else "nothing"
        raise LoraBindingError(
            f"no adapter is in this file: {held or 'scales only'} ({reason})",
            names=names, file=header.file,
        )  # fmt: skip
    reasons = "; ".join(sorted({item.reason for item in skipped})[:3])
    adaln = any(item.kind == "adaln-tables" for item in skipped)
    raise LoraBindingError(
        f"0 of {len(header.tensors)} tensors bind to this model ({reasons})",
        names=names,
        looks_like=_other_width(model, skipped, family),
        file=header.file,
        remedy=FETCH_PROJECTIONS if adaln else "",
    )


def _other_width(model: ModelShapes, skipped: Sequence[Skipped], family: str) -> str:
    if family == OWN and any(item.kind == "shape" for item in skipped):
        return f"{OWN}-like names, another width than {model.hidden_width or 'this model'}"
    return ""


def _notes(parts: Sequence[Part], model: ModelShapes) -> tuple[str, ...]:
    notes = []
    if model.names_only:
        notes.append("no checkpoint given: names are checked, sizes only against each other")
        odd = sorted(
            part.module
            for part in parts
            if part.module.endswith(".adaln_proj.linear") and part.size[-1:] == (_PRUNED_WIDTH,)
        )
        if odd:
            notes.append(
                f"{len(odd)} AdaLN layers with input {_PRUNED_WIDTH}: trained on a pruned AdaLN, "
                "a full model will refuse them"
            )
    return tuple(notes)
