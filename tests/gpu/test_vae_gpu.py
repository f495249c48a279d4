"""The video decoder on a CUDA device: the CPU's pictures, and the same bits for every placement."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from lowpeak.engine.vae.decoder import decode_video
from lowpeak.engine.vae.files import VideoVaeFile, open_video_vae
from lowpeak.engine.vae.keys import fuse_qkv
from lowpeak.engine.vae.streamed import StreamedBlocks
from lowpeak.engine.vae.toy import write_toy_video_vae

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no CUDA device: the streamed decoder is not run on one"
)


@pytest.fixture
def file(tmp_path: Path) -> VideoVaeFile:
    return open_video_vae(write_toy_video_vae(tmp_path, 1, layout="comfy"))


@pytest.fixture
def latents() -> Tensor:
    return torch.randn(1, 24, 17, 24, 20, generator=torch.Generator().manual_seed(0))


def error(got: Tensor, wanted: Tensor) -> float:
    return ((got.cpu() - wanted).abs().max() / wanted.abs().max()).item()


def test_the_device_draws_the_pictures_of_the_cpu(file: VideoVaeFile, latents: Tensor) -> None:
    blocks = [file.block(i, "cpu", torch.float32) for i in range(file.config.blocks)]
    wanted = decode_video(latents, file.root(), blocks, file.config)
    for dtype, most in ((torch.float32, 1e-4), (torch.float16, 2e-2)):
        there = [{k: v.to("cuda", dtype) for k, v in block.items()} for block in blocks]
        got = decode_video(latents, file.root("cuda"), there, file.config, compute_dtype=dtype)
        assert error(got, wanted) <= most, dtype


def test_no_placement_changes_a_bit_on_the_device(file: VideoVaeFile, latents: Tensor) -> None:
    root, device, half = file.root("cuda"), torch.device("cuda"), torch.float16
    blocks = [fuse_qkv(file.block(i, "cuda", half)) for i in range(file.config.blocks)]
    wanted = decode_video(latents, root, blocks, file.config, compute_dtype=half)
    places = (((), (0, 1, 2), 1), ((), (), 2), ((0, 2), (1,), 3), ((0, 1, 2), (), 1))
    for resident, pinned, clips in places:
        with (
            torch.inference_mode(),
            StreamedBlocks(file, device, half, resident=resident, pinned=pinned) as stream,
        ):
            got = decode_video(
                latents, root, stream, file.config, compute_dtype=half, clips_per_group=clips
            )
        assert torch.equal(got, wanted), (resident, pinned, clips)
