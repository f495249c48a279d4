"""The shipped miniature draws what its captions say: a few held-out ones through the whole engine.

The whole table is docs/benchmarks/miniature.json (benchmarks/miniature/table.py).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from lowpeak.benchmarks.miniature import table
from lowpeak.engine import miniature

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "docs" / "benchmarks" / "miniature.json"
MOST_BYTES = 20_000_000
NAMES = ("colour", "shape", "motion", "pitch")

pytestmark = pytest.mark.skipif(
    miniature.shipped() is None, reason=f"no trained weights: {miniature.HOME} is not there"
)


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the other weight formats, each made when first asked for."""
    return tmp_path_factory.mktemp("forms")


def drawn(variant: str, number: int, forms: Path, tmp_path: Path) -> dict[str, object]:
    """What agrees with caption `number` of the table."""
    chosen = table.VARIANTS[variant]
    source = table.prepare(miniature.HOME, chosen.weights, forms)
    return table.ask(chosen, source, number, tmp_path, "cpu")


def test_all_files_together_are_small() -> None:
    files = [path for path in miniature.HOME.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES


@pytest.mark.parametrize("number", [0, 1, 2])
def test_held_out_captions_come_true(number: int, forms: Path, tmp_path: Path) -> None:
    found = drawn("bf16", number, forms, tmp_path)
    assert all(found[name] for name in NAMES), (table.scene(number).caption(0), found)


def test_a_clip_that_needs_windows_and_the_linear_branch(forms: Path, tmp_path: Path) -> None:
    found = drawn("39-frames-fp8-rowwise", 3, forms, tmp_path)
    assert all(found[name] for name in NAMES), found


@pytest.mark.parametrize("variant", ["fp8-rowwise", "fp8-tensor", "int8"])
def test_quantised_weights_draw_the_same(variant: str, forms: Path, tmp_path: Path) -> None:
    found = drawn(variant, 1, forms, tmp_path)
    assert all(found[name] for name in NAMES), found


def test_two_passes_draw_what_one_draws(forms: Path, tmp_path: Path) -> None:
    found = drawn("two-pass-light-512", 0, forms, tmp_path)
    assert all(found[name] for name in NAMES), found


def test_a_clip_begins_and_ends_on_the_given_pictures(forms: Path, tmp_path: Path) -> None:
    found = drawn("first-and-last", 2, forms, tmp_path)
    for name in ("first", "last"):
        value = found[f"{name}_psnr_db"]
        assert isinstance(value, float) and value >= 22, (name, value)


@pytest.mark.parametrize("style", ["night", "outline"])
def test_an_adapter_leaves_its_mark_online_and_merged(
    style: str, forms: Path, tmp_path: Path
) -> None:
    for mode in ("merged", "online"):
        found = drawn(f"{style}-{mode}", 0, forms, tmp_path)
        assert found["style"], (style, mode)


def test_the_recorded_table_keeps_its_promises() -> None:
    rows = {row["variant"]: row for row in json.loads(RECORDED.read_text())["rows"]}
    base = rows["bf16"]
    assert base["colour_and_shape"] >= 90 and base["motion"] >= 85 and base["pitch"] >= 85
    for name in ("fp8-rowwise", "fp8-tensor", "int8"):
        for part in ("colour_and_shape", "motion", "pitch"):
            assert abs(rows[name][part] - base[part]) <= 3, (name, part)
    assert not any("error" in row for row in rows.values())
    assert (
        torch.tensor([rows["first-and-last"][f"{n}_psnr_db"] for n in ("first", "last")]).min()
        >= 22
    )
