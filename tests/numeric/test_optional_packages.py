"""Packages that a user may have: absent, broken at import or too old, none of them stops a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path

import pytest
import torch

from lowpeak.engine import optional
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


def test_the_doctor_says_which_package_is_broken_and_why(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that raises, one that leaves, one that ends its process, and a sound one after them."""
    write_package(packages, "one", "print('a banner')\nraise SystemError('another torch\\nlong')")
    write_package(packages, "two", "raise SystemExit(3)")
    write_package(packages, "three", "import os; os._exit(9)")
    write_package(packages, "four")
    write_version(packages, "four", "2.5.1")
    names = {name: "a test" for name in ("one", "two", "three", "four", "five")}
    monkeypatch.setattr(optional, "OPTIONAL", names)
    found = optional.read_optional()
    assert {name: state["found"] for name, state in found.items()} == {
        "one": True, "two": True, "three": True, "four": True, "five": False,
    }  # fmt: skip
    assert optional.optional_lines(found) == [
        "broken   one: a test - SystemError: another torch",
        "broken   two: a test - SystemExit: 3",
        "broken   three: a test - its import ends the process with exit code 9",
        "has      four 2.5.1: a test",
        "lacks    five: a test",
    ]


def test_an_import_that_hangs_is_a_reason(packages: Path) -> None:
    write_package(packages, "sound")
    write_package(packages, "hangs", "import time; time.sleep(60)")
    assert optional.import_errors(["sound", "hangs", "sound.other"], limit_seconds=2) == {
        "sound": "",
        "hangs": "its import takes longer than 2 s",
        "sound.other": "not tried: the 2 s of all imports are used up",
    }


def test_the_doctor_asks_for_every_package_that_a_kernel_may_need() -> None:
    assert set(optional.OPTIONAL) >= set(machine.DISTRIBUTIONS) - {"torch"}
