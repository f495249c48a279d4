"""Plans of twelve named machines, kept as JSON: a change of policy shows as a diff.

After a change that is meant: LOWPEAK_UPDATE_PLANS=1 pytest tests/pure/test_planner_golden.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from planner_tools import FACTS, plan_on

from lowpeak.engine.errors import DoesNotFit
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.explain import place_in_words
from lowpeak.engine.planner.jsonform import plan_document, refusal_document
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.types import Plan
from lowpeak.engine.request import Request
from lowpeak.engine.snapshot import snapshot_from_options

FOLDER = Path(__file__).parents[1] / "data" / "plans"
ROOT = Path(__file__).parents[2]
MACHINES: dict[str, dict[str, Any]] = {
    "floor-4-16": {"vram_gib": 4, "ram_gib": 16},
    "h200-cap-8-8": {"vram_gib": 8, "ram_gib": 8},
    "h200-cap-8-16": {"vram_gib": 8, "ram_gib": 16},
    "h200-cap-12-32": {"vram_gib": 12, "ram_gib": 32},
    "h200-cap-24-64": {"vram_gib": 24, "ram_gib": 64},
    "laptop-6-16": {"card": "rtx-3060-laptop", "ram_gib": 16},
    "laptop-8-16": {"card": "rtx-4060-laptop", "ram_gib": 16, "system": "windows"},
    "desktop-8-32": {"card": "rtx-5060", "ram_gib": 32, "system": "windows"},
    "desktop-12-32": {"card": "rtx-3060", "ram_gib": 32},
    "desktop-16-32": {"card": "rtx-4060-ti-16", "ram_gib": 32, "system": "windows"},
    "desktop-24-64": {"card": "rtx-4090", "ram_gib": 64},
    "desktop-32-64": {"card": "rtx-5090", "ram_gib": 64, "system": "windows"},
}
REQUEST = Request(Geometry(1344, 768, 243))


def summary(plan: Plan) -> dict[str, Any]:
    """The decisions of a plan and its figures, rounded so that a diff shows policy, not noise."""
    phases = {}
    for phase in plan.phases:
        phases[phase.phase] = {
            "placement": phase.placement and place_in_words(phase.placement),
            "tiles_per_group": phase.placement.tiles_per_group if phase.placement else 0,
            "vram_peak_mib": round(phase.vram_peak_bytes / 2**20),
            "ram_peak_mib": round(phase.ram_peak_bytes / 2**20),
            "seconds": round(phase.seconds, 1),
            "seconds_per_step": round(phase.seconds_per_step, 2),
            "limited_by": phase.limited_by,
        }
    return {"phases": phases, "total_seconds": round(plan.total_seconds, 1)}


@pytest.mark.parametrize("name", MACHINES)
def test_the_plan_of_a_named_machine_is_unchanged(name: str) -> None:
    plan = plan_on(REQUEST, snapshot_from_options(**MACHINES[name]))
    found = {"machine": MACHINES[name], **summary(plan)}
    path = FOLDER / f"{name}.json"
    if os.environ.get("LOWPEAK_UPDATE_PLANS"):
        path.write_text(json.dumps(found, indent=1) + "\n")
    assert json.loads(path.read_text()) == found


def test_the_plan_document_has_the_contract_s_names() -> None:
    snapshot = snapshot_from_options(8, 16)
    plan = plan_on(REQUEST, snapshot)
    data = json.loads(json.dumps(plan_document(REQUEST, snapshot, plan)))
    assert {"request", "geometry", "snapshot", "fits", "phases", "total_seconds", "reasons",
            "changes_arithmetic"} <= set(data)  # fmt: skip
    assert {"width", "height", "frames", "seconds", "quality"} <= set(data["request"])
    assert {"latent_frames", "tokens_per_frame", "video_tokens", "audio_latents"} <= set(
        data["geometry"]
    )
    for phase in data["phases"]:
        assert {"phase", "vram_peak_bytes", "ram_peak_bytes", "seconds", "steps",
                "seconds_per_step", "limited_by", "placement", "terms"} <= set(phase)  # fmt: skip
        assert phase["limited_by"] in ("compute", "link", "disk")
        assert all(set(term) == {"name", "value", "unit", "source"} for term in phase["terms"])
    place = next(p for p in data["phases"] if p["phase"] == "sample_high")["placement"]
    assert {"keys", "residual", "resident_blocks", "pinned_blocks", "disk_blocks",
            "transfer_slots"} <= set(place)  # fmt: skip
    assert data["fits"] is True and data["reasons"]


def test_the_refusal_document_has_the_contract_s_names() -> None:
    snapshot = snapshot_from_options(3, 32)
    request = Request(Geometry(1920, 1088, 362))
    with pytest.raises(DoesNotFit) as caught:
        plan_request(request, snapshot, FACTS, choose_calibration(snapshot))
    data = json.loads(json.dumps(refusal_document(request, snapshot, caught.value)))
    assert data["fits"] is False
    assert {"axis", "phase", "need_bytes", "have_bytes", "shortfall_bytes"} == set(data["short"][0])
    assert {"width", "height", "frames"} <= set(data["fits_instead"][0])


def test_planning_imports_no_torch() -> None:
    script = (
        "import sys, lowpeak.engine.planner.plan, lowpeak.engine.planner.jsonform, "
        "lowpeak.engine.snapshot, lowpeak.engine.planner.history;"
        "sys.exit(bool({'torch','numpy','pynvml','psutil'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, cwd=ROOT).returncode == 0
