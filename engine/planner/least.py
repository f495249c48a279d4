"""The smallest needs of each phase: what the last retry after an out-of-memory is capped to."""

from __future__ import annotations

from ..request import Request
from .calibration import Calibration
from .passes import sampling_passes
from .search import ENDLESS, ENDLESS_BUDGET, EVERY_PLACEMENT, PassSearch
from .stacks import DecodeSearch, Machine, plan_encode
from .types import HardwareSnapshot, ModelFacts, PhasePlan
from .workload import workload


def least_needs(
    request: Request, snapshot: HardwareSnapshot, facts: ModelFacts, calibration: Calibration
) -> dict[str, dict[str, int]]:
    """{phase: {"vram", "ram"}}: bytes that a machine must have for the lightest placement to fit.

    Margins are part of them, so that a plan capped to a need finds that placement and no other.
    """
    margins = {axis: calibration.margin_bytes(axis, snapshot.system) for axis in ("vram", "ram")}
    machine = Machine(facts, calibration, ENDLESS_BUDGET)
    found: dict[str, tuple[int, int]] = {}
    rows = workload(request, request.geometry, facts).text_rows
    encode = plan_encode(machine, rows, request.keyframes + len(request.references))
    if isinstance(encode, PhasePlan):
        found["encode"] = encode.vram_peak_bytes, encode.ram_peak_bytes
    for item in sampling_passes(request):
        search = PassSearch(
            workload(request, item.geometry, facts), item.steps, calibration, snapshot.system,
            EVERY_PLACEMENT,
        )  # fmt: skip
        vram = search.least_vram()
        found[item.phase] = vram, search.least_ram(ENDLESS)
    found["decode"] = DecodeSearch(machine, request.geometry).least()
    return {
        phase: {"vram": vram + margins["vram"], "ram": ram + margins["ram"]}
        for phase, (vram, ram) in found.items()
    }
