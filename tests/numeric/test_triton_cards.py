"""Kernels are compiled for cards that are not here: what they need there must be there."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import kernel_compile
import pytest

pytest.importorskip("triton")
# What one program may have on the cards with the least (8.6, 8.9, 12.0), by CUDA's own table.
CAPABILITY, SHARED_BYTES = "8.6", 99 << 10


def test_tiles_fit_the_least_shared_memory(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, kernel_compile.__file__, CAPABILITY],
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    needed = json.loads(done.stdout.splitlines()[-1])
    assert len(needed) == 4
    assert max(needed.values()) <= SHARED_BYTES, needed
