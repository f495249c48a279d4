"""The example graphs: both forms agree, fit core's nodes and ours, and are complete."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "workflows"
CORE = json.loads((REPOSITORY / "tests/data/core_nodes.json").read_text())["nodes"]
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
# Choices that depend on the machine are not checked against the recording.
MACHINE = {"checkpoint", "lora", "clip_name", "vae_name", "image", "saved", "unet_name"}


def graph(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text())


def prompt(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"api/{name}.json").read_text())


def fields(info: dict[str, Any], values: dict[str, Any]) -> dict[str, tuple[Any, dict, bool]]:
    """{input name: (type, options, required)}, growing rows spread out."""
    found = {}
    for part in ("required", "optional"):
        for name in info["input_order"].get(part, ()):
            type_, options = (*info["input"][part][name], {})[:2]
            if type_ == "COMFY_AUTOGROW_V3":
                template = options["template"]
                [(_, one)] = template["input"]["required"].items()
                for number in range(template["max"]):
                    found[f"{name}.{template['prefix']}{number}"] = (one[0], {}, False)
            else:
                found[name] = (type_, options, part == "required")
    return found


def problems(api: dict[str, Any], known: dict[str, Any]) -> list[str]:
    """What ComfyUI's validation would say: missing, unknown, mistyped, out of range."""
    found = []
    for number, node in api.items():
        info, where = known.get(node["class_type"]), f"{number} {node['class_type']}"
        if info is None:
            found.append(f"{where}: unknown node")
            continue
        wanted = fields(info, node["inputs"])
        found += [f"{where}.{name}: missing" for name, (_, _, required) in wanted.items()
                  if required and name not in node["inputs"]]  # fmt: skip
        for name, value in node["inputs"].items():
            if name not in wanted:
                found.append(f"{where}.{name}: unknown input")
                continue
            problem = _value_problem(name, value, *wanted[name][:2], api, known)
            if problem:
                found.append(f"{where}.{name}: {problem}")
    return found


def _value_problem(
    name: str, value: Any, type_: Any, options: dict[str, Any], api: Any, known: Any
) -> str | None:
    if isinstance(value, list):
        given = known[api[value[0]]["class_type"]]["output"][value[1]]
        return None if type_ in (given, "*") else f"takes {type_}, is given {given}"
    choices = type_ if isinstance(type_, list) else options.get("options")
    if choices is not None:
        keys = [item["key"] if isinstance(item, dict) else item for item in choices]
        return None if value in keys or name in MACHINE else f"{value!r} is not offered"
    python = {"INT": int, "FLOAT": (int, float), "STRING": str, "BOOLEAN": bool}.get(type_)
    if python is None:
        return f"{type_} needs a link"
    if not isinstance(value, python):
        return f"{value!r} is no {type_}"
    if not options.get("min", value) <= value <= options.get("max", value):
        return f"{value} is out of range"
    return None


def to_api(ui: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The prompt the frontend would make of a canvas graph."""
    links = {link[0]: link for link in ui["links"]}
    made = {}
    for node in ui["nodes"]:
        if node["type"] == "MarkdownNote":
            continue
        values, left = {}, list(node["widgets_values"])
        wanted = fields(known[node["type"]], {})
        sockets = {item["name"]: item for item in node["inputs"]}
        for name, (type_, options, _) in wanted.items():
            socket = sockets.get(name)
            if socket is not None and "widget" in socket:
                value = left.pop(0)
                if options.get("control_after_generate"):
                    assert left.pop(0) in ("fixed", "randomize", "increment", "decrement")
                if options.get("image_upload"):
                    assert left.pop(0) == "image"
                values[name] = value
            if socket is not None and socket["link"] is not None:
                _, source, slot, target, place, linked = links[socket["link"]]
                assert (target, linked) == (node["id"], type_ if type_ != "*" else "*")
                assert node["inputs"][place]["name"] == name
                values[name] = [str(source), slot]
        assert not left, f"{node['type']}: widget values left over: {left}"
        made[str(node["id"])] = {"class_type": node["type"], "inputs": values}
    return made


@pytest.fixture
def known(our_nodes: dict[str, Any]) -> dict[str, Any]:
    return {**CORE, **our_nodes}


def test_there_is_a_graph_for_every_use() -> None:
    assert set(NAMES) == {
        "text_to_video_light", "text_to_video_max", "first_and_last_frame", "lora_stack",
        "second_pass_from_saved", "card_4_gib", "core_encoder_and_decoder", "references",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_passes_validation(name: str, known: dict[str, Any]) -> None:
    assert problems(prompt(name), known) == []


@pytest.mark.parametrize("name", NAMES)
def test_canvas_and_api_form_agree(name: str, known: dict[str, Any]) -> None:
    written = {k: {"class_type": v["class_type"], "inputs": v["inputs"]}
               for k, v in prompt(name).items()}  # fmt: skip
    assert to_api(graph(name), known) == written


@pytest.mark.parametrize("name", NAMES)
def test_the_links_of_a_canvas_graph_are_consistent(name: str) -> None:
    ui = graph(name)
    nodes = {node["id"]: node for node in ui["nodes"]}
    for number, source, slot, target, place, _ in ui["links"]:
        assert number in nodes[source]["outputs"][slot]["links"]
        assert nodes[target]["inputs"][place]["link"] == number
    assert ui["last_node_id"] == max(nodes) and ui["version"] == 0.4
    boxes = [(*node["pos"], *node["size"]) for node in ui["nodes"]]
    for i, (x, y, w, h) in enumerate(boxes):
        for x2, y2, w2, h2 in boxes[:i]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y, "nodes overlap"


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_says_where_files_go_and_links_them(name: str) -> None:
    ui = graph(name)
    with_files = ("LowpeakLoadModel", "CLIPLoader", "VAELoader")
    notes = " ".join(str(n["widgets_values"]) for n in ui["nodes"] if n["type"] == "MarkdownNote")
    assert "models/lowpeak/" in notes and "License" in notes
    loaders = [node for node in ui["nodes"] if node["type"] in with_files]
    for node in loaders:
        assert node["properties"]["models"], node["type"]
        for model in node["properties"]["models"]:
            assert set(model) == {"name", "url", "directory"}
            assert model["url"].startswith("https://huggingface.co/")
            assert model["url"].rsplit("/", 1)[1] == model["name"].rsplit("/", 1)[-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_thumbnail_is_small_and_drawn(name: str) -> None:
    path = FOLDER / f"{name}.jpg"
    assert path.stat().st_size < 20_000
    with Image.open(path) as picture:
        assert picture.size == (480, 270) and len(picture.getcolors(1 << 20)) > 100


def test_every_node_of_ours_is_shown_somewhere(our_nodes: dict[str, Any]) -> None:
    used = {node["class_type"] for name in NAMES for node in prompt(name).values()}
    assert set(our_nodes) <= used
    assert used <= set(our_nodes) | set(CORE)


def test_the_files_are_what_the_generator_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("make_workflows", FOLDER / "make.py")
    assert spec and spec.loader
    make = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, make)  # dataclasses look their module up
    spec.loader.exec_module(make)
    for made in make.all_graphs():
        assert made.api() == prompt(made.name), f"run workflows/make.py: {made.name}"
        assert made.ui() == graph(made.name), f"run workflows/make.py: {made.name}"
