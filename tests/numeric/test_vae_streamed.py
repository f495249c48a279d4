"""Streaming the decoder's blocks changes no bit, wherever they wait."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from lowpeak.engine.checkpoint.header import read_header
from lowpeak.engine.errors import Cancelled, CheckpointError
from lowpeak.engine.vae.decoder import decode_video
from lowpeak.engine.vae.files import VideoVaeFile, open_video_vae
from lowpeak.engine.vae.keys import fuse_qkv
from lowpeak.engine.vae.streamed import StreamedBlocks, is_direct
from lowpeak.engine.vae.toy import write_toy_video_vae

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> VideoVaeFile:
    folder = tmp_path_factory.mktemp("vae")
    return open_video_vae(write_toy_video_vae(folder, 1, layout="comfy"))


@pytest.fixture(scope="module")
def latents() -> Tensor:
    return torch.randn(1, 24, 17, 2, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("resident", "pinned", "clips"),
    [((), (), 1), ((), (0, 1, 2), 2), ((0, 2), (1,), 1), ((0, 1, 2), (), 3), ((1,), (), 2)],
)
def test_no_placement_changes_a_bit(
    file: VideoVaeFile,
    latents: Tensor,
    resident: tuple[int, ...],
    pinned: tuple[int, ...],
    clips: int,
) -> None:
    whole = [fuse_qkv(file.block(i, dtype=torch.float32)) for i in range(file.config.blocks)]
    wanted = decode_video(latents, file.root(), whole, file.config)
    with (
        torch.inference_mode(),
        StreamedBlocks(file, CPU, torch.float32, resident=resident, pinned=pinned) as blocks,
    ):
        got = decode_video(latents, file.root(), blocks, file.config, clips_per_group=clips)
    assert torch.equal(got, wanted)


@pytest.mark.parametrize(
    ("layout", "dtype", "direct"),
    [
        ("diffusers", torch.float32, True),
        ("comfy", torch.float16, True),
        ("comfy", torch.float32, False),
        ("comfy-int8", torch.float16, False),
    ],
)
def test_blocks_read_as_they_lie_are_the_same_blocks(
    tmp_path: Path, layout: str, dtype: torch.dtype, direct: bool
) -> None:
    file = open_video_vae(write_toy_video_vae(tmp_path, 2, layout=layout))
    assert is_direct(file, dtype) == direct
    wanted = [fuse_qkv(file.block(i, dtype=dtype)) for i in range(file.config.blocks)]
    with StreamedBlocks(file, CPU, dtype, pinned=(1,)) as blocks:
        for _ in range(2):
            for index, found in enumerate(blocks()):
                assert found.keys() == wanted[index].keys()
                for name, value in wanted[index].items():
                    assert torch.equal(found[name], value) and found[name].dtype == dtype, name
        assert blocks.store.disk_bytes > 0


def test_wrong_bytes_in_a_block_that_is_read_directly_are_named(tmp_path: Path) -> None:
    folder = write_toy_video_vae(tmp_path / "vae", 2, layout="diffusers")
    weights = next(folder.glob("*.safetensors"))
    span = read_header(weights).tensors["decoder.transformer_blocks.1.ff.net.2.weight"]
    content = bytearray(weights.read_bytes())
    content[span.start_byte : span.end_byte] = bytes(span.nbytes)
    weights.write_bytes(content)
    file = open_video_vae(folder)
    with (
        pytest.raises(CheckpointError, match=r"transformer_blocks\.1\.ff\.net\.2\.weight"),
        StreamedBlocks(file, CPU, torch.float32) as blocks,
    ):
        list(blocks())


def test_cancelling_in_a_pass_lets_the_stream_go(file: VideoVaeFile, latents: Tensor) -> None:
    asked: list[int] = []

    def is_cancelled() -> bool:
        asked.append(1)
        return len(asked) == 2

    with (
        pytest.raises(Cancelled),
        StreamedBlocks(file, CPU, torch.float32) as blocks,
    ):
        decode_video(latents, file.root(), blocks, file.config, is_cancelled=is_cancelled)
    assert len(asked) == 2


def test_one_linear_for_queries_keys_and_values_is_the_same_model(
    file: VideoVaeFile, latents: Tensor
) -> None:
    blocks = [file.block(i, dtype=torch.float32) for i in range(file.config.blocks)]
    wanted = decode_video(latents, file.root(), blocks, file.config)
    fused = [fuse_qkv(block) for block in blocks]
    assert all("attn.to_q.weight" not in b and "attn.to_qkv.bias" in b for b in fused)
    got = decode_video(latents, file.root(), fused, file.config)
    assert ((got - wanted).abs().max() / wanted.abs().max()) <= 1e-5
