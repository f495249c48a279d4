"""Help pages and translations: complete, fresh, and about the inputs that exist."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lowpeak.nodes import tables

REPOSITORY = Path(__file__).resolve().parents[2]
LANGUAGES = ("en", "zh")


def texts(language: str) -> dict[str, Any]:
    path = REPOSITORY / "locales" / language / "nodeDefs.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("table", tables.ALL, ids=lambda table: table.id)
def test_every_input_and_output_is_translated(table: tables.NodeTable, language: str) -> None:
    own = texts(language)[table.id]
    assert own["display_name"] and own["description"]
    assert list(own["inputs"]) == [item.id for item in table.inputs]
    assert list(own["outputs"]) == [str(place) for place in range(len(table.outputs))]
    assert all(item["tooltip"] for part in ("inputs", "outputs") for item in own[part].values())


def test_chinese_is_chinese() -> None:
    for node, own in texts("zh").items():
        for part in ("inputs", "outputs"):
            for item in own[part].values():
                assert re.search("[\u4e00-\u9fff]", item["tooltip"]), f"{node}: {item}"


def test_pages_and_english_texts_are_what_the_script_writes() -> None:
    spec = importlib.util.spec_from_file_location("make_docs", REPOSITORY / "web/docs/make.py")
    assert spec and spec.loader
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    files = make.built()
    assert len(files) == 2 * len(tables.ALL) + 1
    for path, text in files.items():
        assert path.read_text(encoding="utf-8") == text, f"run web/docs/make.py: {path}"


def test_prose_names_only_what_there_is() -> None:
    known = {item.id for table in tables.ALL for item in (*table.inputs, *table.outputs)}
    known |= set(tables.QUALITIES) | {"extra_model_paths", "latent_upscale_models"}
    for path in (REPOSITORY / "web/docs").rglob("*.md"):
        for word in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", path.read_text(encoding="utf-8")):
            assert word in known, f"{path.name} speaks of {word}"
