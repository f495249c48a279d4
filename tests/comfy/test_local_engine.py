"""The engine behind the nodes, on the miniature checkpoint, the way ComfyUI calls it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import pytest
import torch
from safetensors.torch import save_file

from lowpeak.engine import references
from lowpeak.engine.checkpoint.toy import write_toy_checkpoint
from lowpeak.engine.errors import Cancelled, CheckpointError, RequestError, SilentSound
from lowpeak.engine.events import QuietHost
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.models import ModelSet, lora_shapes
from lowpeak.engine.planner.types import HardwareSnapshot
from lowpeak.engine.request import Request
from lowpeak.engine.sampling.conditions import fit_reference_image
from lowpeak.engine.toy import write_toy
from lowpeak.nodes import routes
from lowpeak.nodes.convert import conditioning_in, conditioning_out
from lowpeak.nodes.engine_seam import Conditions, Latents, Pictures
from lowpeak.nodes.handles import LoraHandle, ModelHandle, file_identity
from lowpeak.nodes.local_engine import LocalEngine
from lowpeak.nodes.reference_media import media_of
from lowpeak.nodes.sample import complete

SIZE = Geometry(256, 256, 22)


class Quiet(QuietHost):
    """A host that may be told to stop after some events."""

    def __init__(self, stop_after: int = 1 << 30) -> None:
        super().__init__()
        self.stop_after, self.described = stop_after, []

    def is_cancelled(self) -> bool:
        return len(self.events) >= self.stop_after

    def describe(self, request: Any, plan: Any) -> None:
        self.described.append((request, plan))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ModelHandle:
    folder = tmp_path_factory.mktemp("toy") / "toy"
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    return ModelHandle(folder, file_identity(folder))


@pytest.fixture(scope="module")
def with_references(tmp_path_factory: pytest.TempPathFactory) -> ModelHandle:
    """The miniature with a reference transformer of other weights."""
    folder = tmp_path_factory.mktemp("toys") / "toy"
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    write_toy_checkpoint(folder / "transformer_ref", size="tiny", seed=9)
    return ModelHandle(folder, file_identity(folder))


@pytest.fixture(scope="module")
def lora(model: ModelHandle) -> LoraHandle:
    generator, tensors = torch.Generator().manual_seed(5), {}
    for name, shape in lora_shapes(model.checkpoint).parameters.items():
        if name.endswith("to_k.weight"):
            module = "transformer." + name.removesuffix(".weight").replace("attn.orig", "attn")
            tensors[f"{module}.lora_A.weight"] = torch.randn(2, shape[1], generator=generator)
            tensors[f"{module}.lora_B.weight"] = torch.randn(shape[0], 2, generator=generator)
    file = model.checkpoint.parent / "k.safetensors"
    save_file(tensors, file)
    return LoraHandle(file, 1.0, False, file_identity(file))


@pytest.fixture
def engine() -> LocalEngine:
    return LocalEngine(lambda: "cpu")


def request(model: ModelHandle, **more: Any) -> Request:
    settings = {"base_steps": 2, "refine_steps": 1, "seed": 7, **more}
    return Request(SIZE, loras=model.lora_choices, **settings)


def conditions(model: ModelHandle, engine: LocalEngine) -> Conditions:
    made = engine.encode(model, Request(SIZE, prompt="a fox in snow"), Pictures(), Quiet())
    assert made.hidden.shape[0] == made.tags.shape[0] > 1
    return made


def test_references_pass_through_core_conditioning_to_their_own_transformer(
    model: ModelHandle, with_references: ModelHandle, engine: LocalEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    small = partial(fit_reference_image, max_area_px=64 * 64)
    monkeypatch.setattr(references, "fit_reference_image", small)
    generator = torch.Generator().manual_seed(2)
    pictures = Pictures(
        images=(torch.rand(1, 40, 50, 3, generator=generator),),
        sounds=((torch.rand(2, 9600, generator=generator) - 0.5, 48_000),),
    )
    asked = Request(SIZE, prompt="<Picture 1> sings", references=("reference 1", "reference 2"))
    with torch.inference_mode():  # as ComfyUI runs nodes
        made = engine.encode(with_references, asked, pictures, Quiet())
    assert [item["kind"] for item in made.references] == ["image", "audio"]
    assert made.references[0]["latent"].shape == (1, 24, 1, 4, 4)
    assert made.references[1]["audio_latent"].shape == (1, 32, 2, 8)  # 0.2 s
    given = conditioning_in(conditioning_out(made))
    run = complete(
        request(with_references, base_steps=8, two_pass=False, refine_steps=None),
        with_references,
        7,
        given,
    )
    assert run.reference_rows == 2 * 2 + 2 * 8
    used: list[str] = []
    real = ModelSet.denoiser

    def spy(self: ModelSet, *more: Any) -> Any:
        used.append(self.checkpoint.path.relative_to(with_references.checkpoint).parts[0])
        return real(self, *more)

    monkeypatch.setattr(ModelSet, "denoiser", spy)
    found = engine.sample(with_references, run, given, Quiet(), lambda first: None)
    assert bool(found.latents.video.isfinite().all()) and used == ["transformer_ref"]
    alone = replace(run, references=(), reference_rows=None)
    words = Conditions(given.hidden, given.tags)
    engine.sample(with_references, alone, words, Quiet(), lambda first: None)
    assert used[1:] == ["rowwise"]
    with pytest.raises(RequestError, match="reference transformer"):
        engine.encode(model, asked, pictures, Quiet())
    with pytest.raises(RequestError, match="reference transformer"):
        engine.sample(model, run, given, Quiet(), lambda first: None)


@pytest.mark.parametrize("samples", [0, 10, 48_000])
def test_a_videos_silent_sound_is_left_out_and_a_silent_file_refused(samples: int) -> None:
    frames, silent = torch.rand(22, 32, 32, 3), (torch.zeros(2, samples), 48_000)
    heard = ((torch.rand(2, 48_000) - 0.5), 48_000)
    said: list[str] = []
    pictures = Pictures(videos=((frames, silent), (frames, heard), (frames, None)))
    first, second, third = media_of(pictures, 22, said.append)
    assert first.kind == "video" and first.frames is not None and first.sound is None
    assert second.sound is not None and third.sound is None
    assert said == ["reference 1: its sound is silent and is left out"]
    alone = Pictures(videos=((frames, None),), sounds=(silent,))
    with pytest.raises(SilentSound, match="silent"):
        media_of(alone, 22, said.append)
    broken = Pictures(videos=((frames, (torch.full((2, 99), torch.nan), 32_000)),))
    with pytest.raises(RequestError, match="not finite"):
        media_of(broken, 22, said.append)


def test_a_graphs_stages_agree_with_each_other_inside_inference_mode(
    model: ModelHandle, lora: LoraHandle, engine: LocalEngine, tmp_path: Path
) -> None:
    host, kept = Quiet(), []
    styled = model.with_lora(lora)
    with torch.inference_mode():
        given = conditions(model, engine)
        plain = engine.sample(model, request(model), given, host, kept.append)
        again = engine.refine(model, request(model, two_pass=True), given, kept[0], Quiet())
        other = engine.sample(styled, request(styled), given, Quiet(), lambda first: None)
        out = tmp_path / "x.mp4"
        decoded = engine.decode(model, plain.latents, out, Quiet(), with_sound=True)
    assert torch.equal(plain.latents.video, again.latents.video), "the second pass alone"
    assert torch.equal(plain.latents.audio, again.latents.audio)
    assert torch.equal(kept[0].video, plain.first_pass.video)
    assert not torch.equal(plain.latents.video, other.latents.video), "the LoRA does something"
    assert other.report["lora"][0]["complete"] and plain.report["latents_sha256"]
    phases = [item["phase"] for item in plain.report["phases"]]
    assert phases[0] == "sample_low" and phases[-1] == "sample_high"
    assert host.described[0][1]["fits"]
    with av.open(str(decoded.file)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 22
    assert decoded.waveform.shape == (2, round(22 / 24 * 32000))


def test_stop_is_heard_at_the_next_border(model: ModelHandle, engine: LocalEngine) -> None:
    given, host = conditions(model, engine), Quiet(stop_after=3)
    with pytest.raises(Cancelled):
        engine.sample(model, request(model, base_steps=8), given, host, lambda first: None)
    assert len(host.events) < 8, "it did not go on to the end"


def test_what_cannot_be_carried_is_refused_by_name(model: ModelHandle, engine: LocalEngine) -> None:
    given, latent = conditions(model, engine), torch.zeros(1, 24, 1, 16, 16)

    def sample(**more: Any) -> None:
        made = Conditions(given.hidden, given.tags, **more)
        engine.sample(model, request(model), made, Quiet(), lambda first: None)

    with pytest.raises(RequestError, match="only the first and the last"):
        sample(keyframes=({"frame": 5, "latent": latent},))
    with pytest.raises(RequestError, match="another canvas"):
        sample(keyframes=({"frame": 0, "latent": latent[..., :8]},))
    with pytest.raises(RequestError, match="reference"):
        sample(references=({"kind": "image"},))
    with pytest.raises(RequestError, match="reference"):
        images = (torch.zeros(1, 8, 8, 3),)
        engine.encode(model, request(model), Pictures(images=images), Quiet())


def test_a_first_pass_of_another_size_is_refused(model: ModelHandle, engine: LocalEngine) -> None:
    given = conditions(model, engine)
    wrong = Latents(torch.zeros(1, 24, 7, 20, 16), torch.zeros(1, 32, 2, 37))
    with pytest.raises(RequestError, match="first-pass latents"):
        engine.refine(model, request(model, two_pass=True), given, wrong, Quiet())


def test_other_memory_keeps_the_speed_of_this_card(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = HardwareSnapshot("linux", "NVIDIA GeForce RTX 4060", (8, 9), 8 << 30, 8 << 30,
                            32 << 30, 32 << 30)  # fmt: skip
    engine = LocalEngine()
    monkeypatch.setattr(engine, "_snapshot", lambda: slow)
    monkeypatch.setattr(engine, "_device_type", lambda: "cuda")
    big = Request(Geometry(1344, 768, 124))
    here = engine.forecast(big, None, {"vram_bytes": 8 << 30})
    card = engine.forecast(big, None, {"vram_bytes": 8 << 30, "card": "rtx-4060"})
    other = engine.forecast(big, None, {"vram_bytes": 8 << 30, "card": "rtx-4090", "brief": True})
    assert here["total_seconds"] == card["total_seconds"] > 2 * other["total_seconds"]
    assert here["what_if"] and not other["what_if"]


def test_forecasts_for_here_and_for_other_machines(model: ModelHandle, engine: LocalEngine) -> None:
    here = engine.forecast(request(model), model, {})
    assert here["fits"] and {item["phase"] for item in here["phases"]} >= {"encode", "decode"}
    big = Request(Geometry(1344, 768, 243))
    other = engine.forecast(big, None, {"vram_bytes": 8 << 30, "ram_bytes": 16 << 30})
    assert other["fits"] and other["total_seconds"] > 0
    tiny = engine.forecast(big, None, {"vram_bytes": 1 << 30, "ram_bytes": 16 << 30})
    assert not tiny["fits"] and tiny["short"][0]["axis"] == "vram"
    limited = engine.forecast(request(model), model, {"ram_limit_bytes": 1 << 28})
    assert not limited["fits"]


def test_a_graph_s_loras_change_its_forecast(
    model: ModelHandle, lora: LoraHandle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    card = HardwareSnapshot("linux", "NVIDIA GeForce RTX 4060", (8, 9), 8 << 30, 8 << 30,
                            32 << 30, 32 << 30)  # fmt: skip
    engine = LocalEngine()
    monkeypatch.setenv("LOWPEAK_HOME", str(tmp_path))
    monkeypatch.setattr(engine, "_snapshot", lambda: card)
    monkeypatch.setattr(engine, "_device_type", lambda: "cuda")
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"not a header")
    files = {"k": lora.file, "broken": broken}
    folders = SimpleNamespace(
        checkpoints=lambda: ["toy"], checkpoint=lambda name: model.checkpoint,
        loras=lambda: list(files), lora=files.__getitem__,
    )  # fmt: skip
    pack = SimpleNamespace(folders=folders, engine=engine)

    def asked(name: str | None) -> dict[str, Any]:
        graph = {
            "1": {"class_type": "LowpeakLoadModel", "inputs": {"checkpoint": "toy"}},
            "2": {"class_type": "LowpeakLoadLora", "inputs": {"model": ["1", 0], "lora": name}},
            "4": {"class_type": "LowpeakSample", "inputs": {
                "model": ["2" if name else "1", 0], "width": 256, "height": 256, "seconds": 1.0}},
        }  # fmt: skip
        return routes.forecast(pack, {"prompt": graph})  # type: ignore[arg-type]

    plain, styled = asked(None), asked("k")
    assert "lora" not in plain and styled["asked"]["loras"] == 1
    assert styled["lora"]["host_bytes"] == lora.file.stat().st_size, "from the file's own header"
    ram = [document["phases"][1]["ram_peak_bytes"] for document in (plain, styled)]
    assert ram[1] >= ram[0] + styled["lora"]["host_bytes"]
    assert styled["total_seconds"] > plain["total_seconds"]
    other = asked("broken")
    assert "cannot be read" in other["asked"]["notices"][0] and "lora" in other
    assert other["lora"]["host_bytes"] != styled["lora"]["host_bytes"]


def test_a_lora_of_another_model_is_refused(
    model: ModelHandle, lora: LoraHandle, engine: LocalEngine, tmp_path: Path
) -> None:
    assert "bound" in engine.bind_lora(model, lora.file, allow_partial=False)[0]
    file = tmp_path / "other.safetensors"
    names = [f"lora_unet_down_blocks_0.lora_{side}.weight" for side in ("down", "up")]
    save_file({name: torch.ones(2, 2) for name in names}, file)
    with pytest.raises(CheckpointError):
        engine.bind_lora(model, file, allow_partial=False)
