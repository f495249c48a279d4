"""Every layout written, read and run: the same model within what its quantisation costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from lowpeak.engine.checkpoint.assemble import assemble, plain_state
from lowpeak.engine.checkpoint.comfy import open_comfy
from lowpeak.engine.checkpoint.convert import convert
from lowpeak.engine.checkpoint.edge_needs import saving_of
from lowpeak.engine.checkpoint.header import write_tensors
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.checkpoint.names import block_linears, block_shapes, root_shapes
from lowpeak.engine.checkpoint.toy import FORMATS, SIZES, ToyModel, write_toy_checkpoint
from lowpeak.engine.checkpoint.toy_layouts import write_comfy
from lowpeak.engine.errors import CheckpointError
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.model.modulation import ScheduleCursor
from lowpeak.engine.model.plain import PlainModel
from lowpeak.engine.sampling.schedules import TASK_CONDITIONS, community_schedule, schedule
from lowpeak.kernels.reference.quantise import dequantise, quantise_weight
from lowpeak.kernels.weights import Weight

SEED = 11
EDGE = {name: kind for name, kind in FORMATS.items() if kind != "plain"}


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> dict[str, Path]:
    top = tmp_path_factory.mktemp("toys")
    return {
        name: write_toy_checkpoint(top / name, format=name, seed=SEED, blocks=2) for name in FORMATS
    }


@pytest.fixture(scope="module")
def config() -> ModelConfig:
    return replace(SIZES["tiny"], layers=2)


@pytest.fixture(scope="module")
def original(config) -> dict[str, torch.Tensor]:
    """The model itself, each tensor in its own dtype: base, then default, then turbo, by hand."""
    model = ToyModel(config, SEED)
    shapes = dict(root_shapes(config))
    for i in range(config.layers):
        block = block_shapes(config, projection=True)
        shapes |= {f"transformer_blocks.{i}.{name}": shape for name, shape in block.items()}
    state = {name: model.tensor(name, shape) for name, shape in shapes.items()}
    for adapter in ("default", "turbo"):
        for name in model.adapter_targets(adapter):
            down, up = model.adapter(adapter, name)
            delta = up.float() @ down.float()
            state[name] = state[name] + delta.to(state[name].dtype)
    return state


def run(state, config, tables=None) -> torch.Tensor:
    """Velocities of a seeded request, video and audio in one vector; fp32."""
    generator = torch.Generator().manual_seed(3)
    layout = build_layout(
        latent_frames=12, latent_height=4, latent_width=6, audio_latents=20, text_tags=[1] * 9
    )
    step = schedule(8).steps()[3]
    times = layout.at(step.t_video, step.t_audio)
    rows = [
        torch.randn(len(layout.video_indices), config.video_row, generator=generator),
        torch.randn(len(layout.audio_indices), config.audio_channels, generator=generator),
        torch.randn(9, config.text_dim, generator=generator),
    ]
    state = {name: value.float() for name, value in state.items()}
    video, audio = PlainModel(state, config, tables).forward(*rows, times, layout)
    return torch.cat([video.flatten(), audio.flatten()])


def error(a: torch.Tensor, b: torch.Tensor) -> float:
    return ((a - b).abs().max() / b.abs().max()).item()


def test_openvdn_merges_base_default_turbo_to_the_bit(toys, original) -> None:
    checkpoint = open_checkpoint(toys["openvdn"])
    assert (checkpoint.layout, checkpoint.weight_format) == ("openvdn", "plain")
    found = plain_state(checkpoint)
    assert found.keys() == original.keys()
    for name, value in original.items():
        assert found[name].dtype == value.dtype and torch.equal(found[name], value), name


def test_merge_order_matters_and_is_base_default_turbo(toys, original) -> None:
    """The same adapters in the other order round differently: the test above can tell."""
    checkpoint = open_checkpoint(toys["openvdn"])
    turned = replace(
        checkpoint.reader, adapters=tuple(reversed(checkpoint.reader.adapters))
    ).block_tensors(0)
    name = "attn.orig.to_q.weight"
    assert not torch.equal(turned[name], original[f"transformer_blocks.0.{name}"])


def test_comfy_single_file_beside_a_stage_is_the_same_model(toys, original) -> None:
    checkpoint = open_checkpoint(toys["comfy"])
    assert checkpoint.layout == "comfy" and checkpoint.config.vdn is not None
    found = plain_state(checkpoint)
    assert found.keys() == original.keys()
    for name, value in original.items():
        assert torch.equal(found[name], value), name


def test_comfy_single_file_alone_is_the_dense_base(toys, config) -> None:
    path = next((toys["comfy"] / "diffusion_models").glob("*.safetensors"))
    checkpoint = open_checkpoint(path)
    assert checkpoint.config == config.dense()
    base, found = ToyModel(config, SEED), plain_state(checkpoint)
    assert not any("linear_attention" in name for name in found)
    for name, value in found.items():
        assert torch.equal(value, base.tensor(name, value.shape)), name


@pytest.mark.parametrize("name", EDGE)
def test_edge_holds_the_quantised_model_to_the_bit(toys, original, config, name) -> None:
    checkpoint, kind = open_checkpoint(toys[name]), EDGE[name]
    assert (checkpoint.layout, checkpoint.weight_format) == ("edge", kind)
    assert checkpoint.config == config
    found = plain_state(checkpoint)
    linears = [f"transformer_blocks.{i}.{x}" for i in range(2) for x in block_linears(config)]
    for key, value in original.items():
        if "adaln_proj" in key:
            assert key not in found
            continue
        if (
            key.removesuffix(".weight") in linears
            or ("refiner_blocks" in key and value.ndim == 2)
            or key == "context_embedder.weight"
        ):
            value = dequantise(quantise_weight(value, kind))
        assert torch.equal(found[key], value), key


@pytest.mark.parametrize("name", EDGE)
def test_edge_runs_like_its_source_parity(toys, original, config, name) -> None:
    """Forward with prepared tables. FP8 has 3 mantissa bits, int8 about 7 with rotation."""
    checkpoint = open_checkpoint(toys[name])
    step = schedule(8).steps()[3]
    tables = checkpoint.tables_for([step.distinct])
    cursor = ScheduleCursor(tables.times)
    assert step.distinct in tables.times
    got = run(
        plain_state(checkpoint), config,
        lambda i, times: cursor.table(tables.load_block(i), times.distinct),
    )  # fmt: skip
    expected = run(original, config)
    found = error(got, expected)
    assert 1e-4 < found < (0.03 if name == "edge-int8" else 0.15)
    print(f"PARITY | tiny model from {name} | same model unquantised | {found:.1e}")


def test_prepared_tables_equal_the_projections(toys, original, config) -> None:
    state = {name: value.float() for name, value in original.items()}
    checkpoint = open_checkpoint(toys["edge-fp8"])
    computed = open_checkpoint(toys["openvdn"])
    from lowpeak.engine.model.modulation import adaln_table, time_embedding

    for task in TASK_CONDITIONS.values():
        times = schedule(12).table_times(task)
        prepared, own = checkpoint.tables_for(times), computed.tables_for(times)
        assert own.times == times and prepared.times == times
        for block in range(config.layers):
            prefix = f"transformer_blocks.{block}.adaln_proj.linear."
            a, b = prepared.load_block(block), own.load_block(block)
            for step, moments in enumerate(times):
                temb = time_embedding(state, torch.tensor(moments), config.freq_dim)
                exact = adaln_table(state[f"{prefix}weight"], state[f"{prefix}bias"], temb)
                assert a[f"step_{step}"].dtype == torch.bfloat16
                assert error(a[f"step_{step}"].float(), exact) < 2**-7
                assert error(b[f"step_{step}"].float(), exact) < 2**-7


def test_tables_are_found_by_times_never_by_row_count(toys) -> None:
    checkpoint = open_checkpoint(toys["edge-int8"])
    same_rows = [
        schedule(8).table_times(TASK_CONDITIONS["fl2va"]),
        schedule(12).table_times(),
        schedule(8).table_times(TASK_CONDITIONS["ref2va_audio"]),
    ]
    assert {sum(map(len, times)) for times in same_rows} == {23}
    assert [checkpoint.tables_for(times).times for times in same_rows] == same_rows
    assert checkpoint.tables_for([(0.123456,)]) is not None, "projections evaluate any time"
    assert replace(checkpoint, has_projections=False).tables_for([(0.123456,)]) is None


def test_two_schedules_are_joined_when_no_set_holds_both(toys) -> None:
    checkpoint = open_checkpoint(toys["edge-fp8"])
    times = (*schedule(20).table_times(), *community_schedule().table_times())
    tables = checkpoint.tables_for(times)
    cursor, block = ScheduleCursor(tables.times), tables.load_block(1)
    assert "+" in tables.name
    for step in times:
        assert cursor.table(block, step).shape == (3 * len(step), 6 * checkpoint.config.hidden)


def test_assembly_makes_views_only(toys) -> None:
    for name in FORMATS:
        checkpoint = open_checkpoint(toys[name])
        tensors = checkpoint.block_tensors(1)
        owners = {t.untyped_storage().data_ptr() for t in tensors.values()}
        for key, value in assemble(tensors, checkpoint.weight_format, checkpoint.config).items():
            parts = [value.codes, value.scale] if isinstance(value, Weight) else [value]
            for part in parts:
                assert part is None or part.untyped_storage().data_ptr() in owners, (name, key)


def test_block_spans_address_the_bytes_of_the_file(toys) -> None:
    checkpoint = open_checkpoint(toys["edge-fp8-rowwise"])
    file = checkpoint.block_files[1]
    data = file.path.read_bytes()
    for name, tensor in checkpoint.block_tensors(1).items():
        span = file.tensors[name]
        raw = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        assert data[span.start_byte : span.end_byte] == raw
    assert file.tensors.keys() == load_names(file.path, "transformer_blocks.1.")


def load_names(path: Path, prefix: str) -> set[str]:
    return {name.removeprefix(prefix) for name in load_file(path)}


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_seed_writes_the_same_bytes(toys, tmp_path, name) -> None:
    again = write_toy_checkpoint(tmp_path / name, format=name, seed=SEED, blocks=2)
    files = sorted(p.relative_to(again) for p in again.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(toys[name]) for p in toys[name].rglob("*") if p.is_file())
    for file in files:
        assert (again / file).read_bytes() == (toys[name] / file).read_bytes(), file
    other = write_toy_checkpoint(tmp_path / "other", format=name, seed=SEED + 1, blocks=2)
    weights = next(file for file in files if file.suffix == ".safetensors")
    assert not (other / weights).is_file() or (
        (other / weights).read_bytes() != (again / weights).read_bytes()
    )


@pytest.mark.parametrize("kind", ["int8-convrot", "fp8-tensor"])
def test_comfy_quantised_files_are_split_and_swapped(tmp_path, config, kind) -> None:
    """Stacked qkv and swapped halves, with their scales, in ComfyUI's own quantised forms."""
    plain = tmp_path / "plain.safetensors"
    write_comfy(plain, ToyModel(config, SEED))
    tensors, quantised = load_file(plain), {}
    for name, value in tensors.items():
        module = name.removesuffix(".weight")
        if not module.endswith(("qkv_proj", "out_proj", "fc1", "fc2")):
            quantised[name] = value
            continue
        weight = quantise_weight(value, kind)
        quantised[name] = weight.codes
        if kind == "int8-convrot":
            group = 16 if value.shape[1] == 96 else 64
            text = {"format": "int8_tensorwise", "convrot": True, "convrot_groupsize": group}
            data = list(json.dumps(text).encode())
            quantised[f"{module}.weight_scale"] = weight.scale
            quantised[f"{module}.comfy_quant"] = torch.tensor(data, dtype=torch.uint8)
        else:
            quantised[f"{module}.scale_weight"] = weight.scale.reshape(())
    path = tmp_path / "quantised.safetensors"
    write_tensors(path, quantised, {"config": json.dumps(config.as_json())})
    checkpoint = open_checkpoint(path)
    assert checkpoint.weight_format == kind
    expected = plain_state(open_checkpoint(plain))
    found = plain_state(checkpoint)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert error(found[name].float(), value.float()) < 0.05, name
    if kind == "int8-convrot":
        name = "ff.net.0.proj"
        weight = ToyModel(config, SEED).tensor(
            f"transformer_blocks.1.{name}.weight", (2 * config.ffn, config.hidden)
        )
        exact = quantise_weight(weight, kind)
        block = checkpoint.load_block(1)
        assert torch.equal(block[name].codes, exact.codes)
        assert torch.equal(block[name].scale, exact.scale)


def test_a_stage_merges_into_a_quantised_comfy_base(toys, tmp_path, config, original) -> None:
    tensors = load_file(next((toys["comfy"] / "diffusion_models").glob("*.safetensors")))
    name = "blocks.0.mlp.fc2"
    weight = quantise_weight(tensors.pop(f"{name}.weight"), "fp8-tensor")
    tensors |= {f"{name}.weight": weight.codes, f"{name}.scale_weight": weight.scale}
    path = tmp_path / "base.safetensors"
    write_tensors(path, tensors, {"config": json.dumps(config.as_json())})
    checkpoint = open_comfy(path, toys["comfy"] / "vdn" / "stage-toy")
    block = checkpoint.load_block(0)
    found = block["ff.net.2"].codes.float()
    assert block["ff.net.2"].kind == "plain"
    assert error(found, original["transformer_blocks.0.ff.net.2.weight"].float()) < 0.05


def test_pruned_comfy_files_read_their_time_table(toys, tmp_path, config) -> None:
    """No time embedder: rows of a table, interpolated at 1024 t, straight into the projection."""
    plain = tmp_path / "plain.safetensors"
    write_comfy(plain, ToyModel(config, SEED))
    generator = torch.Generator().manual_seed(2)
    tensors = {k: v for k, v in load_file(plain).items() if not k.startswith("time_embedder")}
    tensors["adaln_t_table"] = table = torch.randn(1025, 8, generator=generator)
    for name in [n for n in tensors if n.endswith("adaln_proj.linear.weight")]:
        rows = tensors[name].shape[0]
        tensors[name] = torch.randn(rows, 8, generator=generator).to(torch.bfloat16)
    path = tmp_path / "pruned.safetensors"
    write_tensors(path, tensors)
    checkpoint = open_checkpoint(path)
    assert checkpoint.pruned and checkpoint.config.time_dim == 8
    times = ((0.0, 0.25), (0.7001953125 + 2**-12, 1.0))
    block = checkpoint.tables_for(times).load_block(1)
    place = (0.7001953125 + 2**-12) * 1024
    low = int(place)
    features = torch.stack(
        [table[low] * (1 - (place - low)) + table[low + 1] * (place - low), table[1024]]
    )
    name = "blocks.1.adaln_proj.linear."
    exact = features @ tensors[f"{name}weight"].float().T + tensors[f"{name}bias"].float()
    assert error(block["step_1"].float(), exact.reshape(6, -1)) < 2**-6
    with pytest.raises(CheckpointError, match="pruned base cannot take"):
        open_checkpoint(path, stage=toys["comfy"] / "vdn" / "stage-toy")
    assert saving_of(checkpoint) is None, "it cannot be converted"
    with pytest.raises(CheckpointError, match="lost its time embedder"):
        convert(path, tmp_path / "out")
