"""Adapters in the streamed, chunk-major engine: online and merged, whatever the placement."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lowpeak.engine.checkpoint.assemble import plain_state
from lowpeak.engine.checkpoint.index import Checkpoint, open_checkpoint
from lowpeak.engine.checkpoint.toy import SIZES, write_toy_checkpoint
from lowpeak.engine.lora.adapted import is_online, unpack_branches, with_loras
from lowpeak.engine.lora.loading import load_loras
from lowpeak.engine.lora.loraset import LoraSet
from lowpeak.engine.lora.online import OnlineOps, attach_branches
from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.model.modulation import ScheduleCursor
from lowpeak.engine.model.plain import PlainModel
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.request import LoraChoice
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.streamed import StreamedDenoiser
from lowpeak.kernels import reference
from lowpeak.kernels.reference.quantise import quantise_weight
from lowpeak.kernels.weights import Weight

CONFIG = SIZES["tiny"]
FRAMES, HEIGHT, WIDTH = 12, 4, 6


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> dict[str, Checkpoint]:
    top = tmp_path_factory.mktemp("toys")
    return {
        name: open_checkpoint(write_toy_checkpoint(top / name, format=name, seed=8))
        for name in ("openvdn", "edge-fp8-rowwise", "edge-int8")
    }


def adapter_file(path: Path, *, seed: int, blocks: tuple[int, ...], rank: int) -> Path:
    """Diffusers names. Blocks and ranks differ by file, so that no block is like another."""
    draw = torch.Generator().manual_seed(seed)
    inner, hidden, ffn = CONFIG.inner, CONFIG.hidden, CONFIG.ffn
    sizes = {"attn.to_q": (inner, hidden), "attn.to_v": (inner, hidden),
             "attn.to_out.0": (hidden, inner), "attn.to_out_linear": (hidden, inner),
             "ff.net.0.proj": (2 * ffn, hidden), "ff.net.2": (hidden, ffn)}  # fmt: skip
    if seed % 2:
        sizes["attn.to_k"] = (inner, hidden)
        sizes["adaln_proj.linear"] = (18 * hidden, CONFIG.time_dim)
    tensors = {}
    for block in blocks:
        for name, (rows, columns) in sizes.items():
            module = f"transformer.transformer_blocks.{block}.{name}"
            tensors[f"{module}.lora_A.weight"] = torch.randn(rank, columns, generator=draw)
            tensors[f"{module}.lora_B.weight"] = 0.05 * torch.randn(rows, rank, generator=draw)
    save_file(tensors, path)
    return path


@pytest.fixture(scope="module")
def loras(tmp_path_factory) -> LoraSet:
    folder = tmp_path_factory.mktemp("lora")
    one = adapter_file(folder / "one.safetensors", seed=1, blocks=(0, 2), rank=3)
    two = adapter_file(folder / "two.safetensors", seed=2, blocks=(1, 2), rank=5)
    choices = [LoraChoice(str(one), 0.8), LoraChoice(str(two), -1.5)]
    return load_loras(choices, ModelShapes.from_config(CONFIG))


def problem():
    draw = torch.Generator().manual_seed(6)
    layout = build_layout(
        latent_frames=FRAMES, latent_height=HEIGHT, latent_width=WIDTH, audio_latents=5,
        text_tags=[1, 0, 0, 1, 1],
    )  # fmt: skip
    video = torch.randn(FRAMES * HEIGHT * WIDTH // 4, CONFIG.video_row, generator=draw)
    audio = torch.randn(10, CONFIG.audio_channels, generator=draw)
    return layout, video, audio, torch.randn(5, CONFIG.text_dim, generator=draw)


def streamed(checkpoint: Checkpoint, **placed) -> tuple[torch.Tensor, torch.Tensor]:
    layout, video, audio, text = problem()
    steps = schedule(8).steps()
    settings = {"pinned_blocks": CONFIG.layers} | placed
    denoiser = StreamedDenoiser(
        checkpoint, tuple(s.distinct for s in steps), Placement(**settings),
        torch.device("cpu"), dtype=torch.float32,
    )  # fmt: skip
    try:
        velocity = denoiser.bind(layout, text, torch.zeros(0, CONFIG.video_row))
        first, again = velocity(video, audio, steps[3]), velocity(video, audio, steps[3])
    finally:
        denoiser.close()
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    return first


def by_hand(base: Checkpoint, loras: LoraSet, tables: Checkpoint) -> tuple[torch.Tensor, ...]:
    """The plain model on dequantised weights with every difference added in fp32.

    AdaLN from `tables`, whose rounding is then the same on both sides.
    """
    # The published rule rounds the input of norm_out to its weight's bfloat16: keep that dtype.
    state = {
        name: value if name.startswith("norm_out.linear") else value.float()
        for name, value in plain_state(base).items()
    }
    for name in loras.differences:
        if "adaln_proj" not in name:
            state[name] = state[name] + loras.delta(name)
    layout, video, audio, text = problem()
    steps = schedule(8).steps()
    held = tables.tables_for([step.distinct for step in steps])
    cursor = ScheduleCursor(held.times)

    def table(block, at):
        return cursor.table(held.load_block(block), at.distinct).float()

    times = layout.at(steps[3].t_video, steps[3].t_audio)
    return PlainModel(state, CONFIG, table).forward(video, audio, text, times, layout)


def error(found, wanted) -> float:
    return max(
        float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, wanted, strict=True)
    )


# Plain weights online: summation order alone. bf16 weights merged: their rounding. Quantised:
# activations and sums are quantised.
BOUNDS = {
    ("openvdn", "online"): 1e-5, ("openvdn", "merged"): 2e-2,
    ("edge-fp8-rowwise", "online"): 0.1,
    ("edge-int8", "online"): 0.05, ("edge-int8", "merged"): 0.05,
}  # fmt: skip


@pytest.mark.parametrize(("name", "mode"), BOUNDS)
def test_the_engine_draws_what_the_changed_weights_draw(toys, loras, name, mode) -> None:
    base = toys[name]
    adapted = with_loras(base, loras, mode=mode, dtype=torch.float32)
    assert is_online(adapted) is (mode == "online") and not is_online(base)
    wanted = by_hand(base, loras, adapted)
    assert error(by_hand(base, LoraSet(), base), wanted) > 0.2, "the adapter does nothing visible"
    found = error(streamed(adapted), wanted)
    print(f"PARITY | {name} with LoRA, {mode} | weights changed by hand | {found:.1e}")
    assert found <= BOUNDS[name, mode]


def test_online_factors_obey_every_placement_to_the_bit(toys, loras) -> None:
    online = with_loras(toys["edge-fp8-rowwise"], loras, mode="online")
    first = streamed(online)
    for placed in (
        {"pinned_blocks": 1, "resident_blocks": 1, "disk_blocks": 1, "keys": "recompute"},
        {"half_slots": True, "transfer_slots": 3},
    ):
        other = streamed(online, **placed)
        assert all(torch.equal(a, b) for a, b in zip(first, other, strict=True)), placed


def test_every_block_carries_the_same_shapes_and_padding_adds_exact_zeros(toys, loras) -> None:
    base = toys["edge-int8"]
    online = with_loras(base, loras, mode="online", dtype=torch.float32)
    shapes = []
    for block in range(CONFIG.layers):
        tensors = online.block_tensors(block)
        shapes.append({n: (t.dtype, t.shape) for n, t in tensors.items() if ".lora_" in n})
        carried = unpack_branches(tensors)
        own = loras.branches(block, torch.float32)
        for module, branch in carried.items():
            delta = (branch.up * branch.scale) @ branch.down
            if module in own:
                torch.testing.assert_close(
                    delta, (own[module].up * own[module].scale) @ own[module].down
                )
            else:
                assert not bool(delta.any())
        assert sum(b.size_bytes for b in carried.values()) == loras.slot_bytes(element_bytes=4)
    assert shapes[0] == shapes[1] == shapes[2]
    assert loras.online_sizes()["attn.orig.to_q"][2] == 8  # block 2 holds both files


def test_operations_without_a_branch_are_those_of_the_base(loras) -> None:
    ops = OnlineOps(reference)
    assert ops.attention is reference.attention
    x, w = torch.randn(5, 16), torch.randn(7, 16)
    weight = quantise_weight(w, "fp8-rowwise")
    act = ops.quantise_activation(x, "fp8-rowwise")
    plain = reference.quantise_activation(x, "fp8-rowwise")
    assert torch.equal(ops.linear(act, weight, torch.float32),
                       reference.linear(plain, weight, torch.float32))  # fmt: skip
    tensors = {"a": weight, "b": x}
    same = attach_branches(tensors)
    assert same["a"] is weight and isinstance(same["a"], Weight) and same["b"] is x
