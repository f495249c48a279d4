"""Measured constants as data: loading the rows of engine/calibration and choosing them.

A row carries its value, unit, error and where it comes from (format: common.toml). The rows of a
machine are the common ones, then the margins, then those of its own file, or, for a card that was
never measured, the vendor's peaks times the efficiency that the engine reaches elsewhere. Which one
it was is part of the value: `status`, `extrapolated`, `notes`. Nothing is guessed in silence.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import RequestError
from .types import HardwareSnapshot, ModelFacts

FOLDER = Path(__file__).resolve().parent.parent / "calibration"
SCHEMA = 1
STATUSES = ("measured", "derived", "borrowed", "assumed")
REFERENCE_CARD = "h200"
INT8_ATTENTION = "rates.attention_int8"
_TERA, _GIGA = 1e12, 1e9


@dataclass(frozen=True)
class Row:
    """One constant. `error_p95` is relative; `source` says where the value comes from."""

    name: str
    value: float
    unit: str
    status: str
    source: str
    error_p95: float

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"row {self.name}: status {self.status!r} is none of {STATUSES}")
        if not self.value > 0:
            raise ValueError(f"row {self.name}: value {self.value} is not positive")
        if not self.source or not self.unit:
            raise ValueError(f"row {self.name}: unit or source is empty")


@dataclass(frozen=True)
class Calibration:
    """All rows that price a plan on one machine.

    extrapolated: no row of this machine was measured; margins are doubled.
    notes: sentences about where the rows come from, for the reasons of a plan.
    """

    name: str
    rows: Mapping[str, Row]
    extrapolated: bool = False
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        return self.rows[name].value

    def source(self, name: str) -> str:
        """'derived: ...' for the terms of an explanation."""
        row = self.rows[name]
        return f"{row.status}: {row.source}"

    def with_values(self, **values: float) -> Calibration:
        """A copy with some values replaced; `rates__link=1e9` names the row rates.link."""
        rows = dict(self.rows)
        for key, value in values.items():
            name = key.replace("__", ".", 1)
            rows[name] = replace(rows[name], value=value)
        return replace(self, rows=rows)

    def with_rows(self, rows: Iterable[Row]) -> Calibration:
        """A copy with rows added or replaced."""
        return replace(self, rows={**self.rows, **{row.name: row for row in rows}})

    def without(self, name: str) -> Calibration:
        """A copy without a row."""
        return replace(self, rows={key: row for key, row in self.rows.items() if key != name})

    def margin_bytes(self, axis: str, system: str) -> int:
        """What must stay free beside a forecast on `axis` ("vram" or "ram")."""
        factor = self["margin.extrapolated_factor"] if self.extrapolated and axis == "vram" else 1
        return int(self[self.margin_row(axis, system)] * factor)

    def margin_row(self, axis: str, system: str) -> str:
        """The name of the row that gives a margin."""
        return f"margin.{axis}_{'windows' if system == 'windows' else 'linux'}"


def read_rows(path: Path) -> tuple[dict[str, Any], dict[str, Row]]:
    """The [meta] table and the rows of one file. ValueError names the file and the row."""
    with path.open("rb") as file:
        data = tomllib.load(file)
    meta = data.pop("meta", {})
    if meta.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema {meta.get('schema')} is not {SCHEMA}")
    rows = {}
    for group, items in data.items():
        if group == "card":
            continue
        for name, item in items.items():
            full = f"{group}.{name}"
            missing = {"value", "unit", "status", "source", "error_p95"} - set(item)
            if missing:
                raise ValueError(f"{path}: row {full} lacks {', '.join(sorted(missing))}")
            rows[full] = Row(
                full,
                float(item["value"]),
                item["unit"],
                item["status"],
                item["source"],
                float(item["error_p95"]),
            )
    return meta, rows


def read_cards(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """The card tables of cards.toml, by key, with the measured card's names added."""
    with (folder / "cards.toml").open("rb") as file:
        cards: dict[str, dict[str, Any]] = tomllib.load(file)["card"]
    return cards


def normalise_card(name: str) -> str:
    """'NVIDIA GeForce RTX 4060 Laptop GPU' -> 'geforce rtx 4060 laptop gpu'."""
    text = " ".join(name.lower().replace("-", " ").split())
    return text.removeprefix("nvidia ")


def find_card(
    name: str, vram_total_bytes: int, cards: Mapping[str, Mapping[str, Any]]
) -> str | None:
    """The key of a card by key or by device name; of two sizes the one nearest in memory."""
    wanted = normalise_card(name)
    found = [
        key
        for key, card in cards.items()
        if wanted == normalise_card(key)
        or wanted in {normalise_card(item) for item in card["names"]}
        or (wanted and f"geforce {wanted}" in {normalise_card(item) for item in card["names"]})
    ]
    exact = [key for key in found if wanted == normalise_card(key)]
    found = exact or found
    size_gib = vram_total_bytes / 2**30
    return min(found, key=lambda key: abs(cards[key]["vram_gib"] - size_gib), default=None)


def measured_cards(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """[meta] of the machines that have a file of their own, by each of their normalised names.

    With its key it says `vram_gib` and `capability`, as a row of cards.toml does.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in folder.glob("*.toml"):
        if path.stem not in ("common", "margins", "cards"):
            meta, _ = read_rows(path)
            names = (meta["name"], *meta.get("names", ()))
            found |= dict.fromkeys(map(normalise_card, names), meta | meta["key"])
    return found


def choose_calibration(snapshot: HardwareSnapshot, folder: Path = FOLDER) -> Calibration:
    """The rows for a machine: measured file, else card row, else the nearest of its capability.

    RequestError when `snapshot.card` names a card that is in no file.
    """
    _, rows = read_rows(folder / "common.toml")
    rows |= read_rows(folder / "margins.toml")[1]
    asked = snapshot.card or snapshot.device_name
    for path in sorted(folder.glob("*.toml")):
        if path.stem in ("common", "margins", "cards"):
            continue
        meta, own = read_rows(path)
        names = [meta["name"], *meta.get("names", ())]
        if asked and normalise_card(asked) in {normalise_card(item) for item in names}:
            note = f"rates of {meta['name']} ({_statuses(own)})"
            return with_snapshot_rates(
                Calibration(meta["name"], rows | own, notes=(note,)), snapshot
            )
    cards = read_cards(folder)
    _, factors = read_rows(folder / "cards.toml")
    key = find_card(asked, snapshot.vram_total_bytes, cards) if asked else None
    if key is None and snapshot.card:
        raise RequestError(
            f"card {snapshot.card!r} is unknown; known: h200, {', '.join(sorted(cards))}",
            field="card",
        )
    if key is not None:
        note = f"rates of {key}: the data sheet's peaks times our efficiency; none is measured"
        own = _card_rows(key, cards[key], factors)
        return with_snapshot_rates(Calibration(key, rows | own, True, (note,)), snapshot)
    if snapshot.capability is not None:
        key = _nearest(snapshot, cards)
        note = f"card {asked or 'not named'}: rates of {key} assumed; give --card for another"
        own = _card_rows(key, cards[key], factors)
        return with_snapshot_rates(Calibration(key, rows | own, True, (note,)), snapshot)
    _, own = read_rows(folder / f"{REFERENCE_CARD}.toml")
    note = f"no card is named: rates of {REFERENCE_CARD}; give --card for yours"
    return with_snapshot_rates(Calibration(REFERENCE_CARD, rows | own, notes=(note,)), snapshot)


def published_facts(calibration: Calibration) -> ModelFacts:
    """Published sizes in the weight format that runs fastest on a machine.

    For plans without a checkpoint: FP8 where its rate is the higher one, else int8 ConvRot.
    """
    rows = calibration.rows
    int8, fp8 = rows.get("rates.gemm_int8"), rows.get("rates.gemm_fp8")
    if int8 is not None and (fp8 is None or int8.value > fp8.value):
        return ModelFacts(weight_format="int8-convrot")
    return ModelFacts()


def _statuses(rows: Mapping[str, Row]) -> str:
    count = {status: sum(row.status == status for row in rows.values()) for status in STATUSES}
    return ", ".join(f"{number} {status}" for status, number in count.items() if number)


def _nearest(snapshot: HardwareSnapshot, cards: Mapping[str, Mapping[str, Any]]) -> str:
    """The slowest card among those nearest in capability and then in memory."""
    assert snapshot.capability is not None
    wanted = snapshot.capability[0] * 10 + snapshot.capability[1]
    size_gib = snapshot.vram_total_bytes / 2**30

    def distance(key: str) -> tuple[float, float, float]:
        major, minor = cards[key]["capability"].split(".")
        away = abs(int(major) * 10 + int(minor) - wanted)
        return away, abs(cards[key]["vram_gib"] - size_gib), cards[key]["bf16_tflops"]

    return min(cards, key=distance)


def _card_rows(key: str, card: Mapping[str, Any], factors: Mapping[str, Row]) -> dict[str, Row]:
    """Peaks of a data sheet times the efficiency factors.

    `rates.attention` is that of exact attention. Where 8-bit attention would be far faster its rate
    is a row of its own, which nothing uses until it is admitted (with_quantised_attention).
    """
    quick = factors.get(f"efficiency.attention_int8_{card['capability'].replace('.', '')}")
    int8 = "gemm_int8_bulk" if float(card["capability"]) >= 9 else "gemm_int8"
    # float32 sums at half rate: the int8 peak is four times that of bf16, elsewhere twice.
    halved = card["int8_tops"] > 3 * card["bf16_tflops"]
    solve = "solve_per_bf16_tflops" if quick is None else "solve_per_bf16_tflops_small"
    bandwidth = card["bandwidth_gb_per_second"] * _GIGA
    peaks = {
        "attention": (
            card["bf16_tflops"] * _TERA,
            "FLOP/s",
            "attention_halved" if halved else "attention",
        ),
        "gemm_bf16": (card["bf16_tflops"] * _TERA, "FLOP/s", "gemm_bf16"),
        "gemm_fp8": (card["fp8_tflops"] * _TERA, "FLOP/s", "gemm_fp8"),
        "gemm_int8": (card["int8_tops"] * _TERA, "FLOP/s", int8),
        "copy": (bandwidth, "B/s", "copy"),
        "convolution": (bandwidth, "B/s", "convolution"),
        "readout": (bandwidth, "B/s", "readout"),
        "solve": (card["bf16_tflops"], "1/s", solve),
        "sustained": (1.0, "1", "sustained"),
    }
    rows = {}
    for name, (peak, unit, factor) in peaks.items():
        if not peak:  # the card has no such units; the planner then prices bf16
            continue
        row = factors[f"efficiency.{factor}"]
        source = f"{card['source']}, times {row.value:g} ({row.status})"
        error = (row.error_p95**2 + card["error_p95"] ** 2) ** 0.5
        full = f"rates.{name}"
        rows[full] = Row(full, peak * row.value, unit, "borrowed", source, error)
    if quick is not None:
        source = f"{card['source']}, int8 peak times {quick.value:g} ({quick.status})"
        value = card["int8_tops"] * _TERA * quick.value
        rows[INT8_ATTENTION] = Row(
            INT8_ATTENTION, value, "FLOP/s", "borrowed", source, quick.error_p95
        )
    link = card["link_gb_per_second"] * _GIGA
    rows["rates.link"] = Row("rates.link", link, "B/s", "borrowed", card["source"], 0.15)
    rows["rates.disk"] = factors["rates.disk"]
    return rows


def with_quantised_attention(calibration: Calibration) -> Calibration:
    """Rows for a user who admits attention that quantises its inputs, named in the notes.

    Unchanged where attention was measured, or where no such kernel is 10 % faster.
    """
    rows = calibration.rows
    quick, exact = rows.get(INT8_ATTENTION), rows["rates.attention"]
    if quick is None or exact.status == "measured" or quick.value <= 1.1 * exact.value:
        return calibration
    note = (
        f"attention quantised to 8 bits, as you allow: {quick.value / exact.value:.1f} times the "
        "rate of exact attention is assumed, not measured; without that kernel a run takes longer"
    )
    admitted = replace(quick, name="rates.attention")
    return replace(calibration.with_rows([admitted]), notes=(*calibration.notes, note))


def with_snapshot_rates(calibration: Calibration, snapshot: HardwareSnapshot) -> Calibration:
    """Rates that this machine measured, or that the user gave, replace those of the file."""
    rows = dict(calibration.rows)
    for name, value in (
        ("rates.link", snapshot.link_bytes_per_second),
        ("rates.disk", snapshot.disk_bytes_per_second),
    ):
        if value is not None:
            rows[name] = Row(name, value, "B/s", "measured", "given for this machine", 0.05)
    return replace(calibration, rows=rows)
