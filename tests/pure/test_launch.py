"""What a run will read is looked for before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowpeak.engine.errors import CheckpointError
from lowpeak.engine.events import QuietHost
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.launch import generate, parts_ahead
from lowpeak.engine.options import RunOptions
from lowpeak.engine.parts import OWN_NAMES
from lowpeak.engine.request import Request

LIGHT = Request(Geometry(1344, 768, 243))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOWPEAK_MODELS", str(tmp_path / "models"))
    found = tmp_path / "checkpoint"
    for name in OWN_NAMES.values():
        (found / name).mkdir(parents=True)
    return found


@pytest.mark.parametrize("kind", ["text_encoder", "upscaler", "video_vae", "audio_vae"])
@pytest.mark.parametrize("workers", [True, False])
def test_a_part_that_is_nowhere_is_said_before_anything_runs(
    folder: Path, kind: str, workers: bool
) -> None:
    (folder / OWN_NAMES[kind]).rmdir()
    options, host = RunOptions(folder, folder / "v.mp4", device="cpu"), QuietHost()
    with pytest.raises(CheckpointError, match=f"there is no {kind.replace('_', ' ')}"):
        generate(LIGHT, options, host, workers=workers)
    assert not host.events and not list(folder.glob("v.*"))


@pytest.mark.parametrize("workers", [True, False])
def test_a_part_that_is_cut_short_is_said_before_anything_runs(
    folder: Path, tmp_path: Path, workers: bool
) -> None:
    file = folder / OWN_NAMES["audio_vae"] / "model.safetensors"
    header = b'{"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(12))
    options, host = RunOptions(folder, folder / "v.mp4", device="cpu"), QuietHost()
    with pytest.raises(CheckpointError, match=r"truncated file; file .*audio_vae"):
        generate(LIGHT, options, host, workers=workers)
    assert not host.events


def test_only_what_is_ahead_is_looked_for(tmp_path: Path) -> None:
    def ahead(request: Request = LIGHT, **changes: object) -> list[str]:
        options = RunOptions(tmp_path, tmp_path / "v.mp4", **changes)  # type: ignore[arg-type]
        return parts_ahead(request, options)

    every = ["text_encoder", "upscaler", "video_vae", "audio_vae"]
    assert ahead() == every
    assert ahead(Request(Geometry(1344, 768, 243), quality="high")) == [every[0], *every[2:]]
    assert ahead(stop_after="encode") == ahead(stop_after="first") == every[:1]
    assert ahead(stop_after="sample") == every[:2]
    resume = tmp_path / "v.request.json"
    (tmp_path / "v.conditioning.safetensors").write_bytes(b"")
    assert ahead(resume=resume) == every[1:]
    (tmp_path / "v.latents.safetensors").write_bytes(b"")
    assert ahead(resume=resume) == every[2:]
