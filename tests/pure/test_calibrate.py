"""A whole campaign in rows, made up from known constants: what it teaches, shows and writes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from planner_tools import FACTS, known_rows, machine

from lowpeak.benchmarks import calibrate
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.heldout_cases import CASES, ON_DEVICE, TEACHING, Case
from lowpeak.engine.heldout_table import with_ratios
from lowpeak.engine.planner.calibration import FOLDER, Calibration, read_rows
from lowpeak.engine.planner.compare import compare
from lowpeak.engine.planner.plan import plan_request
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.request import Request

H200 = "NVIDIA H200"
BEFORE = known_rows()
TRUTH = BEFORE.with_values(
    memory__allocator=100e6, memory__chunk_temporaries=9.0, memory__allocator_alone=100e6,
    memory__chunk_temporaries_alone=6.0, memory__grouped=0.5, memory__interpreter=800e6,
    memory__context=850e6, rates__attention=520e12, rates__launch=1e-4, rates__link=54e9,
    rates__disk=1.8e9,
)  # fmt: skip


def placement_of(case: Case) -> Placement:
    """What the case runs: given, or planned for its caps with the constants of before."""
    if case.place:
        return Placement(**ON_DEVICE, pinned_blocks=50)
    here = machine(case.vram_gib or 139, case.ram_gib or 120, device_name=H200)
    clip = Geometry(case.width, case.height, case.frames)
    request = Request(clip, base_steps=8, two_pass=False, text_rows=500)
    phase = plan_request(request, here, FACTS, BEFORE).phase("sample_high")
    assert phase is not None and phase.placement is not None
    return phase.placement


GROWTH = 400 << 20  # of a process that ran other cases before


def row_of(case: Case, truth: Calibration = TRUTH) -> dict[str, Any]:
    """The row that `bench forecast` would write of a case on a machine with these constants."""
    clip = Geometry(case.width, case.height, case.frames)
    row: dict[str, Any] = {
        "bench": "forecast",
        "case": case.name,
        "use": case.use,
        "floor": case.floor,
        "forced": case.place is not None,
        "device": H200,
        "versions": {"torch": "2.11.0"},
        "command": "/somewhere/lowpeak/__main__.py bench forecast --out /somewhere/a.json",
        "width": case.width,
        "height": case.height,
        "frames": case.frames,
        "grouped": clip.grouped,
        "in_ring": 3,
        "text_rows": 500,
        "vram_gib": case.vram_gib,
        "ram_gib": case.ram_gib,
        "process": "own" if case.own_process else "shared",
        "kept_store": False,
        "attention": None,
        "placement": placement_of(case).as_json(),
        "stall_seconds": {"link": 0.0, "disk": 0.0},
        "context_bytes": int(truth["memory.context"]),
        "context_after_bytes": int(truth["memory.context"]) + 8,
        "link_bytes_per_second": truth["rates.link"],
    }
    real, said = compare(row, FACTS, truth), compare(row, FACTS, BEFORE)
    row["stall_seconds"]["link"] = real.step.link_stall
    if real.placement.disk_blocks:
        row["disk_bytes_per_second"] = truth["rates.disk"]
        row["stall_seconds"]["disk"] = real.step.disk_stall
    return with_ratios({
        **row,
        "seconds_per_step": real.step.total,
        "vram_peak_bytes": real.vram_bytes,
        "ram_peak_bytes": real.ram_bytes + (0 if case.own_process else GROWTH),
        "forecast": {"seconds_per_step": said.step.total, "vram_peak_bytes": said.vram_bytes,
                     "ram_peak_bytes": said.ram_bytes},
    })  # fmt: skip


CAMPAIGN = [row_of(case) for case in CASES]
OLD_SMALL = {**next(row for row in CAMPAIGN if row["case"] == "first-pass"), "bench": "step",
             "grouped": 1, "vram_peak_bytes": 9 << 30, "seconds_per_step": 3.0}  # fmt: skip


def values(rows: Iterable[dict[str, Any]], **options: Any) -> dict[str, float]:
    return {row.name: row.value for row in calibrate.learn(rows, before=BEFORE, **options).found}


def test_a_campaign_gives_the_machine_back() -> None:
    found = values(CAMPAIGN)
    exact = ("memory.allocator", "memory.chunk_temporaries", "memory.allocator_alone",
             "memory.chunk_temporaries_alone", "memory.grouped",
             "rates.link", "rates.disk")  # fmt: skip
    for name in exact:
        assert found[name] == pytest.approx(TRUTH[name], rel=1e-3), name
    assert found["memory.interpreter"] == pytest.approx(TRUTH["memory.interpreter"] + GROWTH)
    lesson = calibrate.learn(CAMPAIGN, before=BEFORE)
    for row in CAMPAIGN:  # of held-out rows too, which taught nothing
        item = compare(row, FACTS, lesson.after)
        assert item.ratio("seconds") == pytest.approx(1, abs=0.01), row["case"]
        assert item.ratio("vram") == pytest.approx(1, abs=0.01), row["case"]
    assert found["margin.vram_linux"] >= 32 << 20


def test_a_rate_that_sums_do_not_tell_apart_says_how_far_it_may_move() -> None:
    def errors(rows: list[dict[str, Any]]) -> dict[str, float]:
        return {row.name: row.error_p95 for row in calibrate.learn(rows, before=BEFORE).found}

    true = errors(CAMPAIGN)
    # Sums are exact here, and still hardly tell what starting kernels costs.
    assert true["rates.sustained"] < 0.001 < true["rates.attention"] < 0.01
    assert 0.1 < true["rates.launch"] < 1
    long = [{**row, "seconds_per_step": 1.05 * row["seconds_per_step"]}
            if row["case"] == "frames345" else row for row in CAMPAIGN]  # fmt: skip
    bent = errors(long)
    assert bent["rates.attention"] > 0.03 and max(bent.values()) < 1


def test_held_out_rows_teach_nothing_whatever_they_say() -> None:
    taught = [case.name for case in CASES if case.use in TEACHING]
    lesson = calibrate.learn(CAMPAIGN, before=BEFORE)
    assert [row["case"] for row in lesson.teaching] == taught
    absurd = {"seconds_per_step": 99.0, "vram_peak_bytes": 99 << 30, "ram_peak_bytes": 99 << 30}
    wild = [row if row["use"] in TEACHING else {**row, **absurd} for row in CAMPAIGN]
    assert values(wild) == values(CAMPAIGN)
    with pytest.raises(SystemExit, match="may teach"):
        calibrate.learn([row for row in CAMPAIGN if row["use"] not in TEACHING], before=BEFORE)


def test_small_rows_from_before_the_groups_are_shown_and_teach_nothing() -> None:
    assert values([*CAMPAIGN, OLD_SMALL]) == values(CAMPAIGN)
    lesson = calibrate.learn([*CAMPAIGN, OLD_SMALL], before=BEFORE)
    assert ("first-pass", "run before small pictures went in groups") in lesson.shown


def test_rows_with_a_forced_attention_teach_only_when_it_is_named() -> None:
    forced = [{**row, "attention": "flash-attn-4", "seconds_per_step": row["seconds_per_step"] / 2}
              for row in CAMPAIGN if row["case"] in ("uncapped", "frames345")]  # fmt: skip
    assert values([*CAMPAIGN, *forced]) == values(CAMPAIGN)
    fast = values([*CAMPAIGN, *forced], attention="flash-attn-4")
    assert fast["rates.attention"] > 1.2 * values(CAMPAIGN)["rates.attention"]


def test_rows_of_two_cards_are_refused() -> None:
    with pytest.raises(SystemExit, match="several cards"):
        calibrate.learn([*CAMPAIGN, {**CAMPAIGN[0], "device": "NVIDIA L40S"}], before=BEFORE)


def test_one_command_takes_several_files_and_writes_all_that_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = {**CAMPAIGN[3], "error": "MeasuredOverrun: out of memory"}
    failed = {key: value for key, value in failed.items() if key != "seconds_per_step"}
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text(json.dumps([failed, *CAMPAIGN[:3]]))
    second.write_text(json.dumps(CAMPAIGN[3:]))
    into, table, keep = (tmp_path / name for name in ("h200.toml", "table.md", "rows.json"))
    into.write_text((FOLDER / "h200.toml").read_text())
    calibrate.main([*map(str, (first, second)), "--into", str(into), "--table", str(table),
                    "--keep", str(keep)])  # fmt: skip
    assert "rows teach" in capsys.readouterr().out
    _, rows = read_rows(into)
    assert rows["memory.allocator_alone"].status == "measured"
    written = tomllib.loads(into.read_text())["memory"]["allocator_alone"]
    assert written["command"].startswith("lowpeak bench forecast --cases uncapped,vram8,")
    text = table.read_text()
    for case in CASES:
        assert (f"| {case.name} |" in text.split("## Rows that taught")[0]) == (
            case.use not in TEACHING or case.floor
        ), case.name
    assert "x 0." in text and "/somewhere" not in into.read_text() + text + keep.read_text()
    kept = json.loads(keep.read_text())
    assert [row["case"] for row in kept].count(failed["case"]) == 1
    assert all("seconds_per_step" in row for row in kept) and len(kept) == len(CASES)


def test_a_file_that_holds_no_rows_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "cut.json"
    bad.write_text("[{")
    with pytest.raises(SystemExit, match=r"cut\.json"):
        calibrate.main([str(bad)])


def test_rows_for_seconds_alone_teach_no_memory() -> None:
    slow = [{**row, "seconds_per_step": 1.2 * row["seconds_per_step"],
             "vram_peak_bytes": 2 * row["vram_peak_bytes"]} for row in CAMPAIGN]  # fmt: skip
    found = values([*CAMPAIGN, *map(calibrate.seconds_alone, slow)])
    alone = values(CAMPAIGN)
    changed = {name for name in alone if abs(found[name] / alone[name] - 1) > 1e-6}
    assert "rates.attention" in changed
    assert not {name for name in changed if name.startswith(("memory", "margin"))}
