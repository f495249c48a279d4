"""The nodes' contract: ids, types, texts, and the promise that saved graphs keep loading."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lowpeak.nodes import node_parts, tables

REPOSITORY = Path(__file__).resolve().parents[2]
MODEL, PLAN, RUN = "LOWPEAK_MODEL", "LOWPEAK_PLAN", "LOWPEAK_RUN"
CONTRACT = {  # ids, first outputs: a contract with saved graphs; extend, never rename or reorder
    "LowpeakLoadModel": [MODEL],
    "LowpeakLoadLora": [MODEL, "STRING"],
    "LowpeakEncodePrompt": ["CONDITIONING"],
    "LowpeakKeyframes": ["CONDITIONING"],
    "LowpeakReferences": ["CONDITIONING"],
    "LowpeakPlan": [PLAN, "STRING"],
    "LowpeakSample": ["LATENT", "LATENT"],
    "LowpeakRefine": ["LATENT"],
    "LowpeakDecode": ["VIDEO", "AUDIO"],
    "LowpeakReport": ["IMAGE", "STRING"],
}
WIDGETS = {  # saved graphs hold values by position: append only
    "LowpeakLoadModel": ["checkpoint", "vram_gib", "ram_gib"],
    "LowpeakLoadLora": ["lora", "strength", "allow_partial"],
    "LowpeakEncodePrompt": ["prompt"],
    "LowpeakKeyframes": ["prompt", "width", "height", "seconds"],
    "LowpeakReferences": ["prompt", "width", "height", "seconds"],
    "LowpeakPlan": ["width", "height", "seconds", "quality", "passes", "base_steps",
                    "refine_steps"],
    "LowpeakSample": ["seed", "width", "height", "seconds", "quality", "passes", "base_steps",
                      "refine_steps", "save_latents"],
    "LowpeakRefine": ["saved", "seed", "width", "height", "refine_steps", "save_latents"],
    "LowpeakDecode": ["with_sound"],
    "LowpeakReport": [],
}  # fmt: skip


def test_every_node_of_the_interface_is_there_with_its_outputs(our_nodes: dict[str, Any]) -> None:
    assert set(our_nodes) == set(CONTRACT)
    for name, outputs in CONTRACT.items():
        assert our_nodes[name]["output"][: len(outputs)] == outputs, name


@pytest.mark.parametrize("table", tables.ALL, ids=lambda table: table.id)
def test_widgets_keep_their_places(table: tables.NodeTable) -> None:
    widgets = [item.id for item in table.inputs if not item.is_socket]
    expected = WIDGETS[table.id]
    assert widgets[: len(expected)] == expected


@pytest.mark.parametrize("table", tables.ALL, ids=lambda table: table.id)
def test_everything_a_person_sees_has_words(table: tables.NodeTable) -> None:
    assert table.description and table.display_name.startswith("Lowpeak ") and table.aliases
    for item in (*table.inputs, *table.outputs):
        assert len(item.tooltip) > 10, f"{table.id}.{item.id}"
        assert item.tooltip.isascii(), f"{table.id}.{item.id}: consoles may not print this"


@pytest.mark.parametrize("part", node_parts(), ids=lambda part: part.table.id)
def test_execute_is_short_and_takes_the_tables_inputs(part: Any) -> None:
    lines = inspect.getsource(part.execute).splitlines()
    assert len(lines) < 30, f"{len(lines)} lines"
    taken = inspect.signature(part.execute).parameters
    wanted = {item.id for item in part.table.inputs}
    named = {name for name, p in taken.items() if p.kind is not p.VAR_KEYWORD}
    assert named <= wanted
    if named != wanted:
        assert any(p.kind is p.VAR_KEYWORD for p in taken.values()), wanted - named
    for item in part.table.inputs:
        if item.optional:
            unplugged = None if item.is_socket else item.default
            assert taken[item.id].default == unplugged, f"{item.id} may stay unplugged"
        elif item.id in taken and taken[item.id].default is not inspect.Parameter.empty:
            assert taken[item.id].default == item.default, item.id


@pytest.mark.parametrize("part", node_parts(), ids=lambda part: part.table.id)
def test_validation_takes_only_widgets_and_survives_linked_ones(part: Any) -> None:
    if not hasattr(part, "validate_inputs"):
        return
    widgets = {item.id for item in part.table.inputs if not item.is_socket}
    rows = {item.id for item in part.table.inputs if item.kind == "many"}
    taken = inspect.signature(part.validate_inputs).parameters
    assert set(taken) <= widgets | rows
    assert rows <= set(taken), "ComfyUI hands growing rows over unasked"
    assert all(p.default is None for p in taken.values()), "a linked input is not passed"


def test_defaults_and_limits_agree_with_the_engine() -> None:
    from lowpeak.engine import geometry, request

    assert tables.QUALITIES == request.QUALITIES and tables.MAX_SEED == request.MAX_SEED
    for table in tables.ALL:
        for item in table.inputs:
            if item.id in ("width", "height"):
                assert (item.least, item.most) == (geometry.MIN_SIDE_PX, geometry.MAX_SIDE_PX)
                assert item.step == geometry.CANVAS_STEP_PX
            if item.kind in ("int", "float"):
                assert item.least <= item.default <= item.most, f"{table.id}.{item.id}"


def test_comfyui_is_imported_by_the_adapters_only_and_never_at_the_top() -> None:
    host = re.compile(r"^(\s*)(?:from|import) (comfy\w*|folder_paths|server|nodes)\b", re.M)
    allowed = {
        "host.py",
        "folders.py",
        "gauges.py",
        "convert.py",
        "schema.py",
        "memory.py",
        "routes.py",
        "__init__.py",
    }
    for path in sorted((REPOSITORY / "nodes").glob("*.py")):
        for match in host.finditer(path.read_text()):
            assert path.name in allowed, f"{path.name} imports {match[2]}"
            assert match[1], f"{path.name} imports {match[2]} when it is loaded"


def test_handles_hold_no_tensors() -> None:
    from lowpeak.nodes import handles

    for name in ("ModelHandle", "PlanHandle", "RunHandle", "LoraHandle"):
        made = getattr(handles, name)
        assert made.__dataclass_params__.frozen
        assert "Tensor" not in str(made.__annotations__)


def test_comfyuis_manager_installs_all_but_torch() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lines = (REPOSITORY / "requirements.txt").read_text().splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}
    assert listed == {item for item in project["dependencies"] if not item.startswith("torch")}
