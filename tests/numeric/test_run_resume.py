"""What a run leaves that was stopped, cancelled or failed, and how the next goes on from it."""

from __future__ import annotations

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from run_parts import SMALL, CancelledAt, options

from lowpeak import cli
from lowpeak.engine import stages
from lowpeak.engine.console import hint_to_resume
from lowpeak.engine.errors import (
    Cancelled,
    CheckpointError,
    MeasuredOverrun,
    RequestError,
    SaveFailed,
)
from lowpeak.engine.events import Event, QuietHost
from lowpeak.engine.files import RunFiles
from lowpeak.engine.resume import read_request
from lowpeak.engine.run import run_request


@pytest.mark.parametrize("stop", ["encode", "first"])
def test_stopping_early_and_resuming_gives_the_same_latents(
    checkpoint: Path, sampled: Path, tmp_path: Path, stop: str
) -> None:
    out = tmp_path / "v.mp4"
    report = run_request(SMALL, options(checkpoint, out, stop_after=stop), QuietHost())
    kept = {"conditioning"} | ({"first_pass"} if stop == "first" else set())
    assert set(report.files) == kept and report.latents_sha256 is None
    request = read_request(RunFiles(out).report)
    assert request.prompt == "", "the report holds no prompt"
    host = QuietHost()
    resumed = run_request(
        request, options(checkpoint, out, stop_after="sample", resume=RunFiles(out).report), host
    )
    assert (
        resumed.latents_sha256 == json.loads(RunFiles(sampled).report.read_text())["latents_sha256"]
    )
    phases = [item["phase"] for item in resumed.phases]
    assert phases == (["sample_low", "sample_high"] if stop == "encode" else ["sample_high"])
    assert not RunFiles(out).conditioning.exists(), "the encoded prompt stays only while needed"


def test_another_refine_starts_from_the_first_pass(
    checkpoint: Path, sampled: Path, tmp_path: Path
) -> None:
    for file in sampled.parent.iterdir():
        shutil.copy(file, tmp_path)
    named = tmp_path / sampled.name
    base = replace(read_request(named), base_steps=4)
    with pytest.raises(RequestError, match="nothing of this run"):
        run_request(base, options(checkpoint, named, resume=named), QuietHost())
    request = read_request(named, prompt=SMALL.prompt, refine_steps=3)
    found = run_request(
        request, options(checkpoint, named, stop_after="sample", resume=named), QuietHost()
    )
    assert [item["phase"] for item in found.phases] == ["encode", "sample_high"]
    assert found.phases[1]["measured"]["steps"] == 3


def test_a_cancelled_first_pass_leaves_nothing(checkpoint: Path, tmp_path: Path) -> None:
    host = CancelledAt("sample_low", 1)
    with pytest.raises(Cancelled) as caught:
        run_request(SMALL, options(checkpoint, tmp_path / "v.mp4"), host)
    assert caught.value.exit_code == 130 and list(tmp_path.iterdir()) == []


def test_a_cancelled_second_pass_keeps_the_first_and_goes_on_from_it(
    checkpoint: Path, sampled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "v.mp4"
    with pytest.raises(Cancelled, match=r"Kept: .*v\.first\.safetensors"), hint_to_resume(out):
        run_request(SMALL, options(checkpoint, out), CancelledAt("sample_high", 0))
    assert f"generate --resume {RunFiles(out).report}" in capsys.readouterr().err
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"v.first.safetensors", "v.conditioning.safetensors", "v.request.json"}
    report = json.loads(RunFiles(out).report.read_text())
    assert report["attempts"][0]["outcome"] == "Cancelled"
    resumed = run_request(
        read_request(out), options(checkpoint, out, stop_after="sample", resume=out), QuietHost()
    )
    expected = json.loads(RunFiles(sampled).report.read_text())["latents_sha256"]
    assert resumed.latents_sha256 == expected


@pytest.mark.parametrize("short", ["memory", "weights"])
def test_a_failed_second_pass_is_resumed_from_the_first(
    checkpoint: Path, sampled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: str
) -> None:
    """Out of memory, or weights that vanish, in the middle of the second pass; then --resume."""
    out, calls = tmp_path / "v.mp4", []
    real = stages.euler

    def failing(*given: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise torch.OutOfMemoryError if short == "memory" else CheckpointError("gone")
        return real(*given, **named)

    kind = MeasuredOverrun if short == "memory" else CheckpointError
    with monkeypatch.context() as patch, pytest.raises(kind):
        patch.setattr(stages, "euler", failing)
        run_request(SMALL, options(checkpoint, out), QuietHost())
    report = json.loads(RunFiles(out).report.read_text())
    assert report["files"]["first_pass"] == "v.first.safetensors"
    assert report["attempts"][0]["outcome"] == kind.__name__
    steps: list[int] = []
    monkeypatch.setattr(stages, "euler", lambda *g, **n: (steps.append(1), real(*g, **n))[1])
    arguments = ["--checkpoint", str(checkpoint), "--resume", str(RunFiles(out).report),
                 "--device", "cpu", "--stop-after", "sample", "--in-process"]  # fmt: skip
    assert cli.run(["generate", *arguments]) == 0 and len(steps) == 1
    expected = json.loads(RunFiles(sampled).report.read_text())["latents_sha256"]
    assert json.loads(RunFiles(out).report.read_text())["latents_sha256"] == expected
    assert "first_pass" in json.loads(RunFiles(out).report.read_text())["files"]


def test_what_another_run_left_under_the_same_name_is_not_used(
    checkpoint: Path, sampled: Path, tmp_path: Path
) -> None:
    for file in sampled.parent.iterdir():
        shutil.copy(file, tmp_path)
    out = tmp_path / sampled.name
    first = json.loads(RunFiles(sampled).report.read_text())
    other = replace(SMALL, prompt="a blue whale")
    run_request(other, options(checkpoint, out, stop_after="encode"), QuietHost())
    assert RunFiles(out).latents.is_file(), "the older latents are still there"
    resumed = run_request(
        read_request(out), options(checkpoint, out, stop_after="sample", resume=out), QuietHost()
    )
    assert [item["phase"] for item in resumed.phases] == ["sample_low", "sample_high"]
    assert resumed.latents_sha256 != first["latents_sha256"]
    assert resumed.run_id != first["run_id"]


def test_a_prompt_that_was_not_kept_is_asked_for(
    checkpoint: Path, sampled: Path, tmp_path: Path
) -> None:
    for file in sampled.parent.iterdir():
        shutil.copy(file, tmp_path)
    named = tmp_path / sampled.name
    request = read_request(named, refine_steps=3)
    with pytest.raises(RequestError, match="--prompt"):
        given = options(checkpoint, named, resume=named, prompt_given=False)
        run_request(request, given, QuietHost())
    report = json.loads(RunFiles(named).report.read_text())
    report["request"]["first_frame"] = True
    RunFiles(named).report.write_text(json.dumps(report))
    with pytest.raises(RequestError, match="--first-frame"):
        run_request(request, options(checkpoint, named, resume=named), QuietHost())


def test_a_damaged_file_is_not_resumed_from(
    checkpoint: Path, sampled: Path, tmp_path: Path
) -> None:
    for file in sampled.parent.iterdir():
        shutil.copy(file, tmp_path)
    named = tmp_path / sampled.name
    latents = RunFiles(named).latents
    data = bytearray(latents.read_bytes())
    data[-100] ^= 1
    latents.write_bytes(data)
    with pytest.raises(RequestError, match="damaged"):
        run_request(read_request(named), options(checkpoint, named, resume=named), QuietHost())
    latents.write_bytes(data[:5000])
    with pytest.raises(RequestError, match="damaged"):
        run_request(read_request(named), options(checkpoint, named, resume=named), QuietHost())
    with pytest.raises(RequestError, match="no file of an earlier run"):
        read_request(tmp_path / "other.request.json")
    RunFiles(named).report.write_text("{}")
    with pytest.raises(RequestError, match="no report"):
        read_request(named)


def test_a_disk_that_fills_up_in_the_second_pass_takes_nothing_away(
    checkpoint: Path, sampled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a report fits any more; then there is room again, and --resume."""
    out = tmp_path / "v.mp4"

    def full(file: Path, *_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    class FullIn(QuietHost):
        """Nothing can be written once the second pass has begun."""

        def emit(self, event: Event) -> None:
            if event.phase == "sample_high":
                patch.setattr(Path, "write_bytes", full)
                patch.setattr(Path, "write_text", full)

    with monkeypatch.context() as patch, pytest.raises(SaveFailed, match=r"v\.latents") as caught:
        run_request(SMALL, options(checkpoint, out), FullIn())
    assert "Nothing" not in str(caught.value), "the first pass was kept"
    assert json.loads(RunFiles(out).report.read_text())["files"]["first_pass"]
    resumed = run_request(
        read_request(out), options(checkpoint, out, stop_after="sample", resume=out), QuietHost()
    )
    expected = json.loads(RunFiles(sampled).report.read_text())["latents_sha256"]
    assert resumed.latents_sha256 == expected


ASKED = ["--width", "256", "--height", "256", "--frames", "22", "--base-steps", "2",
         "--refine-steps", "1", "--seed", "3", "--keep-prompt"]  # fmt: skip


@pytest.fixture(scope="module")
def stopped(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a light run of ASKED that stopped after its first pass."""
    out = tmp_path_factory.mktemp("stopped") / "v.mp4"
    given = ["--prompt", "a fox", "--stop-after", "first", "--out", str(out)]
    assert cli.run(["generate", *command_on(checkpoint), *ASKED, *given]) == 0
    return RunFiles(out).report


def command_on(checkpoint: Path) -> list[str]:
    return ["--checkpoint", str(checkpoint), "--device", "cpu", "--in-process"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--width 640", "--width 256, now asked is --width 640"),
        ("--seed 99 --single-pass", "--two-pass, --seed 3, now asked is --single-pass, --seed 99"),
        ("--seed 0", "--seed 3, now asked is --seed 0"),  # the default, but written
        ("--quality max", "--quality light, now asked is --quality max"),
        ("--seconds 2", "--seconds 0.916667, now asked is --seconds 2"),
        ("--frames 39", "--frames 22, now asked is --frames 39"),
        ("--base-steps 8", "--base-steps 2, now asked is --base-steps 8"),
        ("--prompt whale", "another prompt"),
        ("--first-frame {file}", "no first frame"),
        ("--reference {file} --reference {file}", "has 0 references, now given are 2"),
    ],
)
def test_an_option_that_would_make_another_first_pass_is_refused(
    checkpoint: Path, stopped: Path, capsys: pytest.CaptureFixture[str], given: str, said: str
) -> None:
    before = stopped.read_bytes()
    more = ["--resume", str(stopped), *given.format(file=stopped).split()]
    assert cli.run(["generate", *command_on(checkpoint), *more]) == 2
    told = capsys.readouterr().err
    assert said in told and "start anew without --resume" in told
    assert stopped.read_bytes() == before


def test_options_that_say_what_was_saved_or_may_change_are_taken(
    checkpoint: Path, stopped: Path, tmp_path: Path
) -> None:
    same = ["--width", "260", "--height", "256", "--seconds", "0.9", "--quality", "light",
            "--two-pass", "--base-steps", "2", "--seed", "3", "--prompt", "a fox",
            "--ram-gib", "64"]  # fmt: skip
    more = [*command_on(checkpoint), "--refine-steps", "3", "--stop-after", "sample"]
    out = tmp_path / "other.mp4"
    assert cli.run(["generate", "--resume", str(stopped), "--out", str(out), *same, *more]) == 0
    phases = json.loads(RunFiles(out).report.read_text())["phases"]
    assert [(item["phase"], item["measured"]["steps"]) for item in phases] == [("sample_high", 3)]


@pytest.mark.parametrize(("codec", "name"), [("webm", "v.webm"), ("png", "v")])
def test_a_run_that_stopped_before_its_video_is_resumed_in_the_form_it_was_asked_in(
    checkpoint: Path, tmp_path: Path, codec: str, name: str
) -> None:
    out = tmp_path / name
    run_request(SMALL, options(checkpoint, out, stop_after="encode", codec=codec), QuietHost())
    arguments = ["--checkpoint", str(checkpoint), "--resume", str(RunFiles(out).report),
                 "--device", "cpu", "--in-process"]  # fmt: skip
    assert cli.run(["generate", *arguments]) == 0
    assert out.exists() and not out.with_suffix(".mp4").exists()
