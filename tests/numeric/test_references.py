"""References from files to latents: against diffusers' own blocks, and what is refused before."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from lowpeak import cli
from lowpeak.engine import media_reference, references
from lowpeak.engine.condition_encoder import with_reference_transformer
from lowpeak.engine.errors import RequestError
from lowpeak.engine.events import QuietHost
from lowpeak.engine.files import RunFiles, load_latents
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.media import VideoWriter
from lowpeak.engine.model.layout import unpatchify
from lowpeak.engine.models import open_models
from lowpeak.engine.planner.types import ModelFacts
from lowpeak.engine.planner.workload import workload
from lowpeak.engine.references import ReferenceMedia, load_references, references_shown
from lowpeak.engine.request import Request
from lowpeak.engine.resume import load_conditioning
from lowpeak.engine.run import RunOptions, run_request
from lowpeak.engine.sampling.conditions import canvas_for_aspect, fit_reference_image
from lowpeak.engine.sampling.noise import rows_to_audio
from lowpeak.engine.toy import write_toy

RATE = 32_000
REQUEST = Request(
    Geometry(256, 256, 22), prompt="she walks <Picture 1>", seed=5, quality="medium", base_steps=3
)


def noise_picture(width: int, height: int, seed: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    rough = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), np.uint8)
    return np.asarray(Image.fromarray(rough).resize((width, height), Image.Resampling.BICUBIC))


def tone(seconds: float, rate: int = RATE) -> Tensor:
    at = torch.arange(int(seconds * rate)) / rate
    return 0.3 * torch.stack([torch.sin(1400 * at), torch.sin(2100 * at)])


def write_video(file: Path, frames: int, *, sound: Tensor | None, fps: int = 24) -> str:
    with VideoWriter(file, 96, 64, fps, audio_sample_rate_hz=RATE) as writer:
        writer.write_frames(np.stack([noise_picture(96, 64, seed) for seed in range(frames)]))
        if sound is not None:
            writer.write_audio(sound)
    return str(file)


def write_sound(file: Path, samples: Tensor) -> str:
    import av

    with av.open(str(file), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=RATE, layout="stereo")
        codes = (samples.clamp(-1, 1) * 32767).to(torch.int16).numpy()
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(codes.T).reshape(1, -1), format="s16", layout="stereo"
        )
        frame.sample_rate = RATE
        for packet in (*stream.encode(frame), *stream.encode(None)):
            container.mux(packet)
    return str(file)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("references")
    picture = folder / "subject.bin"  # content counts, not the name
    Image.fromarray(noise_picture(70, 90, 1)).save(picture, format="png")
    return {
        "image": str(picture),
        "video": write_video(folder / "motion.mp4", 30, sound=tone(1.25)),
        "mute": write_video(folder / "mute.mp4", 24, sound=None),
        "audio": write_sound(folder / "voice.wav", tone(0.5)),
    }


@pytest.fixture
def small_canvases(monkeypatch: pytest.MonkeyPatch) -> None:
    """References at a hundredth of their size: the rules are the same."""
    small = partial(fit_reference_image, max_area_px=64 * 96)
    monkeypatch.setattr(references, "fit_reference_image", small)
    canvas = partial(canvas_for_aspect, short_edge_px=64, max_area_px=64 * 96)
    monkeypatch.setattr(media_reference, "canvas_for_aspect", canvas)


@pytest.fixture(scope="module")
def reference_model() -> torch.nn.Module:
    """Diffusers' dense transformer with every parameter random, of the miniature's text width."""
    diffusers = pytest.importorskip("diffusers", reason="diffusers 0.42.1 is missing (extra dev)")
    model = diffusers.MiniMaxH3Transformer3DModel(
        num_attention_heads=2, attention_head_dim=32, hidden_size=64, num_layers=2,
        num_refiner_layers=1, ffn_dim=96, in_channels=24, audio_in_channels=32,
        patch_size=(1, 2, 2), text_dim=64, freq_dim=32, time_embed_hidden_dim=48,
        time_embed_dim=40, rope_freq_dim=4, rope_theta=10000.0,
    ).eval()  # fmt: skip
    generator = torch.Generator().manual_seed(8)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            wide = parameter.ndim > 1
            parameter.copy_(noise * parameter.shape[1] ** -0.5 if wide else 0.5 + 0.3 * noise)
    for block in model.transformer_blocks:
        # A table holds what the published bfloat16 layer gives; from there on all is float32.
        layer = block.adaln_proj.to(torch.bfloat16)
        layer.forward = partial(widened, layer.forward)
    return model


def widened(forward: Callable[[Tensor], tuple[Tensor, ...]], temb: Tensor) -> tuple[Tensor, ...]:
    return tuple(part.float() for part in forward(temb))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, reference_model: torch.nn.Module) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint") / "toy"
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    reference_model.save_pretrained(folder / "transformer_ref")
    return folder


def published(
    checkpoint: Path, model: torch.nn.Module, text: Tensor, tags: Tensor,
    given: list[Any], request: Request,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Latents from diffusers' blocks: autoencoders, layout, noise, loop and schedulers."""
    from diffusers import (
        AutoencoderKLMiniMaxH3,
        AutoencoderKLMiniMaxH3Audio,
        MiniMaxH3Scheduler,
    )
    from diffusers.modular_pipelines.minimax_h3 import before_denoise, denoise, encoders
    from diffusers.utils.torch_utils import randn_tensor

    vae = AutoencoderKLMiniMaxH3.from_pretrained(checkpoint / "vae").eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # diffusers uses the older weight_norm
        audio_vae = AutoencoderKLMiniMaxH3Audio.from_pretrained(checkpoint / "audio_vae").eval()
    means, deviations = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    latents, sounds = [], []
    with torch.no_grad():
        for item in given:
            if item.frames is not None:
                pixels = item.frames.permute(3, 0, 1, 2)[None]
                latents.append(encoders.encode_vae_condition(vae, pixels, means, deviations))
            if item.sound is not None:
                padded = torch.nn.functional.pad(item.sound, (0, -item.sound.shape[1] % 800))
                mean = audio_vae.encode(padded[:, None], return_dict=False)[0].mode()
                sounds.append(mean.transpose(1, 2).reshape(-1, 32))
    size = request.geometry
    packed = before_denoise.MiniMaxH3Ref2VAPrepareLayoutStep.build_ref2va_packed_sequence(
        tags, [SimpleNamespace(kind=i.kind, has_audio=i.sound is not None) for i in given],
        latents, sounds, size.latent_frames, size.latent_height, size.latent_width,
        size.audio_latents, (1, 2, 2), 2, 2, 0,
    )  # fmt: skip
    positions, row_tags, video_indices, audio_indices, text_indices, held, held_sound = packed
    schedulers = MiniMaxH3Scheduler(shift=12.0), MiniMaxH3Scheduler(shift=3.0)
    for scheduler in schedulers:
        scheduler.set_timesteps(request.base_steps + 1)
    generator = torch.Generator().manual_seed(request.seed)
    rows = []
    for item in latents:
        noise = randn_tensor(item.shape, generator=generator, dtype=torch.float32)
        noised = schedulers[0].scale_noise(item, 0.999, noise)
        rows.append(before_denoise.patchify_video_latents(noised, (1, 2, 2)))
    shape = (1, 24, size.latent_frames, size.latent_height, size.latent_width)
    target = randn_tensor(shape, generator=generator, dtype=torch.float32)
    rows.append(before_denoise.patchify_video_latents(target, (1, 2, 2)))
    heard = randn_tensor((2 * size.audio_latents, 32), generator=generator, dtype=torch.float32)
    state = SimpleNamespace(
        latents=torch.cat(rows),
        audio_latents=torch.cat([*sounds, heard]),
        audio_timesteps=schedulers[1].timesteps,
        num_condition_video_rows=held,
        num_condition_audio_rows=held_sound,
    )
    components = SimpleNamespace(scheduler=schedulers[0], audio_scheduler=schedulers[1])
    update = denoise.MiniMaxH3LoopSchedulerStep()
    for step, time in enumerate(schedulers[0].timesteps):
        distinct, indices = before_denoise.MiniMaxH3SetTimestepsStep.build_row_timesteps(
            video_indices, audio_indices, held, held_sound, len(text_indices), float(time),
            float(state.audio_timesteps[step]), max(float(time), 0.999), 1.0,
        )  # fmt: skip
        with torch.no_grad():
            state.noise_pred, state.audio_noise_pred = model(
                hidden_states=state.latents[None], audio_hidden_states=state.audio_latents[None],
                encoder_hidden_states=text[None], timestep=distinct, timestep_indices=indices,
                token_tags=row_tags, position_ids=positions, video_indices=video_indices,
                audio_indices=audio_indices, text_indices=text_indices, return_dict=False,
            )  # fmt: skip
        update(components, state, step, time)
    video = unpatchify(state.latents[held:], *shape[2:]).unsqueeze(0)
    audio = rows_to_audio(state.audio_latents[held_sound:]).transpose(0, 1).unsqueeze(0)
    return video, audio


@pytest.mark.usefixtures("small_canvases")
def test_a_reference_run_is_parity_with_the_published_pipeline(
    checkpoint: Path, reference_model: torch.nn.Module, files: dict[str, str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str], relative_error: Callable[[Tensor, Tensor], float],
) -> None:  # fmt: skip
    """Picture, sound, and a video with its sound, by the command line, without VDN."""
    names = ("image", "audio", "video")
    out = tmp_path / "v.mp4"
    arguments = [
        "generate", "--checkpoint", str(checkpoint), "--out", str(out), "--device", "cpu",
        "--prompt", REQUEST.prompt, "--width", "256", "--height", "256", "--frames", "22",
        "--quality", "medium", "--base-steps", "3", "--seed", "5", "--json",
    ]  # fmt: skip
    for name in names:
        arguments += ["--reference", files[name]]
    assert cli.run([*arguments, "--stop-after", "encode"]) == 0
    run_id = json.loads(capsys.readouterr().out)["run_id"]
    conditioning = load_conditioning(RunFiles(out).conditioning, run_id)
    assert conditioning is not None
    resumed = ["generate", "--checkpoint", str(checkpoint), "--resume", str(out), "--device", "cpu"]
    assert cli.run([*resumed, "--prompt", REQUEST.prompt, "--stop-after", "sample", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["checkpoint"]["layout"] == "diffusers", "another transformer than the reference's"

    given = load_references([files[name] for name in names], 22, print)
    assert [item.kind for item in given] == list(names)
    assert given[2].frames is not None and given[2].frames.shape == (22, 64, 96, 3)
    video, audio = published(
        checkpoint, reference_model, conditioning.text.embeds, conditioning.text.tags, list(given),
        REQUEST,
    )  # fmt: skip
    latents, _ = load_latents(RunFiles(out).latents)
    errors = relative_error(latents.video, video), relative_error(latents.audio, audio)
    print(f"PARITY | references end to end, 3 steps | diffusers' blocks | {max(errors):.1e}")
    assert max(errors) <= 1e-4
    without = run_request(
        replace(REQUEST, references=(files["image"], files["mute"])),
        RunOptions(
            checkpoint=checkpoint, out=tmp_path / "w.mp4", device="cpu", stop_after="sample"
        ),
        QuietHost(),
    )
    assert without.latents_sha256 != latents.sha256


def test_a_plan_counts_dense_attention_and_the_rows_of_references(checkpoint: Path) -> None:
    models = open_models(checkpoint, "cpu")
    dense = with_reference_transformer(models).facts()
    assert dense.dense and not models.facts().dense
    size = Geometry(1344, 768, 243)
    published = ModelFacts()
    windows = workload(Request(size), size, published)
    whole = workload(Request(size), size, replace(published, dense=True))
    assert windows.attention_flops < whole.attention_flops / 3
    assert whole.attention_flops == 4.0 * whole.rows**2 * whole.width and whole.linear_rows == 0
    given = Request(size, references=("a", "b"), reference_rows=9000)
    assert workload(given, size, published).condition_rows == 9000
    assert workload(replace(given, reference_rows=None), size, published).condition_rows == 2 * 1008


def test_the_presentation_is_that_of_the_published_pipeline() -> None:
    encoders = pytest.importorskip("diffusers.modular_pipelines.minimax_h3.encoders")
    step = encoders.MiniMaxH3Ref2VATextEncoderStep()
    frames = torch.zeros(56, 32, 32, 3, dtype=torch.uint8)
    frames[:] = torch.arange(56, dtype=torch.uint8)[:, None, None, None]
    given = [
        ReferenceMedia("audio", sound=torch.ones(2, 900)),
        ReferenceMedia("image", frames[:1]),
        ReferenceMedia("video", frames, torch.ones(2, 900)),
        ReferenceMedia("image", frames[:1]),
        ReferenceMedia("video", frames[:22]),
    ]
    theirs = [SimpleNamespace(kind=i.kind, has_audio=i.sound is not None) for i in given]
    seen, times = [], []
    for item in (given[2], given[4]):
        assert item.frames is not None
        shown, at = step._sample_video_condition_frames(item.frames.numpy(), 24.0, 2.0, 2)
        seen.append([int(frame[0, 0, 0]) for frame in shown])
        times.append(at)

    def letters(text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}

    tokenizer = SimpleNamespace(convert_tokens_to_ids=lambda name: name)
    tokenizer = type("T", (), {"__call__": lambda self, *a, **k: letters(*a, **k),
                               "convert_tokens_to_ids": lambda self, name: name})()  # fmt: skip
    ids, tags = step._build_presentation(tokenizer, "go", theirs, [3, 3], [2, 2], times)
    ours: list[Any] = []
    our_tags: list[int] = []
    looked: list[list[int]] = [[], []]
    for item in references_shown(given):
        ours += [ord(letter) for letter in item.label]
        our_tags += [1] * len(item.label)
        if item.frames is None:
            continue
        video = "seconds" in item.label
        count, pad = (2, "<|video_pad|>") if video else (3, "<|image_pad|>")
        ours += ["<|vision_start|>", *[pad] * count, "<|vision_end|>"]
        our_tags += [0] * (count + 2)
        if video:
            looked[item.of_frames == len(seen[1])] += item.frames[:, 0, 0, 0].tolist()
    assert ours + [ord(letter) for letter in "go"] == ids and [*our_tags, 1, 1] == tags
    assert looked == seen


@pytest.mark.usefixtures("small_canvases")
@pytest.mark.parametrize(
    ("names", "match"),
    [
        (["image"] * 10, "10 image references, at most 9"),
        (["mute"] * 4, "4 video references, at most 3"),
        (["image", *["audio"] * 4], "4 audio references, at most 3"),
        (["audio"], "a sound reference alone"),
        (["image"] * 9 + ["mute"] * 3 + ["audio"], "13 references, at most 12"),
    ],
)
def test_too_many_references_are_refused(
    files: dict[str, str], names: list[str], match: str
) -> None:
    with pytest.raises(RequestError, match=match):
        load_references([files[name] for name in names], 22, print)


def test_files_that_are_no_references_are_refused_by_name(
    files: dict[str, str], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(Path(files["image"]).read_bytes()[:200])
    text = tmp_path / "notes.bin"
    text.write_text("no media at all " * 20)
    cases = {
        str(tmp_path / "gone.png"): "gone.png does not exist",
        str(broken): "broken.png is no readable picture",
        str(text): "notes.bin",
        write_video(tmp_path / "still.mp4", 1, sound=None): r"still.mp4 holds 1 frame",
        write_video(tmp_path / "short.mp4", 12, sound=None): "short.mp4 has 12 frames",
    }
    silent = write_sound(tmp_path / "silent.wav", torch.zeros(2, 4000))
    for file, match in cases.items():
        with pytest.raises(RequestError, match=match):
            load_references([file], 22, print)
    with pytest.raises(RequestError, match=r"silent.wav.*silent"):
        load_references([files["image"], silent], 22, print)
    with pytest.raises(RequestError, match="one or the other"):
        load_references([files["image"]], 22, print, keyframes=1)


@pytest.mark.usefixtures("small_canvases")
def test_bad_references_are_refused_before_anything_loads(
    checkpoint: Path, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded(*_: Any, **__: Any) -> None:
        raise AssertionError("something was loaded")

    monkeypatch.setattr("lowpeak.engine.models.open_text_encoder", loaded)
    monkeypatch.setattr("lowpeak.engine.run.Session", loaded)
    request = replace(REQUEST, references=(files["audio"],))
    out = tmp_path / "v.mp4"
    with pytest.raises(RequestError, match="sound reference alone"):
        run_request(request, RunOptions(checkpoint=checkpoint, out=out, device="cpu"), QuietHost())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small_canvases")
def test_a_video_is_put_on_24_frames_and_its_silent_sound_left_out(
    files: dict[str, str], tmp_path: Path
) -> None:
    slow = write_video(tmp_path / "slow.mp4", 20, sound=torch.zeros(2, 20_000), fps=12)
    said: list[str] = []
    (found,) = load_references([slow], 39, said.append)
    assert found.frames is not None and found.frames.shape[0] == 39  # 20 at 12 a second are 40
    assert torch.equal(found.frames[4], found.frames[5])
    assert not torch.equal(found.frames[5], found.frames[6])
    assert found.sound is None and "silent and is left out" in said[0]
    (cut,) = load_references([files["video"]], 22, print)
    assert cut.frames is not None and cut.sound is not None
    assert cut.frames.shape[0] == 22 and cut.sound.shape == (2, int(22 / 24 * RATE))
    assert cut.rows == 7 * 2 * 3 + 2 * 37
