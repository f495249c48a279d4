"""The only decider: every placement of a pass is priced, the best one kept.

Key source x place of x x half slots x slots x resident blocks are enumerated; the pinned share
follows, because a block that fits in host memory is never slower there than on disk. The best time
wins; among placements within 1 % of it the one with the smallest VRAM peak. Exact: a placement is
left unpriced only when it cannot win, being no faster and larger than one that was priced.

A request is planned as asked or refused. A refusal names every short axis and smaller requests that
were planned and do fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import Shortage
from .calibration import Calibration
from .cost import RAM, VRAM, SampleMemory, block_bytes, slot_bytes, total
from .timing import StepClock, StepSeconds
from .types import KEY_SOURCES, HardwareSnapshot, KeySource, Placement, Residual
from .workload import BlockSeconds, Workload, block_seconds

TIE = 1.01


@dataclass(frozen=True)
class Budget:
    """What one phase may use. Bytes, margins already taken off."""

    vram_bytes: int
    ram_bytes: int
    pin_bytes: int
    vram_margin_bytes: int
    ram_margin_bytes: int


ENDLESS = 1 << 60
ENDLESS_BUDGET = Budget(ENDLESS, ENDLESS, ENDLESS, 0, 0)


@dataclass(frozen=True)
class SearchSpace:
    """The placements that the engine can carry out."""

    keys: tuple[KeySource, ...] = KEY_SOURCES
    residuals: tuple[Residual, ...] = ("device", "host")
    half_slots: tuple[bool, ...] = (False, True)
    slots: tuple[int, ...] = (1, 2, 3)  # three only of halves, one only of whole blocks
    all_pinned: bool = False  # no resident block, none on disk
    keeps_blocks_between_passes: bool = False


EVERY_PLACEMENT = SearchSpace()


@dataclass(frozen=True)
class Candidate:
    """A placement with its peaks. Bytes."""

    placement: Placement
    vram_bytes: int
    ram_bytes: int


@dataclass(frozen=True)
class PassChoice:
    """The placement that was kept, its price, and what the search saw."""

    candidate: Candidate
    step: StepSeconds
    best_seconds: float
    work: Workload
    memory: SampleMemory
    clock: StepClock


def make_budget(snapshot: HardwareSnapshot, calibration: Calibration) -> Budget:
    """Free memory less the margins; Windows lets only part of the memory be page-locked."""
    margins = {axis: calibration.margin_bytes(axis, snapshot.system) for axis in ("vram", "ram")}
    vram = min(snapshot.vram_free_bytes, snapshot.vram_total_bytes) - margins["vram"]
    ram = min(snapshot.ram_available_bytes, snapshot.ram_total_bytes) - margins["ram"]
    pin = snapshot.pin_limit_bytes
    if pin is None:
        windows = snapshot.system == "windows"
        share = calibration["margin.pinned_share_windows"] if windows else 1.0
        pin = int(snapshot.ram_total_bytes * share)
    return Budget(vram, ram, pin, margins["vram"], margins["ram"])


# keys, residual, half slots, slots, device bytes, host bytes
Shape = tuple[KeySource, Residual, bool, int, int, int]


class PassSearch:
    """One pass on one machine: prices terms once and varies the linear parts."""

    def __init__(
        self,
        work: Workload,
        steps: int,
        calibration: Calibration,
        system: str,
        space: SearchSpace,
        compute: BlockSeconds | None = None,
        *,
        kept_store: bool = False,
    ) -> None:
        """kept_store: the pass before left every block in page-locked memory."""
        self.work, self.space = work, space
        self.memory = SampleMemory(work, calibration, system, steps, kept_store)
        self.fixed_vram = total(self.memory.fixed_vram(), VRAM)
        self.fixed_ram = total(self.memory.fixed_ram(), RAM)
        context = int(calibration["memory.context"])
        # The refiner runs once before the first step and leaves the device.
        self.prologue = context + work.facts.root_bytes + work.facts.lora_root_bytes
        compute = compute or block_seconds(work, calibration)
        self.clocks = {
            (keys, residual): StepClock(work, compute, calibration, keys, residual)
            for keys in space.keys
            for residual in space.residuals
        }

        self.block_bytes, self.staging_bytes = block_bytes(work), self.memory.staging_bytes()
        self.host_bytes = {pair: total(self.memory.choice_ram(*pair), RAM) for pair in self.clocks}

    def _shapes(self) -> Iterator[Shape]:
        """Every combination; bytes without resident and pinned blocks."""
        for keys in self.space.keys:
            for residual in self.space.residuals:
                vram = self.fixed_vram + total(self.memory.choice_vram(keys, residual), VRAM)
                ram = self.fixed_ram + total(self.memory.choice_ram(keys, residual), RAM)
                for half in self.space.half_slots:
                    size = slot_bytes(self.work, half)
                    for slots in self.space.slots:
                        if (slots < 2) if half else (slots > 2):
                            continue  # a block in halves takes two slots at least
                        yield keys, residual, half, slots, vram + slots * size, ram
                if not self.space.all_pinned:
                    yield keys, residual, False, 0, vram, ram

    def _fitting(self, shape: Shape, budget: Budget) -> Iterator[tuple[int, int, int, int, int]]:
        """(resident, pinned, disk, device bytes, host bytes) of a shape, by resident blocks."""
        keys, residual, half, slots, vram, ram = shape
        blocks, size, staging = self.work.facts.blocks, self.block_bytes, self.staging_bytes
        room = budget.ram_bytes - ram
        pins = budget.pin_bytes - self.host_bytes[keys, residual]
        if room < 0 or pins < 0:
            return
        weights = min(self.memory.weights_room(room), pins)
        most = (budget.vram_bytes - vram) // size
        if self.space.all_pinned:
            if weights < blocks * size:
                return
            most = min(most, 0)
        if budget.vram_bytes < self.prologue or most < 0:
            return
        for resident in range(min(blocks - 1, most) + 1) if slots else range(blocks, blocks + 1):
            need = vram + resident * size + self.memory.graph_bytes(resident, slots, half)
            if resident > most or need > budget.vram_bytes:
                return
            pinned, rest, ring = blocks - resident, blocks - resident, 0
            if resident or weights < rest * size:  # resident blocks come through the ring as well
                ring = staging
                if weights < ring:
                    continue
                pinned = min((weights - ring) // size, rest if resident else rest - 1)
            elif weights < 0:
                continue
            yield (
                resident,
                pinned,
                rest - pinned,
                max(need, self.prologue),
                ram + self.memory.with_root(ring + pinned * size),
            )

    def candidates(self, budget: Budget) -> Iterator[Candidate]:
        """Every placement that fits the budget."""
        for shape in self._shapes():
            keys, residual, half, slots, _, _ = shape
            for resident, pinned, disk, vram, ram in self._fitting(shape, budget):
                place = Placement(keys, residual, resident, pinned, disk, slots, half)
                yield Candidate(place, vram, ram)

    def choose(self, budget: Budget) -> PassChoice | None:
        """The best placement, or None when nothing fits.

        Blocks are added to a shape only until its step reaches the shape's floor without the disk:
        any further one would be as slow and larger.
        """
        best, priced = float("inf"), []
        for shape in self._shapes():
            keys, residual, half, slots, _, _ = shape
            clock = self.clocks[keys, residual]
            if clock.floor > TIE * best:
                continue
            enough = clock.floor * (1 + 1e-12)
            for found in self._fitting(shape, budget):
                read = found[2] * clock.read
                seconds = max(read, clock.walk(found[0], slots, half))
                if seconds < best:
                    best = seconds
                if seconds <= TIE * best:
                    priced.append((seconds, shape, found))
                if seconds <= enough and not found[2]:
                    break
        if not priced:
            return None
        near = (entry for entry in priced if entry[0] <= TIE * best)
        _, shape, found = min(near, key=_preference)
        keys, residual, half, slots, _, _ = shape
        place = Placement(keys, residual, found[0], found[1], found[2], slots, half)
        clock = self.clocks[keys, residual]
        item = Candidate(place, found[3], found[4])
        return PassChoice(item, clock.step(place), best, self.work, self.memory, clock)

    def best_of_each_kind(self, budget: Budget) -> list[PassChoice]:
        """The best placement of every key source, place of x and kind of slots; fastest first."""
        found = []
        for shape in self._shapes():
            keys, residual, half, slots, _, _ = shape
            clock = self.clocks[keys, residual]
            best: tuple[float, int, Candidate] | None = None
            for resident, pinned, disk, vram, ram in self._fitting(shape, budget):
                seconds = max(disk * clock.read, clock.walk(resident, slots, half))
                if best is None or (seconds, vram) < best[:2]:
                    place = Placement(keys, residual, resident, pinned, disk, slots, half)
                    best = seconds, vram, Candidate(place, vram, ram)
            if best is not None:
                step = clock.step(best[2].placement)
                found.append(PassChoice(best[2], step, best[0], self.work, self.memory, clock))
        return sorted(found, key=lambda choice: (choice.step.total, choice.candidate.vram_bytes))

    def price(self, placement: Placement, budget: Budget) -> PassChoice | None:
        """A given placement as a choice; None when it is no placement of this pass or too large."""
        blocks = placement.resident_blocks + placement.pinned_blocks + placement.disk_blocks
        clock = self.clocks.get((placement.keys, placement.residual))
        if clock is None or blocks != self.work.facts.blocks:
            return None
        terms = self.memory.terms(placement)
        vram, ram = max(total(terms, VRAM), self.prologue), total(terms, RAM)
        pins = placement.pinned_blocks * self.block_bytes
        pins += self.host_bytes[placement.keys, placement.residual]
        if vram > budget.vram_bytes or ram > budget.ram_bytes or pins > budget.pin_bytes:
            return None
        step = clock.step(placement)
        item = Candidate(placement, vram, ram)
        return PassChoice(item, step, step.total, self.work, self.memory, clock)

    def shortages(self, phase: str, budget: Budget) -> list[Shortage]:
        """Why nothing fits: the least need on each short axis. Empty when something fits."""
        open_ram = Budget(budget.vram_bytes, ENDLESS, ENDLESS, 0, 0)
        open_vram = Budget(ENDLESS, budget.ram_bytes, budget.pin_bytes, 0, 0)
        short = []
        if not any(True for _ in self.candidates(open_ram)):
            need = self.least_vram()
            short.append(_shortage("vram", phase, need, budget))
        if not any(True for _ in self.candidates(open_vram)):
            short.append(_shortage("ram", phase, self.least_ram(ENDLESS), budget))
        if not short and not any(True for _ in self.candidates(budget)):
            # Each axis alone would do: what the device lacks has to wait on the host.
            short.append(_shortage("ram", phase, self.least_ram(budget.vram_bytes), budget))
        return short

    def least_vram(self) -> int:
        """The smallest device peak of any placement."""
        return max(min(map(self._least_of, self._shapes())), self.prologue)

    def _least_of(self, shape: Shape) -> int:
        """Device bytes of a shape with as few resident blocks as it can have."""
        _, _, half, slots, vram, _ = shape
        resident = 0 if slots else self.work.facts.blocks
        graphs = self.memory.graph_bytes(resident, slots, half)
        return vram + resident * self.block_bytes + graphs

    def least_ram(self, vram_bytes: int) -> int:
        """The smallest host peak of the placements within a device budget: blocks from disk."""
        staging = self.staging_bytes
        return min(
            shape[5] + self.memory.with_root(staging)
            for shape in self._shapes()
            if self._least_of(shape) <= vram_bytes
        )


def _preference(entry: tuple[float, Shape, tuple[int, int, int, int, int]]) -> tuple[float, ...]:
    """Smaller device peak, then faster, then less host memory, then the simpler placement."""
    seconds, (keys, residual, half, slots, _, _), (_, _, _, vram, ram) = entry
    return vram, seconds, ram, (keys != "store") + (residual != "device") + half, slots


def _shortage(axis: str, phase: str, need: int, budget: Budget) -> Shortage:
    if axis == "vram":
        return Shortage(axis, phase, need, budget.vram_bytes)
    return Shortage(axis, phase, need, budget.ram_bytes)
