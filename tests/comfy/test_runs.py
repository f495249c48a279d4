"""The run book."""

from __future__ import annotations

import json
from pathlib import Path

from lowpeak.engine.events import Event
from lowpeak.nodes.runs import MAX_CURVE_POINTS, MAX_NOTICES, MAX_RUNS, RunBook


def test_a_run_survives_a_restart(tmp_path: Path) -> None:
    book = RunBook(lambda: tmp_path)
    name = book.begin("abc-1")
    book.take(name, Event("forecast", "decode", seconds=2.0, vram_peak_bytes=5))
    book.take(name, Event("measured", "decode", seconds=3.0, vram_peak_bytes=4))
    book.end(name, "done", report={"latents_sha256": "x"})
    again = RunBook(lambda: tmp_path)
    assert again.get("abc-1") == book.get("abc-1")
    [row] = again.summaries()
    assert (row["forecast_seconds"], row["measured_seconds"]) == (2.0, 3.0)
    assert (row["forecast_vram_peak_bytes"], row["measured_ram_peak_bytes"]) == (5, None)


def test_the_nodes_of_a_prompt_share_a_run(tmp_path: Path) -> None:
    book = RunBook(lambda: tmp_path)
    for phase in ("encode", "decode"):
        name = book.begin("abc")
        assert book.active == "abc"
        book.take(name, Event("measured", phase, seconds=1.0))
        book.end(name, "done", report={phase: True})
        assert book.active is None
    run = book.get("abc")
    assert run and set(run["phases"]) == {"encode", "decode"} == set(run["report"])


def test_reports_of_several_nodes_are_joined() -> None:
    book = RunBook()
    name = book.begin("abc")
    book.end(name, "done", report={"phases": [1, 2], "notices": ["n"], "request": {"w": 1}})
    book.end(name, "done", report={"phases": [3], "notices": ["n", "m"], "audio_health": {}})
    run = book.get(name)
    assert run and run["report"] == {
        "phases": [1, 2, 3], "notices": ["n", "m"], "request": {"w": 1}, "audio_health": {},
    }  # fmt: skip


def test_attempts_of_all_nodes_are_kept_also_where_two_went_alike() -> None:
    book, done = RunBook(), {"stage": "decode", "outcome": "done"}
    name = book.begin("abc")
    for attempts in ([{"stage": "sample", "outcome": "done"}], [done], [done]):
        book.end(name, "done", report={"attempts": attempts})
    run = book.get(name)
    assert run and [item["stage"] for item in run["report"]["attempts"]] == [
        "sample", "decode", "decode",
    ]  # fmt: skip


def test_what_a_plan_had_to_say_is_among_the_run_s_notices() -> None:
    book = RunBook()
    name = book.begin("abc")
    for _ in range(2):
        book.describe(name, request={}, plan={"notices": ["history was damaged"]})
    run = book.get(name)
    assert run and run["notices"] == ["history was damaged"]


def test_an_id_that_could_be_a_path_never_names_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret.run.json").write_text(json.dumps({"a": 1}))
    book = RunBook(lambda: tmp_path / "runs")
    for bad in ("../secret", "..", "a/b", "", "x" * 65, "a\\b", "a\0b"):
        assert book.get(bad) is None
        made = book.begin(bad)
        assert made != bad and made.isalnum()
        book.end(made, "done")
    assert {path.parent for path in tmp_path.rglob("*.json")} == {tmp_path, tmp_path / "runs"}


def test_the_book_stays_small(tmp_path: Path) -> None:
    book = RunBook(lambda: tmp_path)
    for number in range(MAX_RUNS + 5):
        book.end(book.begin(f"r{number}"), "done")
    assert len(book.summaries()) == MAX_RUNS == len(list(tmp_path.iterdir()))
    name = book.begin("long")
    for number in range(3 * MAX_CURVE_POINTS):
        book.take(name, Event("progress", "decode", step=number, steps=9999, vram_bytes=number))
        book.take(name, Event("notice", "", message=f"n{number}"))
    run = book.get(name)
    assert run and len(run["curve"]) <= MAX_CURVE_POINTS and len(run["notices"]) == MAX_NOTICES
    assert run["sequence"] == 6 * MAX_CURVE_POINTS


def test_damaged_files_are_ignored_and_a_full_disk_is_survived(tmp_path: Path) -> None:
    (tmp_path / "bad.run.json").write_text("{")
    (tmp_path / "odd.run.json").write_text('{"surprise": 1}')
    (tmp_path / "other.run.json").write_text('{"run_id": "x", "started_unix_seconds": 1.0}')
    assert RunBook(lambda: tmp_path).summaries() == []
    blocked = tmp_path / "file"
    blocked.write_text("")
    book = RunBook(lambda: blocked)
    book.end(book.begin("a"), "done")
    assert book.get("a")


def test_a_run_cut_short_by_a_crash_is_not_still_running(tmp_path: Path) -> None:
    (tmp_path / "a.run.json").write_text('{"run_id": "a", "started_unix_seconds": 1.0}')
    run = RunBook(lambda: tmp_path).get("a")
    assert run and run["status"] == "failed"
