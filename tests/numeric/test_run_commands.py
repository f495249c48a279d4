"""Commands that compute, on the miniature: one document each, real figures, right exit codes."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import text_parts

from lowpeak import cli
from lowpeak.engine import bench_cases, demo, miniature
from lowpeak.engine.events import QuietHost
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.media import probe
from lowpeak.engine.planner.types import Placement

SIZE = ("--width", "256", "--height", "256", "--frames", "39", "--repeats", "1")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands") / "toy"
    assert cli.run(["toy-checkpoint", str(folder)]) == 0
    return folder


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = cli.run([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def digest_of(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(folder)).encode() + file.read_bytes())
    return digest.hexdigest()


def test_equal_toys_have_equal_bytes_and_another_seed_others(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document = answer(capsys, "toy-checkpoint", str(tmp_path / "again"))
    assert code == 0 and document["size"] == "tiny" and document["bytes"] > 1_000_000
    assert digest_of(tmp_path / "again") == digest_of(checkpoint)
    answer(capsys, "toy-checkpoint", str(tmp_path / "other"), "--seed", "1")
    assert digest_of(tmp_path / "other") != digest_of(checkpoint)
    code, document = answer(capsys, "toy-checkpoint", str(tmp_path / "x"), "--size", "huge")
    assert code == 2 and "huge" in document["message"]


@pytest.mark.parametrize("name", ["step", "forecast", "decode"])
def test_a_bench_row_has_the_fields_of_the_contract(
    checkpoint: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, row = answer(capsys, "bench", name, "--checkpoint", str(checkpoint), *SIZE)
    assert code == 0 and row["bench"] == name and row["video_tokens"] == 768
    seconds = row["seconds" if name == "decode" else "seconds_per_step"]
    assert 0 < row["spread"][0] <= seconds <= row["spread"][1]
    assert row["repeats"] == 1 and row["ram_peak_bytes"] > 0 and row["versions"]["torch"]
    assert row["checkpoint"] == {"kind": "toy", "format": "fp8-rowwise"}
    assert row["vram_gib"] is None
    if name != "decode":
        assert row["link_bytes"] > 0 and set(row["stall_seconds"]) == {"link", "disk"}
        assert row["placement"]["pinned_blocks"] + row["placement"]["resident_blocks"] == 3
    if name == "forecast":
        assert row["forecast"]["ram_peak_bytes"] > 0 and row["ratio"]["ram_peak_bytes"] < 1


@pytest.mark.parametrize(("on_disk", "name"), [(2, "step"), (2, "forecast"), (0, "step")])
def test_a_step_that_reads_blocks_says_how_fast_the_disk_was(
    checkpoint: Path, capsys: pytest.CaptureFixture[str], monkeypatch, on_disk: int, name: str
) -> None:
    chosen = Placement(disk_blocks=on_disk, pinned_blocks=3 - on_disk)
    monkeypatch.setattr(bench_cases, "placements_of", lambda plan: {bench_cases.PHASE: chosen})
    code, row = answer(capsys, "bench", name, "--checkpoint", str(checkpoint), *SIZE)
    assert code == 0 and (row["disk_bytes"] > 0) == bool(on_disk)
    assert (row.get("disk_bytes_per_second", 0) > 0) == bool(on_disk)


def test_stream_and_encode_measure_rates(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, row = answer(capsys, "bench", "stream", "--checkpoint", str(checkpoint))
    assert code == 0 and row["disk_bytes_per_second"] > 0 and row["block_bytes"] > 50_000
    code, row = answer(
        capsys, "bench", "encode", "--checkpoint", str(checkpoint), "--text-rows", "50"
    )
    assert code == 0 and row["text_rows"] >= 50 and row["seconds"] > 0
    assert row["checkpoint"] == {"kind": "toy", "format": "toy"}


def test_the_bench_of_an_encoder_reads_every_layer_and_no_cached_prompt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = text_parts.write_folder(tmp_path / "text_encoder", text_parts.random_model())
    code, row = answer(
        capsys, "bench", "encode", "--checkpoint", str(tmp_path), "--text-rows", "40",
        "--repeats", "1", "--device", "cpu",
    )  # fmt: skip
    assert code == 0 and row["text_rows"] == 42
    assert row["checkpoint"] == {"kind": "toy", "format": "float"}, "of no published width"
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    assert 0.3 * stored < row["disk_bytes"] < stored
    assert row["link_bytes"] > 0.9 * row["disk_bytes"]  # all layers, not those of a cached answer
    floor = row["disk_bytes"] / row["disk_bytes_per_second"]
    assert row["seconds_over_disk_floor"] == pytest.approx(row["seconds"] / floor)


def test_the_grid_covers_the_published_range(capsys: pytest.CaptureFixture[str]) -> None:
    code, document = answer(capsys, "bench", "grid")
    assert code == 0 and len(document["rows"]) == 25 * 25
    assert all(row["fits"] for row in document["rows"] if row["vram_gib"] >= 8)


def test_the_doctor_says_what_is_here_and_why_not_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, document = answer(capsys, "doctor")
    assert code == 0 and document["machine"]["ram_total_bytes"] > 0
    for kind in ("fp8-rowwise", "int8-convrot", "plain"):
        state = document["kernels"][kind]
        assert "triton" in state["chosen"] or state["refused"]["triton (branch)"]
    assert document["rates"] is None and document["versions"]["lowpeak"]
    for state in document["optional"].values():
        assert set(state) == {"found", "for", "version", "broken"}
        assert state["found"] or not (state["version"] or state["broken"])


def test_verify_finds_the_toy_sound_and_half_of_it_not(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document = answer(capsys, "models", "verify", str(checkpoint))
    assert code == 0 and document["sound"]
    blocks = tmp_path / "rowwise" / "cache" / "blocks"
    blocks.mkdir(parents=True)
    source = checkpoint / "rowwise" / "cache" / "blocks" / "00.safetensors"
    (blocks / "00.safetensors").write_bytes(source.read_bytes()[:-100])
    code, document = answer(capsys, "models", "verify", str(tmp_path))
    assert code == 4 and not document["sound"]
    assert any("00.safetensors" in item["file"] for item in document["findings"])


def test_the_demo_leaves_video_report_and_picture_and_reuses_its_checkpoint(
    checkpoint: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = replace(demo.REQUEST, geometry=Geometry(256, 256, 22), base_steps=2, refine_steps=1)
    monkeypatch.setattr(demo, "REQUEST", small)
    code, document = answer(capsys, "demo", "--out", str(tmp_path / "out"))
    assert code == 0
    found = probe(document["video"])  # what ffprobe would say
    picture, sound = found["streams"]
    assert found["index_in_front"] and "mp4" in found["format"]
    assert found["metadata"]["lowpeak"] == "demo" and found["metadata"]["lowpeak_settings_sha256"]
    assert picture["codec"] == "h264" and picture["pixel_format"] == "yuv420p"
    assert (picture["width"], picture["height"], picture["packets"]) == (256, 256, 22)
    assert picture["frames_per_second"] == 24 and picture["start_seconds"] == 0
    colours = ("color_space", "color_primaries", "color_transfer", "color_range")
    assert [picture[name] for name in colours] == [1, 1, 1, 1]  # BT.709, limited range
    assert (sound["codec"], sound["sample_rate_hz"], sound["channels"]) == ("aac", 32_000, 2)
    assert abs(sound["seconds"] - 22 / 24) < 0.05
    report = json.loads(Path(document["report"]).read_text())
    assert report["latents_sha256"] == document["latents_sha256"]
    drawn = Path(document["memory"]).read_text()
    ElementTree.fromstring(drawn)
    for item in report["phases"]:
        assert item["phase"] in drawn
    made = Path(document["checkpoint"])
    before = digest_of(made)
    assert demo.find_toy(made, QuietHost()) == made and digest_of(made) == before


def test_a_damaged_demo_checkpoint_is_made_again(checkpoint: Path, tmp_path: Path) -> None:
    folder, host = tmp_path / "toy", QuietHost()
    assert demo.find_toy(folder, host) == folder
    whole = digest_of(folder)
    root = next(folder.rglob("root.safetensors"))
    root.write_bytes(root.read_bytes()[:100])
    assert demo.find_toy(folder, host) == folder
    assert digest_of(folder) == whole and any("again" in event.message for event in host.events)
    assert list(tmp_path.iterdir()) == [folder]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped miniature in its place."""
    if miniature.shipped() is None:
        pytest.skip(f"no trained weights: {miniature.HOME} is not there")
    copy = tmp_path / "home" / "miniature"
    shutil.copytree(miniature.HOME, copy)
    monkeypatch.setattr(miniature, "HOME", copy)
    return copy


def test_a_demo_checkpoint_of_another_miniature_is_made_again(home: Path, tmp_path: Path) -> None:
    folder, host = tmp_path / "toy", QuietHost()
    demo.find_toy(folder, host)
    assert demo.made_from(folder).startswith(demo.TRAINED) and not host.events
    root = next(folder.rglob("root.safetensors"))
    made = root.stat().st_mtime_ns
    demo.find_toy(folder, host)
    assert root.stat().st_mtime_ns == made and not host.events, "the same one is kept"
    config = home / "text_encoder" / "config.json"
    config.write_text(config.read_text() + "\n")
    demo.find_toy(folder, host)
    assert root.stat().st_mtime_ns != made and "was not made from" in host.events[0].message
    (folder / demo.MADE_FROM).unlink()
    demo.find_toy(folder, host)
    assert len(host.events) == 2 and demo.made_from(folder).startswith(demo.TRAINED)


def test_the_demo_says_what_its_weights_are(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(demo.REQUEST, geometry=Geometry(256, 256, 22), base_steps=1, two_pass=False)
    monkeypatch.setattr(demo, "REQUEST", small)
    out, away = tmp_path / "out", home.with_name("away")
    home.rename(away)
    _, random = demo.run_demo(out, "cpu", QuietHost())
    assert "random weights" in random and demo.made_from(out / demo.FOLDER) == demo.RANDOM
    away.rename(home)
    _, trained = demo.run_demo(out, "cpu", QuietHost())
    assert f'"{miniature.PROMPT}"' in trained and "random" not in trained
    home.rename(away)  # what was made before is still the trained one, and is kept
    _, kept = demo.run_demo(out, "cpu", QuietHost())
    assert f'"{miniature.PROMPT}"' in kept
