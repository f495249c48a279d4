"""Previews of a run: factors fitted to the decoder once, and pictures on their way to the host."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from lowpeak import cli
from lowpeak.engine.events import Event, QuietHost
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.models import ModelSet, open_models
from lowpeak.engine.previews import FRAMES, Previewer, find_factors, picture_of
from lowpeak.engine.request import Request
from lowpeak.engine.run import RunOptions, run_request
from lowpeak.engine.sampling.preview import preview_rgb
from lowpeak.engine.toy import write_toy
from lowpeak.engine.vae.toy import write_toy_video_vae
from lowpeak.engine.worker.protocol import event_from


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("previews") / "toy"
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    return folder


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOWPEAK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_factors_are_fitted_once_and_kept_by_the_decoders_identity(
    checkpoint: Path, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    real = ModelSet.decode_video

    def counted(self: ModelSet, *given: Any) -> None:
        calls.append(1)
        real(self, *given)

    monkeypatch.setattr(ModelSet, "decode_video", counted)
    models = open_models(checkpoint, "cpu")
    first, again = find_factors(models), find_factors(models)
    assert first is not None and again is not None and len(calls) == 1
    assert torch.equal(first.weights, again.weights) and first.weights.abs().sum() > 0
    (kept,) = (own_home / "previews").iterdir()
    kept.write_text("{")
    assert find_factors(models) is not None and len(calls) == 2
    other = tmp_path / "other"
    other.mkdir()
    for entry in checkpoint.iterdir():
        if entry.name != "vae":
            (other / entry.name).symlink_to(entry)
    write_toy_video_vae(other / "vae", 4)
    found = find_factors(open_models(other, "cpu"))
    assert found is not None and not torch.equal(found.weights, first.weights) and len(calls) == 3
    assert len(list((own_home / "previews").iterdir())) == 2


def test_a_preview_resembles_what_the_decoder_draws(checkpoint: Path) -> None:
    """On latents it was not fitted to, the map explains a good part of the decoder's colours."""
    models = open_models(checkpoint, "cpu")
    factors = find_factors(models)
    assert factors is not None
    generator = torch.Generator().manual_seed(9)
    latents = torch.randn(1, 24, 1, 4, 4, generator=generator).expand(-1, -1, FRAMES, -1, -1)
    latents = latents.repeat_interleave(4, 3).repeat_interleave(4, 4).contiguous()
    frames: list[torch.Tensor] = []
    models.decode_video(latents, lambda part: frames.append(part), lambda: False)
    drawn = torch.cat(frames)[8].float().view(16, 16, 16, 16, 3).mean((1, 3))
    seen = preview_rgb(latents, factors)[FRAMES // 2].float()
    both = torch.stack([drawn.flatten(), seen.flatten()])
    assert torch.corrcoef(both)[0, 1] > 0.5


def test_a_run_sends_pictures_of_its_latents_size_and_no_more_than_two_a_second(
    checkpoint: Path, tmp_path: Path
) -> None:
    host = QuietHost()
    request = Request(Geometry(256, 320, 22), prompt="a fox", quality="medium", base_steps=4)
    plain = RunOptions(checkpoint=checkpoint, out=tmp_path / "a.mp4", device="cpu",
                       stop_after="sample")  # fmt: skip
    shown = RunOptions(checkpoint=checkpoint, out=tmp_path / "b.mp4", device="cpu",
                       stop_after="sample", previews=True)  # fmt: skip
    without = run_request(request, plain, QuietHost())
    found = run_request(request, shown, host)
    pictures = [event for event in host.events if event.kind == "preview"]
    seconds = found.phases[-1]["measured"]["seconds"]
    assert 1 <= len(pictures) <= 1 + seconds / 0.5 and pictures[0].phase == "sample_high"
    with Image.open(io.BytesIO(base64.b64decode(pictures[0].picture))) as picture:
        assert picture.size == (4 * 16, 4 * 20) and picture.format == "JPEG"
    assert found.latents_sha256 == without.latents_sha256


def test_the_pace_is_kept_and_latents_are_made_only_for_pictures(checkpoint: Path) -> None:
    factors = find_factors(open_models(checkpoint, "cpu"))
    assert factors is not None
    now, made, host = [0.0], [], QuietHost()

    def latents() -> torch.Tensor:
        made.append(now[0])
        return torch.randn(24, 7, 2, 3)

    show = Previewer(factors, host, lambda: now[0])
    for tick in range(30):
        now[0] = tick * 0.1
        show("sample_low", latents)
    assert len(made) == len(host.events) == 6
    bright = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture_of(latents(), factors)))))
    assert bright.shape == (8, 12, 3)


def test_the_command_line_rewrites_a_file(checkpoint: Path, tmp_path: Path) -> None:
    file = tmp_path / "now.jpg"
    arguments = [
        "generate", "--checkpoint", str(checkpoint), "--out", str(tmp_path / "v.mp4"),
        "--prompt", "a fox", "--width", "256", "--height", "256", "--frames", "22", "--quality",
        "medium", "--base-steps", "2", "--device", "cpu", "--preview", str(file),
        "--stop-after", "sample", "--in-process", "--json",
    ]  # fmt: skip
    assert cli.run(arguments) == 0
    with Image.open(file) as picture:
        assert picture.size == (64, 64)
    event = Event("preview", "sample_low", picture="abc")
    assert event_from(event.as_json()) == event  # from a worker it comes the same way
    notice = Event("notice", "", "between two phases")
    assert event_from(notice.as_json()) == notice


def test_factors_that_cannot_be_kept_are_used_all_the_same(
    checkpoint: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    assert find_factors(open_models(checkpoint, "cpu"), tmp_path / "file" / "previews") is not None
