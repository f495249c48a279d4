"""A checkpoint of the real width with two blocks, written once a session on the card."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gpu_digest import open_prelude

from lowpeak.engine.checkpoint.toy import write_toy_checkpoint
from lowpeak.engine.prelude import Prelude


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    return write_toy_checkpoint(
        tmp_path_factory.mktemp("gpu") / "block", size="block", seed=5, device="cuda"
    )


@pytest.fixture(scope="session")
def shared(folder) -> Iterator[Prelude]:
    """What passes over it may share."""
    prelude = open_prelude(folder)
    yield prelude
    prelude.close()
