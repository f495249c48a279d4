"""Machines and requests that the planner tests share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.learning import open_history
from lowpeak.engine.planner.attempts import Attempt, PhaseRecord, machine_key, shape_key
from lowpeak.engine.planner.calibration import Calibration, choose_calibration, published_facts
from lowpeak.engine.planner.cost import KEPT_ROW, UNSEEN_ROW
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.search import Budget, PassSearch, SearchSpace
from lowpeak.engine.planner.types import HardwareSnapshot, ModelFacts, Placement, Plan
from lowpeak.engine.planner.workload import Workload
from lowpeak.engine.request import Request
from lowpeak.engine.units import GIB

FACTS = ModelFacts()


def machine(vram_gib: float, ram_gib: float, **changes: Any) -> HardwareSnapshot:
    """A machine with all of its memory free."""
    vram, ram = int(vram_gib * GIB), int(ram_gib * GIB)
    return replace(HardwareSnapshot("linux", "", None, vram, vram, ram, ram), **changes)


def reference_rows() -> Calibration:
    """Rows of the reference card."""
    return choose_calibration(machine(8, 8))


def known_rows() -> Calibration:
    """The reference card with constants that no later measurement moves."""
    rows = reference_rows()
    known = replace(
        rows, rows={name: r for name, r in rows.rows.items() if name not in (KEPT_ROW, UNSEEN_ROW)}
    )
    return known.with_values(
        memory__allocator=126e6, memory__chunk_temporaries=10.5, memory__allocator_alone=126e6,
        memory__chunk_temporaries_alone=10.5, memory__grouped=1.0, memory__interpreter=751e6,
        memory__context=867e6, memory__graph_launch=1.0, rates__attention=504e12,
        rates__gemm_fp8=1834e12, rates__copy=5.92e12, rates__convolution=0.94e12,
        rates__readout=1.13e12, rates__solve=444e3, rates__launch=1e-7, rates__alone=0.03,
        rates__step=0.005, rates__sustained=1.0, rates__link=55e9, rates__disk=1.92e9,
        margin__vram_linux=97e6,
    )  # fmt: skip


def single_pass(width_px: int = 1344, height_px: int = 768, frames: int = 243) -> Request:
    """Eight steps in one pass, as the published grid was measured."""
    return Request(Geometry(width_px, height_px, frames), base_steps=8, two_pass=False)


def plan_on(
    request: Request, snapshot: HardwareSnapshot, calibration: Calibration | None = None
) -> Plan:
    """The plan of a request on a machine with published sizes."""
    rows = calibration or choose_calibration(snapshot)
    return plan_request(request, snapshot, published_facts(rows), rows)


TOY = ModelFacts(
    blocks=3,
    block_bytes=100,
    attention_half_bytes=40,
    root_bytes=64,
    refiner_bytes=0,
    hidden=8,
    heads=2,
    head_dim=4,
    ffn=16,
    text_dim=8,
    adaln_row_bytes=0,
)


def toy_search(space: SearchSpace, **rows: float) -> PassSearch:
    """A model of three blocks of 100 bytes."""
    calibration = reference_rows().with_values(
        memory__context=1000,
        memory__interpreter=500,
        memory__bind_reads=1,
        memory__graph_launch=1e-9,
    )
    if rows:
        calibration = calibration.with_values(**rows)
    work = Workload(Geometry(256, 256, 22), TOY, text_rows=4)
    return PassSearch(work, 1, calibration, "linux", space)


def budget(vram_bytes: int, ram_bytes: int, pin_bytes: int | None = None) -> Budget:
    """A budget in bytes, without margins."""
    return Budget(vram_bytes, ram_bytes, ram_bytes if pin_bytes is None else pin_bytes, 0, 0)


def record_faster_trial(
    snapshot: HardwareSnapshot, request: Request, phase: Mapping[str, Any]
) -> Placement:
    """Put the planned placement of a phase into the history, and another that took 20 % less."""
    planned = Placement(**phase["placement"])
    tried = replace(planned, keys="recompute" if planned.keys == "store" else "store")
    for at, place in enumerate((planned, tried)):
        seconds = phase["seconds"] * (1 - 0.2 * at)
        record = PhaseRecord(phase["phase"], 2, 1, 1, 1, 1, phase["seconds"], seconds, place)
        open_history().record(
            Attempt(machine_key(snapshot), shape_key(request), float(at), "done", (record,))
        )
    return tried
