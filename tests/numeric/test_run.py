"""A request from prompt to files on the miniature checkpoint: stages, resume, stops, cancel."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from run_parts import SMALL, CancelledAt, options
from safetensors.torch import save_file

from lowpeak.engine.errors import Cancelled, LowpeakError, RequestError
from lowpeak.engine.events import QuietHost
from lowpeak.engine.files import RunFiles, load_latents
from lowpeak.engine.launch import generate
from lowpeak.engine.media import probe, read_video
from lowpeak.engine.request import LoraChoice
from lowpeak.engine.resume import read_request
from lowpeak.engine.run import run_request


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
