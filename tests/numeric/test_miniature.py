"""The shipped miniature draws what its captions say: a few held-out ones through the whole engine.

The whole table is docs/benchmarks/miniature.json (benchmarks/miniature/table.py). What is wanted of
it stands in benchmarks/miniature/targets.py; what the shipped weights miss of that is in `MISSED`
here, by name, and on docs/miniature.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lowpeak.benchmarks.miniature import table, targets
from lowpeak.engine import miniature

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "docs" / "benchmarks" / "miniature.json"
PAGE = ROOT / "docs" / "miniature.md"
MOST_BYTES = 20_000_000
SURE = ("colour", "motion", "pitch")  # right in every recorded clip
SHAPES_OF_8 = 6  # not the 90 % that is wanted: the weights are not trained to the end
MISSED: set[tuple[str, str]] = {
    ("384x256", "colour_and_shape"),
    ("39-frames", "colour_and_shape"),
    ("39-frames-fp8-rowwise", "colour_and_shape"),
    ("39-frames-fp8-rowwise", "colour_and_shape as in 39-frames"),
    ("39-frames-fp8-tensor", "colour_and_shape"),
    ("39-frames-fp8-tensor", "colour_and_shape as in 39-frames"),
    ("39-frames-int8", "colour_and_shape"),
    ("39-frames-int8", "colour_and_shape as in 39-frames"),
    ("first-and-last-two-pass", "colour_and_shape"),
    ("outline-merged", "colour_and_shape"),
    ("outline-merged", "style"),
    ("outline-online", "colour_and_shape"),
    ("outline-online", "style"),
    ("single-pass-512", "colour_and_shape"),
    ("two-pass-light-512", "colour_and_shape"),
    ("two-pass-light-512-fp8-rowwise", "colour_and_shape"),
}

pytestmark = pytest.mark.skipif(
    miniature.shipped() is None, reason=f"no trained weights: {miniature.HOME} is not there"
)


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the other weight formats, each made when first asked for."""
    return tmp_path_factory.mktemp("forms")


def drawn(variant: str, number: int, forms: Path, tmp_path: Path) -> dict[str, Any]:
    """What agrees with caption `number` of the table."""
    chosen = table.VARIANTS[variant]
    source = table.prepare(miniature.HOME, chosen.weights, forms)
    return table.ask(chosen, source, number, tmp_path, "cpu")


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, Any]]:
    return {row["variant"]: row for row in json.loads(RECORDED.read_text())["rows"]}


def test_all_files_together_are_small() -> None:
    files = [path for path in miniature.HOME.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES


def test_held_out_captions_come_true(forms: Path, tmp_path: Path) -> None:
    found = [drawn("bf16", number, forms, tmp_path) for number in range(8)]
    assert all(row[name] for row in found for name in SURE), found
    print("shapes right of 8:", sum(row["shape"] for row in found))
    assert sum(row["shape"] for row in found) >= SHAPES_OF_8, found


def test_a_clip_that_needs_windows_and_the_linear_branch(forms: Path, tmp_path: Path) -> None:
    found = drawn("39-frames-fp8-rowwise", 3, forms, tmp_path)
    assert all(found[name] for name in SURE), found


@pytest.mark.parametrize("variant", ["fp8-rowwise", "fp8-tensor", "int8"])
def test_quantised_weights_draw_the_same(variant: str, forms: Path, tmp_path: Path) -> None:
    found = [drawn(variant, number, forms, tmp_path) for number in range(3)]
    assert all(row[name] for row in found for name in SURE), found


def test_two_passes_draw_what_one_draws(forms: Path, tmp_path: Path) -> None:
    found = drawn("two-pass-light-512", 0, forms, tmp_path)
    assert all(found[name] for name in SURE), found


def test_a_clip_begins_and_ends_on_the_given_pictures(forms: Path, tmp_path: Path) -> None:
    found = drawn("first-and-last", 2, forms, tmp_path)
    for name in ("first", "last"):
        value = found[f"{name}_psnr_db"]
        assert isinstance(value, float) and value >= 22, (name, value)


@pytest.mark.parametrize(("style", "clips", "least"), [("night", 2, 2), ("outline", 3, 1)])
def test_an_adapter_leaves_its_mark_online_and_merged(
    style: str, clips: int, least: int, forms: Path, tmp_path: Path
) -> None:
    """`outline` had a hundred batches of training and marks less than half: `MISSED` says so."""
    marks = [
        [drawn(f"{style}-{mode}", number, forms, tmp_path)["style"] for number in range(clips)]
        for mode in ("merged", "online")
    ]
    assert all(sum(found) >= least for found in marks), marks


def test_what_the_recorded_table_misses_is_said_by_name(
    recorded: dict[str, dict[str, Any]],
) -> None:
    """A target newly missed or newly met fails until `MISSED` and the page say so."""
    for row in recorded.values():  # the table, where `-s` asks for it
        print(" ".join(f"{name} {value}" for name, value in row.items()))
    assert not any("error" in row for row in recorded.values())
    assert targets.missed(list(recorded.values())) == MISSED
    page = PAGE.read_text()
    for variant, name in MISSED:
        assert f"`{variant}`" in page, (variant, name)


def test_what_is_sure_is_sure_in_every_form(recorded: dict[str, dict[str, Any]]) -> None:
    for variant, row in recorded.items():
        assert row["colour"] >= 97 and row["motion"] >= 97 and row["pitch"] >= 97, variant
