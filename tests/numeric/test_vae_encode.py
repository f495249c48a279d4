"""The video encoder against the golden files and against diffusers' class, weights all random."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from lowpeak.engine.errors import Cancelled, RequestError
from lowpeak.engine.vae.config import VideoVaeConfig
from lowpeak.engine.vae.encoder import Posterior, encode_keyframe, encode_video
from lowpeak.engine.vae.keys import split_video_state
from lowpeak.engine.vae.space import denormalise, pixels_to_model, pixels_to_uint8
from lowpeak.engine.vae.toy import TOY_VIDEO, toy_video_state

TOLERANCE = 3e-5


def error(got: Tensor, wanted: Tensor) -> float:
    assert got.shape == wanted.shape
    return ((got.double() - wanted.double()).abs().max() / wanted.double().abs().max()).item()


@pytest.fixture(scope="module")
def golden(golden_dir: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    with safe_open(golden_dir / "vae_tiny_main.safetensors", "pt") as file:
        fixture = json.loads(file.metadata()["fixture"])
        return fixture, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def test_golden_encode_parity(golden: tuple[dict[str, Any], dict[str, Tensor]]) -> None:
    fixture, tensors = golden
    state = {k[6:]: v for k, v in tensors.items() if k.startswith("state/")}
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    config = VideoVaeConfig.infer(shapes, fixture["config"])
    encoder, _, _ = split_video_state(state)
    worst, cases = 0.0, 0
    for case, tilings in fixture["encode"].items():
        for tiling in tilings:
            tile = fixture["tilings"][tiling]
            options = (
                {"tiled": False}
                if tile is None
                else {"tile_px": tuple(tile[:2]), "overlap_px": tuple(tile[2:])}
            )
            got = encode_video(tensors[f"in/pixels/{case}"], encoder, config, **options)
            at = f"out/encode/{case}/{tiling}"
            worst = max(worst, error(got.mean, tensors[f"{at}/mean"]))
            worst = max(worst, error(got.log_variance, tensors[f"{at}/logvar"]))
            cases += 1
    print(f"PARITY | video VAE encode, {cases} cases | golden vae_tiny_main | {worst:.1e}")
    assert cases and worst <= TOLERANCE


@pytest.mark.parametrize(("frames", "tile"), [(1, None), (20, None), (17, (32, 48))])
def test_encode_parity_with_diffusers(frames: int, tile: Any) -> None:
    diffusers = pytest.importorskip("diffusers")
    settings: dict[str, Any] = {
        "block_out_channels": [8, 12, 8, 16, 16, 12],
        "layers_per_block": 2,
        "norm_num_groups": 4,
        "decoder_num_layers": 1,
        "decoder_num_attention_heads": 1,
        "decoder_attention_head_dim": 16,
    }
    model = diffusers.AutoencoderKLMiniMaxH3(**settings).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(7)
    for name, value in model.named_parameters():
        noise = torch.randn(value.shape, generator=generator)
        inputs = value[0].numel() if value.ndim > 1 else 10
        value.copy_(noise * inputs**-0.5 + ("norm" in name and name.endswith("weight")))
    state = model.state_dict()
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    config = VideoVaeConfig.infer(shapes, settings)
    assert config.encoder_widths == (8, 12, 8, 16, 16, 12) and config.encoder_layers == 2
    pixels = torch.randn(1, 3, frames, 64, 80, generator=generator)
    if tile is None:
        model.disable_tiling()
        options: dict[str, Any] = {"tiled": False}
    else:
        model.enable_tiling(*tile, 16, 16)
        options = {"tile_px": tile, "overlap_px": 16}
    with torch.no_grad():
        wanted = model.encode(pixels).latent_dist
    got = encode_video(pixels, split_video_state(state)[0], config, **options)
    worst = max(error(got.mean, wanted.mean), error(got.log_variance, wanted.logvar))
    print(f"PARITY | video VAE encode, {frames} frames | diffusers 0.42.1 | {worst:.1e}")
    assert worst <= TOLERANCE
    drawn = [torch.Generator().manual_seed(42) for _ in range(2)]
    assert error(got.sample(drawn[0]), wanted.sample(drawn[1])) <= TOLERANCE


def toy() -> tuple[dict[str, Tensor], VideoVaeConfig]:
    return split_video_state(toy_video_state(0))[0], TOY_VIDEO


def test_a_frame_cannot_see_the_future() -> None:
    tensors, config = toy()
    pixels = torch.randn(1, 3, 34, 32, 32, generator=torch.Generator().manual_seed(1))
    before = encode_video(pixels, tensors, config).mean
    changed = pixels.clone()
    changed[:, :, 20:] += 1
    after = encode_video(changed, tensors, config).mean
    # frame 20 is the fourth of the second clip: its first latent covers one frame only
    assert torch.equal(after[:, :, :6], before[:, :, :6])
    assert not torch.equal(after[:, :, 6:], before[:, :, 6:])


def test_a_keyframe_is_one_normalised_latent_and_its_draw_is_repeatable() -> None:
    tensors, config = toy()
    picture = torch.randint(
        0, 256, (32, 48, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(2)
    )
    mean = encode_keyframe(picture, tensors, config)
    assert mean.shape == (1, 24, 1, 2, 3) and mean.dtype == torch.float32
    pixels = pixels_to_model(picture[None])
    posterior = encode_video(pixels, tensors, config)
    assert torch.allclose(denormalise(mean, config), posterior.mean, atol=1e-5)
    one, two = (
        encode_keyframe(picture, tensors, config, generator=torch.Generator().manual_seed(42))
        for _ in range(2)
    )
    assert torch.equal(one, two) and not torch.allclose(one, mean, atol=1e-2)
    noise = torch.randn(posterior.mean.shape, generator=torch.Generator().manual_seed(42))
    wanted = posterior.mean + (0.5 * posterior.log_variance).exp() * noise
    assert torch.allclose(denormalise(one, config), wanted.half().float(), atol=1e-5)


def test_colours_survive_the_way_there_and_back() -> None:
    frames = torch.randint(0, 256, (2, 4, 6, 3), dtype=torch.uint8)
    assert torch.equal(pixels_to_uint8(pixels_to_model(frames)[0]), frames)


def test_an_extreme_variance_is_bounded() -> None:
    posterior = Posterior(torch.zeros(1, 24, 1, 1, 1), torch.full((1, 24, 1, 1, 1), 20.0))
    assert torch.isfinite(posterior.sample()).all()
    tensors, config = toy()
    tensors["quant_conv.bias"] = torch.full_like(tensors["quant_conv.bias"], 99.0)
    got = encode_video(torch.zeros(1, 3, 1, 32, 32), tensors, config)
    assert (got.log_variance == 20).all() and not (got.mean == 20).any()


def test_cancelling_stops_between_tiles() -> None:
    tensors, config = toy()
    with pytest.raises(Cancelled, match="encode"):
        encode_video(torch.zeros(1, 3, 1, 32, 32), tensors, config, is_cancelled=lambda: True)


@pytest.mark.parametrize("shape", [(1, 3, 5, 32, 40), (2, 3, 1, 32, 32), (3, 1, 32, 32)])
def test_shapes_that_cannot_be_encoded_are_refused(shape: tuple[int, ...]) -> None:
    tensors, config = toy()
    with pytest.raises(RequestError):
        encode_video(torch.zeros(shape), tensors, config)
    with pytest.raises(RequestError, match="keyframe"):
        encode_keyframe(torch.zeros(32, 32, 3), tensors, config)
