"""Memory rows from bench rows: the lowest envelope over all measurements, because a forecast may
not be below one. What is beside the allocator first, then what it holds beyond the shaped terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .compare import Compared, compare
from .cost import KEPT_ROW, captured_graphs, slack_rows
from .fit import Fit, size_of

LEAST_ALLOCATOR_BYTES = 1 << 20
LEAST_GROUPED_SHARE = 1e-6
MOST_GROUPED_SHARE = 4.0  # of the shapes; a group that needs more is no group


def envelope(points: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """(a, b) >= 0 with a + b u >= s for every (u, s, whole), and the least largest excess.

    The excess of a point is (a + b u - s) / whole. Two unknowns: the best lies where two of the
    lines meet, or one line and an axis.
    """
    steepest = max((s / u for u, s, _ in points if u), default=0.0)
    options = {(0.0, max(steepest, 0.0))}
    options.add((max(max(s for _, s, _ in points), 0.0), 0.0))
    for i, (u1, s1, _) in enumerate(points):
        for u2, s2, _ in points[:i]:
            if u1 != u2:
                b = (s1 - s2) / (u1 - u2)
                options.add((s1 - b * u1, b))

    def allowed(a: float, b: float) -> bool:
        slack = 1e-9 * max(abs(s) for _, s, _ in points)
        return a >= 0 and b >= 0 and all(a + b * u >= s - slack for u, s, _ in points)

    def excess(option: tuple[float, float]) -> float:
        a, b = option
        return max((a + b * u - s) / whole for u, s, whole in points)

    return min((option for option in options if allowed(*option)), key=excess)


def fit_outside(fit: Fit) -> None:
    """What is beside the allocator after a step: context, and so much for a captured launch.

    Rows of a bench that captured nothing, or did not look again, say only what the context is.
    """
    points, seen = [], False
    for item in fit.compared():
        found = item.row.get("context_after_bytes")
        if found:
            place = item.placement
            count = captured_graphs(place.resident_blocks, place.transfer_slots, place.half_slots)
            points.append((float(count * item.memory.work.launches), float(found), float(found)))
            seen = True
        elif item.row.get("context_bytes"):
            context = float(item.row["context_bytes"])
            points.append((0.0, context, context))
    if not points:
        return
    a, b = envelope(points) if seen else (max(s for _, s, _ in points), 0.0)
    source = f"beside the allocator after a step, {len(points)} row(s)"
    error = max((a + b * u - s) / whole for u, s, whole in points)
    fit.learn("memory.context", a, error, "B", source)
    if seen:
        fit.learn("memory.graph_launch", max(b, 1.0), error, "B", source)


def fit_device(fit: Fit) -> None:
    """What the allocator reserves beyond the shaped terms.

    First rows whose groups are single chunks, with stored keys and without; then how much of a
    row group is held at once, from the others.
    """
    single = [item for item in _with_vram(fit) if item.memory.work.geometry.grouped == 1]
    for beside in (True, False):
        _fit_slack(fit, [item for item in single if _stored(item) == beside])
    _fit_kept(fit)
    _fit_grouped(fit)


def _with_vram(fit: Fit) -> list[Compared]:
    return [item for item in fit.compared() if item.ratio("vram") is not None]


def _stored(item: Compared) -> bool:
    """Whether streams run side by side: they do where keys are stored, or all are at hand."""
    return item.placement.keys == "store" or item.memory.work.full_cover


def _fit_slack(fit: Fit, items: Sequence[Compared]) -> None:
    """A constant and a multiple of a group's rows, the lowest envelope over rows of one kind.

    Without stored keys a shape needs what it ran in with the least room; more is what the
    allocator keeps while it may (_fit_kept). Rows of one unit alone do not tell the two apart:
    they keep their proportion.
    """
    if not items:
        return
    constant, multiple = slack_rows(items[0].placement.keys, items[0].memory.work.full_cover)
    known = fit.calibration
    points: dict[Any, tuple[float, float, float]] = {}
    for item in items:
        unit = item.memory.group_unit_bytes
        measured = float(item.row["vram_peak_bytes"])
        beyond = measured - item.vram_bytes + known[constant] + known[multiple] * unit + item.kept
        point = (unit, beyond, measured)
        place = item.placement
        shape = id(item) if _stored(item) else (size_of(item.row), place.keys, place.residual)
        points[shape] = min(points.get(shape, point), point, key=lambda one: one[1])
    if len({unit for unit, _, _ in points.values()}) == 1:
        unit, most, _ = max(points.values(), key=lambda one: one[1])
        share = max(most, 0.0) / (known[constant] + known[multiple] * unit)
        a, b = share * known[constant], share * known[multiple]
    else:
        a, b = envelope(list(points.values()))
    error = max(abs(a + b * u - s) / whole for u, s, whole in points.values())
    source = f"reserved beyond the shaped terms: lowest envelope of {len(points)} row(s)"
    fit.learn(constant, max(a, LEAST_ALLOCATOR_BYTES), error, "B", source)
    fit.learn(multiple, max(b, 1e-3), error, "1", source)


def _fit_kept(fit: Fit) -> None:
    """What the allocator keeps beyond need while there is room, where keys are not stored."""
    items = [item for item in _with_vram(fit) if not _stored(item)]
    items = [item for item in items if item.memory.work.geometry.grouped == 1]
    if not items:
        return
    most = max(item.row["vram_peak_bytes"] - (item.vram_bytes - item.kept) for item in items)
    if most < LEAST_ALLOCATOR_BYTES and KEPT_ROW not in fit.calibration.rows:
        return
    source = f"most that a run with room to spare held beyond its need, {len(items)} row(s)"
    fit.learn(KEPT_ROW, max(float(most), 1.0), 0.3, "B", source)


def _fit_grouped(fit: Fit) -> None:
    """How much of a group's further chunks is held at once: the least share that covers all rows.

    By bisection: every term grows with it.
    """
    items = [item for item in _with_vram(fit) if item.memory.work.geometry.grouped > 1]
    if not items:
        return

    def covers(share: float) -> bool:
        known = fit.calibration.with_values(memory__grouped=share)
        return all(
            compare(item.row, fit.facts, known).vram_bytes >= item.row["vram_peak_bytes"]
            for item in items
        )

    low, high = LEAST_GROUPED_SHARE, MOST_GROUPED_SHARE
    if covers(low):
        high = low
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if covers(middle) else (middle, high)
    fit.learn("memory.grouped", high, 0.1, "1", f"least share that covers {len(items)} row(s)")


def fit_host(fit: Fit) -> None:
    """Interpreter and libraries, from rows whose host peak was counted by a cgroup. A process that
    ran other cases before has grown by them, as one that serves a user's requests does.
    """
    peaks = [
        fit.calibration["memory.interpreter"] + item.row["ram_peak_bytes"] - item.ram_bytes
        for item in fit.compared()
        if (item.row.get("ram_gib") or item.row.get("process") == "shared")
        and item.ratio("ram") is not None
    ]
    source = "host peak under a cgroup, shaped terms off"
    fit.learn_values("memory.interpreter", peaks, max, "B", source)
