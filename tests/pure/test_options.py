"""What is refused before a run begins: a full disk, and where an interrupt is said to have come."""

from __future__ import annotations

import json
from collections import namedtuple
from pathlib import Path

import pytest

from lowpeak import cli
from lowpeak.engine import options
from lowpeak.engine.console import hint_to_resume
from lowpeak.engine.errors import DoesNotFit, SaveFailed
from lowpeak.engine.files import RunFiles, write_json
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.options import RunOptions, check_disk
from lowpeak.engine.request import Request

Usage = namedtuple("Usage", "total used free")


def test_a_disk_without_room_for_the_latents_is_refused_before_sampling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Request(Geometry(1344, 768, 243))
    asked = RunOptions(checkpoint=tmp_path, out=tmp_path / "v.mp4")
    latents = 4 * (24 * 72 * 48 * 84 + 64 * 405)
    for free, fits in ((2 * latents, False), (2 * latents + (1 << 20), True)):
        monkeypatch.setattr(options.shutil, "disk_usage", lambda path, f=free: Usage(0, 0, f))
        if fits:
            check_disk(request, asked)
            continue
        with pytest.raises(DoesNotFit) as refused:
            check_disk(request, asked)
        assert refused.value.short[0].axis == "disk" and refused.value.exit_code == 3


def test_an_interrupt_names_the_command_that_was_stopped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lowpeak.engine.model_files.list_files", interrupted)
    assert cli.run(["models", "list", str(tmp_path), "--json"]) == 130
    assert "`list`" in json.loads(capsys.readouterr().out)["message"]


def test_no_way_on_is_offered_where_nothing_was_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SaveFailed), hint_to_resume(tmp_path / "v.mp4"):
        raise SaveFailed(tmp_path / "v.mp4", "full", frames=0)
    assert capsys.readouterr().err == ""
    RunFiles(tmp_path / "v.mp4").report.write_text("{}")
    with pytest.raises(SaveFailed), hint_to_resume(tmp_path / "v.mp4"):
        raise SaveFailed(tmp_path / "v.mp4", "full", frames=0)
    assert capsys.readouterr().err == "", "a report alone is nothing to go on from"


def test_what_an_earlier_run_kept_is_not_offered_after_another_run_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "v.mp4"
    files = RunFiles(out)
    files.report.write_text("{}")
    files.latents.write_text("x")
    for resume, rewritten, offered in (
        (None, False, False),
        (tmp_path / "other.mp4", False, False),
        (files.report, False, True),
        (None, True, True),
    ):
        with pytest.raises(SaveFailed), hint_to_resume(out, resume):
            if rewritten:
                write_json(files.report, {})
            raise SaveFailed(out, "full", frames=0)
        assert ("--resume" in capsys.readouterr().err) is offered


def test_a_resumed_run_needs_no_room_for_what_it_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Request(Geometry(1344, 768, 243))
    latents = 4 * (24 * 72 * 48 * 84 + 64 * 405)
    files = RunFiles(tmp_path / "v.mp4")
    asked = RunOptions(checkpoint=tmp_path, out=files.video, resume=files.report)
    for kept, passes in ((None, 2), (files.first_pass, 1), (files.latents, 0)):
        if kept is not None:
            kept.write_text("x")
        for free in (passes * latents + (1 << 20) - 1, passes * latents + (1 << 20)):
            monkeypatch.setattr(options.shutil, "disk_usage", lambda path, f=free: Usage(0, 0, f))
            if free % 2:
                with pytest.raises(DoesNotFit):
                    check_disk(request, asked)
            else:
                check_disk(request, asked)
