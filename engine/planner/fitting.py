"""Calibration rows from bench rows, in the order in which they depend on each other.

Memory rows are the lowest envelope over all measurements, because a forecast may not be below one;
rates are least squares over steps that wait for nothing. Margins come from leaving each row out in
turn: how far beyond a forecast that never saw it a run can be. Pure: reads values, returns values.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .calibration import Calibration, Row
from .compare import Compared, compare, usable
from .cost import UNSEEN_ROW
from .fit import Fit, size_of
from .fit_memory import fit_device, fit_host, fit_outside
from .least_squares import positive_least_squares
from .types import ModelFacts
from .workload import block_parts, gemm_row

# Share of a step that may be waited in a row that teaches compute. Little: a card at its power
# limit is faster after a pause, so that what it waited cannot be taken off.
QUIET_STALL = 0.01
LEAST_MARGIN_BYTES = 32 << 20
LEAST_SECONDS = 1e-7
# How far slowness, launch, what side streams save, and the rest may be expected to move.
SCALES = (0.1, 0.1, 1.5e-4, 0.05, 0.05)
LEAST_SHARE = 1e-6
GLUE_ROWS = ("rates.copy", "rates.convolution", "rates.readout", "rates.solve")


def measured_rows(
    rows: Iterable[Mapping[str, Any]], facts: ModelFacts, before: Calibration
) -> list[Row]:
    """Calibration rows that bench rows correct."""
    fit = Fit(list(rows), facts, before)
    fit_outside(fit)
    disks = fit.column("disk_bytes_per_second")
    fit.learn_values("rates.disk", disks, statistics.median, "B/s", "the store's own reader")
    links = fit.column("link_bytes_per_second")
    fit.learn_values("rates.link", links, statistics.median, "B/s", "pinned copies to the device")
    fit_device(fit)
    fit_host(fit)
    _fit_seconds(fit)
    return fit.found


def left_out(
    rows: Iterable[Mapping[str, Any]], facts: ModelFacts, before: Calibration
) -> list[Compared]:
    """Every row beside a forecast from the rows of all other sizes."""
    steps, before = usable(rows), before.without(UNSEEN_ROW)
    sizes = list(dict.fromkeys(size_of(row) for row in steps))
    found = []
    for size in sizes:
        others = measured_rows([row for row in steps if size_of(row) != size], facts, before)
        known = before.with_rows(others)
        found += [compare(row, facts, known) for row in steps if size_of(row) == size]
    return found


def margin_rows(
    rows: Iterable[Mapping[str, Any]], facts: ModelFacts, before: Calibration
) -> list[Row]:
    """The VRAM margin: the most that a row needed beyond the forecast of all other sizes. Forecasts
    count it too: an envelope touches the rows that taught it, and sizes that nobody measured lie
    on both sides of it.
    """
    steps = [row for row in usable(rows) if row.get("vram_peak_bytes")]
    sizes = {size_of(row) for row in steps}
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
    unseen = max(1.0, *beyond)
    return [
        Row("margin.vram_linux", float(value), "B", "measured", source, 0.0),
        Row(UNSEEN_ROW, float(unseen), "B", "measured", source.partition(";")[0], 0.0),
    ]


def _fit_seconds(fit: Fit) -> None:
    """Rates of softmax and of the rest of a block, kernel starts, and the time around blocks.

    Only steps that wait for next to nothing teach, less that. What they do not tell apart stays
    near the rows before: products and what is between them grow alike and share one figure.
    `rates.sustained` becomes 1: it is in the rates then.
    """
    quiet = [item for item in fit.compared() if _is_quiet(item)]
    if not quiet:
        return
    rows = fit.calibration
    slow = 1 / rows["rates.sustained"]
    points = [_point(item, rows, slow) for item in quiet]
    usual = (slow, slow, rows["rates.launch"], rows["rates.alone"], rows["rates.step"])
    found = positive_least_squares(points, usual, scales=SCALES)
    error = max(
        abs(sum(x * part for x, part in zip(found, point, strict=True)) - 1) for point in points
    )
    errors = [max(error, away) for away in _moves(quiet, points, usual, found)]
    source = (
        f"{len(points)} steps that wait for nothing, split into parts: their sum is measured "
        f"to {100 * error:.1f} %, one alone to its error"
    )
    groups = (("rates.attention",), (gemm_row(fit.facts, rows), *GLUE_ROWS))
    for slowness, away, names in zip(found, errors, groups, strict=False):
        for name in names:
            value = rows[name] / max(slowness, 1e-3)
            fit.learn(name, value, away, rows.rows[name].unit, source)
    fit.learn("rates.sustained", 1.0, error, "1", f"{source}; in the rates themselves")
    fit.learn("rates.launch", max(found[2], LEAST_SECONDS), errors[2], "s", source)
    fit.learn("rates.alone", max(found[3], LEAST_SHARE), errors[3], "1", source)
    fit.learn("rates.step", max(found[4], LEAST_SECONDS), errors[4], "s", source)


def _point(item: Compared, rows: Calibration, slow: float) -> list[float]:
    """Parts of a measured step, each as a share of it that its unknown multiplies."""
    work, again = item.memory.work, item.placement.keys == "recompute"
    count = work.facts.blocks
    measured = item.row["seconds_per_step"] - item.step.link_stall
    softmax, products, glue = block_parts(work, rows).totals(recompute=again)
    single = item.placement.keys != "store" and not work.full_cover
    busy = slow * (softmax + products + glue)
    terms = (softmax, products + glue, work.launches, busy if single else 0.0)
    return [count * x / measured for x in terms] + [1 / measured]


def _moves(
    quiet: Sequence[Compared],
    points: Sequence[Sequence[float]],
    usual: Sequence[float],
    found: Sequence[float],
) -> list[float]:
    """How far each unknown goes, relative, when one size teaches nothing: what a split of sums
    leaves open. At most 0.99; 0 where there is one size.
    """
    moved = [0.0] * len(found)
    sizes = [size_of(item.row) for item in quiet]
    for left in set(sizes) if len(set(sizes)) > 1 else ():
        kept = [point for size, point in zip(sizes, points, strict=True) if size != left]
        other = positive_least_squares(kept, usual, scales=SCALES)
        for index, (value, now) in enumerate(zip(other, found, strict=True)):
            away = abs(value - now) / now if now else float(value > 0)
            moved[index] = max(moved[index], min(0.99, away))
    return moved


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
