"""The console as a host: what it says where, and what Ctrl-C does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lowpeak import cli
from lowpeak.engine.console import ConsoleHost, console_host, console_progress, measured_line
from lowpeak.engine.events import Event, Host
from lowpeak.engine.units import GIB

MEASURED = Event("measured", "decode", seconds=3.2, vram_peak_bytes=2 * GIB, ram_peak_bytes=GIB)


def test_it_is_a_host_and_says_what_a_phase_took(capsys: pytest.CaptureFixture[str]) -> None:
    host = ConsoleHost()
    assert isinstance(host, Host)
    host.emit(Event("forecast", "decode"))
    host.emit(MEASURED)
    out, err = capsys.readouterr()
    assert out == "" and "3.20 s" in err and "VRAM 2.00 GiB" in err and err.isascii()


def test_a_phase_without_a_card_says_no_vram() -> None:
    assert "VRAM" not in measured_line(Event("measured", "encode", seconds=1.0))


def test_quiet_keeps_notices_and_drops_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    host = ConsoleHost(quiet=True)
    host.emit(MEASURED)
    host.emit(Event("notice", "decode", "sound: clipped"))
    assert capsys.readouterr() == ("", "sound: clipped\n")


def test_no_bar_is_drawn_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with console_progress("convert") as progress:
        for done in range(5):
            progress(done, 5, f"block {done}")
    assert capsys.readouterr() == ("", "")


def test_a_bar_appears_only_after_two_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("lowpeak.engine.console.time.monotonic", lambda: now[0])
    host = ConsoleHost()
    host.emit(Event("progress", "sample_high", step=1, steps=8))
    now[0] += 1.9
    host.emit(Event("progress", "sample_high", step=2, steps=8))
    assert capsys.readouterr().err == ""
    now[0] += 0.2
    host.emit(Event("progress", "sample_high", step=3, steps=8))
    host.close()
    assert "sample_high" in capsys.readouterr().err


def test_the_first_interrupt_asks_and_the_second_breaks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), console_host() as host:
        os.kill(os.getpid(), signal.SIGINT)
        assert host.is_cancelled()
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert "Ctrl-C again" in capsys.readouterr().err


def test_work_of_unknown_length_has_a_bar_and_a_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("lowpeak.engine.console.time.monotonic", lambda: now[0])
    with console_progress("verify") as progress:
        progress(1, 0, "models")
        now[0] += 2.1
        progress(2, 0, "caf\u00e9-" + "x" * 40)
    shown = capsys.readouterr().err
    assert "verify ..." in shown and "xxx" in shown and "caf\u00e9" not in shown


def test_a_preview_that_cannot_be_written_is_said_once_and_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "now.jpg"
    host = ConsoleHost(preview=target)
    host.emit(Event("preview", "sample_high", picture="AAAA"))
    assert target.read_bytes() == bytes(3)
    target.unlink()
    target.mkdir()  # in its place since
    for _ in range(2):
        host.emit(Event("preview", "sample_high", picture="AAAA"))
    assert capsys.readouterr().err.count("no more previews") == 1
    assert [item.name for item in tmp_path.iterdir()] == ["now.jpg"]


def test_where_a_preview_cannot_be_is_said_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("folder", "v.mp4", "file/now.jpg"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "file").write_text("")
        code = cli.run(["generate", "--json", "--prompt", "", "--checkpoint", str(tmp_path),
                        "--out", str(tmp_path / "v.mp4"), "--preview", str(tmp_path / name),
                       ])  # fmt: skip
        assert code == 2 and json.loads(capsys.readouterr().out)["field"] == "preview"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments", [["--vram-gib", "8"], ["--width", "1", "--json"], ["--no", "--json"]]
)
def test_an_answer_that_nobody_takes_is_no_traceback(arguments: list[str]) -> None:
    program = "from lowpeak.cli import main; main()"
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", program, "plan", "--ram-gib", "16", *arguments],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert "Traceback" not in ended.stderr and "Exception" not in ended.stderr
    assert ended.returncode == (1 if "8" in arguments else 2)
