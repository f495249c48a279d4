"""The latent upscaler's reference form and its file, against golden tensors."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from lowpeak.engine.errors import CheckpointError
from lowpeak.engine.sampling.canvas import lift_scale
from lowpeak.engine.sampling.upscaler import upscale
from lowpeak.engine.sampling.upscaler_file import (
    UpscalerConfig,
    open_upscaler,
    write_toy_upscaler,
)

FULL = "upscaler_full_recipe"


def error(found: torch.Tensor, want: torch.Tensor) -> float:
    return float((found.double() - want.double()).abs().max() / want.double().abs().max())


def metadata(file: Path) -> dict:
    with safe_open(file, "pt") as opened:
        return json.loads(opened.metadata()["fixture"])


def config_of(about: dict) -> UpscalerConfig:
    given = about["config"]
    return UpscalerConfig(
        given["channels"], given["in_blocks"], given["out_blocks"], given["in_channels"]
    )


def tiny_files(folder: Path) -> list[Path]:
    found = [
        path for path in sorted(folder.glob("upscaler_*.safetensors")) if FULL not in path.name
    ]
    assert found, "no upscaler files in the golden folder"
    return found


def check_case(
    case: str, about: dict, tensors: dict, weights: dict, *, half: bool = False
) -> float:
    """Worst error of a case's recorded values; asserts the tolerance of the golden README."""
    prefix = f"{case}/fp16/" if half else f"{case}/"
    seen: dict[str, torch.Tensor] = {}
    wanted = {
        key.removeprefix(f"{prefix}mid/") for key in tensors if key.startswith(f"{prefix}mid")
    }
    options = {}
    if "latents_mean" in about:
        options = {"mean": about["latents_mean"], "std": about["latents_std"]}
    described = about["cases"][case]
    assert lift_scale(tuple(described["source"]), tuple(described["target"])) == described["scale"]
    out = upscale(
        tensors[f"{case}/in/latents"],
        tuple(described["target"]),
        weights,
        config_of(about),
        probe=lambda name, value: seen.update({name: value}) if name in wanted else None,
        **options,
    )
    assert set(seen) == wanted
    errors = {name: error(value, tensors[f"{prefix}mid/{name}"]) for name, value in seen.items()}
    errors["out"] = error(out, tensors[f"{prefix}out/latents"])
    limit = 1e-2 if half else 1e-5
    assert max(errors.values()) <= limit, (case, errors)
    assert out.dtype == torch.float32
    return max(errors.values())


def test_golden_tiny_cases_and_every_recorded_stage(golden_dir: Path) -> None:
    for file in tiny_files(golden_dir):
        about, tensors = metadata(file), load_file(file)
        state = {k.removeprefix("state/"): v for k, v in tensors.items() if k.startswith("state/")}
        single = {name: value.float() for name, value in state.items()}
        worst = max(check_case(case, about, tensors, single) for case in about["cases"])
        print(f"PARITY | latent upscaler, {file.stem} | golden, fp32 | {worst:.1e}")
        halves = [case for case, described in about["cases"].items() if described.get("half")]
        for case in halves:
            loose = check_case(case, about, tensors, state, half=True)
            print(f"PARITY | latent upscaler, {file.stem} {case} | golden, fp16 | {loose:.1e}")


def recipe_weights(recipe: dict) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(recipe["seed"])
    weights = {}
    for tensor in recipe["state"]:
        draw = torch.rand(tensor["shape"], generator=generator)
        value = ((draw * 2 - 1) * torch.tensor(tensor["amplitude"]) + tensor["centre"]).half()
        assert value.flatten()[:2].tolist() == tensor["first"], tensor["name"]
        weights[tensor["name"]] = value
    return weights


def test_golden_full_size_names_shapes_and_bytes(golden_dir: Path) -> None:
    recipe = json.loads((golden_dir / f"{FULL}.json").read_text())
    shapes = UpscalerConfig().shapes()
    assert shapes == {item["name"]: tuple(item["shape"]) for item in recipe["state"]}
    assert len(shapes) == recipe["tensors"]
    elements = sum(torch.Size(shape).numel() for shape in shapes.values())
    assert elements == recipe["elements"]
    assert 2 * elements == recipe["released_file"]["tensor_bytes_float16"]


def test_golden_full_recipe(golden_dir: Path) -> None:
    recipe = json.loads((golden_dir / f"{FULL}.json").read_text())
    file = golden_dir / f"{FULL}.safetensors"
    about, tensors = metadata(file), load_file(file)
    weights = recipe_weights(recipe)
    smallest = min(recipe["state"], key=lambda item: torch.Size(item["shape"]).numel())
    digest = hashlib.sha256(weights[smallest["name"]].numpy().tobytes()).hexdigest()
    assert digest == smallest["sha256_float16_le"]
    single = {name: value.float() for name, value in weights.items()}
    for case in about["cases"]:
        worst = check_case(case, about, tensors, single)
        print(f"PARITY | latent upscaler at the released size | golden, fp32 | {worst:.1e}")


def test_equal_size_returns_the_latents_untouched() -> None:
    latents = torch.randn(1, 24, 3, 4, 6)
    assert upscale(latents, (4, 6), {}, UpscalerConfig()) is latents


@pytest.mark.parametrize("prefix", ["", "upscaler."])
def test_a_toy_is_written_and_read_with_and_without_the_prefix(tmp_path: Path, prefix: str) -> None:
    file = write_toy_upscaler(tmp_path / "toy.safetensors", 3, 32, 2, prefix=prefix)
    assert file.config == UpscalerConfig(32, 2, 2) and file.prefix == prefix
    assert file.tensor_bytes == 2 * sum(
        torch.Size(s).numel() for s in file.config.shapes().values()
    )
    weights = file.read(dtype=torch.float32)
    assert set(weights) == set(file.config.shapes())
    assert set(file.read("conv_in", "embed")) == {
        "conv_in.weight", "conv_in.bias",
        "embed.0.weight", "embed.0.bias", "embed.2.weight", "embed.2.bias",
    }  # fmt: skip
    out = upscale(torch.randn(1, 24, 3, 2, 3), (4, 6), weights, file.config)
    assert out.shape == (1, 24, 3, 4, 6) and bool(out.isfinite().all())


def damaged(tmp_path: Path, change) -> Path:
    write_toy_upscaler(tmp_path / "good.safetensors", 1, 32, 1)
    tensors = load_file(tmp_path / "good.safetensors")
    change(tensors)
    path = tmp_path / "bad.safetensors"
    save_file(tensors, str(path))
    return path


@pytest.mark.parametrize(
    ("change", "tensor", "message"),
    [
        (lambda t: t.pop("in_blocks.0.out_norm.bias"), "in_blocks.0.out_norm.bias", "missing"),
        (lambda t: t.update({"conv_out.bias": torch.zeros(25)}), "conv_out.bias", "wrong shape"),
        (lambda t: t.update({"embed.0.bias": torch.zeros(64, dtype=torch.int8)}), "embed.0.bias",
         "wrong dtype"),
        (lambda t: t.update({"extra": torch.zeros(1)}), "extra", "unexpected"),
        (lambda t: t.pop("conv_in.weight"), "conv_in.weight", "not a latent upscaler"),
        (lambda t: t.update({"conv_in.weight": torch.zeros(32, 16, 3, 3, 3)}), "conv_in.weight",
         "another latent space"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, change, tensor, message) -> None:
    path = damaged(tmp_path, change)
    with pytest.raises(CheckpointError, match=message) as refused:
        open_upscaler(path)
    assert refused.value.tensor == tensor
    assert refused.value.file == str(path)


def test_a_truncated_or_absent_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "toy.safetensors"
    write_toy_upscaler(path, 1)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="readable"):
        open_upscaler(path)
    with pytest.raises(CheckpointError, match="missing"):
        open_upscaler(tmp_path / "nowhere.safetensors")
