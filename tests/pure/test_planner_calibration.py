"""Calibration rows: provenance, lookup, and what happens to a card that nobody measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from planner_tools import FACTS, machine, single_pass

from lowpeak.engine.errors import RequestError
from lowpeak.engine.forecast import forecast, forecast_for_run
from lowpeak.engine.planner.calibration import (
    FOLDER,
    STATUSES,
    choose_calibration,
    find_card,
    published_facts,
    read_cards,
    read_rows,
    with_quantised_attention,
)
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.workload import gemm_row

FILES = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_row_has_a_value_a_unit_a_status_a_source_and_an_error(path: Path) -> None:
    _, rows = read_rows(path)
    assert rows
    for row in rows.values():
        assert row.status in STATUSES and row.unit and len(row.source) >= 7
        assert 0 <= row.error_p95 < 1


def test_measured_rows_say_on_what() -> None:
    import tomllib

    for path in FILES:
        data = tomllib.loads(path.read_text())
        for group in data.values():
            for name, row in group.items():
                if isinstance(row, dict) and row.get("status") == "measured":
                    assert row.get("device") and row.get("command") and row.get("date"), name


def test_cards_are_two_dozen_and_borrowed_with_a_named_sheet() -> None:
    cards = read_cards()
    assert len(cards) >= 24
    for key, card in cards.items():
        assert card["status"] == "borrowed", key
        assert "NVIDIA" in card["source"], key
        assert card["bf16_tflops"] > 0 and card["int8_tops"] >= card["bf16_tflops"], key
        assert (card["fp8_tflops"] == 0) == (float(card["capability"]) < 8.9), key


@pytest.mark.parametrize(
    ("name", "vram_gib", "key"),
    [
        ("NVIDIA GeForce RTX 4060 Ti", 8, "rtx-4060-ti-8"),
        ("NVIDIA GeForce RTX 4060 Ti", 16, "rtx-4060-ti-16"),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", 8, "rtx-4060-laptop"),
        ("rtx-5090", 32, "rtx-5090"),
        ("RTX 4060", 8, "rtx-4060"),
        ("NVIDIA A100-SXM4-80GB", 80, "a100-80"),
        ("NVIDIA GeForce GTX 1060", 6, None),
    ],
)
def test_cards_are_found_by_device_name(name: str, vram_gib: int, key: str | None) -> None:
    assert find_card(name, vram_gib << 30, read_cards()) == key


def test_the_measured_machine_uses_its_own_file() -> None:
    rows = choose_calibration(machine(140, 200, device_name="NVIDIA H200"))
    assert rows.name == "h200" and not rows.extrapolated


def test_an_unknown_device_uses_the_nearest_of_its_capability_and_says_so() -> None:
    rows = choose_calibration(machine(8, 16, device_name="NVIDIA Thing", capability=(8, 9)))
    assert rows.extrapolated and rows.name == "rtx-4060-laptop"
    assert "assumed" in rows.notes[0]


def test_an_unknown_card_option_is_a_request_error() -> None:
    with pytest.raises(RequestError, match="rtx-4090"):
        choose_calibration(machine(8, 16, card="voodoo-2"))


def test_given_rates_replace_rows_and_are_marked() -> None:
    rows = choose_calibration(machine(8, 16, link_bytes_per_second=9e9, disk_bytes_per_second=1e9))
    assert (rows["rates.link"], rows["rates.disk"]) == (9e9, 1e9)
    assert rows.source("rates.link").startswith("measured")


def test_fp8_weights_on_a_card_without_fp8_are_priced_as_bf16() -> None:
    assert (
        gemm_row(FACTS, choose_calibration(machine(24, 32, card="rtx-3090"))) == "rates.gemm_bf16"
    )
    assert gemm_row(FACTS, choose_calibration(machine(24, 32, card="rtx-4090"))) == "rates.gemm_fp8"


def test_every_card_plans_the_reference_request_with_its_own_memory() -> None:
    for key, card in read_cards().items():
        snapshot = machine(card["vram_gib"], 32, card=key)
        rows = choose_calibration(snapshot)
        plan = plan_request(single_pass(), snapshot, published_facts(rows), rows)
        phase = plan.phase("sample_high")
        assert phase is not None and 2 < phase.seconds_per_step < 700, key


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[meta]\nschema = 2\n", "schema 2"),
        ("[meta]\nschema = 1\n[rates.link]\nvalue = 1\n", "lacks"),
        (
            "[meta]\nschema = 1\n[rates.link]\nvalue = -1\nunit = 'B/s'\nerror_p95 = 0\n"
            "status = 'assumed'\nsource = 'x'\n",
            "not positive",
        ),
        (
            "[meta]\nschema = 1\n[rates.link]\nvalue = 1\nunit = 'B/s'\nerror_p95 = 0\n"
            "status = 'guessed'\nsource = 'x'\n",
            "guessed",
        ),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_rows(path)


def test_a_card_is_priced_with_exact_attention_until_the_user_admits_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No assumed rate of a quantised kernel stands for attention that is exact."""
    monkeypatch.delenv("LOWPEAK_QUANTISED_ATTENTION", raising=False)
    for key, card in read_cards().items():
        rows = choose_calibration(machine(24, 32, card=key))
        assert rows["rates.attention"] <= 0.8 * card["bf16_tflops"] * 1e12, key
        assert "int8" not in rows.rows["rates.attention"].source, key
    here = machine(24, 32, card="rtx-4090")
    exact = forecast(single_pass(), here, FACTS, what_if=False)
    assert not any("8 bits" in reason for reason in exact["reasons"])
    assert not exact["changes_arithmetic"]
    monkeypatch.setenv("LOWPEAK_QUANTISED_ATTENTION", "1")
    quick = forecast(single_pass(), here, FACTS, what_if=False)
    assert quick["total_seconds"] < 0.8 * exact["total_seconds"]
    (note,) = [reason for reason in quick["reasons"] if "8 bits" in reason]
    assert "assumed, not measured" in note and quick["changes_arithmetic"]
    assert forecast_for_run(single_pass(), here, FACTS, "cuda")["changes_arithmetic"]
    measured = forecast(single_pass(), machine(80, 64, card="h200"), FACTS, what_if=False)
    assert not measured["changes_arithmetic"], "its exact attention was measured, and is counted"


def test_admitting_quantised_attention_changes_no_measured_rate() -> None:
    for card in ("h200", "h100-80"):  # measured there; no faster form known here
        rows = choose_calibration(machine(80, 64, card=card))
        assert with_quantised_attention(rows) is rows
    rows = choose_calibration(machine(24, 32, card="rtx-4090"))
    own = replace(rows.rows["rates.attention"], status="measured")
    measured = rows.with_rows([own])
    assert with_quantised_attention(measured) is measured


def test_int8_products_of_the_measured_card_are_its_own() -> None:
    _, rows = read_rows(FOLDER / "h200.toml")
    row = rows["rates.gemm_int8"]
    assert row.status == "measured" and row.value < rows["rates.gemm_fp8"].value
    folder = Path(__file__).parents[2] / "docs" / "benchmarks"
    timed = json.loads((folder / "gemm-paths-h200.json").read_text())
    best = max(item.get("tflops", 0) for item in timed if "int8" in item["case"])
    assert row.value == pytest.approx(best * 1e12, rel=1e-3)


def test_published_facts_take_the_faster_format() -> None:
    for card, form in [("rtx-3090", "int8-convrot"), ("rtx-4090", "int8-convrot"),
                       ("h100-80", "fp8-rowwise"), (None, "fp8-rowwise")]:  # fmt: skip
        rows = choose_calibration(machine(24, 32, card=card))
        assert published_facts(rows).weight_format == form, card
