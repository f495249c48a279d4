"""`models list` and `models verify`: recognised by header, each fault named with what to do."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lowpeak.engine.checkpoint.catalogue import PARTS, choose_weight_format, parts_for
from lowpeak.engine.checkpoint.header import read_header, write_tensors
from lowpeak.engine.checkpoint.inventory import model_folders, take_inventory
from lowpeak.engine.checkpoint.pull_record import RECORD_FILE, hash_file
from lowpeak.engine.checkpoint.recognise import find_models, recognise
from lowpeak.engine.checkpoint.toy import write_toy_checkpoint
from lowpeak.engine.checkpoint.verify import verify
from lowpeak.engine.checkpoint.verify_checkpoint import sample_rows
from lowpeak.engine.errors import CheckpointError, RequestError
from lowpeak.engine.model_files import (
    convert_files,
    list_files,
    models_roots,
    pull_files,
    verify_files,
)
from lowpeak.engine.sampling.upscaler_file import write_toy_upscaler
from lowpeak.engine.toy import write_toy


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> dict[str, Path]:
    top = tmp_path_factory.mktemp("toys")
    return {
        name: write_toy_checkpoint(top / name, format=name, blocks=2)
        for name in ("edge-fp8-rowwise", "edge-int8", "openvdn", "comfy")
    }


def vae_file(path: Path) -> Path:
    names = ("decoder.transformer_blocks.0.attn.to_qkv.weight", "decoder.register_tokens")
    write_tensors(path, {name: torch.ones(2, 2).half() for name in names})
    return path


def audio_file(path: Path) -> Path:
    write_tensors(path, {"decoder.dec_in_proj.weight": torch.ones(2, 2)})
    return path


def text_file(path: Path) -> Path:
    names = ("model.layers.0.self_attn.q_proj.weight", "visual.patch_embed.weight")
    write_tensors(path, {name: torch.ones(2, 2, dtype=torch.uint8) for name in names})
    return path


def mixed(models: Path, toys) -> Path:
    """A models folder as ComfyUI has it, with names that say nothing."""
    shutil.copytree(toys["edge-int8"], models / "lowpeak" / "h3")
    vae_file(models / "vae" / "a.safetensors")
    audio_file(models / "vae" / "b.safetensors")
    text_file(models / "text_encoders" / "c.safetensors")
    (models / "latent_upscale_models").mkdir()
    write_toy_upscaler(models / "latent_upscale_models" / "d.safetensors", 1)
    write_tensors(models / "loras" / "e.safetensors",
                  {"transformer_blocks.0.attn.to_q.lora_A.weight": torch.ones(2, 2)})  # fmt: skip
    write_tensors(models / "vae" / "other.safetensors", {"something.else": torch.ones(2)})
    return models


# ---------------------------------------------------------------- list


def test_an_empty_folder_lists_everything_with_size_source_and_licence(tmp_path) -> None:
    inventory = take_inventory([tmp_path], capability=(9, 0))
    document = json.loads(json.dumps(inventory.as_json()))
    assert not document["ready"]
    assert document["weight_format"] == "fp8-rowwise"
    kinds = {item["kind"] for item in document["items"]}
    assert kinds == {"transformer", "tables", "text_encoder", "video_vae", "audio_vae", "upscaler"}
    for item in document["items"]:
        assert item["missing"] and item["source"].startswith("https://huggingface.co/")
        assert item["licence"] and item["licence_url"]
    assert document["download_bytes"] > 40e9
    assert "missing" in inventory.text() and inventory.text().isascii()


def test_a_mixed_folder_is_recognised_by_headers(tmp_path, toys) -> None:
    models = mixed(tmp_path, toys)
    inventory = take_inventory(model_folders(models), capability=(8, 6))
    assert not inventory.missing, inventory.text()
    document = inventory.as_json()
    assert document["ready"] and document["download_bytes"] == 0
    by_kind = {item["kind"]: item["present"][0]["path"] for item in document["items"]}
    assert by_kind["video_vae"].endswith("a.safetensors")
    assert by_kind["audio_vae"].endswith("b.safetensors")
    assert by_kind["text_encoder"].endswith("c.safetensors")
    assert by_kind["upscaler"].endswith("d.safetensors")
    assert [item["kind"] for item in document["others"]] == ["lora"]


def test_what_is_here_in_another_format_spares_the_download(tmp_path, toys) -> None:
    models = mixed(tmp_path, toys)
    inventory = take_inventory(model_folders(models), capability=(9, 0))
    need = inventory.needs[0]
    assert need.part.weight_format == "fp8-rowwise" and need.present
    assert "int8-convrot is here" in need.note


def test_several_transformers_give_the_best_fit(tmp_path, toys) -> None:
    models = mixed(tmp_path, toys)
    shutil.copytree(toys["edge-fp8-rowwise"], models / "lowpeak" / "h3", dirs_exist_ok=True)
    for capability, wanted in (((8, 6), "int8-convrot"), ((9, 0), "fp8-rowwise")):
        found = take_inventory(model_folders(models), capability=capability).needs[0].present
        assert found[0].weight_format == wanted


def test_a_comfy_base_needs_its_stage(tmp_path, toys) -> None:
    (tmp_path / "diffusion_models").mkdir()
    for path in (toys["comfy"] / "diffusion_models").glob("*"):
        shutil.copy(path, tmp_path / "diffusion_models")
    inventory = take_inventory(model_folders(tmp_path))
    assert not inventory.needs[0].present and "VDN stage" in inventory.needs[0].note
    shutil.copytree(toys["comfy"] / "vdn", tmp_path / "lowpeak" / "vdn")
    inventory = take_inventory(model_folders(tmp_path))
    kinds = [item.kind for item in inventory.needs[0].present]
    assert kinds == ["transformer", "vdn_stage"]
    assert "convert" in inventory.needs[0].note


def test_missing_tables_are_a_part_of_their_own(tmp_path, toys) -> None:
    shutil.copytree(toys["edge-int8"], tmp_path / "lowpeak" / "h3")
    cache = next(tmp_path.rglob("manifest.json")).parent
    shutil.rmtree(cache / "adaln")
    for folder in cache.glob("adaln-tables-v2-*"):
        if len(read_header(folder / "00.safetensors").tensors) != 3:
            shutil.rmtree(folder)
    inventory = take_inventory(model_folders(tmp_path), quality="max", capability=(8, 6))
    assert "tables-quality" in [part.key for part in inventory.missing]
    light = take_inventory(model_folders(tmp_path), quality="light", capability=(8, 6))
    assert "tables-refine" in [part.key for part in light.missing], "8 steps are missing too"


def test_damaged_files_are_listed_with_their_damage(tmp_path, toys) -> None:
    models = mixed(tmp_path, toys)
    path = models / "vae" / "a.safetensors"
    path.write_bytes(path.read_bytes()[:-3])
    inventory = take_inventory(model_folders(models))
    assert "video-vae" in [part.key for part in inventory.missing]
    assert any("truncated" in item.problem for item in inventory.others)


def test_a_whole_miniature_is_ready(tmp_path) -> None:
    """Transformer, text encoder, upscaler and both autoencoders as `toy-checkpoint` writes them."""
    write_toy(tmp_path, size="tiny", weight_format="edge-int8", seed=1, blocks=1)
    inventory = take_inventory(model_folders(tmp_path))
    assert not inventory.missing, inventory.text()
    assert verify(tmp_path).sound


def test_every_openvdn_part_is_recognised(toys) -> None:
    kinds = [item.kind for item in find_models([toys["openvdn"]])]
    assert kinds == ["transformer", "vdn_stage"]
    assert recognise(next(toys["comfy"].glob("diffusion_models/*"))).kind == "transformer"


def test_each_card_gets_the_format_it_runs_best() -> None:
    cases = {
        ((7, 5), "linux"): "int8-convrot",
        ((8, 6), "windows"): "int8-convrot",
        ((8, 9), "linux"): "fp8-rowwise",
        ((8, 9), "windows"): "fp8-tensor",
        ((9, 0), "linux"): "fp8-rowwise",
        ((12, 0), "linux"): "fp8-tensor",
        (None, "linux"): "fp8-rowwise",
    }
    for (capability, system), wanted in cases.items():
        assert choose_weight_format(capability, system) == wanted
        assert sum(part.kind == "transformer" for part in parts_for("light", wanted)) == 1
    assert len({part.key for part in PARTS}) == len(PARTS)


# ---------------------------------------------------------------- verify


def block(folder: Path, number: int = 1) -> Path:
    return next(folder.rglob(f"blocks/{number:02d}.safetensors"))


def change(path: Path, name: str, edit: Callable[[torch.Tensor], torch.Tensor]) -> None:
    tensors = read_header(path).read_many()
    key = next(key for key in tensors if key.endswith(name))
    tensors[key] = edit(tensors[key])
    write_tensors(path, tensors)


def zero_half(tensor: torch.Tensor) -> torch.Tensor:
    tensor[::2] = 0
    return tensor


def nan_codes(tensor: torch.Tensor) -> torch.Tensor:
    tensor.view(torch.uint8)[:] = 0x7F  # not a number in e4m3fn
    return tensor


Damage = Callable[[Path], object]
FAULTS: dict[str, tuple[str, Damage, str, str]] = {
    "block truncated": (
        "edge-int8", lambda f: block(f).write_bytes(block(f).read_bytes()[:-9]),
        "truncated file", "Fetch this file again"),
    "block missing": (
        "edge-int8", lambda f: block(f).unlink(), "incomplete", "models verify"),
    "weights all zero": (
        "edge-int8", lambda f: change(block(f), "ff.net.2.weight_int8", torch.zeros_like),
        "all zero", "size is right"),
    "half the rows zero": (
        "edge-int8", lambda f: change(block(f), "ff.net.2.weight_int8", zero_half),
        "many rows are zero", "size is right"),
    "codes are NaN": (
        "edge-fp8-rowwise", lambda f: change(block(f), "ff.net.2.weight_fp8", nan_codes),
        "no numbers", "size is right"),
    "scale out of range": (
        "edge-int8", lambda f: change(block(f), "to_q.weight_scale", lambda t: t * 1e6),
        "scale out of range", "size is right"),
    "scale is zero": (
        "edge-fp8-rowwise", lambda f: change(block(f), "to_q.weight_scale", torch.zeros_like),
        "scale out of range", "size is right"),
    "norm is NaN": (
        "edge-int8", lambda f: change(block(f), "norm1.weight", lambda t: t * float("nan")),
        "no numbers", "size is right"),
    "root is NaN": (
        "edge-int8", lambda f: change(next(f.rglob("root.safetensors")), "proj_out.weight",
                                      lambda t: t / 0), "no numbers", "size is right"),
    "unfinished transfer": (
        "edge-int8", lambda f: (f / "x.safetensors.incomplete").write_bytes(b"12"),
        "unfinished transfer", "Finish it"),
    "pointer instead of file": (
        "edge-int8", lambda f: (f / "big.safetensors").write_text(
            "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
        "pointer to a large file", "git lfs pull"),
    "table file missing": (
        "edge-int8", lambda f: next(f.rglob("adaln-tables-v2-*/01.safetensors")).unlink(),
        "no file for block 1", ""),
    "adapter spec missing": (
        "openvdn", lambda f: next(f.rglob("turbo/adapter_config.json")).unlink(),
        "without its spec", "that file alone"),
    "shard missing": (
        "openvdn", lambda f: next(f.rglob("*00002-of-00003*")).unlink(), "incomplete", ""),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_verify_names_the_fault_and_the_way_out(toys, tmp_path, fault) -> None:
    source, damage, message, remedy = FAULTS[fault]
    folder = tmp_path / "models"
    shutil.copytree(toys[source], folder)
    damage(folder)
    found = verify(folder)
    errors = [item for item in found.findings if item.severity == "error"]
    assert not found.sound and errors, found.text()
    named = [item for item in errors if message in item.message]
    assert named and any(remedy in item.remedy for item in named), found.text()
    blamed = Path(max((item.file for item in errors), key=len))
    assert all(blamed.is_relative_to(item.file) for item in errors), "nothing else is blamed"
    json.dumps(found.as_json())
    print(f"FAULT | {fault} | {named[0]}")


def test_sound_checkpoints_have_no_findings(toys) -> None:
    for folder in toys.values():
        found = verify(folder)
        assert found.sound and not found.findings, found.text()


def test_oddities_are_notes(toys, tmp_path) -> None:
    folder = tmp_path / "models"
    shutil.copytree(toys["edge-int8"], folder / "cache" / "cache")
    shutil.copy(block(folder), folder / "copy.safetensors")
    stage = folder / "stage"
    shutil.copytree(next(toys["openvdn"].glob("stage-toy")), stage)
    spec = stage / "adapters/turbo/adapter_config.json"
    spec.rename(spec.with_name("adapter_spec.json"))
    found = verify(folder)
    messages = " | ".join(item.message for item in found.findings)
    assert found.sound, found.text()
    assert "same name" in messages and "twice" in messages and "adapter_spec.json" in messages


def test_hashes_are_compared_with_the_record(toys, tmp_path) -> None:
    folder = tmp_path / "models"
    shutil.copytree(toys["edge-int8"], folder)
    assert "no record" in verify(folder, hashes=True, samples=False).findings[0].message
    files = {}
    for path in (block(folder, 0), block(folder, 1)):
        name = path.relative_to(folder).as_posix()
        size = path.stat().st_size
        files[name] = {"bytes": size, "sha256": hash_file(path)}
    (folder / RECORD_FILE).write_text(json.dumps({"files": files}))
    assert verify(folder, hashes=True).sound
    path = block(folder, 1)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # the right size, sound samples, one wrong bit
    path.write_bytes(data)
    found = verify(folder, hashes=True)
    assert [item.file for item in found.findings] == [str(path)]
    assert "bytes differ" in found.findings[0].message and not found.sound
    path.unlink()
    assert "gone" in verify(folder, hashes=True).text()


def test_samples_take_first_and_last_row(tmp_path) -> None:
    tensor = torch.arange(1000.0).reshape(500, 2)
    write_tensors(tmp_path / "x.safetensors", {"a": tensor})
    rows = sample_rows(read_header(tmp_path / "x.safetensors"), "a")
    assert len(rows) == 32
    assert torch.equal(rows[0], tensor[0]) and torch.equal(rows[-1], tensor[-1])


def test_verifying_nothing_says_so(tmp_path) -> None:
    with pytest.raises(CheckpointError, match="not there"):
        verify(tmp_path / "nowhere")
    assert "no weight file is here" in verify(tmp_path).text()


# ---------------------------------------------------------------- the commands as functions


def test_the_commands_give_documents_texts_and_exit_codes(tmp_path, toys, monkeypatch) -> None:
    document, text, code = list_files(tmp_path)
    assert (document["ready"], code) == (False, 4) and "To fetch" in text
    models = mixed(tmp_path / "models", toys)
    document, text, code = list_files(models, capability=(8, 6))
    assert (document["ready"], code) == (True, 0) and "Ready" in text
    assert pull_files(models, capability=(8, 6))[1] == "Nothing is missing."
    document, _, code = verify_files(models)
    assert (document["sound"], code) == (True, 0)
    change(block(models), "norm1.weight", lambda tensor: tensor * float("nan"))
    document, text, code = verify_files(models)
    assert (document["sound"], code) == (False, 4) and "no numbers" in text
    with pytest.raises(RequestError, match="video-vae"):
        pull_files(models, only=["nonsense"])
    monkeypatch.setenv("LOWPEAK_MODELS", f"{models}{os.pathsep}{toys['openvdn']}")
    assert models_roots(None) == [models, toys["openvdn"]]
    document, _, code = verify_files(None)
    assert [item["sound"] for item in document["folders"]] == [False, True] and code == 4
    document, text, code = convert_files(toys["openvdn"], tmp_path / "out", format="edge-int8")
    assert code == 0 and document["blocks"] == 2 and str(tmp_path) in text


def test_links_that_go_round_and_closed_folders_do_not_stop_a_search(tmp_path, toys) -> None:
    shutil.copytree(toys["edge-int8"], tmp_path / "h3")
    (tmp_path / "h3" / "loop").symlink_to(tmp_path, target_is_directory=True)
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0)
    try:
        assert verify(tmp_path).sound
        assert len([item for item in find_models([tmp_path]) if item.kind == "transformer"]) == 1
    finally:
        closed.chmod(0o700)
