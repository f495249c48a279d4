"""What the README and the short pages name exists, and the commands they show are real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lowpeak import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_file_the_readme_names_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"[\w./]*\w+\.py\b|\b\w+/(?=\s)", text)):
        places = [ROOT / name, ROOT / "engine" / name, ROOT / "docs" / name, ROOT / "tests" / name,
                  ROOT / "kernels" / name]  # fmt: skip
        assert any(place.exists() for place in places), f"README names {name}"


def test_the_commands_the_readme_shows_exist(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = {match.split()[0] for match in re.findall(r"\blowpeak ([a-z-]+)", text)}
    assert cli.run(["--help"]) == 0
    known = capsys.readouterr().out
    for name in shown - {"out"}:
        assert re.search(rf"^  {name}\b", known, re.M), f"README shows `lowpeak {name}`"


def test_the_demo_and_test_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test", "lint", "venv"):
        assert re.search(rf"^{target}:", makefile, re.M)
