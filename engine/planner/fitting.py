"""Calibration rows from bench rows, in the order in which they depend on each other.

Memory rows are the lowest envelope over all measurements, because a forecast may not be below one;
rates are least squares over steps that wait for nothing. Margins come from leaving each row out in
turn: how far beyond a forecast that never saw it a run can be. Pure: reads values, returns values.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .calibration import Calibration, Row
from .compare import Compared, compare, usable
from .cost import KEPT_ROW, captured_graphs, slack_rows
from .types import ModelFacts
from .workload import block_parts, gemm_row

QUIET_STALL = 0.02  # share of a step that may be spent waiting in a row that teaches compute
LEAST_ALLOCATOR_BYTES = 1 << 20
LEAST_MARGIN_BYTES = 32 << 20
LEAST_SECONDS = 1e-7
# How far slowness, launch, what side streams save, and the rest may be expected to move.
SCALES = (0.1, 0.1, 1.5e-4, 0.05, 0.05)
LEAST_SHARE = 1e-6
MOST_GROUPED_SHARE = 4.0  # of the shapes; a group that needs more is no group
GLUE_ROWS = ("rates.copy", "rates.convolution", "rates.readout", "rates.solve")
Rows = Sequence[Mapping[str, Any]]


class Fit:
    """Learns rows one after another; each sees the ones before it."""

    def __init__(self, rows: Rows, facts: ModelFacts, calibration: Calibration) -> None:
        self.rows, self.facts, self.calibration = usable(rows), facts, calibration
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


def measured_rows(
    rows: Iterable[Mapping[str, Any]], facts: ModelFacts, before: Calibration
) -> list[Row]:
    """Calibration rows that bench rows correct."""
    fit = Fit(list(rows), facts, before)
    _fit_outside(fit)
    disks = fit.column("disk_bytes_per_second")
    fit.learn_values("rates.disk", disks, statistics.median, "B/s", "the store's own reader")
    links = fit.column("link_bytes_per_second")
    fit.learn_values("rates.link", links, statistics.median, "B/s", "pinned copies to the device")
    _fit_device(fit)
    _fit_host(fit)
    _fit_seconds(fit)
    return fit.found


def left_out(
    rows: Iterable[Mapping[str, Any]], facts: ModelFacts, before: Calibration
) -> list[Compared]:
    """Every row beside a forecast from the rows of all other sizes."""
    steps = usable(rows)
    sizes = list(dict.fromkeys(_size(row) for row in steps))
    found = []
    for size in sizes:
        others = measured_rows([row for row in steps if _size(row) != size], facts, before)
        known = before.with_rows(others)
        found += [compare(row, facts, known) for row in steps if _size(row) == size]
    return found


def _size(row: Mapping[str, Any]) -> tuple[int, int, int]:
    return row["width"], row["height"], row["frames"]


def margin_rows(
    rows: Iterable[Mapping[str, Any]], facts: ModelFacts, before: Calibration
) -> list[Row]:
    """The VRAM margin: the most that a row needed beyond the forecast of all other sizes."""
    steps = [row for row in usable(rows) if row.get("vram_peak_bytes")]
    sizes = {_size(row) for row in steps}
    if len(sizes) < 3:
        return []
    beyond = [
        item.row["vram_peak_bytes"] - item.vram_bytes for item in left_out(steps, facts, before)
    ]
    value = max(LEAST_MARGIN_BYTES, *beyond)
    source = (
        f"most bytes that one of {len(sizes)} sizes needed beyond a forecast from the others "
        f"({max(beyond) / 2**20:.0f} MiB); at least {LEAST_MARGIN_BYTES >> 20} MiB"
    )
    return [Row("margin.vram_linux", float(value), "B", "measured", source, 0.0)]


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


def _fit_outside(fit: Fit) -> None:
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


def _fit_device(fit: Fit) -> None:
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
        shape = id(item) if _stored(item) else (_size(item.row), item.placement.residual)
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

    low, high = LEAST_SHARE, MOST_GROUPED_SHARE
    if covers(low):
        high = low
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if covers(middle) else (middle, high)
    fit.learn("memory.grouped", high, 0.1, "1", f"least share that covers {len(items)} row(s)")


def _fit_host(fit: Fit) -> None:
    """Interpreter and libraries, from rows whose host peak was counted by a cgroup.

    A process that ran other cases before has grown by them and teaches nothing.
    """
    peaks = [
        fit.calibration["memory.interpreter"] + item.row["ram_peak_bytes"] - item.ram_bytes
        for item in fit.compared()
        if item.row.get("ram_gib")
        and item.ratio("ram") is not None
        and item.row.get("process", "own") == "own"
    ]
    source = "host peak under a cgroup, shaped terms off"
    fit.learn_values("memory.interpreter", peaks, max, "B", source)


def _fit_seconds(fit: Fit) -> None:
    """Rates of softmax and of the rest of a block, kernel starts, and the time around blocks.

    Only steps that wait for nothing teach. What they do not tell apart stays near the rows before:
    products and what is between them grow alike with a clip and share one figure.
    `rates.sustained` becomes 1: it is in the rates then.
    """
    quiet = [item for item in fit.compared() if _is_quiet(item)]
    if not quiet:
        return
    rows, points = fit.calibration, []
    slow = 1 / rows["rates.sustained"]
    for item in quiet:
        work, again = item.memory.work, item.placement.keys == "recompute"
        count, measured = work.facts.blocks, item.row["seconds_per_step"]
        softmax, products, glue = block_parts(work, rows).totals(recompute=again)
        single = item.placement.keys != "store" and not work.full_cover
        busy = slow * (softmax + products + glue)
        terms = (softmax, products + glue, work.launches, busy if single else 0.0)
        points.append([count * x / measured for x in terms] + [1 / measured])
    usual = (slow, slow, rows["rates.launch"], rows["rates.alone"], rows["rates.step"])
    found = positive_least_squares(points, usual)
    error = max(
        abs(sum(x * part for x, part in zip(found, point, strict=True)) - 1) for point in points
    )
    source = f"steps that wait for nothing, {len(points)} row(s)"
    groups = (("rates.attention",), (gemm_row(fit.facts, rows), *GLUE_ROWS))
    for slowness, names in zip(found, groups, strict=False):
        for name in names:
            value = rows[name] / max(slowness, 1e-3)
            fit.learn(name, value, error, rows.rows[name].unit, source)
    fit.learn("rates.sustained", 1.0, error, "1", f"{source}: in the rates themselves")
    fit.learn("rates.launch", max(found[2], LEAST_SECONDS), error, "s", source)
    fit.learn("rates.alone", max(found[3], LEAST_SHARE), error, "1", source)
    fit.learn("rates.step", max(found[4], LEAST_SECONDS), error, "s", source)


def _is_quiet(item: Compared) -> bool:
    """Whether a step waited for nothing and kept x and keys on the device."""
    waited = sum(item.row.get("stall_seconds", {}).values())
    place = item.placement
    return (
        waited < QUIET_STALL * item.row["seconds_per_step"]
        and place.residual == "device"
        and place.keys != "host"
        and item.step.limited_by == "compute"
    )


def positive_least_squares(
    points: Sequence[Sequence[float]],
    usual: Sequence[float],
    weight: float = 0.002,
    scales: Sequence[float] = SCALES,
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
