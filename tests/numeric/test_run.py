"""A request from prompt to files on the miniature checkpoint: stages, resume, stops, cancel."""

from __future__ import annotations

import errno
import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from lowpeak import cli
from lowpeak.engine import media_encode, stages
from lowpeak.engine.console import hint_to_resume
from lowpeak.engine.errors import (
    Cancelled,
    CheckpointError,
    KernelUnavailable,
    LowpeakError,
    MeasuredOverrun,
    RequestError,
    SaveFailed,
)
from lowpeak.engine.events import Event, QuietHost
from lowpeak.engine.files import RunFiles, load_latents
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.launch import generate
from lowpeak.engine.media import probe, read_video
from lowpeak.engine.media_encode import FORMATS
from lowpeak.engine.request import LoraChoice, Request
from lowpeak.engine.resume import read_request
from lowpeak.engine.run import RunOptions, run_request
from lowpeak.engine.toy import write_toy

SMALL = Request(
    Geometry(256, 256, 22), prompt="a red fox", seed=11, base_steps=2, refine_steps=1,
    two_pass=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    return folder


def options(checkpoint: Path, out: Path, **more: Any) -> RunOptions:
    return RunOptions(checkpoint=checkpoint, out=out, device="cpu", **more)


@pytest.fixture(scope="module")
def sampled(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that stopped after sampling; its video's (future) path."""
    out = tmp_path_factory.mktemp("sampled") / "v.mp4"
    run_request(SMALL, options(checkpoint, out, stop_after="sample"), QuietHost())
    return out


def test_latents_have_the_shapes_of_the_geometry(sampled: Path) -> None:
    latents, about = load_latents(RunFiles(sampled).latents)
    assert latents.video.shape == (1, 24, 7, 16, 16) and latents.video.dtype == torch.float32
    assert latents.audio.shape == (1, 32, 2, 37) and latents.audio.dtype == torch.float32
    assert bool(latents.video.isfinite().all()) and bool(latents.audio.isfinite().all())
    report = json.loads(RunFiles(sampled).report.read_text())
    assert report["latents_sha256"] == about["sha256"] == latents.sha256


def test_the_report_has_forecast_beside_measurement_and_no_prompt(sampled: Path) -> None:
    text = RunFiles(sampled).report.read_text()
    report = json.loads(text)
    assert "red fox" not in text and text.isascii()
    assert [item["phase"] for item in report["phases"]] == ["encode", "sample_low", "sample_high"]
    for item in report["phases"]:
        assert item["forecast"]["ram_peak_bytes"] > 0 and item["measured"]["ram_peak_bytes"] > 0
        assert item["measured"]["seconds"] > 0 and item["forecast"]["phase"] == item["phase"]
    low, high = report["phases"][1]["measured"], report["phases"][2]["measured"]
    assert (low["steps"], high["steps"]) == (2, 1) and len(low["step_seconds"]) == 2
    assert report["attempts"] == [{"outcome": "done"}]
    assert {"torch", "lowpeak", "python"} <= report["versions"].keys()
    assert len(report["checkpoint"]["header_sha256"]) == 4
    assert report["files"] == {
        "latents": "v.latents.safetensors",
        "first_pass": "v.first.safetensors",
    }


def test_the_same_request_gives_the_same_latents_and_another_seed_others(
    checkpoint: Path, sampled: Path, tmp_path: Path
) -> None:
    first = json.loads(RunFiles(sampled).report.read_text())["latents_sha256"]
    other = run_request(
        replace(SMALL, seed=12), options(checkpoint, tmp_path / "b.mp4", stop_after="sample"),
        QuietHost(),
    )  # fmt: skip
    words = run_request(
        replace(SMALL, prompt=""), options(checkpoint, tmp_path / "c.mp4", stop_after="sample"),
        QuietHost(),
    )  # fmt: skip
    again = run_request(  # after others in one process
        SMALL, options(checkpoint, tmp_path / "a.mp4", stop_after="sample"), QuietHost()
    )
    assert again.latents_sha256 == first
    assert len({first, other.latents_sha256, words.latents_sha256}) == 3


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


class CancelledAt(QuietHost):
    """Asks to stop once `phase` has reported `step` steps."""

    def __init__(self, phase: str, step: int | None) -> None:
        super().__init__()
        self.phase, self.step, self.stop = phase, step, False

    def is_cancelled(self) -> bool:
        return self.stop

    def emit(self, event: Event) -> None:
        super().emit(event)
        if event.phase == self.phase and event.step == self.step:
            self.stop = True


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


@pytest.mark.parametrize(("codec", "name"), [("webm", "v.webm"), ("png", "pictures")])
def test_other_formats_hold_the_same_frames(
    checkpoint: Path, sampled: Path, tmp_path: Path, codec: str, name: str
) -> None:
    for file in (RunFiles(sampled).latents, RunFiles(sampled).report):
        shutil.copy(file, tmp_path / file.name.replace("v.", f"{Path(name).stem}.", 1))
    out = tmp_path / name
    settings = options(checkpoint, out, resume=out, codec=codec)
    report = run_request(read_request(out), settings, QuietHost())
    assert report.files["video"] == name
    if codec == "png":
        pictures = sorted(out.glob("*.png"))
        with Image.open(pictures[0]) as first:
            assert len(pictures) == 22 and first.size == (256, 256)
        assert len(list(out.glob("*.wav"))) == 1
    else:
        found = probe(out)
        assert [item["kind"] for item in found["streams"]] == ["video", "audio"]
        assert found["streams"][0]["codec"] in ("av1", "vp9") and "webm" in found["format"]
        assert read_video(out).shape == (22, 256, 256, 3)
    with pytest.raises(RequestError, match=r"ending|end in"):
        options(checkpoint, tmp_path / "v.mp4", codec=codec)


def test_an_encoder_that_is_not_here_is_refused_before_anything_is_sampled(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMATS, "h264_nvenc", replace(FORMATS["h264"], encoders=("no_such",)))
    monkeypatch.setitem(media_encode._OPTIONS, "no_such", {})
    with pytest.raises(KernelUnavailable, match="no_such"):
        run_request(SMALL, options(checkpoint, tmp_path / "v.mp4", codec="h264_nvenc"), QuietHost())
    assert list(tmp_path.iterdir()) == []


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


def write_lora(file: Path, *, target: str, rows: int, columns: int) -> None:
    generator = torch.Generator().manual_seed(1)
    save_file(
        {
            f"transformer.{target}.lora_A.weight": torch.randn(4, columns, generator=generator),
            f"transformer.{target}.lora_B.weight": torch.randn(rows, 4, generator=generator) * 0.1,
        },
        file,
    )


@pytest.mark.parametrize(
    ("target", "rows", "columns"),
    [
        ("transformer_blocks.1.attn.to_v", 64, 96),
        ("transformer_blocks.0.adaln_proj.linear", 18 * 96, 40),
    ],
)
def test_a_lora_changes_the_latents_and_is_reported(
    checkpoint: Path, sampled: Path, tmp_path: Path, target: str, rows: int, columns: int
) -> None:
    file = tmp_path / "style.safetensors"
    write_lora(file, target=target, rows=rows, columns=columns)
    found = {}
    for strength in (0.0, 1.0):
        request = replace(SMALL, loras=(LoraChoice(str(file), strength),))
        out = tmp_path / f"v{strength:.0f}.mp4"
        report = run_request(request, options(checkpoint, out, stop_after="sample"), QuietHost())
        found[strength] = report
    plain = json.loads(RunFiles(sampled).report.read_text())["latents_sha256"]
    assert found[0.0].latents_sha256 == plain, "strength 0 must do nothing"
    assert found[1.0].latents_sha256 != plain
    (bound,) = found[1.0].lora
    assert bound["complete"] and bound["modules"] == 1 and bound["strength"] == 1.0


def test_a_lora_that_does_not_fit_stops_the_run_before_it_starts(
    checkpoint: Path, tmp_path: Path
) -> None:
    file = tmp_path / "style.safetensors"
    write_lora(file, target="transformer_blocks.1.attn.to_v", rows=640, columns=960)
    request = replace(SMALL, loras=(LoraChoice(str(file)),))
    host = QuietHost()
    with pytest.raises(LowpeakError, match="to_v"):
        run_request(request, options(checkpoint, tmp_path / "v.mp4"), host)
    assert host.events == []


@pytest.fixture(scope="module")
def finished(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run; its video."""
    out = tmp_path_factory.mktemp("finished") / "v.mp4"
    run_request(SMALL, options(checkpoint, out, metadata={"note": "kept"}), QuietHost())
    return out


def test_a_prompt_becomes_a_video_with_sound(finished: Path) -> None:
    found = probe(finished)
    video, audio = found["streams"]
    assert (video["codec"], video["width"], video["height"]) == ("h264", 256, 256)
    assert video["packets"] == 22 and video["frames_per_second"] == 24
    assert (audio["codec"], audio["channels"], audio["sample_rate_hz"]) == ("aac", 2, 32_000)
    assert abs(video["seconds"] - audio["seconds"]) < 1 / 24
    assert found["index_in_front"] and found["metadata"]["note"] == "kept"
    pictures = read_video(finished)
    assert pictures.shape == (22, 256, 256, 3) and pictures.float().std() > 5
    names = {file.name for file in finished.parent.iterdir()}
    assert names == {"v.mp4", "v.request.json", "v.latents.safetensors", "v.first.safetensors"}


def test_the_report_of_a_whole_run_names_every_phase(finished: Path, sampled: Path) -> None:
    report = json.loads(RunFiles(finished).report.read_text())
    phases = [item["phase"] for item in report["phases"]]
    assert phases == ["encode", "sample_low", "sample_high", "decode"]
    assert [item["phase"] for item in report["plan"]["phases"]] == phases
    for item in report["phases"]:
        assert item["forecast"]["ram_peak_bytes"] >= item["measured"]["ram_peak_bytes"], item
    stopped = json.loads(RunFiles(sampled).report.read_text())
    assert report["latents_sha256"] == stopped["latents_sha256"]
    assert report["audio_health"]["finite"] and report["files"]["video"] == "v.mp4"


def test_a_cancelled_decode_keeps_the_latents_and_resumes_with_the_decode_alone(
    checkpoint: Path, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "v.mp4"
    for tail in (".latents.safetensors", ".first.safetensors", ".request.json"):
        shutil.copy(RunFiles(finished).beside(tail), tmp_path)
    with pytest.raises(Cancelled):
        host = CancelledAt("decode", None)
        run_request(read_request(out), options(checkpoint, out, resume=out), host)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"v.request.json", "v.latents.safetensors", "v.first.safetensors"}
    resumed = run_request(read_request(out), options(checkpoint, out, resume=out), QuietHost())
    assert [item["phase"] for item in resumed.phases] == ["decode"]
    assert torch.equal(read_video(out), read_video(finished))


def test_keyframes_condition_the_run_and_their_fit_is_said(
    checkpoint: Path, sampled: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "wide.png"
    pixels = torch.randint(0, 256, (90, 160, 3), dtype=torch.uint8).numpy()
    Image.fromarray(pixels).save(picture)
    request = replace(SMALL, first_frame=str(picture), last_frame=str(picture))
    host = QuietHost()
    out = tmp_path / "v.mp4"
    report = run_request(request, options(checkpoint, out, stop_after="sample"), host)
    assert (
        report.latents_sha256 != json.loads(RunFiles(sampled).report.read_text())["latents_sha256"]
    )
    said = " ".join(report.notices)
    assert "160x90" in said and "256x256" in said
    assert str(picture) not in RunFiles(out).report.read_text()


def test_ctrl_c_exits_130_and_leaves_no_half_written_file(checkpoint: Path, tmp_path: Path) -> None:
    command = [
        sys.executable, "-c", "from lowpeak.cli import main; main()", "generate", "--prompt", "x",
        "--out", str(tmp_path / "v.mp4"), "--checkpoint", str(checkpoint), "--width", "512",
        "--height", "512", "--frames", "56", "--single-pass", "--device", "cpu",
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("encode"):  # sampling has begun
            process.send_signal(signal.SIGINT)
            break
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=120) == 130, said
    assert "Cancelled" in said and list(tmp_path.iterdir()) == []


def test_workers_give_the_same_latents_and_one_joined_report(
    checkpoint: Path, sampled: Path, tmp_path: Path
) -> None:
    host = QuietHost()
    out = tmp_path / "v.mp4"
    report = generate(
        SMALL, options(checkpoint, out, stop_after="sample"), host, ("said",), workers=True
    )
    assert (
        report["latents_sha256"]
        == json.loads(RunFiles(sampled).report.read_text())["latents_sha256"]
    )
    phases = [item["phase"] for item in report["phases"]]
    assert phases == ["encode", "sample_low", "sample_high"]
    assert json.loads(RunFiles(out).report.read_text()) == report and "said" in report["notices"]
    assert [event.phase for event in host.events if event.kind == "measured"] == phases
