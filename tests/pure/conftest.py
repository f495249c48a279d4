"""Recorded numbers of the pure tests: the full folder, else the committed subset."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def golden_dir() -> Path:
    """LOWPEAK_GOLDEN, else ../shared/oracles/golden, else tests/data/golden_small."""
    full = Path(os.environ.get("LOWPEAK_GOLDEN", REPOSITORY.parent / "shared/oracles/golden"))
    return full if full.is_dir() else REPOSITORY / "tests/data/golden_small"
