"""Adapters on checkpoints of every layout: merged, online, and with files of merged blocks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lowpeak.engine.checkpoint.assemble import assemble, plain_state
from lowpeak.engine.checkpoint.index import Checkpoint, open_checkpoint
from lowpeak.engine.checkpoint.toy import SIZES, write_toy_checkpoint
from lowpeak.engine.lora.adapted import (
    unpack_branches,
    with_loras,
)
from lowpeak.engine.lora.loading import load_loras
from lowpeak.engine.lora.loraset import LoraSet
from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.model.modulation import ScheduleCursor
from lowpeak.engine.model.plain import PlainModel
from lowpeak.engine.request import LoraChoice
from lowpeak.engine.sampling.schedules import schedule

FORMATS = ("edge-fp8", "edge-fp8-rowwise", "edge-int8", "openvdn", "comfy")
CONFIG = replace(SIZES["tiny"], layers=2)


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> dict[str, Checkpoint]:
    top = tmp_path_factory.mktemp("toys")
    return {
        name: open_checkpoint(write_toy_checkpoint(top / name, format=name, seed=5, blocks=2))
        for name in FORMATS
    }


def adapter_file(path: Path, *, adaln: bool, seed: int = 4, scale: float = 0.05) -> Path:
    """Original names, fused rows, all main linears, the refiner, and AdaLN if asked."""
    draw = torch.Generator().manual_seed(seed)
    inner, hidden, ffn = CONFIG.inner, CONFIG.hidden, CONFIG.ffn
    sizes = {"attn.qkv_proj": (3 * inner, hidden), "attn.out_proj": (hidden, inner),
             "mlp.fc1": (2 * ffn, hidden), "mlp.fc2": (hidden, ffn)}  # fmt: skip
    modules = {f"{stack}blocks.{i}.{name}": size
               for stack, count in (("", 2), ("token_refiner.", 1)) for i in range(count)
               for name, size in sizes.items()}  # fmt: skip
    if adaln:
        modules |= {f"blocks.{i}.adaln_proj.linear": (18 * hidden, CONFIG.time_dim)
                    for i in range(2)}  # fmt: skip
        modules["time_embedder.proj_out"] = (CONFIG.time_dim, CONFIG.time_hidden)
        modules["final_layer.adaln_proj.linear"] = (2 * hidden, CONFIG.time_dim)
    tensors = {}
    for name, (rows, columns) in modules.items():
        tensors[f"diffusion_model.{name}.lora_A.weight"] = torch.randn(4, columns, generator=draw)
        up = torch.randn(rows, 4, generator=draw) * scale
        tensors[f"diffusion_model.{name}.lora_B.weight"] = up
    tensors["diffusion_model.blocks.1.norm2.diff"] = torch.randn(hidden, generator=draw) * scale
    tensors["diffusion_model.condition_proj.diff_b"] = torch.randn(hidden, generator=draw)
    save_file(tensors, path)
    return path


@pytest.fixture(scope="module")
def loras(tmp_path_factory) -> LoraSet:
    file = adapter_file(tmp_path_factory.mktemp("lora") / "x.safetensors", adaln=True)
    return load_loras([LoraChoice(str(file), 1.0)], ModelShapes.from_config(CONFIG))


def velocities(state: dict[str, torch.Tensor], checkpoint: Checkpoint | None) -> torch.Tensor:
    """One evaluation of the plain model; AdaLN from the checkpoint's tables if one is given."""
    draw = torch.Generator().manual_seed(3)
    layout = build_layout(
        latent_frames=12, latent_height=4, latent_width=6, audio_latents=20, text_tags=[1] * 9
    )
    step = schedule(8).steps()[3]
    times = layout.at(step.t_video, step.t_audio)
    rows = [
        torch.randn(len(layout.video_indices), CONFIG.video_row, generator=draw),
        torch.randn(len(layout.audio_indices), CONFIG.audio_channels, generator=draw),
        torch.randn(9, CONFIG.text_dim, generator=draw),
    ]
    tables = None
    if checkpoint is not None:
        found = checkpoint.tables_for([times.distinct.tolist()])
        cursor = ScheduleCursor(found.times)

        def tables(block, at):
            return cursor.table(found.load_block(block), at.distinct).float()

    state = {name: value.float() for name, value in state.items()}
    video, audio = PlainModel(state, CONFIG, tables).forward(*rows, times, layout)
    return torch.cat([video.flatten(), audio.flatten()])


def error(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.float() - b.float()).abs().max() / b.float().abs().max())


def changed_by_hand(base: Checkpoint, loras: LoraSet) -> dict[str, torch.Tensor]:
    """The base as fp32 tensors, its projections put in, every difference added."""
    state = {name: value.float() for name, value in plain_state(base).items()}
    for block in range(CONFIG.layers):
        weight, bias = base.reader.projection(block)
        state[f"transformer_blocks.{block}.adaln_proj.linear.weight"] = weight.float()
        state[f"transformer_blocks.{block}.adaln_proj.linear.bias"] = bias.float()
    for name in loras.differences:
        state[name] = state[name] + loras.delta(name)
    return state


@pytest.mark.parametrize("name", FORMATS)
def test_a_merged_checkpoint_draws_what_the_changed_weights_draw(toys, loras, name) -> None:
    base = toys[name]
    adapted = with_loras(base, loras, mode="merged")
    wanted = velocities(changed_by_hand(base, loras), None)
    found = velocities(plain_state(adapted), adapted)
    plain = velocities(plain_state(base), base)
    assert error(plain, wanted) > 0.2, "the adapter does nothing visible"
    bound = 0.02 if base.weight_format == "plain" else 0.1
    assert error(found, wanted) < bound, name
    for block in range(2):
        before, after = base.block_tensors(block), adapted.block_tensors(block)
        assert {n: (t.dtype, t.shape) for n, t in before.items()} == {
            n: (t.dtype, t.shape) for n, t in after.items()
        }
        same = [n for n in before if torch.equal(_bytes(before[n]), _bytes(after[n]))]
        assert any("linear_attention" in n for n in same)
        assert not any(n == "attn.orig.to_q.weight" or n.endswith("to_q.weight_fp8") for n in same)


@pytest.mark.parametrize("name", FORMATS)
def test_online_factors_travel_beside_untouched_weights(toys, loras, name) -> None:
    base = toys[name]
    adapted = with_loras(base, loras, mode="online", dtype=torch.float32)
    for block in range(2):
        before, after = base.block_tensors(block), adapted.block_tensors(block)
        for linear in ("attn.orig.to_q", "ff.net.0.proj"):
            for key in before:
                if key.startswith(linear):
                    assert torch.equal(_bytes(before[key]), _bytes(after[key])), key
        carried = unpack_branches(assemble(after, base.weight_format, CONFIG))
        assert set(carried) == {f"attn.orig.{n}" for n in ("to_q", "to_k", "to_v", "to_out.0")} | {
            "ff.net.0.proj", "ff.net.2"}  # fmt: skip
        assert unpack_branches(before) == {}
        for module, branch in carried.items():
            delta = (branch.up * branch.scale) @ branch.down
            assert error(delta, loras.delta(f"transformer_blocks.{block}.{module}.weight")) < 1e-6
        extra = sum(b.size_bytes for b in carried.values())
        assert extra == loras.branch_bytes(block, element_bytes=4)
    changed = adapted.block_tensors(1)["norm2.weight"]
    assert not torch.equal(changed, base.block_tensors(1)["norm2.weight"])
    both = adapted.root_tensors(), with_loras(base, loras, mode="merged").root_tensors()
    assert all(torch.equal(_bytes(both[0][n]), _bytes(both[1][n])) for n in both[0])


def test_no_adapter_and_strength_zero_give_the_very_same_checkpoint(toys, tmp_path) -> None:
    base = toys["edge-fp8-rowwise"]
    file = adapter_file(tmp_path / "x.safetensors", adaln=True)
    none = load_loras([LoraChoice(str(file), 0.0)], ModelShapes.from_config(CONFIG))
    assert with_loras(base, none, mode="online") is base
    assert with_loras(base, LoraSet(), mode="merged") is base


def test_prepared_tables_are_kept_unless_adaln_is_changed(toys, loras, tmp_path) -> None:
    base = toys["edge-int8"]
    times = [[0.0]]
    assert base.tables_for(times).name != "computed"
    assert with_loras(base, loras, mode="online").tables_for(times).name == "computed"
    file = adapter_file(tmp_path / "x.safetensors", adaln=False)
    other = load_loras([LoraChoice(str(file))], ModelShapes.from_config(CONFIG))
    kept = with_loras(base, other, mode="online").tables_for(times)
    assert kept.name == base.tables_for(times).name


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)
