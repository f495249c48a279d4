"""What a fit carries: bench rows, what is known so far, what was found. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .calibration import Calibration, Row
from .compare import Compared, compare, usable
from .cost import UNSEEN_ROW
from .types import ModelFacts

Rows = Sequence[Mapping[str, Any]]


class Fit:
    """Learns rows one after another; each sees the ones before it."""

    def __init__(self, rows: Rows, facts: ModelFacts, calibration: Calibration) -> None:
        self.rows, self.facts = usable(rows), facts
        self.calibration = calibration.without(UNSEEN_ROW)  # learned anew, after the others
        self.found: list[Row] = []

    def compared(self) -> list[Compared]:
        """Every row beside its forecast with what is known so far."""
        return [compare(row, self.facts, self.calibration) for row in self.rows]

    def learn(self, name: str, value: float, error: float, unit: str, source: str) -> None:
        """Keep one row."""
        row = Row(name, float(value), unit, "measured", source, error)
        self.found.append(row)
        self.calibration = self.calibration.with_rows([row])

    def learn_values(
        self,
        name: str,
        values: Sequence[float],
        choose: Callable[[Sequence[float]], float],
        unit: str,
        source: str,
    ) -> None:
        """Keep a row that is one of, or between, measured values."""
        if values:
            value = float(choose(values))
            spread = max(abs(item - value) for item in values) / value
            self.learn(name, value, spread, unit, f"{source}, {len(values)} row(s)")

    def column(self, *names: str) -> list[float]:
        """The largest of some fields of each row that has any."""
        found = []
        for row in self.rows:
            values = [row[name] for name in names if row.get(name)]
            if values:
                found.append(max(values))
        return found


def size_of(row: Mapping[str, Any]) -> tuple[int, int, int]:
    """Width, height and frames of a bench row."""
    return row["width"], row["height"], row["frames"]
