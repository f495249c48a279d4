"""From the body of POST /lowpeak/forecast to a Request. Pure; no name becomes a path here.

A body holds either `request` (width, height, seconds or frames, quality, ...) or `prompt`, an
API-format graph in which the sampling node is found and its links are followed to constants.
`vram_gib`, `ram_gib`, `card` and `system` ask for another machine; on this one the budgets of the
graph's Load Model hold. `each_vram_gib` asks for one line of a capacity map instead of a plan.
LoRAs of a graph are named, for routes.py to look up; until then, and in a `request` (loras, a
count, and lora_rank), a usual rank stands in for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..engine.errors import RequestError
from ..engine.geometry import plan_geometry
from ..engine.planner.adapters import USUAL_RANK
from ..engine.request import LoraChoice, Request
from ..engine.units import GIB
from .asking import TWO_PASS, budget_bytes
from .tables import PASSES, find

MAX_NODES = 2000
MAX_LINKS = 50  # how far a link is followed
MAX_LORAS = 64
MAX_CAPACITY_GIB = 65536.0
MAX_CELLS = 16  # a line of the capacity map; a cell costs as much as a forecast
SAMPLERS = ("LowpeakSample", "LowpeakRefine", "LowpeakPlan")
FIELDS = ("width", "height", "seconds", "frames", "quality", "passes", "base_steps",
          "refine_steps")  # fmt: skip


@dataclass(frozen=True)
class NamedLora:
    """A Load LoRA of a graph: what its widgets say. name: None where only a run can know it."""

    name: str | None
    strength: float = 1.0
    allow_partial: bool = False


@dataclass(frozen=True)
class Asked:
    """What to forecast. `unknown` names inputs that only a run can know; defaults stand in."""

    request: Request
    checkpoint: str | None
    capacities: Mapping[str, Any]
    notices: tuple[str, ...]
    node_id: str | None
    unknown: tuple[str, ...]
    each_vram_bytes: tuple[int, ...] = ()
    loras: tuple[NamedLora, ...] = ()


def read_body(body: Any) -> Asked:
    """What a body asks for. RequestError for everything that is not as the header says."""
    if not isinstance(body, dict):
        raise RequestError("the body is not a JSON object", field="body")
    explicit, prompt = body.get("request"), body.get("prompt")
    if isinstance(explicit, dict) == isinstance(prompt, dict):
        raise RequestError("give either request or prompt, as an object", field="body")
    capacities, each = _capacities(body), _each(body)
    if isinstance(explicit, dict):
        values = {name: explicit[name] for name in FIELDS if explicit.get(name) is not None}
        checkpoint = explicit.get("checkpoint")
        loras = _stand_ins(explicit)
        request, notices = _request(values, loras, frozenset())
        name = checkpoint if isinstance(checkpoint, str) else None
        return Asked(request, name, capacities, notices, None, (), each)
    return replace(_Graph(prompt).read(capacities), each_vram_bytes=each)


def _stand_ins(explicit: Mapping[str, Any]) -> tuple[LoraChoice, ...]:
    """As many LoRAs of a rank as a request asks for."""
    count = min(max(int(_number(explicit, "loras", 0)), 0), MAX_LORAS)
    rank = int(_number(explicit, "lora_rank", USUAL_RANK))
    return tuple(LoraChoice(f"LoRA {n + 1}", rank=rank) for n in range(count))


def _capacities(body: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("vram_gib", "ram_gib"):
        if body.get(name) is not None:
            found[name.replace("_gib", "_bytes")] = _amount(body, name)
    for name in ("card", "system"):
        value = body.get(name)
        if value is not None:
            if not isinstance(value, str) or len(value) > 64:
                raise RequestError(f"{name} is not a short text", field=name)
            found[name] = value
    return found


def _each(body: Mapping[str, Any]) -> tuple[int, ...]:
    values = body.get("each_vram_gib")
    if values is None:
        return ()
    if not isinstance(values, list) or not 0 < len(values) <= MAX_CELLS:
        raise RequestError(
            f"each_vram_gib is no list of 1 to {MAX_CELLS} amounts", field="each_vram_gib"
        )
    return tuple(_amount({"each_vram_gib": value}, "each_vram_gib") for value in values)


def _amount(values: Mapping[str, Any], name: str) -> int:
    """Bytes of an amount in GiB."""
    value = _number(values, name, 0.0)
    if not 0 < value <= MAX_CAPACITY_GIB:
        raise RequestError(f"{name} {value:g} is not an amount of memory", field=name)
    return int(value * GIB)


def _number(values: Mapping[str, Any], name: str, default: float) -> float:
    value = values.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RequestError(f"{name} is not a number", field=name)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or abs(number) > 1e9:
        raise RequestError(f"{name} is not a number of a usable size", field=name)
    return number


def _request(
    values: Mapping[str, Any],
    loras: tuple[LoraChoice, ...],
    keyframes: frozenset[str],
    references: int = 0,
) -> tuple[Request, tuple[str, ...]]:
    frames = None
    if "frames" in values:
        frames = int(_number(values, "frames", 0))
    passes, quality = values.get("passes", PASSES[0]), values.get("quality", "light")
    if not isinstance(passes, str) or passes not in TWO_PASS:
        raise RequestError(f"passes is none of {', '.join(PASSES)}", field="passes")
    # An unknown side follows the known one, so that the pair is never an absurd aspect by accident.
    width = _number(values, "width", 1.75 * _number(values, "height", 768))
    height = _number(values, "height", width / 1.75)
    geometry, notices = plan_geometry(
        width, height, frames=frames,
        seconds=None if frames is not None else _number(values, "seconds", 5.0),
    )  # fmt: skip
    request = Request(
        geometry=geometry,
        quality=quality if isinstance(quality, str) else "",
        two_pass=TWO_PASS[passes],
        base_steps=int(_number(values, "base_steps", 0)) or None,
        refine_steps=int(_number(values, "refine_steps", 0)) or None,
        first_frame="first_frame" if "first_frame" in keyframes else None,
        last_frame="last_frame" if "last_frame" in keyframes else None,
        loras=loras,
        references=tuple(f"reference {n + 1}" for n in range(references)),
    )
    return request, tuple(notices)


class _Graph:
    """An API-format prompt: {node id: {class_type, inputs}}."""

    def __init__(self, nodes: Mapping[str, Any]) -> None:
        if len(nodes) > MAX_NODES:
            raise RequestError(f"the graph has more than {MAX_NODES} nodes", field="prompt")
        self._nodes = nodes
        self._unknown: list[str] = []

    def read(self, capacities: dict[str, Any]) -> Asked:
        node_id = self._sampler()
        inputs = self._inputs(node_id)
        source = inputs
        plan = self._linked(inputs.get("plan"))
        if plan is not None and self._class(plan) == "LowpeakPlan":
            source = self._inputs(plan)
        values = {name: self._constant(source, name) for name in FIELDS if name in source}
        values = {name: value for name, value in values.items() if value is not None}
        latent = self._linked(inputs.get("size_from")) if source is inputs else None
        if latent is not None:
            values = self._size_of_latent(latent, values)
        if self._class(node_id) == "LowpeakRefine":
            values["passes"] = "two"
        checkpoint, named, budgets = self._model(source.get("model", inputs.get("model")))
        capacities.update(budgets)
        keyframes, references = self._pictures(inputs.get("conditioning"))
        loras = tuple(
            LoraChoice(f"LoRA {n + 1}", item.strength, USUAL_RANK) for n, item in enumerate(named)
        )
        request, notices = _request(values, loras, keyframes, references)
        unknown = tuple(dict.fromkeys(self._unknown))
        return Asked(request, checkpoint, capacities, notices, node_id, unknown, loras=named)

    def _sampler(self) -> str:
        for wanted in SAMPLERS:
            for node_id in self._nodes:
                if self._class(node_id) == wanted:
                    return node_id
        raise RequestError("the graph holds no Lowpeak Sample, Refine or Plan", field="prompt")

    def _class(self, node_id: str) -> str:
        node = self._nodes.get(node_id)
        kind = node.get("class_type") if isinstance(node, dict) else None
        return kind if isinstance(kind, str) else ""

    def _inputs(self, node_id: str) -> Mapping[str, Any]:
        node = self._nodes.get(node_id)
        inputs = node.get("inputs") if isinstance(node, dict) else None
        return inputs if isinstance(inputs, dict) else {}

    def _linked(self, value: Any) -> str | None:
        """The node a link comes from, or None for a constant or a dangling link."""
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
            return value[0] if value[0] in self._nodes else None
        return None

    def _constant(self, inputs: Mapping[str, Any], name: str) -> Any:
        """A widget's value; through primitive nodes if it is linked; None if only a run knows."""
        value = inputs.get(name)
        for _ in range(MAX_LINKS):
            if not isinstance(value, (list, dict)):
                return value
            source = self._linked(value)
            if source is None:
                break
            value = self._inputs(source).get("value")
            if value is None:
                break
        self._unknown.append(name)
        return None

    def _size_of_latent(self, node_id: str, values: dict[str, Any]) -> dict[str, Any]:
        inputs = self._inputs(node_id)
        names = {"width": "width", "height": "height", "length": "frames"}
        found = {mine: self._constant(inputs, theirs) for theirs, mine in names.items()}
        if any(value is None for value in found.values()):
            return values
        return {**{k: v for k, v in values.items() if k != "seconds"}, **found}

    def _model(self, link: Any) -> tuple[str | None, tuple[NamedLora, ...], dict[str, int]]:
        """Name of the checkpoint, the LoRAs from the first on, budgets in bytes."""
        found: list[NamedLora] = []
        node_id = self._linked(link)
        for _ in range(MAX_LINKS):
            if node_id is None or self._class(node_id) != "LowpeakLoadLora":
                break
            found.append(self._lora(self._inputs(node_id)))
            node_id = self._linked(self._inputs(node_id).get("model"))
        loras = tuple(reversed(found))
        if node_id is None or self._class(node_id) != "LowpeakLoadModel":
            return None, loras, {}
        inputs = self._inputs(node_id)
        name = self._constant(inputs, "checkpoint")
        budgets = {}
        for budget in ("vram_gib", "ram_gib"):
            value = self._constant(inputs, budget)
            amount = budget_bytes(max(0.0, _number({budget: value or 0.0}, budget, 0.0)))
            if amount:
                budgets[budget.replace("_gib", "_limit_bytes")] = amount
        return name if isinstance(name, str) else None, loras, budgets

    def _lora(self, inputs: Mapping[str, Any]) -> NamedLora:
        name, strength = self._constant(inputs, "lora"), self._constant(inputs, "strength")
        strength = 1.0 if strength is None else _number({"strength": strength}, "strength", 1.0)
        partial = self._constant(inputs, "allow_partial") is True
        return NamedLora(name if isinstance(name, str) else None, strength, partial)

    def _pictures(self, link: Any) -> tuple[frozenset[str], int]:
        node_id = self._linked(link)
        if node_id is None:
            return frozenset(), 0
        inputs, table = self._inputs(node_id), find(self._class(node_id))
        kind = self._class(node_id)
        if kind in ("LowpeakKeyframes", "MiniMaxH3ImageToVideo"):
            return frozenset({"first_frame", "last_frame"} & set(inputs)), 0
        if table is not None and kind == "LowpeakReferences":
            rows = tuple(f"{item.id}." for item in table.inputs if item.kind == "many")
            return frozenset(), sum(name.startswith(rows) for name in inputs)
        return frozenset(), 0
