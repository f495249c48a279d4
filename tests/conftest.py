"""Shared fixtures. Tests are grouped by what they need: pure, numeric, gpu, comfy, browser."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

if shutil.which("nvidia-smi") is None:  # Triton kernels then run in Triton's own interpreter
    os.environ.setdefault("TRITON_INTERPRET", "1")

# What runs keep for later (prompts, tables, history) stays out of the cache of the user.
HOME = tempfile.mkdtemp(prefix="lowpeak-tests-")
os.environ["LOWPEAK_HOME"] = HOME
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"


@pytest.fixture(scope="session")
def golden_dir() -> Path:
    """Folder of golden tensors: LOWPEAK_GOLDEN, else ../shared/oracles/golden, else a loud skip."""
    folder = Path(os.environ.get("LOWPEAK_GOLDEN", SHARED / "oracles" / "golden"))
    if not folder.is_dir():
        pytest.skip(f"no golden tensors: {folder} is not a folder (set LOWPEAK_GOLDEN)")
    return folder
