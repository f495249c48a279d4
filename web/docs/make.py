"""Builds what ComfyUI serves: help pages in web/dist/docs and the English node texts.

    .venv/bin/python web/docs/make.py

A page is the prose of web/docs/<id>.md (Chinese: web/docs/zh/<id>.md) with tables of inputs and
outputs from nodes/tables.py (Chinese: locales/zh/nodeDefs.json).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lowpeak.nodes import tables

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGES = ROOT / "web/dist/docs"
WORDS = {
    "en": ("Inputs", "Outputs", "name", "default", "range", "what it does", "what it is"),
    "zh": ("输入", "输出", "名称", "默认值", "范围", "作用", "内容"),
}


def english() -> dict[str, Any]:
    """The node texts of the tables, in the form of nodeDefs.json."""
    return {
        table.id: {
            "display_name": table.display_name,
            "description": table.description,
            "inputs": {item.id: {"tooltip": item.tooltip} for item in table.inputs},
            "outputs": {
                str(place): {"tooltip": item.tooltip} for place, item in enumerate(table.outputs)
            },
        }
        for table in tables.ALL
    }


def page(table: tables.NodeTable, language: str, texts: dict[str, Any], prose: str) -> str:
    """One help page."""
    words, own = WORDS[language], texts[table.id]
    lines = [f"# {own['display_name']}", "", prose.strip(), ""]
    lines += [f"## {words[0]}", "", f"| {words[2]} | {words[3]} | {words[4]} | {words[5]} |",
              "|---|---|---|---|"]  # fmt: skip
    for item in table.inputs:
        kept = "" if item.default in (None, "") or item.is_socket else f"`{item.default}`"
        limits = [value for value in (item.least, item.most) if value is not None]
        span = " - ".join(f"{value:.0f}" if value == int(value) else str(value) for value in limits)
        if item.is_socket:
            span = item.item or item.kind
        elif isinstance(item.choices, tuple) and item.choices:
            span = ", ".join(item.choices)
        lines.append(f"| `{item.id}` | {kept} | {span} | {_plain(own['inputs'][item.id])} |")
    lines += ["", f"## {words[1]}", "", f"| {words[2]} | | {words[6]} |", "|---|---|---|"]
    for place, item in enumerate(table.outputs):
        lines.append(f"| `{item.id}` | {item.kind} | {_plain(own['outputs'][str(place)])} |")
    return "\n".join([*lines, ""])


def _plain(text: dict[str, str]) -> str:
    return text["tooltip"].replace("|", "\\|").replace("<", "&lt;")


def built() -> dict[Path, str]:
    """Every file and its text."""
    chinese = json.loads((ROOT / "locales/zh/nodeDefs.json").read_text(encoding="utf-8"))
    en = english()
    files = {ROOT / "locales/en/nodeDefs.json": json.dumps(en, indent=1) + "\n"}
    for table in tables.ALL:
        prose = (HERE / f"{table.id}.md").read_text(encoding="utf-8")
        files[PAGES / f"{table.id}.md"] = page(table, "en", en, prose)
        prose = (HERE / f"zh/{table.id}.md").read_text(encoding="utf-8")
        files[PAGES / f"{table.id}/zh.md"] = page(table, "zh", chinese, prose)
    return files


def main() -> None:
    """Write every file."""
    for path, text in built().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
