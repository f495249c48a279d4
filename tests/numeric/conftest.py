"""Golden files for the numeric tests, and one miniature with one run on it.

`@pytest.mark.golden_files("vdn_attention_f*.safetensors")` runs a test once a matching file; the
test takes `golden_path`. The files come from LOWPEAK_GOLDEN (default ../shared/oracles/golden)
or, when that folder is absent, from the compact subset in tests/data/golden_small. A pattern which
matches nothing becomes a skip that says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

REPOSITORY = Path(__file__).resolve().parents[2]
FULL = Path(os.environ.get("LOWPEAK_GOLDEN", REPOSITORY.parent / "shared/oracles/golden"))
SMALL = REPOSITORY / "tests/data/golden_small"


@pytest.fixture(autouse=True)
def one_seed() -> None:
    """What a test draws without a generator of its own does not depend on which ran before it."""
    torch.manual_seed(0)


def golden_root() -> Path:
    """The full folder where there is one, else the committed subset."""
    return FULL if FULL.is_dir() else SMALL


def missing(what: str) -> str:
    """Why a golden test is skipped."""
    if FULL.is_dir():
        return f"no golden tensors: {what} is not in {FULL}"
    return f"no golden tensors: {FULL} is no folder, the compact set has no {what}"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "golden_files(pattern): run once for every matching file")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("golden_files")
    if marker is None or "golden_path" not in metafunc.fixturenames:
        return
    root = golden_root()
    found = sorted(path for pattern in marker.args for path in root.glob(pattern))
    if not found:
        why = missing(" or ".join(marker.args))
        metafunc.parametrize("golden_path", [pytest.param(None, marks=pytest.mark.skip(why))])
        return
    metafunc.parametrize("golden_path", found, ids=[path.stem for path in found])


@pytest.fixture(scope="session")
def golden_file() -> Callable[[str], Path]:
    """Path of a golden file by name; skips, naming the file, where it is not at hand."""

    def find(name: str) -> Path:
        path = golden_root() / name
        if not path.is_file():
            pytest.skip(missing(name))
        return path

    return find


@pytest.fixture(scope="session")
def load_golden() -> Callable[[Path], tuple[dict[str, Tensor], dict[str, Any]]]:
    """Tensors of a file and the JSON it carries about itself."""

    def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, json.loads((file.metadata() or {}).get("fixture", "{}"))

    return load


@pytest.fixture(scope="session")
def relative_error() -> Callable[[Tensor, Tensor], float]:
    """max|found - expected| / max|expected|, in float64; shapes must agree."""

    def error(found: Tensor, expected: Tensor) -> float:
        assert found.shape == expected.shape, (tuple(found.shape), tuple(expected.shape))
        if not expected.numel():
            return 0.0
        difference = (found.to(torch.float64) - expected.to(torch.float64)).abs().max()
        assert torch.isfinite(difference), "the difference is not finite"
        return float(difference / expected.to(torch.float64).abs().max().clamp_min(1e-300))

    return error


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The miniature; a file that needs another one has its own fixture of this name."""
    from lowpeak.engine.toy import write_toy

    folder = tmp_path_factory.mktemp("toy")
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    return folder


@pytest.fixture(scope="session")
def sampled(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that stopped after sampling; its video's (future) path."""
    import run_parts  # here: most files need no media library

    from lowpeak.engine.events import QuietHost
    from lowpeak.engine.run import run_request

    out = tmp_path_factory.mktemp("sampled") / "v.mp4"
    options = run_parts.options(checkpoint, out, stop_after="sample")
    run_request(run_parts.SMALL, options, QuietHost())
    return out
