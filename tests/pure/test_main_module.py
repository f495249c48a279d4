"""The command line from custom_nodes, where the pack is a folder and not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_folder_runs_as_a_module(tmp_path: Path) -> None:
    (tmp_path / "lowpeak").symlink_to(ROOT, target_is_directory=True)
    done = subprocess.run([sys.executable, "-m", "lowpeak", "models", "list", "--bad"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.returncode == 2 and "--bad" in done.stderr
    done = subprocess.run([sys.executable, "-m", "lowpeak", "models", "--help"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.returncode == 0 and "pull" in done.stdout
