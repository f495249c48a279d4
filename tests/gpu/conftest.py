"""A checkpoint of the real width with two blocks, written once a session on the card."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowpeak.engine.checkpoint.toy import write_toy_checkpoint


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    return write_toy_checkpoint(
        tmp_path_factory.mktemp("gpu") / "block", size="block", seed=5, device="cuda"
    )
