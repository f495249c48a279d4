"""Whole requests, the text encoder and the autoencoders' encoders on a CUDA device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from text_parts import random_model, write_folder
from torch import Tensor

from lowpeak.engine.checkpoint.toy import write_toy_checkpoint
from lowpeak.engine.condition_encoder import ConditionEncoder
from lowpeak.engine.events import QuietHost
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.launch import generate
from lowpeak.engine.request import Request
from lowpeak.engine.run import RunOptions
from lowpeak.engine.text.qwen import open_qwen_encoder
from lowpeak.engine.toy import write_toy

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no CUDA device: no request is run on one"
)
pytest.importorskip("av", reason="PyAV is not installed: nothing can be muxed")

REQUEST = Request(
    Geometry(512, 512, 39), prompt="a red fox", seed=7, base_steps=3, refine_steps=2, two_pass=True
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy") / "toy"
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    write_toy_checkpoint(folder / "transformer_ref", size="tiny", seed=9)
    return folder


def run(checkpoint: Path, out: Path, request: Request = REQUEST, **more: Any) -> dict[str, Any]:
    workers = more.pop("workers", False)
    options = RunOptions(checkpoint=checkpoint, out=out, device="cuda", **more)
    return generate(request, options, QuietHost(), workers=workers)


def test_no_process_and_no_budget_changes_the_latents(checkpoint: Path, tmp_path: Path) -> None:
    plain = run(checkpoint, tmp_path / "a.mp4", stop_after="sample")
    again = run(checkpoint, tmp_path / "b.mp4", stop_after="sample", vram_gib=3.0, ram_gib=6.0)
    whole = run(checkpoint, tmp_path / "c.mp4", workers=True, vram_gib=4.0, ram_gib=16.0)
    hashes = {item["latents_sha256"] for item in (plain, again, whole)}
    assert len(hashes) == 1
    assert [item["phase"] for item in whole["phases"]] == [
        "encode", "sample_low", "upscale", "sample_high", "decode",
    ]  # fmt: skip
    assert (tmp_path / "c.mp4").stat().st_size > 10_000


def test_keyframes_and_references_run(checkpoint: Path, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (96, 64), (200, 80, 40)).save(tmp_path / "a.png")
    picture = str(tmp_path / "a.png")
    found = {
        run(checkpoint, tmp_path / f"{name}.mp4", replace(REQUEST, **more), stop_after="sample")[
            "latents_sha256"
        ]
        for name, more in (
            ("first", {"first_frame": picture}),
            ("last", {"last_frame": picture}),
            ("reference", {"references": (picture,)}),
        )
    }
    assert len(found) == 3


def relative(a: Tensor, b: Tensor) -> float:
    return float((a.cpu() - b).abs().max() / b.abs().max())


def test_the_encoders_give_what_a_cpu_gives(checkpoint: Path) -> None:
    here = ConditionEncoder(checkpoint, torch.device("cpu"))
    there = ConditionEncoder(checkpoint, torch.device("cuda"))
    generator = torch.Generator().manual_seed(0)
    frames = torch.randint(0, 256, (22, 96, 128, 3), generator=generator, dtype=torch.uint8)
    sound = torch.rand(2, 16_000, generator=generator) - 0.5
    # The latents keep eleven bits, so one rounding may fall the other way.
    assert relative(there.frames(frames), here.frames(frames)) <= 2e-3
    # Sums in another order, through many layers; products in TF32 would be off by 1e-3.
    assert relative(there.sound(sound), here.sound(sound)) <= 1e-4


def test_the_text_encoder_gives_what_a_cpu_gives(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "text", random_model())
    image = torch.randint(0, 256, (32, 48, 3), dtype=torch.uint8)
    found = []
    for device in ("cpu", "cuda"):
        encoder = open_qwen_encoder(folder, device, dtype=torch.float32)
        found.append(encoder.encode("a red fox", images=[image]).embeds)
        encoder.close()
    assert relative(found[1], found[0]) <= 1e-4  # sums in another order; TF32 would be 1e-3
