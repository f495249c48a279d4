"""The video decoder against the golden files and against diffusers' class, weights all random."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from lowpeak.engine.errors import Cancelled, CheckpointError, RequestError
from lowpeak.engine.vae.config import PIXEL_MEAN, PIXEL_STD, VideoVaeConfig
from lowpeak.engine.vae.decoder import decode_video
from lowpeak.engine.vae.keys import split_video_state
from lowpeak.engine.vae.space import denormalise, normalise
from lowpeak.engine.vae.stitch import stitch_tiles
from lowpeak.engine.vae.tiles import split_axis
from lowpeak.engine.vae.vit import apply_block, embed_tiles, rope_tables

TOLERANCE = 1e-5


def error(got: Tensor, wanted: Tensor) -> float:
    assert got.shape == wanted.shape
    return ((got.double() - wanted.double()).abs().max() / wanted.double().abs().max()).item()


class Golden:
    """One golden file: its configuration, its weights in parts, its cases."""

    def __init__(self, path: Path) -> None:
        with safe_open(path, "pt") as file:
            self.fixture: dict[str, Any] = json.loads(file.metadata()["fixture"])
            self.tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        self.state = {k[6:]: v for k, v in self.tensors.items() if k.startswith("state/")}
        shapes = {name: tuple(value.shape) for name, value in self.state.items()}
        self.config = VideoVaeConfig.infer(shapes, self.fixture["config"])
        _, self.root, self.blocks = split_video_state(self.state)

    def decode(self, case: str, tiling: str, **options: Any) -> tuple[Tensor, Tensor]:
        latents = normalise(self.tensors[f"in/latents_raw/{case}"], self.config)
        got = decode_video(
            latents, self.root, self.blocks, self.config, **self.tiling(tiling), **options
        )
        return got, self.tensors[f"out/decode/{case}/{tiling}"]

    def tiling(self, name: str) -> dict[str, Any]:
        tile = self.fixture["tilings"][name]
        if tile is None:
            return {"tiled": False}
        return {"tile_px": tuple(tile[:2]), "overlap_px": tuple(tile[2:])}


@pytest.fixture(scope="module")
def golden(golden_dir: Path) -> Callable[[str], Golden]:
    files = {path.stem: Golden(path) for path in sorted(golden_dir.glob("vae_*.safetensors"))}
    assert files, f"{golden_dir} has no vae_*.safetensors"
    return files.__getitem__


GOLDEN = ["vae_tiny_main", "vae_decode_tiny_clips3_4"]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_decode_parity(golden: Callable[[str], Golden], name: str) -> None:
    file = golden(name)
    worst, cases = 0.0, 0
    for case, tilings in file.fixture["decode"].items():
        for tiling in tilings:
            for clips in (1, 2, 9):
                worst = max(worst, error(*file.decode(case, tiling, clips_per_group=clips)))
            cases += 1
    print(f"PARITY | video VAE decode, {cases} cases | golden {name} | {worst:.1e}")
    assert cases and worst <= TOLERANCE


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_every_stage_of_a_clip(golden: Callable[[str], Golden], name: str) -> None:
    file = golden(name)
    raw, config = file.tensors["in/latents_raw/probe"], file.config
    tables = rope_tables(tuple(raw.shape[2:]), config, raw.device)
    for got, wanted in zip(tables, ("rope_cos", "rope_sin"), strict=True):
        assert error(got, file.tensors[f"mid/clip0_{wanted}"][0, :, 0]) <= TOLERANCE
    x = embed_tiles(raw, file.root, config)
    tokens = raw[0, 0].numel()
    assert error(x[0, :tokens], file.tensors["mid/clip0_proj_in"]) <= TOLERANCE
    assert torch.equal(x[0, tokens:-1], file.root["register_tokens"][0])
    assert not x[0, -1].any()
    for index, block in enumerate(file.blocks):
        apply_block(x, block, tables, config, torch.float32)
        assert error(x[0], file.tensors[f"mid/clip0_block{index}_out"]) <= TOLERANCE
    assert error(x[0], file.tensors["mid/clip0_before_norm_out"]) <= TOLERANCE


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_latent_normalisation(golden: Callable[[str], Golden], name: str) -> None:
    file = golden(name)
    raw = file.tensors["in/latents_raw/probe"]
    wanted = file.tensors["out/normalised_latents_of_probe"]
    assert error(normalise(raw, file.config), wanted) <= TOLERANCE
    assert error(denormalise(wanted, file.config), raw) <= TOLERANCE


def test_golden_groups_of_clips_change_no_bit(golden: Callable[[str], Golden]) -> None:
    file = golden("vae_decode_tiny_clips3_4")
    one, _ = file.decode("clips4", "tiled", clips_per_group=1)
    for clips in (2, 3, 4, 50):
        assert torch.equal(file.decode("clips4", "tiled", clips_per_group=clips)[0], one)


def tiny(seed: int = 3, **changes: Any) -> tuple[Any, VideoVaeConfig, dict[str, Tensor]]:
    """diffusers' class with every parameter random, and its state."""
    diffusers = pytest.importorskip("diffusers")
    generator = torch.Generator().manual_seed(seed)
    settings = {
        "block_out_channels": [16] * 6,
        "layers_per_block": 1,
        "norm_num_groups": 4,
        "decoder_num_layers": 2,
        "decoder_num_attention_heads": 3,
        "decoder_attention_head_dim": 16,
        "decoder_num_register_tokens": 3,
        "latents_mean": torch.randn(24, generator=generator).tolist(),
        "latents_std": (0.5 + torch.rand(24, generator=generator)).tolist(),
        **changes,
    }
    model = diffusers.AutoencoderKLMiniMaxH3(**settings).eval().requires_grad_(False)
    for name, value in model.named_parameters():
        centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        spread = value[0].numel() ** -0.5 if value.ndim > 1 else 0.3
        value.copy_(centre + spread * torch.randn(value.shape, generator=generator))
    state = model.state_dict()
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    return model, VideoVaeConfig.infer(shapes, settings), state


@pytest.mark.parametrize(
    ("frames", "height", "width", "tile", "overlap"),
    [(7, 2, 3, None, None), (12, 5, 3, (48, 32), (16, 16)), (17, 3, 6, (32, 64), (0, 32))],
)
def test_decode_parity_with_diffusers(
    frames: int, height: int, width: int, tile: Any, overlap: Any
) -> None:
    model, config, state = tiny()
    _, root, blocks = split_video_state(state)
    latents = torch.randn(1, 24, frames, height, width, generator=torch.Generator().manual_seed(1))
    if tile is None:
        model.disable_tiling()
        options: dict[str, Any] = {"tiled": False}
    else:
        model.enable_tiling(*tile, *overlap)
        # an overlap of 0 reads as "not given" there
        model.tile_sample_min_overlap_height, model.tile_sample_min_overlap_width = overlap
        options = {"tile_px": tile, "overlap_px": overlap}
    with torch.no_grad():
        wanted = model.decode(denormalise(latents, config)).sample
    got = decode_video(latents, root, blocks, config, clips_per_group=2, **options)
    worst = error(got, wanted)
    print(f"PARITY | video VAE decode {tuple(latents.shape[2:])} | diffusers 0.42.1 | {worst:.1e}")
    assert worst <= TOLERANCE


def test_default_tiles_are_the_published_ones() -> None:
    model, config, state = tiny()
    _, root, blocks = split_video_state(state)
    latents = torch.randn(1, 24, 7, 2, 21, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        wanted = model.decode(denormalise(latents, config)).sample
    assert error(decode_video(latents, root, blocks, config), wanted) <= TOLERANCE
    whole = decode_video(latents, root, blocks, config, tiled=False)
    assert error(whole, wanted) > 1e-2, "tiles make no difference here, so this proves nothing"


def test_half_precision_linears_stay_close_and_the_stream_stays_float32() -> None:
    _, config, state = tiny()
    _, root, blocks = split_video_state(state)
    latents = torch.randn(1, 24, 7, 2, 2, generator=torch.Generator().manual_seed(2))
    full = decode_video(latents, root, blocks, config)
    half_blocks = [{name: value.half() for name, value in block.items()} for block in blocks]
    half = decode_video(latents, root, half_blocks, config, compute_dtype=torch.float16)
    assert half.dtype == torch.float32
    assert 1e-6 < error(half, full) < 1e-2
    x = embed_tiles(latents[0][None], root, config)
    before = x.data_ptr()
    tables = rope_tables((7, 2, 2), config, x.device)
    apply_block(x, half_blocks[0], tables, config, torch.float16)
    assert x.dtype == torch.float32 and x.data_ptr() == before


def test_frames_come_clip_by_clip_as_uint8() -> None:
    _, config, state = tiny()
    _, root, blocks = split_video_state(state)
    latents = torch.randn(1, 24, 17, 2, 3, generator=torch.Generator().manual_seed(5))
    got: list[Tensor] = []
    result = decode_video(latents, root, blocks, config, on_frames=got.append)
    assert result is None
    assert [tuple(part.shape) for part in got] == [(17, 32, 48, 3)] * 3 + [(5, 32, 48, 3)]
    raw = decode_video(latents, root, blocks, config)
    assert raw is not None
    mean, std = (torch.tensor(v).view(1, 3, 1, 1, 1) for v in (PIXEL_MEAN, PIXEL_STD))
    wanted = ((raw * std + mean).clamp(0, 1) * 255).round()[0].permute(1, 2, 3, 0)
    frames = torch.cat(got)
    assert frames.dtype == torch.uint8 and torch.equal(frames, wanted.to(torch.uint8))
    assert frames.float().std() > 5, "a flat picture proves nothing"


def test_a_stack_is_asked_for_once_a_group_and_its_blocks_may_die() -> None:
    _, config, state = tiny()
    _, root, blocks = split_video_state(state)
    latents = torch.randn(1, 24, 27, 2, 2, generator=torch.Generator().manual_seed(5))
    wanted = decode_video(latents, root, blocks, config)
    passes = []

    def stream() -> Iterator[dict[str, Tensor]]:
        passes.append(0)
        for block in blocks:
            slot = {name: value.clone() for name, value in block.items()}
            yield slot
            passes[-1] += 1
            for value in slot.values():
                value.fill_(float("nan"))  # the slot is overwritten once the next is asked for

    got = decode_video(latents, root, stream, config, clips_per_group=2)
    assert torch.equal(got, wanted)
    assert passes == [config.blocks] * 3  # 5 clips, two at a time


def test_cancelling_stops_at_the_next_block() -> None:
    _, config, state = tiny()
    _, root, blocks = split_video_state(state)
    asked = []

    def is_cancelled() -> bool:
        asked.append(True)
        return len(asked) == 2

    with pytest.raises(Cancelled, match="decode"):
        decode_video(torch.zeros(1, 24, 7, 2, 2), root, blocks, config, is_cancelled=is_cancelled)
    assert len(asked) == 2


def test_a_short_stack_is_an_error() -> None:
    _, config, state = tiny()
    _, root, blocks = split_video_state(state)
    with pytest.raises(CheckpointError, match="expected 2 blocks, found 1"):
        decode_video(torch.zeros(1, 24, 7, 2, 2), root, blocks[:1], config)


@pytest.mark.parametrize(
    "shape", [(1, 24, 8, 2, 2), (2, 24, 7, 2, 2), (1, 23, 7, 2, 2), (24, 7, 2, 2)]
)
def test_shapes_that_are_no_video_are_refused(shape: tuple[int, ...]) -> None:
    _, config, state = tiny()
    _, root, blocks = split_video_state(state)
    with pytest.raises(RequestError):
        decode_video(torch.zeros(shape), root, blocks, config)


def test_equal_tiles_stitch_to_themselves_and_no_position_is_left_out() -> None:
    tall, wide = split_axis(40 * 16, 16 * 16, 4 * 16), split_axis(23 * 16, 16 * 16, 4 * 16)
    tiles = torch.full((tall.tiles * wide.tiles, 2, 3, tall.size, wide.size), 0.7)
    result = stitch_tiles(tiles, tall, wide)
    assert result.shape == (2, 3, 640, 368)
    assert (result - 0.7).abs().max() < 1e-6
    ramp = torch.arange(640.0)[:, None] + torch.arange(368.0) / 1000
    cut = [
        ramp[top : top + tall.size, left : left + wide.size]
        for top in tall.starts
        for left in wide.starts
    ]
    assert (stitch_tiles(torch.stack(cut)[:, None], tall, wide)[0] - ramp).abs().max() < 1e-3
