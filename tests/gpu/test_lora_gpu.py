"""On a card: blocks are merged in page-locked buffers as on a CPU, and branches run beside FP8 and
int8 linears."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lowpeak.engine import bench
from lowpeak.engine.blocks.memory import HostBuffer
from lowpeak.engine.checkpoint.index import Checkpoint, open_checkpoint
from lowpeak.engine.checkpoint.toy import SIZES, write_toy_checkpoint
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.lora.adapted import with_loras
from lowpeak.engine.lora.loading import load_loras
from lowpeak.engine.lora.loraset import LoraSet
from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.request import LoraChoice
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.streamed import StreamedDenoiser

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
CONFIG = SIZES["block"]
FORMATS = ("edge-fp8-rowwise", "edge-int8")


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> dict[str, Checkpoint]:
    top = tmp_path_factory.mktemp("toys")
    return {
        name: open_checkpoint(
            write_toy_checkpoint(top / name, size="block", format=name, seed=5, device="cuda")
        )
        for name in FORMATS
    }


@pytest.fixture(scope="module")
def loras(tmp_path_factory) -> LoraSet:
    draw = torch.Generator("cuda").manual_seed(2)
    inner, hidden, ffn = CONFIG.inner, CONFIG.hidden, CONFIG.ffn
    sizes = {"attn.to_q": (inner, hidden), "attn.to_v": (inner, hidden),
             "attn.to_out.0": (hidden, inner), "ff.net.0.proj": (2 * ffn, hidden),
             "ff.net.2": (hidden, ffn)}  # fmt: skip
    tensors = {}
    for block in range(CONFIG.layers):
        for name, (rows, columns) in sizes.items():
            module = f"transformer.transformer_blocks.{block}.{name}"
            for side, shape in (("A", (16, columns)), ("B", (rows, 16))):
                value = torch.randn(shape, generator=draw, device="cuda") * shape[1] ** -0.5
                tensors[f"{module}.lora_{side}.weight"] = value.bfloat16().cpu()
    path: Path = tmp_path_factory.mktemp("lora") / "x.safetensors"
    save_file(tensors, path)
    return load_loras([LoraChoice(str(path), 0.3)], ModelShapes.from_config(CONFIG))


def read(checkpoint: Checkpoint, block: int, *, pin: bool) -> dict[str, torch.Tensor]:
    source = checkpoint.sources[block]
    buffer = HostBuffer(source.buffer_bytes, pin=pin)
    with ThreadPoolExecutor(4) as readers:
        source.read(buffer.tensor, readers)
    found = {
        name: buffer.tensor[p.start_byte : p.start_byte + p.nbytes].clone().view(p.dtype)
        for name, p in source.pieces.items()
    }
    buffer.close()
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_a_merge_on_the_card_is_that_of_the_cpu(toys, loras, name) -> None:
    on_card = with_loras(toys[name], loras, mode="merged", device="cuda")
    on_cpu = with_loras(toys[name], loras, mode="merged")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found, wanted = read(on_card, 1, pin=True), read(on_cpu, 1, pin=False)
    assert torch.cuda.max_memory_allocated() - before < 128 << 20, (
        "the plan counts 256 MB with what the allocator keeps"
    )
    for tensor, value in wanted.items():
        if value.dtype in (torch.float8_e4m3fn, torch.int8):
            differ = found[tensor].view(torch.uint8) != value.view(torch.uint8)
            assert differ.float().mean() < 1e-3, tensor
        else:
            torch.testing.assert_close(found[tensor], value, rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", FORMATS)
def test_online_and_merged_draw_nearly_the_same(toys, loras, name) -> None:
    geometry = Geometry(448, 256, 56)
    found = {}
    for mode in ("plain", "online", "merged"):
        checkpoint = toys[name]
        if mode != "plain":
            checkpoint = with_loras(checkpoint, loras, mode=mode, device="cuda")
        layout, text, video, audio = bench.random_pass(checkpoint, geometry, 60)
        steps = schedule(8).steps()
        denoiser = StreamedDenoiser(
            checkpoint, tuple(step.distinct for step in steps),
            Placement(pinned_blocks=CONFIG.layers), torch.device("cuda", 0),
        )  # fmt: skip
        try:
            velocity = denoiser.bind(layout, text, torch.empty(0, CONFIG.video_row))
            first = velocity(video, audio, steps[2])[0]
            again = velocity(video, audio, steps[2])[0]
            assert torch.equal(first, again), "a replayed step is the first one"
            found[mode] = first
        finally:
            denoiser.close()

    def apart(one: str, two: str) -> float:
        return float((found[one] - found[two]).norm() / found[two].norm())

    print(f"{name}: online - merged {apart('online', 'merged'):.3f}, "
          f"merged - plain {apart('merged', 'plain'):.3f}")  # fmt: skip
    assert apart("online", "merged") < 0.5 * apart("merged", "plain")
