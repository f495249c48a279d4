"""The tiled latent upscaler on a card: equal to the reference form, and within its bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lowpeak.engine.sampling.upscaler import upscale
from lowpeak.engine.sampling.upscaler_cost import workspace_bytes
from lowpeak.engine.sampling.upscaler_file import UpscalerFile, write_toy_upscaler
from lowpeak.engine.sampling.upscaler_tiled import tiled_lift

LIBRARY_BYTES = 256 << 20  # convolution workspaces of the vendor's library, not in the formula

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def error(found: torch.Tensor, want: torch.Tensor) -> float:
    return float((found.double() - want.double()).abs().max() / want.double().abs().max())


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> UpscalerFile:
    return write_toy_upscaler(tmp_path_factory.mktemp("toy") / "toy.safetensors", 5, 64, 3)


@pytest.mark.parametrize(
    ("frames", "source", "target"), [(7, (12, 20), (24, 40)), (12, (9, 15), (12, 20))]
)
def test_half_precision_is_near_the_reference(toy, frames, source, target) -> None:
    latents = torch.randn(1, 24, frames, *source)
    want = upscale(latents, target, toy.read(dtype=torch.float64), toy.config)
    found = tiled_lift(toy, "cuda")(latents, target)
    assert found.device.type == "cpu"
    assert error(found, want) <= 1e-2
    assert torch.equal(found, tiled_lift(toy, "cuda")(latents, target)), "not repeatable"


def test_the_released_size_stays_within_its_formula(tmp_path: Path) -> None:
    file = write_toy_upscaler(tmp_path / "wide.safetensors", 2, 512, 2)
    latents = torch.randn(1, 24, 72, 24, 42)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    base = torch.cuda.memory_allocated()
    found = tiled_lift(file, "cuda")(latents, (48, 84))
    peak = torch.cuda.max_memory_allocated() - base
    assert bool(found.isfinite().all())
    assert peak <= workspace_bytes(72, 48, 84, 512, 2) + LIBRARY_BYTES
    assert peak <= 1.5 * 2**30
