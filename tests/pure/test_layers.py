"""The dependency rules of the house, held by reading the imports (no module is run)."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PURE = ["engine/errors.py", "engine/units.py", "engine/request.py", "engine/geometry.py",
        "engine/events.py", "engine/report.py", *sorted(
            str(p.relative_to(ROOT)) for p in (ROOT / "engine/planner").glob("*.py"))]  # fmt: skip
HOST_MODULES = {"comfy", "comfy_api", "comfy_execution", "folder_paths", "server", "nodes"}


def package_files() -> list[Path]:
    folders = ("engine", "kernels", "nodes")
    return [ROOT / "__init__.py", ROOT / "cli.py"] + [
        path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))
    ]


def imports(path: Path, *, top_level_only: bool = False) -> list[tuple[int, str]]:
    """(level, dotted name) of every import; level 0 is absolute."""
    found: list[tuple[int, str]] = []
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            found += [(node.level, f"{base}.{a.name}" if base else a.name) for a in node.names]
    return found


def resolved(path: Path, level: int, name: str) -> str:
    """The dotted path of a relative import, from the package root."""
    parts = list(path.relative_to(ROOT).parent.parts)
    return ".".join([*parts[: len(parts) - (level - 1)], name])


@pytest.mark.parametrize("file", PURE)
def test_the_pure_parts_import_the_standard_library_only(file: str) -> None:
    for level, name in imports(ROOT / file):
        if level == 0:
            assert name.split(".")[0] in sys.stdlib_module_names, f"{file} imports {name}"
        else:
            target = resolved(ROOT / file, level, name)
            allowed = ("engine.planner", "engine.geometry", "engine.units", "engine.errors",
                       "engine.request", "engine.events", "engine.report",
                       "engine.calibration")  # fmt: skip
            assert target.startswith(allowed), f"{file} imports {target}"


def test_no_module_imports_the_package_by_name() -> None:
    for path in package_files():
        for level, name in imports(path):
            assert level or name.split(".")[0] != "lowpeak", f"{path} imports {name} absolutely"


def test_only_nodes_know_comfyui() -> None:
    for path in package_files():
        if path.is_relative_to(ROOT / "nodes"):
            continue
        for level, name in imports(path):
            assert level or name.split(".")[0] not in HOST_MODULES, f"{path} imports {name}"


def test_the_arrows_point_down() -> None:
    for path in package_files():
        for level, name in imports(path):
            if not level:
                continue
            target = resolved(path, level, name)
            if path.is_relative_to(ROOT / "kernels"):
                assert target.startswith("kernels"), f"{path} imports {target}"
            if path.is_relative_to(ROOT / "engine"):
                assert not target.startswith(("nodes", "cli")), f"{path} imports {target}"


def test_the_root_imports_nothing_heavy() -> None:
    names = {name.split(".")[0] for _, name in imports(ROOT / "__init__.py", top_level_only=True)}
    assert not names & {"torch", "comfy", "numpy", "triton", "av"}, names


def test_every_package_folder_is_declared_for_pip() -> None:
    declared = (ROOT / "pyproject.toml").read_text()
    for folder in ("engine", "kernels", "nodes"):
        for init in (ROOT / folder).rglob("__init__.py"):
            name = "lowpeak." + ".".join(init.parent.relative_to(ROOT).parts)
            assert f'"{name}"' in declared, f"{name} is missing from [tool.setuptools] packages"
