"""plan_request: from a request and a machine to a Plan, or DoesNotFit. Pure, milliseconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import DoesNotFit, RequestError, Shortage
from ..geometry import MIN_FRAMES, MIN_SIDE_PX, Geometry, snap_side
from ..request import Request
from .calibration import Calibration
from .cost import SECONDS
from .explain import request_reasons
from .pass_plans import DISK_TERMS, plan_passes, sample_phase
from .passes import sampling_passes
from .search import (
    ENDLESS_BUDGET,
    EVERY_PLACEMENT,
    Budget,
    PassSearch,
    SearchSpace,
    make_budget,
)
from .stacks import DecodeSearch, Machine, plan_encode
from .types import HardwareSnapshot, ModelFacts, PhasePlan, Placement, Plan
from .workload import workload

EVERYTHING = EVERY_PLACEMENT
_SMALLER_AREAS = (0.75, 0.5, 0.33, 0.2, 0.1)


def plan_request(
    request: Request,
    snapshot: HardwareSnapshot,
    facts: ModelFacts,
    calibration: Calibration,
    *,
    space: SearchSpace = EVERYTHING,
    margins: Mapping[str, int] | None = None,
    preferred: Mapping[str, tuple[Placement, str]] | None = None,
) -> Plan:
    """The plan of a request on a machine. Never changes the request.

    margins: bytes by axis ("vram", "ram") that this machine's history asks for instead of the
    calibration's. preferred: by phase, a placement that replaces the search's where it fits, and
    the sentence why. Raises DoesNotFit with every shortage and with smaller requests that were
    planned and fit; RequestError for a machine that cannot be planned.
    """
    if snapshot.system == "macos":
        raise RequestError("macOS is recorded but not planned: no CUDA device", field="system")
    budget = _with_margins(make_budget(snapshot, calibration), margins)
    plan = _plan(request, snapshot, facts, calibration, budget, space, preferred or {})
    if isinstance(plan, Plan):
        return plan
    fits = _smaller_requests(request, snapshot, facts, calibration, budget, space)
    raise DoesNotFit(plan, fits)


def price_placement(
    request: Request,
    snapshot: HardwareSnapshot,
    facts: ModelFacts,
    calibration: Calibration,
    placement: Placement,
) -> PhasePlan:
    """The last pass of a request under a given placement, whether or not a machine has the memory.

    Raises RequestError for a placement of another model.
    """
    item = sampling_passes(request)[-1]
    search = PassSearch(
        workload(request, item.geometry, facts), item.steps, calibration, snapshot.system,
        EVERYTHING,
    )  # fmt: skip
    choice = search.price(placement, ENDLESS_BUDGET)
    if choice is None:
        raise RequestError(f"{placement} is no placement of {facts.blocks} blocks", field="place")
    return sample_phase(item, choice, ENDLESS_BUDGET, calibration, 0, start=True)


def _with_margins(budget: Budget, margins: Mapping[str, int] | None) -> Budget:
    if not margins:
        return budget
    vram = margins.get("vram", budget.vram_margin_bytes)
    ram = margins.get("ram", budget.ram_margin_bytes)
    return replace(
        budget,
        vram_bytes=budget.vram_bytes + budget.vram_margin_bytes - vram,
        ram_bytes=budget.ram_bytes + budget.ram_margin_bytes - ram,
        vram_margin_bytes=vram,
        ram_margin_bytes=ram,
    )


def _plan(
    request: Request,
    snapshot: HardwareSnapshot,
    facts: ModelFacts,
    calibration: Calibration,
    budget: Budget,
    space: SearchSpace,
    preferred: Mapping[str, tuple[Placement, str]],
) -> Plan | list[Shortage]:
    """The plan, or every shortage of every phase."""
    machine = Machine(facts, calibration, budget)
    phases: list[PhasePlan] = []
    short: list[Shortage] = []
    reasons = request_reasons(request, snapshot, calibration, budget)

    def keep(result: PhasePlan | list[Shortage]) -> PhasePlan | None:
        if isinstance(result, list):
            short.extend(result)
            return None
        phases.append(result)
        return result

    text_rows = workload(request, request.geometry, facts).text_rows
    keep(plan_encode(machine, text_rows, request.keyframes + len(request.references)))
    sampled = plan_passes(request, snapshot, machine, space, preferred)
    short += sampled.short
    phases += sampled.phases
    reasons += sampled.reasons
    keep(DecodeSearch(machine, request.geometry).plan())
    if short:
        return short
    return Plan(
        tuple(phases),
        tuple(reasons),
        seconds_range=_seconds_range(phases, calibration),
        notes=calibration.notes + snapshot.notes,
    )


def _seconds_range(phases: Sequence[PhasePlan], calibration: Calibration) -> tuple[float, float]:
    """Low and high of the whole time. What waits for the disk is as uncertain as the disk's rate:
    files are read past the system's cache, so it is not faster the second time.
    """
    spread = 0.5 if calibration.extrapolated else 0.25
    error = min(calibration.rows["rates.disk"].error_p95, 0.9)
    disk = sum(_disk_seconds(phase) for phase in phases)
    rest = sum(phase.seconds for phase in phases) - disk
    low = rest * (1 - spread) + disk * min(1 - spread, 1 / (1 + error))
    return low, rest * (1 + spread) + disk * max(1 + spread, 1 / (1 - error))


def _disk_seconds(phase: PhasePlan) -> float:
    """What a phase spends waiting for the disk."""
    names = DISK_TERMS + (("layers",) if phase.limited_by == "disk" else ())
    return sum(term.value for term in phase.terms if term.unit == SECONDS and term.name in names)


def _smaller_requests(
    request: Request,
    snapshot: HardwareSnapshot,
    facts: ModelFacts,
    calibration: Calibration,
    budget: Budget,
    space: SearchSpace,
) -> list[dict[str, Any]]:
    """Requests below this one that were planned and fit: shorter, then smaller, then both."""

    def fits(geometry: Geometry) -> bool:
        smaller = replace(request, geometry=geometry)
        found = _plan(smaller, snapshot, facts, calibration, budget, space, {})
        return isinstance(found, Plan)

    found = []
    shorter = _longest(request.geometry, fits)
    if shorter is not None:
        found.append(shorter)
    for geometry in _smaller_canvases(request.geometry):
        if fits(geometry):
            found.append(geometry)
            break
    if not found:
        least = Geometry(MIN_SIDE_PX, MIN_SIDE_PX, MIN_FRAMES)
        for geometry in _smaller_canvases(request.geometry):
            shorter = _longest(geometry, fits)
            if shorter is not None:
                found.append(shorter)
                break
        else:
            if fits(least):
                found.append(least)
    return [
        {"width": g.width_px, "height": g.height_px, "frames": g.frames, "seconds": g.seconds}
        for g in found
    ]


def _longest(geometry: Geometry, fits: Any) -> Geometry | None:
    """The longest shorter clip at the same size, by bisection: need grows with frames."""
    low, high = 1, (geometry.frames - 5) // 17 - 1
    best = None
    while low <= high:
        middle = (low + high) // 2
        tried = replace(geometry, frames=17 * middle + 5)
        if fits(tried):
            best, low = tried, middle + 1
        else:
            high = middle - 1
    return best


def _smaller_canvases(geometry: Geometry) -> Iterator[Geometry]:
    """The same length and aspect at less area."""
    for area in _SMALLER_AREAS:
        sides = [
            max(MIN_SIDE_PX, snap_side(side * area**0.5))
            for side in (geometry.width_px, geometry.height_px)
        ]
        smaller = Geometry(sides[0], sides[1], geometry.frames)
        if smaller.tokens_per_frame < geometry.tokens_per_frame:
            yield smaller
