"""The audio autoencoder against diffusers' class at tiny sizes, every parameter random."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor

from lowpeak.engine.errors import CheckpointError, RequestError
from lowpeak.engine.vae.audio import (
    check_audio,
    decode_audio,
    encode_audio,
    encode_raw,
    fold_weight_norm,
)
from lowpeak.engine.vae.config import AudioVaeConfig
from lowpeak.engine.vae.shapes import audio_shapes

# the oracle's own class still uses the old spelling
pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated:FutureWarning")
TOLERANCE = 1e-5
SETTINGS: dict[str, Any] = {
    "encoder_dim": 4,
    "encoder_rates": [2, 3, 4],
    "latent_dim": 48,
    "latent_channels": 6,
    "num_attention_heads": 4,
    "decoder_dim": 24,
    "decoder_rates": [3, 4, 2],
    "decoder_kernel_sizes": [7, 8, 4],
    "resblock_kernel_sizes": [3, 5],
    "resblock_dilation_sizes": [[1, 3], [1, 2, 5]],
    "latents_mean": [0.3, -0.2, 0.1, 1.0, -1.5, 0.0],
    "latents_std": [0.7, 1.2, 1.0, 2.0, 0.5, 1.1],
}


def error(got: Tensor, wanted: Tensor) -> float:
    assert got.shape == wanted.shape
    return ((got.double() - wanted.double()).abs().max() / wanted.double().abs().max()).item()


def oracle(seed: int = 0) -> tuple[Any, dict[str, Tensor], AudioVaeConfig]:
    diffusers = pytest.importorskip("diffusers")
    model = diffusers.AutoencoderKLMiniMaxH3Audio(**SETTINGS).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        noise = torch.randn(value.shape, generator=generator)
        if name.endswith("filter"):
            value.mul_(1 + 0.2 * noise)
        elif name.endswith("weight_g"):
            value.copy_(0.6 + 0.1 * noise)
        elif name.endswith(".alpha") and value.ndim == 3:
            value.copy_(0.5 + torch.rand(value.shape, generator=generator))
        elif "norm" in name and name.endswith("weight"):
            value.copy_(1 + 0.3 * noise)
        else:
            value.copy_(0.3 * noise)
    state = dict(model.state_dict())
    folded = fold_weight_norm(state)
    shapes = {name: tuple(value.shape) for name, value in folded.items()}
    return model, state, AudioVaeConfig.infer(shapes, SETTINGS)


def raw(latents: Tensor, config: AudioVaeConfig) -> Tensor:
    mean = torch.tensor(config.latents_mean)[:, None]
    return latents * torch.tensor(config.latents_std)[:, None] + mean


@pytest.mark.parametrize("length", [1, 5, 23])
def test_decode_parity_with_diffusers(length: int) -> None:
    model, state, config = oracle()
    latents = torch.randn(2, 6, length, generator=torch.Generator().manual_seed(length))
    with torch.no_grad():
        wanted = model.decode(raw(latents, config)).sample[:, 0]
    got = decode_audio(latents, fold_weight_norm(state), config)
    assert got.shape == (2, 24 * length) and got.dtype == torch.float32
    assert wanted.std() > 0.01 and (wanted.abs() < 1).float().mean() > 0.5, "oracle is degenerate"
    worst = error(got, wanted)
    print(f"PARITY | audio VAE decode, {length} latents | diffusers 0.42.1 | {worst:.1e}")
    assert worst <= TOLERANCE


@pytest.mark.parametrize("samples", [24, 100, 24 * 9 + 1])
def test_encode_parity_with_diffusers(samples: int) -> None:
    model, state, config = oracle()
    waveform = torch.rand(2, samples, generator=torch.Generator().manual_seed(samples)) * 2 - 1
    with torch.no_grad():
        wanted = model.encode(waveform[:, None]).latent_dist
    tensors = fold_weight_norm(state)
    got = encode_audio(waveform, tensors, config)
    assert got.shape == (2, 6, -(-samples // 24))
    worst = error(raw(got, config), wanted.mode())
    print(f"PARITY | audio VAE encode, {samples} samples | diffusers 0.42.1 | {worst:.1e}")
    assert worst <= TOLERANCE
    padded = torch.nn.functional.pad(waveform, (0, -samples % 24))
    assert error(encode_raw(padded[:, None], tensors, config)[1], wanted.logs) <= TOLERANCE


def test_every_tensor_matters_and_is_expected() -> None:
    """The list of shapes is complete, and every kind of tensor changes a result."""
    _, state, config = oracle()
    folded = fold_weight_norm(state)
    shapes = {name: tuple(value.shape) for name, value in folded.items()}
    assert shapes == audio_shapes(config)
    generator = torch.Generator().manual_seed(3)
    latents = torch.randn(1, 6, 4, generator=generator)
    waveform = torch.rand(1, 96, generator=generator) - 0.5

    def results(tensors: dict[str, Tensor]) -> Tensor:
        padded = encode_raw(waveform[:, None], tensors, config)
        return torch.cat(
            [decode_audio(latents, tensors, config).flatten(), *(p.flatten() for p in padded)]
        )

    wanted = results(folded)
    # one of every role (names without their numbers) keeps this fast
    roles = {re.sub(r"\d+", "#", name): (name, value) for name, value in folded.items()}
    assert len(roles) > 40
    for name, value in roles.values():
        changed = results({**folded, name: value * 1.5 + 0.1})
        if name == "pre_block.attn.zero_k_bias":
            continue  # a constant added to every key leaves the softmax alone
        assert not torch.allclose(changed, wanted, rtol=1e-6, atol=1e-7), f"{name} does nothing"


def test_weight_norm_is_folded_from_every_spelling() -> None:
    _, state, _ = oracle()
    folded = fold_weight_norm(state)
    assert not any("weight_g" in name or "weight_v" in name for name in folded)
    new = {
        name.replace("weight_g", "parametrizations.weight.original0").replace(
            "weight_v", "parametrizations.weight.original1"
        ): value
        for name, value in state.items()
    }
    assert any("original0" in name for name in new)
    for other in (fold_weight_norm(new), fold_weight_norm(folded)):
        assert other.keys() == folded.keys()
        assert all(torch.equal(other[name], folded[name]) for name in folded)


def test_the_published_sizes_are_the_defaults() -> None:
    config = AudioVaeConfig((0.0,) * 32, (1.0,) * 32)
    assert config.hop_samples == 800
    shapes = audio_shapes(config)
    assert AudioVaeConfig.infer(shapes) == config
    assert shapes["decoder.resblocks.20.convs1.0.weight"] == (8, 8, 11)


def test_sizes_that_contradict_each_other_are_errors() -> None:
    with pytest.raises(CheckpointError, match="undo"):
        AudioVaeConfig((0.0,) * 32, (1.0,) * 32, decoder_strides=(5, 5, 2, 2, 2, 2, 4))
    with pytest.raises(CheckpointError, match="latents_std"):
        AudioVaeConfig((0.0,) * 32, (1.0,) * 31)
    with pytest.raises(CheckpointError, match="not positive"):
        AudioVaeConfig((0.0,) * 32, (0.0,) * 32)
    _, state, config = oracle()
    with pytest.raises(CheckpointError, match="mean_proj"):
        AudioVaeConfig.infer({"encoder.block.0.weight": (4, 1, 7)})
    with pytest.raises(RequestError, match="audio latents"):
        decode_audio(torch.zeros(2, 5, 3), fold_weight_norm(state), config)
    with pytest.raises(RequestError, match="sound has shape"):
        encode_audio(torch.zeros(2, 0), fold_weight_norm(state), config)


def wave(seconds: float = 2.0) -> Tensor:
    t = torch.arange(round(32_000 * seconds)) / 32_000
    return 0.5 * torch.sin(2 * torch.pi * 440 * t).repeat(2, 1)


def test_a_healthy_waveform_has_no_warnings() -> None:
    health = check_audio(wave(), 32_000, 2.0)
    assert health.warnings == () and health.finite
    assert health.peak == pytest.approx(0.5, abs=1e-3)
    assert health.seconds == 2 and health.clipped_share == 0 and health.silent_share == 0
    assert health.as_json()["warnings"] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: (x * 4).clamp(-1, 1), "clipped"),
        (lambda x: x + 0.1, "off centre"),
        (lambda x: x * 0, "silent"),
        (lambda x: x[:, :-9000], "lasts 1.72 s"),
        (lambda x: x / torch.zeros(()).index_fill(0, torch.tensor([]).long(), 0), "not finite"),
        (lambda x: x[:, :0], "silent"),
    ],
)
def test_what_is_wrong_with_a_waveform_is_said(change: Any, words: str) -> None:
    health = check_audio(change(wave()), 32_000, 2.0)
    assert any(words in text for text in health.warnings), health


def test_half_a_second_of_silence_is_counted() -> None:
    x = wave()
    x[:, :16_000] = 0
    assert check_audio(x, 32_000).silent_share == pytest.approx(0.25)
