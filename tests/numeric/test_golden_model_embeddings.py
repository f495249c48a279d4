"""Rotary tables, time sinusoid and AdaLN tables against recorded numbers."""

from __future__ import annotations

import pytest
import torch

from lowpeak.engine.errors import CheckpointError
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.model.modulation import (
    ScheduleCursor,
    adaln_table,
    split_table,
    time_embedding,
    time_sinusoid,
)
from lowpeak.engine.model.rope import apply_rotary, rotary_tables

ABSOLUTE = 1e-6  # both sides form angles in float32, from the same positions


@pytest.mark.golden_files("embeddings_*.safetensors")
def test_golden_parity_of_embeddings_at_full_size(golden_path, load_golden) -> None:
    tensors, fixture = load_golden(golden_path)
    request = fixture["request"]
    layout = build_layout(
        latent_frames=request["T"],
        latent_height=request["height"] // 16,
        latent_width=request["width"] // 16,
        audio_latents=request["A"],
        text_tags=[1] * request["n_text"],
        keyframes=request["anchors"],
    )
    rows = layout.position_ids[tensors["in/row_index"]]
    torch.testing.assert_close(rows, tensors["in/position_ids"], rtol=1e-12, atol=1e-12)
    half = tensors["out/rotary_cos"].shape[1] // 2
    worst = 0.0
    for found, name in zip(
        rotary_tables(tensors["in/position_ids"], half // 3, 10_000.0), ("cos", "sin"), strict=True
    ):
        expected = tensors[f"out/rotary_{name}"]
        assert torch.equal(expected[:, :half], expected[:, half:])
        worst = max(worst, float((found - expected[:, :half]).abs().max()))
    sinusoid = time_sinusoid(tensors["in/timesteps"], tensors["out/time_sinusoid"].shape[1])
    worst = max(worst, float((sinusoid - tensors["out/time_sinusoid"]).abs().max()))
    print(f"PARITY | rotary tables and time sinusoid, full size | recorded | {worst:.1e}")
    assert worst <= ABSOLUTE


@pytest.mark.golden_files("vdn_attention_f*.safetensors")
def test_golden_rotary_tables_and_positions(golden_path, load_golden) -> None:
    tensors, fixture = load_golden(golden_path)
    config = fixture["config"]
    cos, sin = rotary_tables(tensors["in/position_ids"], config["rope_freq_dim"], 10_000.0)
    assert (cos - tensors["in/rotary_cos"][:, : cos.shape[1]]).abs().max() <= ABSOLUTE
    assert (sin - tensors["in/rotary_sin"][:, : sin.shape[1]]).abs().max() <= ABSOLUTE
    height, width = config["grid"]
    layout = build_layout(
        latent_frames=config["frames"],
        latent_height=2 * height,
        latent_width=2 * width,
        audio_latents=config["audio_rows"] // 2,
        text_tags=tensors["in/token_tags"][: config["text"]],
        keyframes=config.get("anchors", ()),
    )
    torch.testing.assert_close(
        layout.position_ids, tensors["in/position_ids"], rtol=1e-12, atol=1e-12
    )
    for name in ("token_tags", "video_indices", "audio_indices", "text_indices"):
        assert torch.equal(getattr(layout, name), tensors[f"in/{name}"]), name
    _, start, frames, per_frame, *_ = tensors["in/layout"].tolist()
    assert (layout.video.start, layout.frames, layout.tokens_per_frame) == (
        start,
        frames,
        per_frame,
    )


@pytest.mark.golden_files("h3_model_*.safetensors")
def test_golden_time_embedding_and_adaln_tables(golden_path, load_golden, relative_error) -> None:
    tensors, fixture = load_golden(golden_path)
    state = {name[6:]: value for name, value in tensors.items() if name.startswith("state/")}
    temb = time_embedding(state, tensors["in/timestep"], fixture["config"]["freq_dim"])
    assert relative_error(temb, tensors["mid_vdn/temb"]) <= 1e-5
    for block in range(fixture["config"]["num_layers"]):
        name = f"transformer_blocks.{block}.adaln_proj.linear"
        table = adaln_table(state[f"{name}.weight"], state[f"{name}.bias"], temb)
        assert relative_error(table, tensors[f"mid_vdn/block{block}_adaln_table"]) <= 1e-5


def test_rotation_keeps_lengths_and_leaves_the_tail_alone() -> None:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(4, 2, 16, generator=generator, dtype=torch.float64)
    positions = torch.rand(4, 3, generator=generator, dtype=torch.float64) * 50
    cos, sin = rotary_tables(positions, 2, 10_000.0)
    y = apply_rotary(x, cos, sin)
    assert torch.equal(y[..., 12:], x[..., 12:])
    assert not torch.allclose(y[..., :12], x[..., :12])
    torch.testing.assert_close(y.norm(dim=-1), x.norm(dim=-1), rtol=1e-6, atol=0)
    # Scores depend on differences of positions only.
    moved = apply_rotary(x, *rotary_tables(positions + 3.0, 2, 10_000.0))
    torch.testing.assert_close(
        torch.einsum("nhd,mhd->hnm", y, y), torch.einsum("nhd,mhd->hnm", moved, moved),
        rtol=1e-4, atol=1e-4,
    )  # fmt: skip


def step_tables(cursor: ScheduleCursor, width: int = 4) -> dict[str, torch.Tensor]:
    """Rows that say which time and modality they belong to."""
    return {
        f"step_{i}": torch.tensor([[t + 10 * m] * width for t in step for m in range(3)])
        for i, step in enumerate(cursor.timesteps)
    }


def test_a_cursor_finds_a_step_by_its_times() -> None:
    cursor = ScheduleCursor([[0.0, 0.999], [0.1, 0.25, 0.999]])
    tables = step_tables(cursor)
    found = cursor.table(tables, torch.tensor([0.1, 0.25, 0.999]))
    assert torch.equal(found, tables["step_1"])
    # The same tables serve a request without keyframes.
    assert torch.equal(cursor.table(tables, [0.1, 0.25]), tables["step_1"][:6])
    assert cursor.own_times([0.1 + 4e-7, 0.25]) == [0.1, 0.25]


def test_a_cursor_gathers_rows_from_several_steps() -> None:
    cursor = ScheduleCursor([[0.0], [0.1, 0.25]])
    tables = step_tables(cursor)
    found = cursor.table(tables, [0.0, 0.25])
    assert torch.equal(found, torch.cat([tables["step_0"], tables["step_1"][3:]]))


def test_a_cursor_refuses_a_time_it_does_not_hold() -> None:
    cursor = ScheduleCursor([[0.0], [0.1, 0.25]], source="tables/00.safetensors")
    with pytest.raises(CheckpointError) as refused:
        cursor.table(step_tables(cursor), [0.1, 0.250002])
    assert "0.250002" in str(refused.value) and "0, 0.1, 0.25" in str(refused.value)
    with pytest.raises(CheckpointError, match="step_1"):
        cursor.table({"step_1": torch.zeros(3, 4)}, [0.1])


def test_the_six_parts_stand_in_order() -> None:
    parts = split_table(torch.arange(12.0).repeat(3, 1))
    assert [float(part[0, 0]) for part in parts] == [0, 2, 4, 6, 8, 10]
    assert parts._fields[:3] == ("shift_msa", "scale_msa", "gate_msa")
