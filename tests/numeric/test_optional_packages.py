"""Packages that a user may have: absent, broken at import or too old, none of them stops a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path

import pytest
import torch

from lowpeak.kernels import machine
from lowpeak.kernels.compose import Unusable, choose_ops
from lowpeak.kernels.machine import Machine, installed_packages, is_present, triton_runs

CPU = torch.device("cpu")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder at the head of the path, for packages of a test."""
    monkeypatch.syspath_prepend(tmp_path)
    real = sys.modules.pop("triton", None)
    machine.installed_packages.cache_clear()
    machine.triton_runs.cache_clear()
    yield tmp_path
    sys.modules.pop("triton", None)
    if real is not None:
        sys.modules["triton"] = real
    machine.installed_packages.cache_clear()
    machine.triton_runs.cache_clear()


def write_version(folder: Path, name: str, version: str) -> None:
    """What says that `version` of a distribution is installed."""
    place = folder / f"{name}-{version}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def write_package(folder: Path, name: str, text: str | None = "") -> None:
    """Package `name` ("a" or "a.b") with `text` in its __init__.py; None: a folder alone."""
    place = folder.joinpath(*name.split("."))
    place.mkdir(parents=True, exist_ok=True)
    if text is not None:
        (place / "__init__.py").write_text(text)
    invalidate_caches()


@pytest.mark.parametrize(
    "raised", ["RuntimeError('built for CUDA 12')", "ImportError('libcudart')", "SystemExit(3)"]
)
def test_a_package_is_seen_within_one_that_breaks_at_import(packages: Path, raised: str) -> None:
    write_package(packages, "flash_attn", f"raise {raised}")
    assert is_present("flash_attn") and not is_present("flash_attn.cute")
    assert set(installed_packages()) & {"flash_attn", "flash_attn.cute"} == {"flash_attn"}
    write_package(packages, "flash_attn.cute")
    assert is_present("flash_attn.cute")


def test_a_package_is_seen_within_a_folder_without_an_init(packages: Path) -> None:
    write_package(packages, "flash_attn.cute")
    assert is_present("flash_attn.cute")
    assert not is_present("flash_attn.other") and not is_present("nowhere_at_all.cute")


def test_a_module_holds_no_packages(packages: Path) -> None:
    (packages / "flash_attn.py").write_text("raise RuntimeError")
    invalidate_caches()
    assert is_present("flash_attn") and not is_present("flash_attn.cute")


def test_flash_attention_within_a_broken_package_is_broken_not_absent(packages: Path) -> None:
    write_package(packages, "flash_attn", "raise RuntimeError('built for CUDA 12')")
    write_package(packages, "flash_attn.cute")
    card = Machine(
        "linux", "cuda", "H100", (9, 0), packages={"torch": "2.11.0", "flash_attn.cute": "4.0.0"}
    )
    with pytest.raises(Unusable) as none:
        choose_ops(
            CPU, head_dim=128, kind="plain", dtype=torch.bfloat16, machine=card,
            force={"window attention": "flash-attn-4"},
        )  # fmt: skip
    why = "flash_attn.cute cannot be imported: RuntimeError: built for CUDA 12"
    assert none.value.reasons["flash-attn-4"] == why


@pytest.mark.parametrize(
    ("capability", "version", "text", "runs"),
    [
        ((8, 9), "3.2.0", "", True),
        ((7, 5), "3.2.0", "", False),
        ((8, 9), "3.1.0", "", False),
        ((8, 9), "3.2.0", "raise RuntimeError('built for another Python')", False),
        ((8, 9), "3.2.0", "raise ImportError('libtriton.so: no such file')", False),
    ],
)
def test_small_kernels_are_ours_only_where_triton_can_be_used(
    packages: Path,
    monkeypatch: pytest.MonkeyPatch,
    capability: tuple[int, int],
    version: str,
    text: str,
    runs: bool,
) -> None:
    """int8-library, storage and scaled-tiled ask this in the midst of a step."""
    write_version(packages, "triton", version)
    write_package(packages, "triton", text)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert triton_runs(torch.device("cuda", 0)) is runs
    assert not triton_runs(CPU)
