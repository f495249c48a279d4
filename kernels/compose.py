"""From choices to operations: one namespace an engine calls, with the reasons beside it.

Each op is chosen by kernels.registry, its packages are imported here, and one that breaks at import
becomes a reason and the next candidate is taken. The namespace has the names of kernels.reference.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import torch

from .catalogue import CATALOGUE
from .machine import Machine, read_machine
from .reference import __all__ as NAMES
from .registry import OPS, Chosen, Implementation, Question, Verdict, choose
from .weights import KINDS, Activation

# verdicts by op; those of linears by op and kind: "linear int8-convrot"
Verdicts = Mapping[str, Mapping[str, Verdict]]


class Unusable(Exception):
    """No implementation of `op` can run; reasons: name -> why. The engine names it for users."""

    def __init__(self, op: str, reasons: Mapping[str, str]) -> None:
        super().__init__(f"{op}: {dict(reasons)}")
        self.op, self.reasons = op, dict(reasons)


@dataclass(frozen=True)
class Choice:
    """The operations that will run, and the reasons against the others.

    ops: has the names of kernels.reference. chosen: op -> name. changes: ops whose chosen form
    quantises on its own and so changes the arithmetic.
    """

    name: str
    ops: Any
    against: dict[str, str] = field(default_factory=dict)
    chosen: dict[str, str] = field(default_factory=dict)
    because: dict[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()


def compute_dtype(machine: Machine) -> torch.dtype:
    """What the engine computes in: bfloat16, float16 before Ampere, float32 on a CPU."""
    if machine.device not in ("cuda", "hip"):
        return torch.float32
    old = machine.device == "cuda" and (machine.capability or (0, 0)) < (8, 0)
    return torch.float16 if old else torch.bfloat16


def choose_ops(
    device: torch.device,
    *,
    head_dim: int,
    kind: str,
    dtype: torch.dtype | None = None,
    machine: Machine | None = None,
    verdicts: Verdicts | None = None,
    force: Mapping[str, str] | None = None,
    allow_quantised: bool = False,
    table: Sequence[Implementation] = CATALOGUE,
) -> Choice:
    """The operations for weights of `kind`. force: op -> name. Raises Unusable."""
    machine = machine or read_machine(device)
    dtype = dtype or compute_dtype(machine)
    question = Question(str(dtype).removeprefix("torch."), head_dim, kind)
    forced: Mapping[str, str] = force or {}
    verdicts = verdicts or {}
    found: dict[str, Chosen] = {}

    def ask(op: str, kind: str) -> tuple[Chosen, Any]:
        """What was chosen, loaded; a package that breaks at import is out, and it is asked anew."""
        nonlocal machine
        assert machine is not None
        while True:
            chosen = choose(
                op,
                table,
                machine,
                replace(question, kind=kind),
                verdicts=verdicts.get(verdict_key(op, kind)),
                force=forced.get(op),
                allow_quantised=allow_quantised,
            )
            if chosen.implementation is None:
                return chosen, None
            try:
                return chosen, load(chosen.implementation)
            except BrokenPackage as broken:
                why = {**machine.broken, broken.package: broken.reason}
                machine = replace(machine, broken=why)

    loaded = {}
    for op in OPS:
        found[op], loaded[op] = ask(op, kind)
        if found[op].implementation is None:
            raise Unusable(f"{op} of {kind} weights" if op == "linear" else op, found[op].against)
    paths = {kind: (found["linear"], loaded["linear"])}
    for other in KINDS:
        if other not in paths:
            forced = {}  # a forced path is for the checkpoint's own kind
            chosen, function = ask("linear", other)
            if function is not None:
                paths[other] = (chosen, function)
    ops = _namespace(loaded, paths)
    return _choice(found, ops)


def verdict_key(op: str, kind: str) -> str:
    """Where the verdicts of an op stand: those of linears by kind."""
    return f"{op} {kind}" if op == "linear" else op


class BrokenPackage(Exception):
    """A package that is there but cannot be imported."""

    def __init__(self, package: str, reason: str) -> None:
        super().__init__(f"{package}: {reason}")
        self.package, self.reason = package, reason


def load(item: Implementation) -> Any:
    """The function, or for a branch the module, of an implementation. Raises BrokenPackage."""
    for package in item.needs.packages:
        try:
            importlib.import_module(package)
        except Exception as failed:  # a broken package may raise anything at import
            text = f"{type(failed).__name__}: {failed}".splitlines()[0]
            raise BrokenPackage(package, text) from failed
    module, _, attribute = item.load.partition(":")
    if module.startswith("/"):  # an absolute name: candidates from outside the package
        found = importlib.import_module(module[1:])
    else:
        found = importlib.import_module(f".{module}", __package__)
    return getattr(found, attribute) if attribute else found


def _namespace(loaded: Mapping[str, Any], paths: Mapping[str, tuple[Chosen, Any]]) -> Any:
    ops = SimpleNamespace(**{name: getattr(loaded["branch"], name) for name in NAMES})
    ops.attention = loaded["window attention"]
    ops.attention_partial = loaded["global attention"]
    linears = {kind: function for kind, (_, function) in paths.items()}

    def linear(act: Activation, weight: Any, out_dtype: torch.dtype, *, out: Any = None) -> Any:
        return linears[weight.kind](act, weight, out_dtype, out=out)

    ops.linear = linear
    wanted = {}
    for kind, (chosen, _) in paths.items():
        assert chosen.implementation is not None
        if chosen.implementation.activation:
            wanted[kind] = chosen.implementation.activation
    if wanted:
        _redirect(ops, wanted)
    return ops


def _redirect(ops: Any, wanted: Mapping[str, str]) -> None:
    """Operations that end in an activation make the kind that the linear's path wants."""

    def by_keyword(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, kind: str, **named: Any) -> Any:
            return function(*args, kind=wanted.get(kind, kind), **named)

        return call

    plain = ops.quantise_activation

    def quantise_activation(x: torch.Tensor, kind: str, group: int | None = None) -> Activation:
        return plain(x, wanted.get(kind, kind), group)

    ops.quantise_activation = quantise_activation
    for name in ("norm_modulate", "gate_heads", "swiglu"):
        setattr(ops, name, by_keyword(getattr(ops, name)))


def _choice(found: Mapping[str, Chosen], ops: Any) -> Choice:
    names = {op: chosen.name for op, chosen in found.items()}
    against = {
        f"{name} ({op})": why
        for op, chosen in found.items()
        for name, why in chosen.against.items()
    }
    changes = tuple(
        op
        for op, chosen in found.items()
        if chosen.implementation is not None and not chosen.implementation.exact
    )
    text = ", ".join(dict.fromkeys(names.values()))
    because = {op: chosen.because for op, chosen in found.items()}
    return Choice(text, ops, against, names, because, changes)
