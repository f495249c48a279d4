"""What pure tests share: recorded numbers (the full folder, else the committed subset), a hub."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import Server

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def golden_dir() -> Path:
    """LOWPEAK_GOLDEN, else ../shared/oracles/golden, else tests/data/golden_small."""
    full = Path(os.environ.get("LOWPEAK_GOLDEN", REPOSITORY.parent / "shared/oracles/golden"))
    return full if full.is_dir() else REPOSITORY / "tests/data/golden_small"


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    """The hub on localhost, as long as a test runs."""
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    found = Server()
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join()
