"""The autoencoders' files: every layout gives the same model; damage is named before reading."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from lowpeak.engine.errors import CheckpointError
from lowpeak.engine.vae.audio import check_audio, decode_audio, fold_weight_norm, kaiser_sinc
from lowpeak.engine.vae.config import PUBLISHED_VIDEO_MEAN, AudioVaeConfig, VideoVaeConfig
from lowpeak.engine.vae.decoder import decode_video
from lowpeak.engine.vae.files import open_audio_vae, open_video_vae
from lowpeak.engine.vae.keys import comfy_video_state, split_video_state, to_comfy
from lowpeak.engine.vae.shapes import block_shapes, encoder_shapes, root_shapes
from lowpeak.engine.vae.toy import (
    FILE,
    TOY_AUDIO,
    TOY_VIDEO,
    toy_audio_state,
    toy_video_state,
    write_toy_audio_vae,
    write_toy_video_vae,
)


def parts(path: Path) -> dict[str, Tensor]:
    """Everything the file gives, in diffusers' names, float32."""
    file = open_video_vae(path)
    found = {f"root.{k}": v for k, v in file.root().items()}
    for index, block in enumerate(file.blocks(dtype=torch.float32)):
        found |= {f"{index}.{k}": v for k, v in block.items()}
    return found | {f"encoder.{k}": v for k, v in file.encoder().items()}


def error(got: Tensor, wanted: Tensor) -> float:
    return ((got - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30)).item()


def test_every_layout_holds_the_same_video_autoencoder(tmp_path: Path) -> None:
    plain = parts(write_toy_video_vae(tmp_path / "d", 4))
    encoder, root, blocks = split_video_state(toy_video_state(4))
    wanted = {f"root.{k}": v for k, v in root.items()}
    wanted |= {f"encoder.{k}": v for k, v in encoder.items()}
    wanted |= {f"{i}.{k}": v for i, block in enumerate(blocks) for k, v in block.items()}
    assert plain.keys() == wanted.keys()
    assert all(torch.equal(plain[name], wanted[name]) for name in wanted)
    for layout, most in (("comfy", 1e-3), ("comfy-int8", 2e-2)):
        got = parts(write_toy_video_vae(tmp_path / layout, 4, layout=layout))
        assert got.keys() == wanted.keys()
        assert max(error(got[name], wanted[name]) for name in wanted) < most, layout
    one_file = parts(
        tmp_path / "d" / FILE
    )  # config.json is not beside it: the defaults fit the toy
    assert torch.equal(one_file["0.attn.to_q.weight"], wanted["0.attn.to_q.weight"])


def test_comfy_files_interleave_heads_and_put_the_gate_first() -> None:
    state = toy_video_state(1)
    stored = comfy_video_state(state, TOY_VIDEO.heads)
    at, head = "decoder.transformer_blocks.1", TOY_VIDEO.head_width
    fused = stored[f"{at}.attn.to_qkv.weight"]
    assert fused.shape == (3 * TOY_VIDEO.width, TOY_VIDEO.width)
    for h in range(TOY_VIDEO.heads):
        for part, letter in enumerate("qkv"):
            rows = fused[(3 * h + part) * head : (3 * h + part + 1) * head]
            own = state[f"{at}.attn.to_{letter}.weight"][h * head : (h + 1) * head]
            assert torch.equal(rows, own)
    value, gate = state[f"{at}.ff.net.0.proj.bias"].chunk(2)
    assert torch.equal(stored[f"{at}.ff.w1.bias"], torch.cat([gate, value]))
    for name in (
        "decoder.x_embedder.weight",
        "encoder.down.2.block.0.nin_shortcut.weight",
        "encoder.down.3.downsample.conv.bias",
        f"{at}.attn.to_out.weight",
        f"{at}.ff.w2.bias",
        f"{at}.scale2",
    ):
        assert name in stored
    assert len(stored) == len(state) - 4 * TOY_VIDEO.blocks
    for name, tensor in state.items():
        target, take = to_comfy(name)
        assert torch.equal(take(stored[target], TOY_VIDEO.heads), tensor), name


def test_a_toy_decodes_to_pictures_with_structure(tmp_path: Path) -> None:
    file = open_video_vae(write_toy_video_vae(tmp_path, 2))
    assert file.config == TOY_VIDEO and file.has_encoder
    latents = torch.randn(1, 24, 7, 4, 4, generator=torch.Generator().manual_seed(0))
    frames: list[Tensor] = []
    blocks = functools.partial(file.blocks, "cpu", torch.float32)
    decode_video(latents, file.root(), blocks, file.config, on_frames=frames.append)
    video = torch.cat(frames).float()
    assert video.shape == (22, 64, 64, 3)
    assert video.std() > 20 and ((video > 0) & (video < 255)).float().mean() > 0.8
    other = open_video_vae(write_toy_video_vae(tmp_path / "other", 3))
    assert not torch.equal(other.root()["proj_in.weight"], file.root()["proj_in.weight"])


def test_block_bytes_are_those_that_cross_the_link(tmp_path: Path) -> None:
    for layout in ("diffusers", "comfy", "comfy-int8"):
        file = open_video_vae(write_toy_video_vae(tmp_path / layout, layout=layout))
        block = file.block(1)
        assert file.block_bytes == sum(v.numel() * v.element_size() for v in block.values())
        assert all(value.is_contiguous() for value in block.values())


def test_a_toy_sound_is_audible_and_mostly_below_full_scale(tmp_path: Path) -> None:
    file = open_audio_vae(write_toy_audio_vae(tmp_path, 5))
    assert file.config == TOY_AUDIO
    latents = torch.randn(2, 32, 20, generator=torch.Generator().manual_seed(0))
    waveform = decode_audio(latents, file.tensors(), file.config)
    health = check_audio(waveform, 32_000, 0.5)
    assert waveform.shape == (2, 16_000) and health.finite and health.silent_share < 0.5
    assert waveform.std() > 0.01 and health.clipped_share < 0.05


def test_audio_files_may_be_folded_single_and_carry_their_statistics(tmp_path: Path) -> None:
    state = toy_audio_state(6)
    folder = write_toy_audio_vae(tmp_path / "d", 6)
    wanted = open_audio_vae(folder)
    assert any(name.endswith("weight_g") for name in wanted.sources)
    folded = {name: value.contiguous() for name, value in fold_weight_norm(state).items()}
    mean, std = torch.randn(32), 1 + torch.rand(32)
    save_file({**folded, "latents_mean": mean, "latents_std": std}, tmp_path / "one.safetensors")
    (tmp_path / "one").mkdir()
    save_file(folded, tmp_path / "one" / "model.safetensors")
    settings = json.loads((folder / "config.json").read_text())
    (tmp_path / "one" / "config.json").write_text(json.dumps(settings))
    got, full = open_audio_vae(tmp_path / "one"), wanted.tensors()
    assert got.config == wanted.config
    for name, value in got.tensors().items():
        assert torch.equal(value, full[name])
    # alone it lacks what only config.json says: the defaults do not fit the toy
    with pytest.raises(CheckpointError, match="resblocks"):
        open_audio_vae(tmp_path / "one.safetensors")


def test_a_published_single_audio_file_needs_no_config(tmp_path: Path) -> None:
    """Shapes as published, except for widths: everything follows from them and the defaults."""
    config = AudioVaeConfig(
        tuple(torch.randn(32).tolist()),
        tuple((0.5 + torch.rand(32)).tolist()),
        latent_width=64,
        encoder_width=2,
        decoder_width=128,
    )
    tensors = {k: v.contiguous() for k, v in fold_weight_norm(toy_audio_state(1, config)).items()}
    tensors["latents_mean"] = torch.tensor(config.latents_mean)
    tensors["latents_std"] = torch.tensor(config.latents_std)
    save_file(tensors, tmp_path / "audio.safetensors")
    assert open_audio_vae(tmp_path / "audio.safetensors").config == config


def test_the_low_pass_filter_is_the_published_one() -> None:
    taps = kaiser_sinc(2).flatten()
    assert taps.sum() == pytest.approx(1) and torch.allclose(taps, taps.flip(0), atol=1e-7)
    oracle = pytest.importorskip("diffusers.models.autoencoders.autoencoder_kl_minimax_h3_audio")
    wanted = oracle.kaiser_sinc_filter1d(0.25, 0.3, 12)
    assert error(kaiser_sinc(2), wanted) < 1e-6


def test_published_sizes_are_the_defaults() -> None:
    config = VideoVaeConfig(PUBLISHED_VIDEO_MEAN, (1.0,) * 24)
    shapes = {f"decoder.{name}": shape for name, shape in root_shapes(config).items()}
    for index in range(36):
        prefix = f"decoder.transformer_blocks.{index}."
        shapes |= {prefix + name: shape for name, shape in block_shapes(config).items()}
    shapes |= {f"encoder.{name}": shape for name, shape in encoder_shapes(config).items()}
    assert VideoVaeConfig.infer(shapes, {"latents_std": [1.0] * 24}) == config
    assert config.width == 2048 and config.patch_values == 3072 and config.stride_px == 16
    assert sum(torch.Size(s).numel() * 2 for s in block_shapes(config).values()) == 134_287_360


def edited(folder: Path, change: Any) -> Path:
    """The toy folder with its state changed."""
    state = load_file(write_toy_video_vae(folder) / FILE)
    change(state)
    save_file({k: v.contiguous() for k, v in state.items()}, folder / FILE)
    return folder


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("decoder.proj_out.bias"), r"missing tensor.*decoder\.proj_out\.bias"),
        (lambda s: s.pop("decoder.transformer_blocks.1.scale1"), r"blocks\.1\.scale1"),
        (lambda s: s.pop("encoder.conv_out.weight"), r"encoder\.conv_out\.weight"),
        (
            lambda s: s.update({"decoder.norm_out.weight": torch.zeros(7)}),
            r"wrong shape.*decoder\.norm_out\.weight.*expected \[128\], found \[7\]",
        ),
        (
            lambda s: s.update({"decoder.proj_out.bias": torch.zeros(3072).int()}),
            r"wrong dtype.*decoder\.proj_out\.bias.*found I32",
        ),
        (lambda s: s.pop("decoder.proj_in.weight"), r"decoder\.proj_in\.weight"),
        (
            lambda s: s.update({"decoder.proj_in.weight": torch.zeros(100, 24)}),
            "expected a multiple of 64, found 100",
        ),
    ],
)
def test_damage_is_named_before_anything_is_read(tmp_path: Path, change: Any, words: str) -> None:
    folder = edited(tmp_path, change)
    with pytest.raises(CheckpointError, match=words) as caught:
        open_video_vae(folder)
    assert str(tmp_path) in str(caught.value)


def test_truncated_missing_and_foreign_files_are_named(tmp_path: Path) -> None:
    folder = write_toy_video_vae(tmp_path / "d")
    data = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(data[:-100])
    with pytest.raises(CheckpointError, match="truncated"):
        open_video_vae(folder)
    with pytest.raises(CheckpointError, match="no model file"):
        open_video_vae(tmp_path / "nothing")
    with pytest.raises(CheckpointError, match="not this kind"):
        open_video_vae(write_toy_audio_vae(tmp_path / "a"))
    with pytest.raises(CheckpointError, match="not this kind"):
        open_audio_vae(write_toy_video_vae(tmp_path / "v"))


def test_int8_without_its_rule_or_scale_is_refused(tmp_path: Path) -> None:
    path = write_toy_video_vae(tmp_path, layout="comfy-int8")
    good = load_file(path)
    note = "decoder.transformer_blocks.0.ff.w1.comfy_quant"
    for change, words in (
        ({note: None}, "unknown int8 rule"),
        ({note: torch.tensor(list(b'{"format": "int8_tensorwise"}')).byte()}, "unknown int8 rule"),
        ({"decoder.transformer_blocks.2.attn.to_out.weight_scale": None}, "missing scale"),
    ):
        state = {k: v for k, v in {**good, **change}.items() if v is not None}
        save_file(state, path)
        with pytest.raises(CheckpointError, match=words):
            open_video_vae(path)


def test_a_file_without_an_encoder_decodes_and_says_so(tmp_path: Path) -> None:
    def drop(state: dict[str, Tensor]) -> None:
        for name in tuple(state):
            if name.startswith(("encoder.", "quant_conv.")):
                del state[name]

    file = open_video_vae(edited(tmp_path, drop))
    assert not file.has_encoder and len(file.root()) == 9
    with pytest.raises(CheckpointError, match="no encoder"):
        file.encoder()


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        ("decoder.transformer_blocks.1.ff.net.2.weight", 0.0, "zeros only"),
        ("decoder.transformer_blocks.1.ff.net.2.bias", float("nan"), "nan"),
        ("decoder.proj_out.weight", float("inf"), "inf"),
        ("encoder.conv_in.weight", 1e30, r"1e\+30"),
    ],
)
def test_right_sizes_with_wrong_bytes_are_named(
    tmp_path: Path, where: str, value: float, words: str
) -> None:
    def spoil(state: dict[str, Tensor]) -> None:
        state[where].fill_(value)

    file = open_video_vae(edited(tmp_path, spoil))
    file.block(0)
    with pytest.raises(CheckpointError, match=f"wrong bytes.*{where}.*{words}"):
        file.block(1)
        file.root()
        file.encoder()


def test_zero_biases_and_audio_holes_are_told_apart(tmp_path: Path) -> None:
    folder = write_toy_audio_vae(tmp_path)
    state = load_file(folder / FILE)
    state["mean_proj.bias"].zero_()
    save_file(state, folder / FILE)
    assert not open_audio_vae(folder).tensors()["mean_proj.bias"].any()
    for name in ("pre_block.proj.weight", "decoder.conv_pre.weight_v"):
        save_file({**state, name: torch.zeros_like(state[name])}, folder / FILE)
        with pytest.raises(CheckpointError, match=f"wrong bytes.*{name}.*zeros only"):
            open_audio_vae(folder).tensors()
