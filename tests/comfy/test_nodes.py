"""What each node does, against a fake engine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lowpeak.engine.errors import (
    Cancelled,
    CheckpointError,
    DoesNotFit,
    MeasuredOverrun,
    RequestError,
    Shortage,
)
from lowpeak.nodes import convert, handles, tables
from lowpeak.nodes.engine_seam import Conditions, Latents


@pytest.fixture
def model(nodes: dict[str, Any]) -> handles.ModelHandle:
    return nodes["LowpeakLoadModel"].execute("toy")[0]


@pytest.fixture
def conditioning(nodes: dict[str, Any], model: Any) -> Any:
    return nodes["LowpeakEncodePrompt"].execute(model, "a fox in snow")[0]


def sample(nodes: dict[str, Any], model: Any, conditioning: Any, **more: Any) -> Any:
    sized = {"width": 256, "height": 320, "seconds": 1.0, **more}
    return nodes["LowpeakSample"].execute(model, conditioning, 5, **sized)


def asked(pack: Any, what: str) -> Any:
    return next(detail for name, detail in reversed(pack.engine.calls) if name == what)


def test_a_model_handle_carries_budgets_and_facts(nodes: dict[str, Any]) -> None:
    handle = nodes["LowpeakLoadModel"].execute("toy", vram_gib=4.0, ram_gib=0.0)[0]
    assert (handle.vram_bytes, handle.ram_bytes) == (4 << 30, None)
    assert handle.facts["blocks"] == 2 and handle.checkpoint.name == "toy"


def test_a_missing_checkpoint_is_said_before_queueing(nodes: dict[str, Any]) -> None:
    node = nodes["LowpeakLoadModel"]
    assert "models/lowpeak" in node.validate_inputs(checkpoint="nope")
    assert node.validate_inputs(checkpoint="toy", vram_gib=8.0, ram_gib=0.0) is True
    assert node.validate_inputs() is True
    for bad in (-1.0, float("nan"), float("inf")):
        assert "amount of memory" in node.validate_inputs(checkpoint="toy", vram_gib=bad)


def test_a_changed_file_changes_the_fingerprint(nodes: dict[str, Any], pack: Any) -> None:
    node, file = nodes["LowpeakLoadModel"], pack.folders.root / "models/toy/root.safetensors"
    before = node.fingerprint_inputs(checkpoint="toy", vram_gib=1.0, ram_gib=0.0)
    assert node.fingerprint_inputs(checkpoint="toy", vram_gib=2.0, ram_gib=0.0) == before
    os.utime(file, ns=(1, 1))
    touched = node.fingerprint_inputs(checkpoint="toy")
    file.write_bytes(b"longer")
    assert len({before, touched, node.fingerprint_inputs(checkpoint="toy")}) == 3


def test_loras_chain_and_reach_the_request(
    nodes: dict[str, Any], model: Any, conditioning: Any, pack: Any
) -> None:
    load = nodes["LowpeakLoadLora"]
    one, report = load.execute(model, "grain.safetensors", 0.5)
    two, _ = load.execute(one, "grain.safetensors", -1.0, allow_partial=True)
    sample(nodes, two, conditioning)
    assert report == "4 of 4 tensors bound"
    assert [item.strength for item in asked(pack, "sample")[0].loras] == [0.5, -1.0]
    assert [item.allow_partial for item in two.loras] == [False, True]
    assert model.loras == (), "a handle is not changed by chaining"
    assert "models/loras" in load.validate_inputs(lora="nope.safetensors")


def test_an_empty_prompt_works(nodes: dict[str, Any], model: Any) -> None:
    [[hidden, extra]] = nodes["LowpeakEncodePrompt"].execute(model, "")[0]
    assert hidden.ndim == 3 and extra["minimax_token_tags"].shape == (hidden.shape[1],)


def test_keyframes_become_cores_keys_and_reach_the_request(
    nodes: dict[str, Any], model: Any, pack: Any
) -> None:
    picture = torch.rand(1, 64, 96, 4) * 2 - 0.5
    (made,) = nodes["LowpeakKeyframes"].execute(
        model, "x", 256, 320, 1.0, first_frame=picture, last_frame=picture
    )
    _, pictures = asked(pack, "encode")
    assert pictures.first_frame.shape == (1, 64, 96, 3)
    assert pictures.first_frame.min() >= 0 and pictures.first_frame.max() <= 1
    frames = [item["resolved_frame_index"] for item in made[0][1]["minimax_keyframes"]]
    assert frames == [0, 38]
    sample(nodes, model, made)
    request, conditions = asked(pack, "sample")
    assert request.keyframes == 2 and len(conditions.keyframes) == 2


def test_keyframes_without_a_frame_are_refused(nodes: dict[str, Any], model: Any) -> None:
    with pytest.raises(RequestError, match="first_frame"):
        nodes["LowpeakKeyframes"].execute(model, "x", 256, 320, 1.0)


def test_references_keep_their_order_and_need_one(
    nodes: dict[str, Any], model: Any, pack: Any
) -> None:
    node = nodes["LowpeakReferences"]
    with pytest.raises(RequestError, match="at least one"):
        node.execute(model, "x", 256, 320, 1.0, images={}, videos=None)
    images = {"image_0": torch.zeros(2, 8, 8, 3), "image_1": torch.ones(1, 8, 8, 3)}
    sounds = {"sound_0": {"waveform": torch.zeros(1, 1, 50), "sample_rate": 8000}}
    (made,) = node.execute(model, "<Picture 1>", 256, 320, 1.0, images=images, sounds=sounds)
    _, pictures = asked(pack, "encode")
    assert [float(image.mean()) for image in pictures.images] == [0.0, 1.0]
    assert pictures.sounds[0][0].shape == (2, 50) and pictures.sounds[0][1] == 8000
    assert len(made[0][1]["minimax_refs"]) == 2


def test_sizes_off_the_grid_are_refused_before_queueing(nodes: dict[str, Any]) -> None:
    check = nodes["LowpeakSample"].validate_inputs
    assert check(width=1344, height=768, seconds=5.0) is True
    assert check() is True and check(width=1344) is True
    assert "1344 px is" in check(width=1350, height=768, seconds=5.0)
    assert "aspect" in check(width=4096, height=256, seconds=5.0)
    assert "shorter" in check(width=512, height=512, seconds=0.1)
    assert "longer" in check(width=512, height=512, seconds=61.0)
    assert check(width=512, height=512, seconds=float("nan")) is not True


def test_sampling_gives_cores_nested_latent_and_a_run(
    nodes: dict[str, Any], model: Any, conditioning: Any, pack: Any
) -> None:
    latent, first, run = sample(nodes, model, conditioning, passes="single")
    video, audio = latent["samples"].unbind()
    assert video.shape == (1, 24, 12, 20, 16) and audio.shape == (1, 32, 2, 65)
    assert first["samples"].unbind()[0] is video, "one pass: the same latents"
    request, conditions = asked(pack, "sample")
    assert request.seed == 5 and request.text_rows == 4 == conditions.hidden.shape[0]
    book = pack.runs.get(run.run_id)
    assert book["status"] == "done" and book["plan"]["fits"]
    assert book["phases"]["sample_high"]["measured"]["vram_peak_bytes"] == 2**29


def test_zero_steps_mean_as_quality_says(
    nodes: dict[str, Any], model: Any, conditioning: Any, pack: Any
) -> None:
    sample(nodes, model, conditioning, quality="max", passes="two", base_steps=0, refine_steps=4)
    request = asked(pack, "sample")[0]
    assert (request.quality, request.two_pass) == ("max", True)
    assert (request.base_steps, request.refine_steps) == (None, 4)


def test_a_plan_decides_the_size_over_widgets_and_latent(
    nodes: dict[str, Any], model: Any, conditioning: Any, pack: Any
) -> None:
    plan, text = nodes["LowpeakPlan"].execute(model, 512, 288, 2.0, "high")
    assert "Fits" in text and "sample_high" in text
    other = sample(nodes, model, conditioning)[0]
    sample(nodes, model, conditioning, plan=plan, size_from=other)
    request = asked(pack, "sample")[0]
    assert (request.geometry.width_px, request.quality, request.seed) == (512, "high", 5)
    sample(nodes, model, conditioning, width=1344, size_from=other)
    assert asked(pack, "sample")[0].geometry.width_px == 256


def test_a_plan_that_does_not_fit_says_what_does(nodes: dict[str, Any], pack: Any) -> None:
    pack.engine.forecast = lambda *a: {
        "fits": False,
        "short": [{"axis": "ram", "phase": "decode", "need_bytes": 2**31, "have_bytes": 2**30}],
        "fits_instead": [{"width": 512, "height": 288, "frames": 124}],
    }
    model = nodes["LowpeakLoadModel"].execute("toy")[0]
    _, text = nodes["LowpeakPlan"].execute(model, 1344, 768, 5.0)
    assert "RAM: phase decode needs 2.00 GiB, 1.00 GiB is usable" in text
    assert "512x288, 124 frames" in text


def test_a_refusal_is_raised_typed_and_kept(
    nodes: dict[str, Any], model: Any, conditioning: Any, pack: Any
) -> None:
    pack.engine.refusal = DoesNotFit([Shortage("vram", "sample_high", 2**33, 2**32)])
    with pytest.raises(DoesNotFit, match=r"short by 4\.00 GiB"):
        sample(nodes, model, conditioning)
    assert pack.runs.get("prompt-1")["status"] == "failed"


def test_saved_latents_come_back_bit_for_bit_through_refine(
    nodes: dict[str, Any], model: Any, conditioning: Any, pack: Any
) -> None:
    node = nodes["LowpeakRefine"]
    assert "saved" in node.validate_inputs(saved=tables.NEWEST)
    latent, _, _ = sample(nodes, model, conditioning, save_latents=True)
    assert node.validate_inputs(saved=tables.NEWEST, width=512, height=640) is True
    before = node.fingerprint_inputs(saved=tables.NEWEST)
    out, run = node.execute(model, conditioning, tables.NEWEST, 5, 512, 640)
    request, first = asked(pack, "refine")
    assert torch.equal(first.video, latent["samples"].unbind()[0])
    assert torch.equal(first.audio, latent["samples"].unbind()[1])
    assert request.geometry.frames == 39 and request.two_pass is True
    assert out["samples"].unbind()[0].shape[-2:] == (40, 32)
    assert before == node.fingerprint_inputs(saved=tables.NEWEST)
    stems = {path.name.split(".")[0] for path in (pack.folders.root / "output").iterdir()}
    assert stems == {"first", "final"}
    assert node.fingerprint_inputs(saved=tables.FROM_INPUT) == tables.FROM_INPUT
    assert run.run_id == "prompt-1"


@pytest.mark.parametrize("failure", [MeasuredOverrun("sample_high", "vram", 1, 2), Cancelled("x")])
def test_a_failed_second_pass_leaves_the_first(
    nodes: dict[str, Any], model: Any, conditioning: Any, pack: Any, failure: Exception
) -> None:
    pack.engine.failure = failure
    with pytest.raises(type(failure)):
        sample(nodes, model, conditioning)
    pack.engine.failure = None
    nodes["LowpeakRefine"].execute(model, conditioning, tables.NEWEST, 5, 512, 640)
    assert asked(pack, "refine")[1].video.shape[2] == 12
    with pytest.raises(type(failure)):
        pack.engine.failure = failure
        sample(nodes, model, conditioning, passes="single")
    assert len(list((pack.folders.root / "output").iterdir())) == 1


def test_a_finished_run_leaves_no_latents_unasked(
    nodes: dict[str, Any], model: Any, conditioning: Any, pack: Any
) -> None:
    sample(nodes, model, conditioning)
    assert list((pack.folders.root / "output").iterdir()) == []


def test_refine_without_a_first_pass_is_refused(
    nodes: dict[str, Any], model: Any, conditioning: Any
) -> None:
    with pytest.raises(RequestError, match="connect first_pass"):
        nodes["LowpeakRefine"].execute(model, conditioning, tables.FROM_INPUT, 5, 512, 640)


def test_decoding_gives_a_file_and_its_sound(
    nodes: dict[str, Any], model: Any, conditioning: Any
) -> None:
    latent = sample(nodes, model, conditioning)[0]
    video, audio, _ = nodes["LowpeakDecode"].execute(model, latent)
    assert video.file.suffix == ".mp4" and video.file.stat().st_size > 0
    assert audio["waveform"].shape == (1, 2, 39 * 32000 // 24) and audio["sample_rate"] == 32000
    silent = nodes["LowpeakDecode"].execute(model, latent, with_sound=False)[1]
    assert silent["waveform"].shape == (1, 2, 1)


def test_a_report_holds_measurements_and_no_path_or_prompt(
    nodes: dict[str, Any], model: Any, conditioning: Any, pack: Any
) -> None:
    run = sample(nodes, model, conditioning)[2]
    plan, _ = nodes["LowpeakPlan"].execute(model, 512, 288, 2.0)
    made = nodes["LowpeakReport"].execute(run=run, plan=plan)
    image, text = made["result"]
    report = json.loads(text)
    assert report["run"]["phases"]["sample_high"]["measured"] and report["plan"]["fits"]
    assert "fox" not in text and str(pack.folders.root) not in text
    assert image.ndim == 4 and image.shape[-1] == 3 and 0 <= image.min() < image.max() <= 1
    alone = nodes["LowpeakReport"].execute(plan=plan)["result"][0]
    assert alone.shape != image.shape or not torch.equal(alone, image)
    with pytest.raises(RequestError, match="connect run or plan"):
        nodes["LowpeakReport"].execute()
    with pytest.raises(RequestError, match="no longer"):
        nodes["LowpeakReport"].execute(run=handles.RunHandle("gone"))


@pytest.mark.parametrize(
    ("latent", "says"),
    [
        ({"samples": torch.zeros(1, 4, 8, 8)}, "pair of video and audio"),
        ({}, "pair of video and audio"),
        (None, "pair of video and audio"),
        ((torch.zeros(1, 16, 7, 8, 8), torch.zeros(1, 32, 2, 37)), r"\[1, 24, F, h, w\]"),
        ((torch.zeros(2, 24, 7, 8, 8), torch.zeros(2, 32, 2, 37)), r"\[1, 24, F, h, w\]"),
        ((torch.zeros(1, 24, 7, 8, 8), torch.zeros(1, 32, 37)), r"\[1, 32, 2, A\]"),
        ((torch.zeros(1, 24, 6, 8, 8), torch.zeros(1, 32, 2, 37)), "not 5n\\+2"),
    ],
)
def test_latents_of_other_models_are_refused_in_words(
    nodes: dict[str, Any], model: Any, latent: Any, says: str
) -> None:
    if isinstance(latent, tuple):
        nested = SimpleNamespace(is_nested=True, unbind=lambda parts=latent: parts)
        latent = {"samples": nested}
    with pytest.raises(RequestError, match=says):
        nodes["LowpeakDecode"].execute(model, latent)


@pytest.mark.parametrize(
    ("conditioning", "says"),
    [
        ([], "empty"),
        ([[torch.zeros(1, 77, 768), {}]], "minimax_token_tags"),
        ([[torch.zeros(1, 7, 8), {}]] * 2, "takes one"),
        ([[torch.zeros(2, 7, 8), {"minimax_token_tags": torch.ones(7)}]], "expected"),
    ],
)
def test_conditioning_of_other_models_is_refused_in_words(conditioning: Any, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        convert.conditioning_in(conditioning)


def test_conditions_round_trip_through_cores_form() -> None:
    keyframe = {"frame": 38, "latent": torch.rand(1, 24, 1, 4, 4)}
    made = Conditions(torch.rand(5, 32), torch.tensor([1, 0, 0, 1, 1]), (keyframe,), ())
    back = convert.conditioning_in(convert.conditioning_out(made))
    assert torch.equal(back.hidden, made.hidden) and torch.equal(back.tags, made.tags)
    assert back.keyframes[0]["frame"] == 38
    assert torch.equal(back.keyframes[0]["latent"], keyframe["latent"])


def test_a_damaged_file_of_latents_names_itself(tmp_path: Path) -> None:
    file = tmp_path / "x.latents.safetensors"
    convert.save_latents(Latents(torch.rand(1, 24, 7, 2, 2), torch.rand(1, 32, 2, 37)), file, {})
    assert list(tmp_path.iterdir()) == [file], "no temporary file is left"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(CheckpointError, match=r"x\.latents"):
        convert.load_latents(file)


def test_video_references_are_resampled_to_24_frames() -> None:
    frames = torch.arange(12.0).view(12, 1, 1, 1).expand(12, 2, 2, 3) / 12
    parts = SimpleNamespace(images=frames, audio=None, frame_rate=12)
    taken, sound = convert.video_in(SimpleNamespace(get_components=lambda: parts))
    assert taken.shape[0] == 24 and sound is None
    assert torch.equal(taken[::2], frames)
