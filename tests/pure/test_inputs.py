"""Option values that depend on each other: the codec, the ending of the video, the resumed run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lowpeak.engine.errors import RequestError
from lowpeak.engine.files import RunFiles
from lowpeak.engine.inputs import choose_codec, resumed_out
from lowpeak.engine.options import SUFFIXES
from lowpeak.engine.resume import read_request


@pytest.mark.parametrize(
    "kept",
    ["request.json", "latents.safetensors", "first.safetensors", "conditioning.safetensors",
     "unfinished.safetensors", "memory.svg", "mp4", "webm"],
)  # fmt: skip
def test_any_file_of_a_run_names_the_run(kept: str) -> None:
    files = RunFiles.of(Path(f"out/fox.v2.{kept}"))
    assert files.report == Path("out/fox.v2.request.json")
    assert resumed_out(None, Path(f"out/fox.v2.{kept}")) == Path("out/fox.v2.mp4")


def test_a_file_of_no_run_is_named_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(RequestError, match=r"notes\.txt is no file of an earlier run") as refused:
        read_request(tmp_path / "notes.txt")
    assert "notes.request.json beside it" in str(refused.value)
    with pytest.raises(RequestError, match=r"run.request.json is no file .*: give its report"):
        read_request(tmp_path / "run.request.json")


def test_the_codec_follows_the_ending_unless_it_is_named(tmp_path: Path) -> None:
    assert choose_codec("png", Path("x.mp4"), None) == "png"
    assert choose_codec(None, Path("x.webm"), None) == "webm"
    assert choose_codec(None, Path("x.MP4"), None) == "h264"
    assert choose_codec(None, Path("x.avi"), None) == "h264"  # refused by name afterwards
    report = tmp_path / "fox.request.json"
    report.write_text(json.dumps({"files": {"video": "fox.webm"}}))
    codec = choose_codec(None, None, report)
    assert codec == "webm", "a resumed run keeps the form of its video"
    assert resumed_out(None, report, SUFFIXES[codec]) == tmp_path / "fox.webm"
    report.write_text(json.dumps({"files": {"first_pass": "x"}, "codec": "webm"}))
    for named in (report, tmp_path / "fox.first.safetensors"):
        assert choose_codec(None, None, named) == "webm", "also where it has none yet"
    report.write_text("[]")
    assert choose_codec(None, None, report) == "h264"
