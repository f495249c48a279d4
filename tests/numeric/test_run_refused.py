"""Requests that cannot be run are refused before anything is sampled."""

from __future__ import annotations

import errno
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from run_parts import SMALL, options

from lowpeak.engine import media_encode, run
from lowpeak.engine.errors import CheckpointError, KernelUnavailable, RequestError, SaveFailed
from lowpeak.engine.events import QuietHost
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.media_encode import FORMATS
from lowpeak.engine.run import RunOptions, run_request
from lowpeak.engine.toy import write_toy


def test_an_encoder_that_is_not_here_is_refused_before_anything_is_sampled(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMATS, "h264_nvenc", replace(FORMATS["h264"], encoders=("no_such",)))
    monkeypatch.setitem(media_encode._OPTIONS, "no_such", {})
    with pytest.raises(KernelUnavailable, match="no_such"):
        run_request(SMALL, options(checkpoint, tmp_path / "v.mp4", codec="h264_nvenc"), QuietHost())
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error_that_names_the_file(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(SaveFailed, match=r"v\.first\.safetensors.*No space"):
        run_request(SMALL, options(checkpoint, tmp_path / "v.mp4"), QuietHost())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_request_error(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError, match="cannot be made"):
        run_request(SMALL, options(checkpoint, tmp_path / "file" / "v.mp4"), QuietHost())


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write to")
def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_runs(
    checkpoint: Path,
) -> None:
    with pytest.raises(RequestError, match="/proc cannot be written to") as refused:
        run_request(SMALL, options(checkpoint, Path("/proc/v.mp4")), QuietHost())
    assert refused.value.field == "out"


def test_half_a_checkpoint_lists_what_is_missing(checkpoint: Path, tmp_path: Path) -> None:
    half = tmp_path / "half"
    shutil.copytree(checkpoint, half)
    for gone in ("root.safetensors", "blocks/01.safetensors", "manifest.json"):
        (half / "rowwise" / "cache" / gone).unlink()
    with pytest.raises(CheckpointError) as caught:
        run_request(SMALL, options(half, tmp_path / "v.mp4"), QuietHost())
    for gone in ("root.safetensors", "blocks/01.safetensors", "manifest.json"):
        assert gone in str(caught.value)
    assert not list(tmp_path.glob("v*"))


@pytest.mark.parametrize("part", ["text_encoder", "upscaler.safetensors"])
def test_a_missing_part_is_named_before_anything_is_sampled(
    checkpoint: Path, tmp_path: Path, part: str
) -> None:
    half = tmp_path / "half"
    shutil.copytree(checkpoint, half)
    target = half / part
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    big = replace(SMALL, geometry=Geometry(512, 512, 22))
    host = QuietHost()
    with pytest.raises(CheckpointError, match=part):
        run_request(big, options(half, tmp_path / "v.mp4"), host)
    assert not [event for event in host.events if event.phase.startswith("sample")]


@pytest.mark.parametrize(
    ("more", "match"),
    [({"stop_after": "decode"}, "stop-after"), ({"device": "tpu"}, "device")],
)
def test_impossible_options_are_request_errors(
    checkpoint: Path, tmp_path: Path, more: dict[str, str], match: str
) -> None:
    with pytest.raises(RequestError, match=match):
        given = {"checkpoint": checkpoint, "out": tmp_path / "v.mp4", "device": "cpu", **more}
        run_request(SMALL, RunOptions(**given), QuietHost())
    with pytest.raises(RequestError, match=r"\.mp4"):
        RunOptions(checkpoint=checkpoint, out=tmp_path / "v.avi")


def test_references_are_refused_by_name(checkpoint: Path, tmp_path: Path) -> None:
    request = replace(SMALL, references=("a.png",))
    with pytest.raises(RequestError, match="reference transformer"):
        run_request(request, options(checkpoint, tmp_path / "v.mp4"), QuietHost())


def test_a_schedule_without_tables_is_refused_before_anything_is_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the refusal names what has tables and what would make others, in a few lines."""
    folder = tmp_path / "toy"
    write_toy(folder, size="tiny", weight_format="edge-int8", seed=3)
    for projections in folder.rglob("adaln"):
        shutil.rmtree(projections)
    monkeypatch.setattr(run, "encode_prompt", lambda *_, **__: pytest.fail("encoded"))
    out = tmp_path / "v.mp4"
    single = replace(SMALL, base_steps=9, two_pass=False, refine_steps=None)
    with pytest.raises(CheckpointError) as caught:
        run_request(single, options(folder, out), QuietHost())
    said = str(caught.value)
    assert "expected tables for 9 steps" in said and "8, 10, 12, 16, 20 steps" in said, said
    assert "adaln/NN.safetensors" in said and "--keep-projections" in said
    assert "models pull" not in said and "adaln-tables-v2" not in said and len(said) < 600
    second = replace(SMALL, base_steps=8, refine_steps=8)
    with pytest.raises(RequestError, match="fewer than the 8 base steps"):
        run_request(second, options(folder, out), QuietHost())
    assert not list(tmp_path.glob("v.*"))
