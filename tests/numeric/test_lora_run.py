"""A whole miniature run with a LoRA: the picture changes, strength 0 changes nothing, the plan
names the way, and blocks that are read in every pass are kept merged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from lowpeak import cli
from lowpeak.engine.checkpoint.toy import SIZES
from lowpeak.engine.errors import RequestError
from lowpeak.engine.events import QuietHost
from lowpeak.engine.files import RunFiles, load_latents
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.media import read_video
from lowpeak.engine.models import open_models, reread_blocks
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.request import LoraChoice, Request
from lowpeak.engine.run import RunOptions, run_request
from lowpeak.engine.toy import write_toy

CONFIG = SIZES["tiny"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    return folder


@pytest.fixture(scope="module")
def adapter(tmp_path_factory) -> Path:
    draw = torch.Generator().manual_seed(7)
    inner, hidden, ffn = CONFIG.inner, CONFIG.hidden, CONFIG.ffn
    sizes = {"attn.to_v": (inner, hidden), "attn.to_out.0": (hidden, inner),
             "ff.net.0.proj": (2 * ffn, hidden), "ff.net.2": (hidden, ffn)}  # fmt: skip
    tensors = {}
    for block in range(CONFIG.layers):
        for name, (rows, columns) in sizes.items():
            module = f"transformer.transformer_blocks.{block}.{name}"
            tensors[f"{module}.lora_A.weight"] = (
                torch.randn(4, columns, generator=draw) / columns**0.5
            )
            tensors[f"{module}.lora_B.weight"] = torch.randn(rows, 4, generator=draw) / 2
    path = tmp_path_factory.mktemp("lora") / "style.safetensors"
    save_file(tensors, path)
    return path


def run(checkpoint: Path, out: Path, loras: tuple[LoraChoice, ...], **more):
    request = Request(
        Geometry(256, 256, 22), prompt="a fox", seed=4, base_steps=2, two_pass=False, loras=loras
    )
    options = RunOptions(checkpoint=checkpoint, out=out, device="cpu", **more)
    return run_request(request, options, QuietHost())


def frames(out: Path) -> torch.Tensor:
    return torch.as_tensor(read_video(out)[0]).float()


def test_a_lora_changes_the_picture_and_strength_zero_does_not(
    checkpoint, adapter, tmp_path
) -> None:
    reports, outs = {}, {}
    for name, strength in (("none", None), ("zero", 0.0), ("half", 0.5), ("full", 1.0)):
        outs[name] = tmp_path / f"{name}.mp4"
        chosen = () if strength is None else (LoraChoice(str(adapter), strength),)
        reports[name] = run(checkpoint, outs[name], chosen)
    assert reports["zero"].latents_sha256 == reports["none"].latents_sha256
    assert len({report.latents_sha256 for report in reports.values()}) == 3
    pictures = {name: frames(out) for name, out in outs.items()}
    assert torch.equal(pictures["zero"], pictures["none"])
    far = {
        name: float((picture - pictures["none"]).abs().mean()) for name, picture in pictures.items()
    }
    print(f"mean change of a pixel: {far}")
    assert far["full"] > 3 and 0 < far["half"] < far["full"], "visible, and more with more strength"
    assert reports["full"].plan["lora"]["mode"] == "merged"
    assert any(line.startswith("LoRA merged") for line in reports["full"].plan["reasons"])
    assert "lora" not in reports["none"].plan
    assert reports["full"].lora[0]["modules"] == 4 * CONFIG.layers


def test_online_is_run_when_asked_for_and_lies_near_merged(checkpoint, adapter, tmp_path) -> None:
    chosen, latents = (LoraChoice(str(adapter), 1.0),), {}
    for mode in ("merged", "online"):
        out = tmp_path / f"{mode}.mp4"
        report = run(checkpoint, out, chosen, lora_mode=mode, stop_after="sample")
        assert report.plan["lora"]["mode"] == mode
        latents[mode] = load_latents(RunFiles(out).latents)[0].video
    out = tmp_path / "plain.mp4"
    run(checkpoint, out, (), stop_after="sample")
    plain = load_latents(RunFiles(out).latents)[0].video
    apart = float((latents["online"] - latents["merged"]).norm() / latents["merged"].norm())
    effect = float((latents["merged"] - plain).norm() / plain.norm())
    assert 0 < apart < effect / 3, (apart, effect)
    with pytest.raises(RequestError, match="none of auto, merged, online"):
        RunOptions(checkpoint=checkpoint, out=out, lora_mode="fused")


def test_blocks_read_in_every_pass_are_kept_merged(
    checkpoint, adapter, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("LOWPEAK_HOME", str(tmp_path))
    layers = CONFIG.layers
    low, high = Placement(pinned_blocks=layers), Placement(pinned_blocks=layers - 1, disk_blocks=1)
    placements = {"sample_low": low, "sample_high": high, "decode": Placement(pinned_blocks=1)}
    assert reread_blocks(placements, layers) == {1} and not reread_blocks({"a": low}, layers)
    models = open_models(checkpoint, "cpu")
    loras = models.bind_loras([LoraChoice(str(adapter), 1.0)])
    times = ((0.0,),)
    with models.denoiser(times, placements, loras) as denoisers:
        denoiser = denoisers.for_phase("sample_high", lambda: False)
        denoiser.stream.store.take(1)
    kept = [path.name for path in (tmp_path / "merged").rglob("*.safetensors")]
    assert kept == ["01.safetensors"]


def test_an_interrupted_run_goes_on_with_the_same_loras_or_not_at_all(
    checkpoint, adapter, tmp_path, capsys
) -> None:
    """The file is found again by its content: `copy` is the adapter under another name."""
    common = ["generate", "--checkpoint", str(checkpoint), "--device", "cpu", "--in-process"]
    asked = ["--prompt", "a fox", "--width", "256", "--height", "256", "--frames", "22",
             "--base-steps", "2", "--refine-steps", "1", "--lora", f"{adapter}:0.5"]  # fmt: skip
    whole, parts = tmp_path / "whole.mp4", tmp_path / "parts.mp4"
    assert cli.run([*common, *asked, "--out", str(whole), "--stop-after", "sample"]) == 0
    assert cli.run([*common, *asked, "--out", str(parts), "--stop-after", "first"]) == 0
    report = RunFiles(parts).report
    assert str(adapter.parent) not in report.read_text(), "a report leaks no path"
    again = [*common, "--resume", str(report)]
    other, copy = tmp_path / "other.safetensors", tmp_path / "renamed.safetensors"
    copy.write_bytes(adapter.read_bytes())
    save_file({key: value * 2 for key, value in load_file(adapter).items()}, other)
    for given in ([], [f"{adapter}"], [f"{other}:0.5"], [f"{copy}:0.5", f"{other}:0.1"]):
        capsys.readouterr()
        assert cli.run([*again, *(word for file in given for word in ("--lora", file))]) == 2
        said = capsys.readouterr().err
        assert "style.safetensors at strength 0.5" in said and "give each --lora again" in said
    assert cli.run([*again, "--lora", f"{copy}:0.5", "--stop-after", "sample"]) == 0
    resumed, expected = (json.loads(RunFiles(out).report.read_text()) for out in (parts, whole))
    assert [item["phase"] for item in resumed["phases"]] == ["sample_high"]
    assert resumed["latents_sha256"] == expected["latents_sha256"]
    capsys.readouterr()
    assert cli.run([*again, "--refine-steps", "3"]) == 2, "another second pass needs it too"
    assert "give each --lora again" in capsys.readouterr().err
    assert cli.run(again) == 0, "the latents are sampled: decoding needs no LoRA"
    decoded = json.loads(report.read_text())
    assert decoded["request"]["loras"] == [{"strength": 0.5}]
    assert [item["strength"] for item in decoded["lora"]] == [0.5], "it stays on record"
