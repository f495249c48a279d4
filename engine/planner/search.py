"""The only decider: every placement of a pass is priced, the best one kept.

Key source x place of x x half slots x slots x resident blocks are enumerated; the pinned share
follows, because a block that fits in host memory is never slower there than on disk. The best time
wins; among placements within 1 % of it the one with the smallest VRAM peak. Exact: a placement is
only left unpriced when a lower bound already puts it out of reach.

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


@dataclass(frozen=True)
class SearchSpace:
    """The placements that the engine can carry out."""

    keys: tuple[KeySource, ...] = KEY_SOURCES
    residuals: tuple[Residual, ...] = ("device", "host")
    half_slots: tuple[bool, ...] = (False, True)
    slots: tuple[int, ...] = (1, 2)


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
    priced: int
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
    ) -> None:
        self.work, self.space = work, space
        self.memory = SampleMemory(work, calibration, system, steps)
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

    def _shapes(self) -> Iterator[tuple[KeySource, Residual, bool, int, int, int]]:
        """(keys, residual, half, slots, device bytes, host bytes), resident and pinned apart."""
        for keys in self.space.keys:
            for residual in self.space.residuals:
                vram = self.fixed_vram + total(self.memory.choice_vram(keys, residual), VRAM)
                ram = self.fixed_ram + total(self.memory.choice_ram(keys, residual), RAM)
                for half in self.space.half_slots:
                    size = slot_bytes(self.work, half)
                    for slots in self.space.slots:
                        yield keys, residual, half, slots, vram + slots * size, ram
                yield keys, residual, False, 0, vram, ram

    def candidates(self, budget: Budget) -> Iterator[Candidate]:
        """Every placement that fits the budget."""
        blocks, size = self.work.facts.blocks, block_bytes(self.work)
        staging = self.memory.staging_bytes()
        for keys, residual, half, slots, vram, ram in self._shapes():
            room = budget.ram_bytes - ram
            if room < 0:
                continue
            host = self.memory.choice_ram(keys, residual)
            pins = budget.pin_bytes - total(host, RAM)
            if pins < 0:
                continue
            counts = range(blocks) if slots else (blocks,)
            for resident in counts:
                need = max(vram + resident * size, self.prologue)
                if need > budget.vram_bytes:
                    break
                rest = blocks - resident
                pinned = min(rest, min(room, pins) // size)
                if pinned < rest:
                    if room < staging or pins < staging:
                        continue  # with more resident blocks the rest may fit without a ring
                    pinned = (min(room, pins) - staging) // size
                    pinned = min(pinned, rest - 1)
                disk = rest - pinned
                used = ram + pinned * size + (staging if disk else 0)
                placement = Placement(keys, residual, resident, pinned, disk, slots, half)
                yield Candidate(placement, need, used)

    def choose(self, budget: Budget) -> PassChoice | None:
        """The best placement, or None when nothing fits."""
        found = []
        for item in self.candidates(budget):
            place = item.placement
            clock = self.clocks[place.keys, place.residual]
            found.append((clock.lower_bound(place.resident_blocks, place.disk_blocks), item))
        found.sort(key=lambda pair: pair[0])
        best = float("inf")
        priced: list[tuple[float, Candidate, StepSeconds]] = []
        for bound, item in found:
            if bound > TIE * best:
                break
            step = self.clocks[item.placement.keys, item.placement.residual].step(item.placement)
            best = min(best, step.total)
            priced.append((step.total, item, step))
        if not priced:
            return None
        near = [entry for entry in priced if entry[0] <= TIE * best]
        _, item, step = min(near, key=lambda entry: _preference(entry[0], entry[1]))
        clock = self.clocks[item.placement.keys, item.placement.residual]
        return PassChoice(item, step, best, len(found), self.work, self.memory, clock)

    def shortages(self, phase: str, budget: Budget) -> list[Shortage]:
        """Why nothing fits: the least need on each short axis. Empty when something fits."""
        endless = 1 << 60
        open_ram = Budget(budget.vram_bytes, endless, endless, 0, 0)
        open_vram = Budget(endless, budget.ram_bytes, budget.pin_bytes, 0, 0)
        short = []
        if not any(True for _ in self.candidates(open_ram)):
            need = self.least_vram()
            short.append(_shortage("vram", phase, need, budget))
        if not any(True for _ in self.candidates(open_vram)):
            short.append(_shortage("ram", phase, self.least_ram(endless), budget))
        if not short and not any(True for _ in self.candidates(budget)):
            # Each axis alone would do: what the device lacks has to wait on the host.
            short.append(_shortage("ram", phase, self.least_ram(budget.vram_bytes), budget))
        return short

    def least_vram(self) -> int:
        """The smallest device peak of any placement."""
        return max(min(shape[4] for shape in self._shapes()), self.prologue)

    def least_ram(self, vram_bytes: int) -> int:
        """The smallest host peak of the placements within a device budget: blocks from disk."""
        staging, size = self.memory.staging_bytes(), block_bytes(self.work)
        blocks = self.work.facts.blocks
        needs = []
        for _, _, _, slots, vram, ram in self._shapes():
            if not slots and vram + blocks * size <= vram_bytes:
                needs.append(ram)
            elif slots and vram <= vram_bytes:
                needs.append(ram + staging)
        return min(needs)


def _preference(seconds: float, item: Candidate) -> tuple[float, ...]:
    """Smaller device peak, then faster, then less host memory, then the simpler placement."""
    place = item.placement
    simple = (place.keys != "store") + (place.residual != "device") + place.half_slots
    return item.vram_bytes, seconds, item.ram_bytes, simple


def _shortage(axis: str, phase: str, need: int, budget: Budget) -> Shortage:
    if axis == "vram":
        return Shortage(axis, phase, need, budget.vram_bytes)
    return Shortage(axis, phase, need, budget.ram_bytes)
