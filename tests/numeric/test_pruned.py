"""ComfyUI's pruned files run: no time embedder, rows of a time table go into the projections."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from lowpeak.engine.checkpoint.assemble import plain_state
from lowpeak.engine.checkpoint.header import write_tensors
from lowpeak.engine.checkpoint.index import Checkpoint, open_checkpoint
from lowpeak.engine.checkpoint.toy import SIZES, ToyModel
from lowpeak.engine.checkpoint.toy_layouts import write_comfy
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.model.modulation import ScheduleCursor
from lowpeak.engine.model.plain import PlainModel
from lowpeak.engine.models import lora_shapes_of
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.streamed import StreamedDenoiser

TIMES = tuple(step.distinct for step in schedule(8).steps())


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = tmp_path_factory.mktemp("pruned")
    write_comfy(folder / "whole.safetensors", ToyModel(SIZES["tiny"], 5))
    draw = torch.Generator().manual_seed(2)
    tensors = load_file(folder / "whole.safetensors")
    tensors = {k: v for k, v in tensors.items() if not k.startswith("time_embedder")}
    tensors["adaln_t_table"] = torch.randn(1025, 8, generator=draw)
    for name in [n for n in tensors if n.endswith("adaln_proj.linear.weight")]:
        made = torch.randn(tensors[name].shape[0], 8, generator=draw) / 8
        tensors[name] = made.to(torch.bfloat16)
    (folder / "whole.safetensors").unlink()
    write_tensors(folder / "pruned.safetensors", tensors)
    return open_checkpoint(folder / "pruned.safetensors")


def test_the_engine_runs_a_pruned_file_as_the_plain_model_does(pruned: Checkpoint) -> None:
    config, draw = pruned.config, torch.Generator().manual_seed(6)
    layout = build_layout(
        latent_frames=7, latent_height=4, latent_width=6, audio_latents=5, text_tags=[1, 1, 0]
    )
    video = torch.randn(7 * 6, config.video_row, generator=draw)
    audio = torch.randn(10, config.audio_channels, generator=draw)
    text = torch.randn(3, config.text_dim, generator=draw)
    step = schedule(8).steps()[3]
    placement = Placement(pinned_blocks=config.layers)
    denoiser = StreamedDenoiser(pruned, TIMES, placement, torch.device("cpu"), dtype=torch.float32)
    try:
        velocity = denoiser.bind(layout, text, torch.zeros(0, config.video_row))
        found = velocity(video, audio, step)
    finally:
        denoiser.close()
    tables = pruned.tables_for(TIMES)
    cursor = ScheduleCursor(tables.times)
    stored = [tables.load_block(block) for block in range(config.layers)]
    model = PlainModel(
        plain_state(pruned, torch.float32), config,
        lambda block, at: cursor.table(stored[block], at.distinct).float(),
    )  # fmt: skip
    times, mid = layout.at(step.t_video, step.t_audio), {}
    wanted = model.forward(video, audio, text, times, layout, mid)
    for one, two in zip(found, wanted, strict=True):
        assert bool(one.isfinite().all()) and float(one.std()) > 0.01
        # norm_out's input is rounded to its weight's bfloat16 in one of the two
        assert float((one - two).abs().max() / two.abs().max()) < 2e-2
    # By hand: rows of the table straight into the output norm's projection.
    state = plain_state(pruned, torch.float32)
    place = times.distinct.float() * 1024
    low = place.floor().long().clamp(max=1023)
    rows = torch.lerp(
        state["adaln_t_table"][low], state["adaln_t_table"][low + 1], (place - low)[:, None]
    )
    shift, scale = F.linear(rows, state["norm_out.linear.weight"],
                            state["norm_out.linear.bias"]).chunk(2, dim=-1)  # fmt: skip
    x = mid[f"block{config.layers - 1}_out"]
    weight = state["norm_out.norm.weight"]
    at = times.timestep_indices
    exact = F.rms_norm(x, weight.shape, weight, config.eps) * (1 + scale[at]) + shift[at]
    torch.testing.assert_close(mid["norm_out"], exact, rtol=1e-4, atol=1e-4)


def test_adapters_see_the_narrow_projections_of_a_pruned_file(pruned: Checkpoint) -> None:
    shapes = lora_shapes_of(pruned)
    hidden = pruned.config.hidden
    assert shapes.expected("transformer_blocks.0.adaln_proj.linear.weight") == (18 * hidden, 8)
    assert not shapes.has_module("time_embedder.linear_1")
