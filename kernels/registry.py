"""Which implementation of an operation runs on a machine, and why not another. Pure.

An implementation declares what it needs as data; `choose` looks at the needs, at the verdicts of
the probe where there are some, and gives one name and a reason against every other. Nothing is
imported, launched or measured here: kernels.catalogue lists what there is, kernels.compose loads
what was chosen, kernels.probe measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .machine import Capability, Machine, parse_version

OPS = ("branch", "linear", "window attention", "global attention")
EXACT_WITHIN = 1.10  # a quantised form must be faster than the best exact one by more than this


@dataclass(frozen=True)
class Needs:
    """What an implementation asks of a machine and of a question. Empty means: anything.

    min_capability is included, below_capability is not. packages: import name -> least version
    ("" for any); below: import name -> first version that is too new.
    """

    devices: tuple[str, ...] = ("cuda",)
    systems: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    min_capability: Capability | None = None
    below_capability: Capability | None = None
    max_head_width: int | None = None
    head_widths: tuple[int, ...] = ()
    head_power_of_two: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)
    below: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Implementation:
    """name: as the user may force it. load: "module:attribute" below kernels. exact: computes in
    the given dtype; a form that quantises inputs on its own is not exact. activation: the kind of
    activation a linear wants, "" for its weight's."""

    name: str
    op: str
    load: str
    needs: Needs = field(default_factory=Needs)
    exact: bool = True
    activation: str = ""


@dataclass(frozen=True)
class Question:
    """What will be asked of an operation. dtype: bfloat16, float16 or float32."""

    dtype: str
    head_width: int
    kind: str = ""


@dataclass(frozen=True)
class Verdict:
    """What the probe found. status: admitted, or why not: inaccurate, crashed, hung, failed.
    seconds: median at real lengths, None when it was not timed."""

    status: str
    detail: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class Chosen:
    """One implementation, None when there is none, and the reason against every other."""

    op: str
    implementation: Implementation | None
    against: dict[str, str] = field(default_factory=dict)
    because: str = ""

    @property
    def name(self) -> str:
        """The name of what was chosen, "" for none."""
        return "" if self.implementation is None else self.implementation.name


def refusal(needs: Needs, machine: Machine, question: Question) -> str:
    """The first need that is not met, in words; "" when all are."""
    if needs.devices and machine.device not in needs.devices:
        return f"needs a {' or '.join(needs.devices)} device, this is {machine.device}"
    if needs.systems and machine.system not in needs.systems:
        return f"needs {' or '.join(needs.systems)}, this is {machine.system}"
    found = machine.capability if machine.device == "cuda" else None  # AMD's numbers mean another
    if found and needs.min_capability and found < needs.min_capability:
        return f"needs capability {_dots(needs.min_capability)}, this device has {_dots(found)}"
    if found and needs.below_capability and found >= needs.below_capability:
        return f"is for capability below {_dots(needs.below_capability)}, not {_dots(found)}"
    if needs.dtypes and question.dtype not in needs.dtypes:
        return f"computes in {' or '.join(needs.dtypes)}, not {question.dtype}"
    return _head_refusal(needs, question.head_width) or _package_refusal(needs, machine)


def _head_refusal(needs: Needs, width: int) -> str:
    if needs.max_head_width and width > needs.max_head_width:
        return f"head width {width}, at most {needs.max_head_width}"
    if needs.head_widths and width not in needs.head_widths:
        return f"head width {width}, needs {' or '.join(map(str, needs.head_widths))}"
    if needs.head_power_of_two and (width < 16 or width & (width - 1)):
        return f"head width {width} is no power of two from 16 up"
    return ""


def _package_refusal(needs: Needs, machine: Machine) -> str:
    """Every package that is not as needed: mending one should not only show the next."""
    reasons = []
    for package, least in needs.packages.items():
        found, limit = machine.packages.get(package), needs.below.get(package)
        if package in machine.broken:
            reasons.append(f"{package} cannot be imported: {machine.broken[package]}")
        elif found is None:
            reasons.append(f"{package} is not installed")
        elif least and parse_version(found) < parse_version(least):
            reasons.append(f"{package} {found} is too old, needs {least}")
        elif limit and parse_version(found) >= parse_version(limit):
            reasons.append(f"{package} {found} is too new, needs less than {limit}")
    return "; ".join(reasons)


def choose(
    op: str,
    table: Sequence[Implementation],
    machine: Machine,
    question: Question,
    *,
    verdicts: Mapping[str, Verdict] | None = None,
    force: str | None = None,
    allow_quantised: bool = False,
) -> Chosen:
    """One implementation of `op`, and why not the others.

    verdicts: by implementation name, of this op, for this question. Without them the order of the
    table decides. force: this one or none; its needs and verdict still count, but not its speed
    nor that it quantises.
    """
    candidates = [item for item in table if item.op == op and _is_for(item, question)]
    verdicts = verdicts or {}
    against: dict[str, str] = {}
    able = []
    for item in candidates:
        verdict = verdicts.get(item.name)
        reason = refusal(item.needs, machine, question)
        if not reason and verdict is not None and verdict.status != "admitted":
            reason = f"probe: {verdict.status}" + (f", {verdict.detail}" if verdict.detail else "")
        if reason:
            against[item.name] = reason
        else:
            able.append(item)
    if force is not None:
        return _forced(op, force, candidates, able, against)
    exact = [item for item in able if item.exact]
    quantised = [item for item in able if not item.exact]
    best = _fastest(exact, verdicts)
    because = "measured fastest" if best and _seconds(best, verdicts) else "first that can run"
    rival = _fastest(quantised, verdicts) if allow_quantised or best is None else None
    if rival is not None and (best is None or _much_faster(rival, best, verdicts)):
        best = rival
        because = "quantised attention is allowed, and no exact form is within 10 % of its speed"
    for item in able:
        if item is not best:
            against[item.name] = _why_not(item, best, verdicts, allow_quantised)
    return Chosen(op, best, against, because if best else "")


def _is_for(item: Implementation, question: Question) -> bool:
    """Paths of other weight formats are no candidates, and are not listed as refused."""
    return not item.needs.kinds or question.kind in item.needs.kinds


def _forced(
    op: str,
    force: str,
    candidates: Sequence[Implementation],
    able: Sequence[Implementation],
    against: dict[str, str],
) -> Chosen:
    for item in able:
        if item.name == force:
            others = {other.name: f"{force} is forced" for other in able if other is not item}
            return Chosen(op, item, {**against, **others}, "forced")
    if force not in {item.name for item in candidates}:
        against[force] = "there is no such implementation"
    others = {item.name: f"{force} is forced" for item in able}
    return Chosen(op, None, {**against, **others})


def _fastest(
    items: Sequence[Implementation], verdicts: Mapping[str, Verdict]
) -> Implementation | None:
    """The fastest that was timed, else the first."""
    timed = [item for item in items if _seconds(item, verdicts)]
    if timed:
        return min(timed, key=lambda item: _seconds(item, verdicts) or 0.0)
    return items[0] if items else None


def _seconds(item: Implementation, verdicts: Mapping[str, Verdict]) -> float | None:
    verdict = verdicts.get(item.name)
    return None if verdict is None else verdict.seconds


def _much_faster(
    rival: Implementation, best: Implementation, verdicts: Mapping[str, Verdict]
) -> bool:
    fast, exact = _seconds(rival, verdicts), _seconds(best, verdicts)
    return fast is not None and exact is not None and exact > EXACT_WITHIN * fast


def _why_not(
    item: Implementation,
    best: Implementation | None,
    verdicts: Mapping[str, Verdict],
    allow_quantised: bool,
) -> str:
    assert best is not None
    mine, its = _seconds(item, verdicts), _seconds(best, verdicts)
    if not item.exact and best.exact and not allow_quantised:
        return "changes the arithmetic, and quantised attention is not allowed"
    if mine is not None and its is not None:
        if not item.exact and mine < its:
            return f"changes the arithmetic for {its / mine:.2f} times the speed: not enough"
        if best.exact or not item.exact:
            return f"slower: {mine * 1e3:.2f} ms against {its * 1e3:.2f} ms"
        return f"{best.name} is {mine / its:.2f} times as fast"
    if its is not None:
        return "not timed by the probe"
    return f"{best.name} comes first until the probe has measured both"


def _dots(capability: Capability) -> str:
    return f"{capability[0]}.{capability[1]}"


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """For files and tables."""
    return {"status": verdict.status, "detail": verdict.detail, "seconds": verdict.seconds}
