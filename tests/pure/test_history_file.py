"""The history's file: damaged, locked, newer, half made, opened by several processes at once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from lowpeak.engine.planner.attempts import Attempt, PhaseRecord
from lowpeak.engine.planner.history import History

FLOOR = 250
HERE = "linux/card/32"


def attempt(overrun_bytes: int, *, started: float = 0.0) -> Attempt:
    """A run whose phase needed that much more than was forecast."""
    phase = PhaseRecord("sample_high", 8, 1000, 1000 + overrun_bytes, 2000, 2000, 90.0, 90.0)
    return Attempt(HERE, "1344x768x243", started, "done", (phase,))


def test_a_corrupt_file_is_set_aside_with_a_notice(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 40)
    history = History(path)
    assert "damaged" in history.notices[0]
    assert (tmp_path / "history.sqlite3.damaged-1").read_bytes().startswith(b"not a database")
    history.record(attempt(300))
    assert History(path).margin(HERE, "vram", FLOOR)[0] == 300
    path.write_bytes(b"again" * 400)
    History(path)
    assert (tmp_path / "history.sqlite3.damaged-2").exists()


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE future (x)")
    database.execute("PRAGMA user_version=7")
    database.commit()
    database.close()
    before = path.read_bytes()
    history = History(path)
    assert "version 7" in history.notices[0]
    history.record(attempt(300))
    assert history.attempts() == []
    assert history.margin(HERE, "vram", FLOOR)[0] == FLOOR
    assert path.read_bytes() == before


def test_a_locked_file_is_healthy_and_left_out_this_once(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    History(path).record(attempt(300))
    open_one = History(path, wait_seconds=0.05)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        second = History(path, wait_seconds=0.05)
        open_one.record(attempt(400, started=1))
        for history in (open_one, second):
            (notice,) = history.notices
            assert "locked" in notice and "damaged" not in notice
            assert history.margin(HERE, "vram", FLOOR)[0] == FLOOR
    assert len(History(path).attempts()) == 1
    assert not list(tmp_path.glob("*.damaged-*"))


def test_a_folder_that_cannot_be_made_is_a_notice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    history = History(tmp_path / "file" / "deep" / "history.sqlite3")
    history.record(attempt(300))
    (notice,) = history.notices
    assert "cannot be used" in notice and str(tmp_path) not in notice
    assert history.attempts() == []


def test_a_file_whose_making_was_cut_short_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    History(path).record(attempt(300))
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version=0")
    again = History(path)
    assert not again.notices and again.margin(HERE, "vram", FLOOR)[0] == 300


OPENS_AT_ONCE = """
import sys, time
from pathlib import Path
from lowpeak.engine.planner.attempts import Attempt
from lowpeak.engine.planner.history import History
folder, me, count, rounds = Path(sys.argv[1]), *map(int, sys.argv[2:])
end = time.monotonic() + 60
for turn in range(rounds):
    (folder / f"{turn}-{me}.here").touch()
    while len(list(folder.glob(f"{turn}-*.here"))) < count:
        time.sleep(0.002)  # no busy wait: on few cores it would keep the others out
        if time.monotonic() > end:
            sys.exit("the others are not here")
    history = History(folder / f"{turn}.sqlite3", wait_seconds=60)
    history.record(Attempt("here", "shape", float(me), "done", ()))
    if history.notices:
        sys.exit("; ".join(history.notices))
"""


@pytest.mark.parametrize("before", [b"", b"no database at all" * 99], ids=["fresh", "damaged"])
def test_processes_that_open_a_file_at_once_all_use_it(tmp_path: Path, before: bytes) -> None:
    count, rounds = 4, 12
    for turn in range(rounds if before else 0):
        (tmp_path / f"{turn}.sqlite3").write_bytes(before)
    script = OPENS_AT_ONCE if not before else OPENS_AT_ONCE.replace(
        "if history.notices:", "if any('was damaged' not in text for text in history.notices):"
    )  # fmt: skip
    found = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path), str(me), str(count), str(rounds)],
            stderr=subprocess.PIPE, text=True,
        )
        for me in range(count)
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=300)[1] for process in found]
    finally:
        for process in found:
            process.kill()
    assert not any(process.returncode for process in found), said
    for turn in range(rounds):
        assert len(History(tmp_path / f"{turn}.sqlite3").attempts()) == count
    assert len(list(tmp_path.glob("*.damaged-*"))) == (rounds if before else 0)


def test_two_writers_share_the_file(tmp_path: Path) -> None:
    one, two = History(tmp_path / "h.sqlite3"), History(tmp_path / "h.sqlite3")
    one.record(attempt(1))
    two.record(attempt(2, started=1))
    assert len(one.attempts()) == 2
