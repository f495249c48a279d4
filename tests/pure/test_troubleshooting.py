"""docs/troubleshooting.md quotes what the program says, not what somebody remembers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("engine", "nodes", "kernels")
LINES = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8").splitlines()
CELLS = [line.split("|")[2] for line in LINES if line.startswith("| ")]
QUOTES = sorted({quote for cell in CELLS for quote in re.findall(r'"([^"…]{8,})"', cell)})


@pytest.fixture(scope="module")
def sources() -> str:
    """All text of the program; literals that go on in the next line are joined."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    files.append(ROOT / "locales/en/panel.json")
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return re.sub(r'"\s*\n\s*f?"', "", text)


@pytest.mark.parametrize("quote", QUOTES)
def test_a_message_of_the_page_is_in_the_program(quote: str, sources: str) -> None:
    assert quote in sources


def test_the_page_quotes_messages() -> None:
    assert len(QUOTES) > 15
