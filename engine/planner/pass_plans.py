"""The sampling passes of a request: each placed by the search, the second upon what the first left.

A worker whose first pass pinned every block starts its second without reading one again. So two
passes are planned twice, the fastest first pass against one that pins every block, and the
smaller sum wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..errors import Shortage
from ..request import Request
from .calibration import Calibration
from .cost import RAM, SECONDS, VRAM, term, total
from .explain import pass_reasons
from .lora_seconds import merge_block_seconds
from .passes import Pass, lifted_geometry, sampling_passes
from .search import TIE, Budget, PassChoice, PassSearch, SearchSpace
from .stacks import Machine, plan_upscale
from .timing import first_step_seconds
from .types import HardwareSnapshot, PhasePlan, Placement
from .workload import workload

DISK_TERMS = ("waiting for the disk", "first read of the blocks", "read weights")
Preferred = Mapping[str, tuple[Placement, str]]


@dataclass
class PassPlans:
    """Phases of the passes and of what lies between them, why, and what is short."""

    phases: list[PhasePlan] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    short: list[Shortage] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Of all phases."""
        return sum(phase.seconds for phase in self.phases)


def plan_passes(
    request: Request,
    snapshot: HardwareSnapshot,
    machine: Machine,
    space: SearchSpace,
    preferred: Preferred,
) -> PassPlans:
    """Every pass, and the lift between two. preferred: as plan_request takes it."""
    found = _in_turn(request, snapshot, machine, space, preferred, pin_first=False)
    passes = sampling_passes(request)
    if found.short or len(passes) < 2 or passes[0].phase in preferred:
        return found
    place = found.phases[0].placement
    if place is None or place.pinned_blocks == machine.facts.blocks:
        return found
    other = _in_turn(request, snapshot, machine, space, preferred, pin_first=True)
    if other.short or other.seconds * TIE >= found.seconds:
        return found
    other.reasons.append(
        f"the first pass pins every block, so that the second reads none again: "
        f"{found.seconds - other.seconds:.1f} s less in all"
    )
    return other


def _in_turn(
    request: Request,
    snapshot: HardwareSnapshot,
    machine: Machine,
    space: SearchSpace,
    preferred: Preferred,
    *,
    pin_first: bool,
) -> PassPlans:
    """Each pass by itself. pin_first: the first one may only be placed with every block pinned."""
    facts, calibration, budget = machine.facts, machine.calibration, machine.budget
    found = PassPlans()
    held = 0  # blocks that the sampling worker still has in memory from the pass before
    for index, item in enumerate(sampling_passes(request)):
        pinned = pin_first and index == 0
        search = PassSearch(
            workload(request, item.geometry, facts),
            item.steps,
            calibration,
            snapshot.system,
            replace(space, all_pinned=True) if pinned else space,
            kept_store=held == facts.blocks,
        )
        choice = search.choose(budget)
        if choice is None:
            found.short += search.shortages(item.phase, budget)
            continue
        if item.phase in preferred:
            place, why = preferred[item.phase]
            tried = search.price(place, budget)
            if tried is not None:
                choice = tried
                found.reasons.append(why)
        phase = sample_phase(item, choice, budget, calibration, held, start=index == 0)
        found.phases.append(phase)
        place = choice.candidate.placement
        # A store that pins every block serves the next pass as it is (engine.streaming).
        keeps = space.keeps_blocks_between_passes or place.pinned_blocks == facts.blocks
        held = place.pinned_blocks if keeps else 0
        found.reasons += pass_reasons(item, choice, phase.vram_peak_bytes)
        if item.phase == "sample_low" and item.geometry != request.geometry:
            kept = phase.ram_peak_bytes
            if not keeps:
                kept = total(choice.memory.fixed_ram(), RAM)
            lift = plan_upscale(machine, item.geometry, lifted_geometry(request.geometry), kept)
            if isinstance(lift, PhasePlan):
                found.phases.append(lift)
            else:
                found.short += lift
    return found


def sample_phase(
    item: Pass,
    choice: PassChoice,
    budget: Budget,
    calibration: Calibration,
    held: int,
    *,
    start: bool,
) -> PhasePlan:
    """The chosen placement of a pass as a phase: terms, first step, steady steps."""
    step, place = choice.step, choice.candidate.placement
    kept = place.resident_blocks + place.pinned_blocks
    fresh = place.disk_blocks + max(0, kept - held)
    # Both passes use the root that the first one reads.
    root = choice.work.facts.root_bytes / calibration["rates.disk"] if start else 0.0
    first = first_step_seconds(choice.clock, step, fresh, root)
    # Merged while a block is read for the first time; what is read again is kept merged.
    merge = fresh * merge_block_seconds(choice.work.facts.lora_merged_bytes, calibration)
    launch = calibration["rates.worker_start"] if start else 0.0
    terms = choice.memory.terms(place)
    missing = choice.candidate.vram_bytes - sum(t.value for t in terms if t.unit == VRAM)
    if missing:
        terms.append(term("text refiner, before the first step", missing, VRAM))
    # The allocator fills the margin too, before it gives anything back.
    room = budget.vram_bytes + budget.vram_margin_bytes - choice.candidate.vram_bytes
    spare = choice.memory.kept_bytes(place.keys, room)
    terms.append(term("kept by the allocator while there is room", spare, VRAM))
    terms += [
        term("worker start", launch, SECONDS, calibration.source("rates.worker_start")),
        term("compute", item.steps * step.compute, SECONDS, calibration.source("rates.attention")),
        term("waiting for the link", item.steps * step.link_stall, SECONDS),
        term(DISK_TERMS[0], item.steps * step.disk_stall, SECONDS),
        term(DISK_TERMS[1], first - step.total, SECONDS),
        term("LoRA merge", merge, SECONDS, "from shapes (docs/lora.md)"),
    ]
    return PhasePlan(
        item.phase,
        choice.candidate.vram_bytes + spare,
        choice.candidate.ram_bytes,
        launch + first + merge + (item.steps - 1) * step.total,
        item.steps,
        step.total,
        step.limited_by,
        place,
        tuple(t for t in terms if t.value),
    )
