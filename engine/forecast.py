"""A forecast as a document: what `plan --json` prints, a run starts from, and a panel draws.

The planner decides; this puts its answer, or its refusal, into one JSON object and into lines for a
terminal. A run on the CPU has no device of its own, so its plan is folded onto host memory. No
torch, no weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .adapter_plan import plan_with_sizes
from .errors import DoesNotFit, Shortage
from .planner.adapters import assumed_sizes
from .planner.calibration import (
    INT8_ATTENTION,
    Calibration,
    choose_calibration,
    published_facts,
    with_quantised_attention,
)
from .planner.cost import OUTSIDE_TERMS
from .planner.explain import place_in_words, what_more_memory_changes
from .planner.jsonform import margins_document, plan_document, refusal_document
from .planner.plan import plan_request
from .planner.types import HardwareSnapshot, ModelFacts, Placement, Plan
from .quantised import quantised_attention_allowed
from .request import Request
from .units import format_gib, format_seconds

if TYPE_CHECKING:
    from .planner.history import History

ALLOCATOR_TERM = "decoder's allocator slack"  # a CPU's memory comes back at once
PROCESS_TERMS = ("interpreter and libraries", "sampling worker's host memory")
BF16_TERMS = (  # what a CPU computes in float32 instead
    "key/value ring", "key/value store", "key/value chunks in flight", "dense-row accumulators",
    "chunk temporaries", "feed-forward tile", "residual stream", "residual stream, chunks",
    "text rows", "encoder rows", "dequantised matrix", "tile batch",
)  # fmt: skip


def read_facts(checkpoint: Path | None) -> ModelFacts:
    """Sizes of the model in `checkpoint`, or the published ones. Raises CheckpointError."""
    if checkpoint is None:
        return ModelFacts()
    from .models import open_models

    return open_models(checkpoint, "cpu").facts()


def forecast(
    request: Request,
    snapshot: HardwareSnapshot,
    facts: ModelFacts,
    *,
    what_if: bool = True,
    learned: bool = False,
    checkpoint: Path | None = None,
) -> dict[str, Any]:
    """The document of `plan --json`, of a plan or of a refusal (`fits` tells).

    LoRAs of the request that name a rank are counted; a file's own sizes belong into `facts`
    (lora/planned.py). what_if: also say what more VRAM and RAM would change. learned: this is the
    machine at hand, so its own history corrects margins and gives the time, as `history`; what is
    wrong with its file is in `notices`. checkpoint: where the weights lie here, for that disk's
    rate.
    """
    calibration = planning_rows(snapshot, learned=learned, checkpoint=checkpoint)
    past = _open_history() if learned else None
    if facts == ModelFacts():  # no checkpoint: the published format that suits the machine
        facts = published_facts(calibration)

    def document(sizes: ModelFacts) -> dict[str, Any]:
        return _document(request, snapshot, sizes, calibration, what_if, past)

    loras = assumed_sizes(request, facts)  # those whose files are at hand are in the facts
    found = plan_with_sizes(loras, "auto", request, facts, calibration, document, timed=True)
    return {**found, "notices": [] if past is None else list(past.notices)}


def _document(
    request: Request,
    snapshot: HardwareSnapshot,
    facts: ModelFacts,
    calibration: Calibration,
    what_if: bool,
    history: History | None,
) -> dict[str, Any]:
    """The document of one model, of a plan or of a refusal."""

    def plan_on(machine: HardwareSnapshot) -> Plan:
        return plan_request(request, machine, facts, calibration)

    def more_memory(plan: Plan | None) -> list[str]:
        return what_more_memory_changes(plan, snapshot, plan_on) if what_if else []

    margins = _margins_of(snapshot, calibration, history)
    try:
        plan, learned = _planned(request, snapshot, facts, calibration, history)
    except DoesNotFit as refusal:
        more = more_memory(None)
        return refusal_document(request, snapshot, refusal, what_if=more, margins=margins)
    more = more_memory(plan)
    plan = replace(plan, changes_arithmetic=_quantises(calibration))
    return plan_document(request, snapshot, plan, what_if=more, margins=margins) | learned


def _planned(
    request: Request,
    snapshot: HardwareSnapshot,
    facts: ModelFacts,
    calibration: Calibration,
    history: History | None,
) -> tuple[Plan, dict[str, Any]]:
    """The plan that a forecast shows and a run obeys, and what the history adds to its document.

    Raises DoesNotFit.
    """
    if history is None:
        return plan_request(request, snapshot, facts, calibration), {}
    from .planner.predict import predict

    known = predict(request, snapshot, facts, calibration, history)
    return known.plan, {"history": dict(vars(known.time))}


def _margins_of(
    snapshot: HardwareSnapshot, calibration: Calibration, history: History | None
) -> dict[str, dict[str, Any]]:
    learned = None if history is None else history.margins_with_basis(snapshot, calibration)
    return margins_document(snapshot, calibration, learned)


def forecast_for_run(
    request: Request,
    snapshot: HardwareSnapshot,
    facts: ModelFacts,
    device: str,
    *,
    process_bytes: int | None = None,
    history: History | None = None,
    checkpoint: Path | None = None,
) -> dict[str, Any]:
    """The document that a run on `device` ("cuda" or "cpu") starts from. Raises DoesNotFit.

    history: what this machine's runs taught, for a card: its margins, and placements tried before,
    count as they do in a forecast with `learned`. checkpoint: as there.

    process_bytes: host memory of this process before the run, where it is known; on a CPU it
    stands in place of the calibrated figure, which is that of a process with CUDA libraries.
    """
    half_bytes = snapshot.ram_available_bytes // 2
    if device == "cpu":
        snapshot = replace(
            snapshot,
            device_name="CPU",
            capability=None,
            vram_total_bytes=half_bytes,
            vram_free_bytes=half_bytes,
            ram_available_bytes=half_bytes,
        )
    calibration = planning_rows(snapshot, learned=device != "cpu", checkpoint=checkpoint)
    try:
        plan, learned = _planned(request, snapshot, facts, calibration, history)
    except DoesNotFit as refusal:
        raise (_refused_on_host(refusal, half_bytes) if device == "cpu" else refusal) from None
    plan = replace(plan, changes_arithmetic=_quantises(calibration))
    margins = _margins_of(snapshot, calibration, history)
    document = plan_document(request, snapshot, plan, margins=margins) | learned
    return _folded_onto_host(document, calibration, process_bytes) if device == "cpu" else document


def _refused_on_host(refusal: DoesNotFit, half_bytes: int) -> DoesNotFit:
    """A refusal of a CPU's run: both halves are host memory, so RAM is what is short."""
    found: dict[str, list[Shortage]] = {}
    for item in refusal.short:
        found.setdefault(item.phase, []).append(item)
    short = []
    for phase, items in found.items():
        other = half_bytes if len(items) == 1 else 0  # that half is needed whole
        need = sum(item.need_bytes for item in items) + other
        short.append(Shortage("ram", phase, need, need - sum(i.shortfall_bytes for i in items)))
    return DoesNotFit(short, refusal.fits_instead)


def _open_history() -> History:
    from .learning import open_history

    return open_history()


def planning_rows(
    snapshot: HardwareSnapshot, *, learned: bool, checkpoint: Path | None = None
) -> Calibration:
    """The rows that forecasts and runs plan with: the shipped ones, or with this machine's own in
    front (`learned`, for the card at hand); 8-bit attention if it is allowed. checkpoint: where the
    weights lie, for that disk's rate."""
    if learned:
        from .learning import machine_calibration

        rows = machine_calibration(snapshot, checkpoint)
    else:
        rows = choose_calibration(snapshot)
    return with_quantised_attention(rows) if quantised_attention_allowed() else rows


def _quantises(calibration: Calibration) -> bool:
    """The rate of attention is that of 8-bit attention, which the user admits."""
    quick = calibration.rows.get(INT8_ATTENTION)
    return quick is not None and calibration.rows["rates.attention"].source == quick.source


def outside_bytes(phase: Mapping[str, Any]) -> int:
    """Device memory that a phase's forecast holds beside the allocator: context and graphs."""
    terms = phase.get("terms", ())
    return sum(int(term["value"]) for term in terms if term["name"] in OUTSIDE_TERMS)


def phase_forecasts(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """{phase: its object in the document}."""
    return {phase["phase"]: phase for phase in document["phases"]}


def placements_of(document: Mapping[str, Any]) -> dict[str, Placement]:
    """{phase: its Placement}, for the phases that have one."""
    return {
        phase["phase"]: Placement(**phase["placement"])
        for phase in document["phases"]
        if phase["placement"]
    }


def forecast_text(document: Mapping[str, Any]) -> str:
    """A forecast document as lines for a terminal."""
    size = document["geometry"]
    lines = [
        f"{size['width']}x{size['height']}, {size['frames']} frames ({size['seconds']:.2f} s), "
        f"{size['video_tokens']} video tokens, quality {document['request']['quality']}"
    ]
    if not document["fits"]:
        lines.append(f"does not fit: {document['message']}")
    else:
        lines += _phase_lines(document["phases"])
        lines.append(f"total {format_seconds(document['total_seconds'])}{_range(document)}")
        if document.get("history"):
            known = document["history"]
            lines.append(f"likely {format_seconds(known['seconds'])}, from {known['basis']}")
        lines += [f"- {reason}" for reason in document["reasons"]]
    return "\n".join([*lines, *(f"+ {sentence}" for sentence in document["what_if"])])


def _phase_lines(phases: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"{'phase':<12} {'VRAM':>10} {'RAM':>10} {'time':>13}  limit    placement"]
    for phase in phases:
        place = phase["placement"]
        words = place_in_words(Placement(**place)) if place else ""
        steps = f" ({phase['steps']} x {phase['seconds_per_step']:.2f} s)" if place else ""
        lines.append(
            f"{phase['phase']:<12} {format_gib(phase['vram_peak_bytes']):>10} "
            f"{format_gib(phase['ram_peak_bytes']):>10} {format_seconds(phase['seconds']):>13}  "
            f"{phase['limited_by']:<8} {words}{steps}"
        )
    return lines


def _range(document: Mapping[str, Any]) -> str:
    span = document.get("seconds_range")
    return "" if not span else f" ({format_seconds(span[0])} to {format_seconds(span[1])})"


def _folded_onto_host(
    document: Mapping[str, Any], calibration: Calibration, process_bytes: int | None
) -> dict[str, Any]:
    """A plan for a device that is the host itself; times are unknown on a CPU.

    Device terms count as host terms, doubled where a CPU computes in float32; there is no context.
    """
    own_bytes = calibration["memory.interpreter"] if process_bytes is None else process_bytes
    saved_bytes = int(calibration["memory.interpreter"] - own_bytes)
    phases = []
    for phase in document["phases"]:
        terms = [
            {
                "name": "plain forms and libraries",
                "value": int(calibration["memory.cpu_growth"]),
                "unit": "ram_bytes",
                "source": calibration.source("memory.cpu_growth"),
            }
        ]
        for term in phase["terms"]:
            if term["name"] in (*OUTSIDE_TERMS, ALLOCATOR_TERM):
                continue
            if term["unit"] == "vram_bytes":
                wider = 2 if term["name"] in BF16_TERMS else 1
                term = {**term, "unit": "ram_bytes", "value": wider * term["value"]}
            elif term["name"] in PROCESS_TERMS and saved_bytes:
                value = term["value"] - saved_bytes
                term = {**term, "value": value, "source": "this process before the run"}
            terms.append(term)
        host_bytes = sum(int(term["value"]) for term in terms if term["unit"] == "ram_bytes")
        unknown = dict.fromkeys(("vram_peak_bytes", "seconds", "seconds_per_step"))
        phases.append({**phase, **unknown, "ram_peak_bytes": host_bytes, "terms": terms})
    return {**document, "phases": phases, "total_seconds": None, "seconds_range": None}
