"""The tiled upscaler against the reference form, for every way a clip can fall into tiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from lowpeak.engine.errors import Cancelled
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.planner.passes import upscaler_workspace_bytes
from lowpeak.engine.sampling import upscaler_tiled
from lowpeak.engine.sampling.upscaler import upscale
from lowpeak.engine.sampling.upscaler_cost import TILE_VOXELS, tile_frames, workspace_bytes
from lowpeak.engine.sampling.upscaler_file import UpscalerConfig, UpscalerFile, write_toy_upscaler
from lowpeak.engine.sampling.upscaler_tiled import streamed_weights, tiled_lift, upscale_tiled


def error(found: torch.Tensor, want: torch.Tensor) -> float:
    return float((found.double() - want.double()).abs().max() / want.double().abs().max())


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> UpscalerFile:
    return write_toy_upscaler(tmp_path_factory.mktemp("toy") / "toy.safetensors", 11, 32, 3)


@pytest.fixture
def frames_of_a_tile(monkeypatch: pytest.MonkeyPatch):
    def set_frames(count: int) -> None:
        monkeypatch.setattr(upscaler_tiled, "tile_frames", lambda height, width: count)

    return set_frames


@pytest.mark.parametrize("tile", [1, 3, 100])
@pytest.mark.parametrize(
    ("frames", "source", "target"),
    [(7, (4, 6), (8, 12)), (6, (3, 5), (6, 10)), (1, (3, 2), (12, 8)), (2, (5, 7), (7, 9))],
)
def test_every_tiling_equals_the_whole_clip(
    toy: UpscalerFile, frames_of_a_tile, tile: int, frames: int, source, target
) -> None:
    frames_of_a_tile(tile)
    latents = torch.randn(1, 24, frames, *source)
    weights = toy.read(dtype=torch.float32)
    want = upscale(latents, target, weights, toy.config)
    found = upscale_tiled(latents, target, streamed_weights(toy, "cpu", torch.float32), toy.config)
    assert found.shape == want.shape and found.dtype == torch.float32
    assert error(found, want) <= 1e-5


def test_golden_cases_are_met_by_the_tiled_form(golden_dir: Path, frames_of_a_tile) -> None:
    frames_of_a_tile(3)
    worst = 0.0
    for file in sorted(golden_dir.glob("upscaler_tiny_*.safetensors")):
        tensors = load_file(file)
        with safe_open(file, "pt") as opened:
            about = json.loads(opened.metadata()["fixture"])
        given = about["config"]
        config = UpscalerConfig(given["channels"], given["in_blocks"], given["out_blocks"])
        state = {k[6:]: v.float() for k, v in tensors.items() if k.startswith("state/")}
        for case, described in about["cases"].items():
            found = upscale_tiled(
                tensors[f"{case}/in/latents"],
                tuple(described["target"]),
                lambda part, state=state: {k: v for k, v in state.items() if k.startswith(part)},
                config,
                mean=about["latents_mean"],
                std=about["latents_std"],
            )
            worst = max(worst, error(found, tensors[f"{case}/out/latents"]))
    assert 0 < worst <= 1e-5
    print(f"PARITY | tiled latent upscaler | golden, fp32 | {worst:.1e}")


def test_uneven_activations_keep_their_statistics(toy: UpscalerFile, frames_of_a_tile) -> None:
    # Statistics per tile instead of per clip would show here: frames differ in mean and scale.
    frames_of_a_tile(2)
    latents = torch.randn(1, 24, 9, 4, 4) * torch.linspace(0.1, 9, 9).view(1, 1, 9, 1, 1)
    latents += torch.linspace(-20, 20, 9).view(1, 1, 9, 1, 1)
    want = upscale(latents, (8, 8), toy.read(dtype=torch.float64), toy.config).double()
    found = upscale_tiled(latents, (8, 8), streamed_weights(toy, "cpu", torch.float32), toy.config)
    assert error(found, want) <= 1e-5


def test_the_lift_of_a_file_keeps_the_device_of_the_latents(toy: UpscalerFile) -> None:
    latents = torch.randn(1, 24, 2, 3, 4)
    found = tiled_lift(toy, "cpu")(latents, (6, 8))
    want = upscale(latents, (6, 8), toy.read(dtype=torch.float32), toy.config)
    assert found.device == latents.device and error(found, want) <= 1e-5


def test_half_precision_stays_near(toy: UpscalerFile, frames_of_a_tile) -> None:
    frames_of_a_tile(2)
    latents = torch.randn(1, 24, 5, 4, 4)
    want = upscale(latents, (8, 8), toy.read(dtype=torch.float64), toy.config).double()
    found = upscale_tiled(latents, (8, 8), streamed_weights(toy, "cpu", torch.float16), toy.config)
    assert error(found, want) <= 1e-2


def test_equal_sizes_cancel_and_progress(toy: UpscalerFile) -> None:
    weights = streamed_weights(toy, "cpu", torch.float32)
    latents = torch.randn(1, 24, 2, 4, 4)
    assert upscale_tiled(latents, (4, 4), weights, toy.config) is latents
    seen: list[tuple[int, int]] = []
    upscale_tiled(
        latents, (8, 8), weights, toy.config, on_layer=lambda done, of: seen.append((done, of))
    )
    assert seen == [(i + 1, 10) for i in range(10)]  # 3 blocks and 2 temporal ones, on both sides
    with pytest.raises(Cancelled, match="layer 3 of 10"):
        calls = iter((False, False, True))
        upscale_tiled(latents, (8, 8), weights, toy.config, is_cancelled=lambda: next(calls))


def test_tiles_follow_the_frame_size_alone() -> None:
    assert tile_frames(48, 84) == TILE_VOXELS // (48 * 84) == 4
    assert tile_frames(256, 256) == 1
    assert tile_frames(4, 4) > 500


def test_workspace_grows_with_every_size_and_fits_the_target() -> None:
    base = workspace_bytes(72, 48, 84, 512, 2)
    assert base <= 1.5 * 2**30
    for frames, h, w, width, size in (
        (77, 48, 84, 512, 2), (72, 52, 100, 512, 2), (72, 48, 84, 544, 2),
        (72, 48, 84, 512, 4),
    ):  # fmt: skip
        assert workspace_bytes(frames, h, w, width, size) > base
    lifted = Geometry(1344, 768, 243)
    assert upscaler_workspace_bytes(lifted, 512) == base, "the planner's copy of the formula"
    planes = 2 * 72 * 48 * 84 * 512 * 2
    assert base > planes
