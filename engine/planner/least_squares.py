"""Least squares with positive unknowns, few of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def positive_least_squares(
    points: Sequence[Sequence[float]],
    usual: Sequence[float],
    scales: Sequence[float],
    weight: float = 0.002,
) -> list[float]:
    """x >= 0 that bring the products x . p nearest to 1 over the points p.

    Each x is also drawn to its usual value, as weakly as `weight` of a point for each of `scales`
    of distance: directions that the points leave open stay there. Every set of positive unknowns is
    solved; the best one is kept.
    """
    count = len(usual)
    rows = [(list(point), 1.0) for point in points]
    for index, (value, scale) in enumerate(zip(usual, scales, strict=True)):
        pull = [0.0] * count
        pull[index] = weight / scale
        rows.append((pull, weight * value / scale))
    best: tuple[float, list[float]] | None = None
    for chosen in range(1, 1 << count):
        used = [index for index in range(count) if chosen >> index & 1]
        matrix = [[sum(p[i] * p[j] for p, _ in rows) for j in used] for i in used]
        right = [sum(p[i] * target for p, target in rows) for i in used]
        solved = _solve(matrix, right)
        if solved is None or min(solved) < 0:
            continue
        x = [0.0] * count
        for index, value in zip(used, solved, strict=True):
            x[index] = value
        loss = sum((sum(a * b for a, b in zip(x, p, strict=True)) - t) ** 2 for p, t in rows)
        if x[0] > 0 and (best is None or loss < best[0]):
            best = loss, x
    return list(usual) if best is None else best[1]


def _solve(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """Gaussian elimination with pivots; None for a singular matrix."""
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda index: abs(rows[index][column]))
        if abs(rows[pivot][column]) < 1e-300:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for index in range(size):
            if index != column:
                factor = rows[index][column] / rows[column][column]
                rows[index] = [
                    a - factor * b for a, b in zip(rows[index], rows[column], strict=True)
                ]
    return [rows[index][size] / rows[index][index] for index in range(size)]
