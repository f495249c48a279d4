"""What an adapter file does to the model, as a value: JSON for programs, a table for people.

N tensors, M of them bound, to K modules, and a reason for every tensor left over. An adapter
that would be applied in part is refused (`require_complete`) unless the user asked for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import LoraBindingError, printable

FETCH_PROJECTIONS = (
    "Fetch the AdaLN projections (adaln/NN.safetensors, one file a block, 26 GB in all) beside the "
    "checkpoint, or allow a partial adapter."
)


@dataclass(frozen=True)
class Skipped:
    """Tensors that are not applied. `matters` is False when their values change nothing."""

    what: str
    kind: str
    reason: str
    tensors: tuple[str, ...]
    matters: bool = True


@dataclass(frozen=True)
class BoundTarget:
    """One line of a report: a parameter and what changes it."""

    parameter: str
    kind: str
    rank: int
    scale: float
    zero: bool = False


@dataclass(frozen=True)
class BindingReport:
    """What one adapter file does to the model.

    tensors: N in the file. bound_tensors: M that are applied. modules: K modules of the model that
    they reach. merge_only: parameters that cannot run as an online branch. adaln_modules: modules
    whose change needs the AdaLN tables to be computed again. identity: SHA-256 of the file.
    """

    file: str
    strength: float
    tensors: int
    bound_tensors: int
    modules: int
    naming: str
    targets: tuple[BoundTarget, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    merge_only: tuple[str, ...] = ()
    adaln_modules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    scale_source: str = ""
    identity: str = ""

    @property
    def missing(self) -> tuple[Skipped, ...]:
        """What is left over and is not zero."""
        return tuple(item for item in self.skipped if item.matters)

    @property
    def complete(self) -> bool:
        """Whether everything in the file that is not zero is applied."""
        return not self.missing

    def as_json(self) -> dict[str, Any]:
        """The binding report of `inspect-lora --json` and of run reports."""
        return {
            "file": self.file,
            "identity": self.identity,
            "strength": self.strength,
            "tensors": self.tensors,
            "bound_tensors": self.bound_tensors,
            "modules": self.modules,
            "complete": self.complete,
            "naming": self.naming,
            "scale_source": self.scale_source,
            "targets": [dict(vars(item)) for item in self.targets],
            "skipped": [{**vars(item), "tensors": list(item.tensors)} for item in self.skipped],
            "merge_only": list(self.merge_only),
            "adaln_modules": list(self.adaln_modules),
            "notes": list(self.notes),
        }

    def table(self) -> str:
        """The report as plain text, equal blocks folded into one line."""
        lines = [
            f"{printable(self.file)}: {self.bound_tensors} of {self.tensors} tensors bound to "
            f"{self.modules} modules, strength {self.strength:g}",
            f"  names: {self.naming}",
        ]
        if self.scale_source:
            lines.append(f"  scale: {self.scale_source}")
        rows = _folded(self.targets)
        if rows:
            width = max(len(row[0]) for row in rows)
            lines.append(f"  {'parameter':<{width}}  kind  rank  scale   blocks")
            lines += [
                f"  {name:<{width}}  {kind:<4}  {rank or '-':>4}  {scale:<6}  {blocks}"
                for name, kind, rank, scale, blocks in rows
            ]
        if self.adaln_modules:
            lines.append(f"  modules that change the AdaLN tables: {len(self.adaln_modules)}")
        if self.merge_only:
            lines.append(f"  parameters that are merged in any mode: {len(self.merge_only)}")
        for kind, items in _by_kind(self.skipped).items():
            count = sum(len(item.tensors) for item in items)
            mark = "NOT APPLIED" if any(item.matters for item in items) else "left out (no effect)"
            lines.append(f"  {mark}: {count} tensors, {kind}: {items[0].reason}")
            shown = [printable(name) for item in items for name in item.tensors][:4]
            lines += [f"    {name}" for name in shown]
            if count > len(shown):
                lines.append(f"    and {count - len(shown)} more")
        lines += [f"  note: {printable(note)}" for note in self.notes]
        return "\n".join(lines)


def require_complete(report: BindingReport, *, allow_partial: bool) -> None:
    """Refuse an adapter that would be applied in part, unless the user allowed that.

    Raises LoraBindingError with the names of every tensor left over.
    """
    missing = report.missing
    if not missing or allow_partial:
        return
    names = [name for item in missing for name in item.tensors]
    reasons = "; ".join(
        f"{sum(len(i.tensors) for i in items)} x {items[0].reason}"
        for items in _by_kind(missing).values()
    )
    adaln = any(item.kind == "adaln-tables" for item in missing)
    raise LoraBindingError(
        f"only {report.bound_tensors} of {report.tensors} tensors would be applied ({reasons})",
        names=names,
        file=report.file,
        expected=f"{report.tensors} bound",
        found=f"{report.bound_tensors} bound",
        remedy=FETCH_PROJECTIONS if adaln else "Allow a partial adapter to go on without them.",
    )


def _folded(targets: Iterable[BoundTarget]) -> list[tuple[str, str, int, str, str]]:
    """Rows of the table: equal lines of several blocks become one, with the count."""
    groups: dict[tuple[str, str, int, float], int] = {}
    for item in targets:
        name = re.sub(r"(blocks)\.\d+\.", r"\1.N.", item.parameter, count=1)
        key = (name, item.kind + (" (zero)" if item.zero else ""), item.rank, item.scale)
        groups[key] = groups.get(key, 0) + 1
    return [
        (name, kind, rank, f"{scale:g}", str(count) if ".N." in name else "-")
        for (name, kind, rank, scale), count in groups.items()
    ]


def _by_kind(skipped: Iterable[Skipped]) -> dict[str, list[Skipped]]:
    groups: dict[str, list[Skipped]] = {}
    for item in skipped:
        groups.setdefault(item.kind, []).append(item)
    return groups


def file_label(file: str | Path) -> str:
    """The name a report shows: the last part, so that no folder of the user gets into a report."""
    return Path(file).name
