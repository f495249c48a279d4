"""Conversion: same model, same bytes, resumed after any interruption, refused with a reason."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
import torch

from lowpeak.engine.checkpoint import convert as module
from lowpeak.engine.checkpoint import lanes, parts
from lowpeak.engine.checkpoint.adapters import TILE_ROWS, add_low_rank
from lowpeak.engine.checkpoint.assemble import plain_state
from lowpeak.engine.checkpoint.convert import convert
from lowpeak.engine.checkpoint.edge_needs import (
    EDGE_FORMATS,
    output_bytes,
    saving_of,
    schedules_for,
)
from lowpeak.engine.checkpoint.header import read_header, write_tensors
from lowpeak.engine.checkpoint.index import Checkpoint, open_checkpoint
from lowpeak.engine.checkpoint.names import block_linears
from lowpeak.engine.checkpoint.quantise import quantise_tiles
from lowpeak.engine.checkpoint.toy import write_toy_checkpoint
from lowpeak.engine.errors import CheckpointError, DoesNotFit, RequestError
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.model.modulation import ScheduleCursor
from lowpeak.engine.model.plain import PlainModel
from lowpeak.engine.models import open_models
from lowpeak.engine.sampling.packing import packed_model_fn
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.sampling.solver import euler
from lowpeak.kernels.reference.quantise import quantise_weight

SEED = 5


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> dict[str, Path]:
    top = tmp_path_factory.mktemp("toys")
    return {
        name: write_toy_checkpoint(top / name, format=name, seed=SEED, blocks=2)
        for name in ("openvdn", "comfy", "edge-int8", "edge-fp8")
    }


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("format", EDGE_FORMATS)
@pytest.mark.parametrize("source", ["openvdn", "comfy"])
def test_converted_weights_are_the_quantised_source(toys, tmp_path, source, format) -> None:
    result = convert(toys[source], tmp_path, format=format)
    origin, found = open_checkpoint(toys[source]), open_checkpoint(tmp_path)
    assert found.config == origin.config and found.weight_format == EDGE_FORMATS[format]
    assert result["blocks"] == 2 and result["tables"] == len(schedules_for()) == 4
    for i in range(2):
        wanted, got = origin.load_block(i), found.load_block(i)
        for name in block_linears(found.config):
            exact = quantise_weight(wanted[name].codes, found.weight_format)
            assert torch.equal(got[name].codes.view(torch.uint8), exact.codes.view(torch.uint8))
            assert torch.equal(got[name].scale, exact.scale), name
        for name, value in got.items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(value, wanted[name]), name
    for times in schedules_for(["light"]):
        a, b = found.tables_for(times).load_block(1), origin.tables_for(times).load_block(1)
        for step, value in b.items():
            assert (a[step].float() - value.float()).abs().max() <= 2**-7 * value.abs().max()


def test_memory_that_parts_are_read_into_is_used_again_without_a_trace(tmp_path) -> None:
    """Five blocks: every piece of memory has held parts of several of them by the end."""
    source = write_toy_checkpoint(tmp_path / "toy", format="openvdn", seed=SEED, blocks=5)
    convert(source, tmp_path / "out", projections=True)
    origin, found = open_checkpoint(source), open_checkpoint(tmp_path / "out")
    for block in range(5):
        wanted, got = origin.load_block(block), found.load_block(block)
        plain = [name for name, value in got.items() if isinstance(value, torch.Tensor)]
        assert len(plain) > 10
        for name in plain:
            assert torch.equal(got[name], wanted[name]), (block, name)
        for one, two in zip(
            found.reader.projection(block), origin.reader.projection(block), strict=True
        ):
            assert torch.equal(one, two), block


def sampled_latents(checkpoint: Checkpoint) -> torch.Tensor:
    """Video and audio rows after 8 steps from seeded noise, the tables of the checkpoint in use."""
    config, plan = checkpoint.config, schedule(8)
    generator = torch.Generator().manual_seed(8)
    layout = build_layout(
        latent_frames=12, latent_height=4, latent_width=4, audio_latents=20, text_tags=[1] * 6
    )
    video = torch.randn(len(layout.video_indices), config.video_row, generator=generator)
    audio = torch.randn(len(layout.audio_indices), config.audio_channels, generator=generator)
    text = torch.randn(6, config.text_dim, generator=generator)
    tables = checkpoint.tables_for(plan.table_times())
    cursor = ScheduleCursor(tables.times)
    stored = [tables.load_block(i) for i in range(config.layers)]
    model = PlainModel(
        plain_state(checkpoint, torch.float32),
        config,
        lambda block, times: cursor.table(stored[block], times.distinct).float(),
    )
    found = euler(packed_model_fn(model.forward, text, layout), video, audio, plan)
    return torch.cat([found[0].flatten(), found[1].flatten()])


def test_a_converted_checkpoint_samples_the_latents_of_its_source_parity(toys, tmp_path) -> None:
    source = sampled_latents(open_checkpoint(toys["openvdn"]))
    assert torch.isfinite(source).all() and 0.1 < source.std() < 10
    for format, bound in (("edge-int8", 0.03), ("edge-fp8-rowwise", 0.1), ("edge-fp8", 0.1)):
        convert(toys["openvdn"], tmp_path / format, format=format)
        latents = sampled_latents(open_checkpoint(tmp_path / format))
        error = float((latents - source).abs().max() / source.abs().max())
        assert 0 < error <= bound, (format, error)
        print(f"PARITY | 8 steps from a {format} conversion | its OpenVDN source | {error:.1e}")


def test_int8_codes_equal_comfy_kitchen_on_sampled_rows(toys, tmp_path) -> None:
    """At a width whose rotation group is 256: those of the published models."""
    kitchen = pytest.importorskip("comfy_kitchen.backends.eager.quantization")
    generator = torch.Generator().manual_seed(1)
    weight = (torch.randn(5000, 5376, generator=generator) * 0.02).to(torch.bfloat16)
    codes, scale = quantise_tiles(weight, "int8-convrot")
    rows = torch.randint(0, 5000, (40,), generator=generator)
    theirs, their_scale = kitchen.quantize_int8_convrot_weight(weight[rows], 256)
    assert torch.equal(codes[rows], theirs)
    assert torch.equal(scale[rows], their_scale.reshape(-1, 1))


@pytest.mark.parametrize("kind", EDGE_FORMATS.values())
def test_tiles_of_rows_do_not_change_a_code(kind) -> None:
    generator = torch.Generator().manual_seed(2)
    weight = torch.randn(4999, 96, generator=generator).to(torch.bfloat16)
    weight[4000] *= 30  # in a later tile: the scale of a tensor must look at all of them
    codes, scale = quantise_tiles(weight, kind)
    exact = quantise_weight(weight, kind)
    assert torch.equal(codes.view(torch.uint8), exact.codes.view(torch.uint8))
    assert scale.shape == exact.scale.shape and torch.equal(scale, exact.scale)


def test_the_same_input_gives_the_same_bytes_and_resumes(toys, tmp_path, monkeypatch) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    convert(toys["openvdn"], whole, format="edge-int8")
    copied = tmp_path / "copied"
    shutil.copytree(toys["openvdn"], copied)
    seen: list[str] = []

    def stop(done: int, count: int, what: str) -> None:
        seen.append(what)
        if what == "block 1":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(copied, broken, format="edge-int8", progress=stop)
    with pytest.raises(CheckpointError):
        open_checkpoint(broken)
    assert not list(broken.rglob("*.part"))
    seen.clear()
    convert(copied, broken, format="edge-int8", progress=lambda *a: seen.append(a[2]))
    assert seen == ["root", "block 1", "manifest"], "block 0 was not done again"
    assert files_of(broken) == files_of(whole)


def test_a_damaged_block_of_an_earlier_attempt_is_made_again(toys, tmp_path) -> None:
    def stop(done: int, count: int, what: str) -> None:
        if what == "manifest":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(toys["openvdn"], tmp_path / "a", format="edge-fp8", progress=stop)
    block = next((tmp_path / "a").rglob("blocks/01.safetensors"))
    block.write_bytes(block.read_bytes()[:-10])
    convert(toys["openvdn"], tmp_path / "a", format="edge-fp8")
    convert(toys["openvdn"], tmp_path / "b", format="edge-fp8")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_what_a_killed_attempt_left_half_written_is_removed(toys, tmp_path) -> None:
    def stop(done: int, count: int, what: str) -> None:
        if what == "block 1":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(toys["openvdn"], tmp_path / "a", progress=stop)
    half = next((tmp_path / "a").rglob("blocks")) / ".01.safetensors.4711.part"
    half.write_bytes(b"half of it")
    convert(toys["openvdn"], tmp_path / "a")
    convert(toys["openvdn"], tmp_path / "b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


@pytest.mark.parametrize("source", ["openvdn", "comfy", "edge-int8"])
def test_parts_of_any_size_give_the_same_bytes(toys, tmp_path, monkeypatch, source) -> None:
    convert(toys[source], tmp_path / "a", projections=True)
    monkeypatch.setattr(parts, "PART_BYTES", 2000)
    monkeypatch.setattr(lanes, "PIECE_BYTES", 4096)
    result = convert(toys[source], tmp_path / "b", projections=True)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    stages = result["stages"]
    assert stages["write.bytes"] <= result["bytes"] and stages["seconds"] > 0
    names = ("read", "compute", "write")
    assert all(stages[f"{name}.busy_seconds"] > 0 for name in names)


@pytest.mark.parametrize("block", [0, 1])
def test_a_disk_that_fills_up_midway_keeps_finished_blocks(
    toys, tmp_path, monkeypatch, block
) -> None:
    pwrite, opened = os.pwrite, os.open
    full: set[int] = set()

    def note(path, flags, *rest):
        descriptor = opened(path, flags, *rest)
        full.discard(descriptor)
        if f".{block:02d}.safetensors" in str(path) and "blocks" in str(path):
            full.add(descriptor)
        return descriptor

    def write(descriptor, view, start):
        if descriptor in full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(descriptor, view, start)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", note)
        patch.setattr(os, "pwrite", write)
        with pytest.raises(CheckpointError, match="No space left") as caught:
            convert(toys["openvdn"], tmp_path / "a")
    assert caught.value.file.endswith(f"blocks/{block:02d}.safetensors") and caught.value.tensor
    assert not list(tmp_path.rglob("*.part"))
    seen: list[str] = []
    convert(toys["openvdn"], tmp_path / "a", progress=lambda *a: seen.append(a[2]))
    assert seen == ["root", *(f"block {i}" for i in range(block, 2)), "manifest"]
    convert(toys["openvdn"], tmp_path / "b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_leftovers_of_another_source_are_not_mixed_in(toys, tmp_path) -> None:
    def stop(done: int, count: int, what: str) -> None:
        if what == "block 1":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(toys["openvdn"], tmp_path, format="edge-fp8", progress=stop)
    with pytest.raises(CheckpointError, match="unfinished conversion of something else"):
        convert(toys["comfy"], tmp_path, format="edge-fp8")
    convert(toys["openvdn"], tmp_path, format="edge-fp8")
    with pytest.raises(CheckpointError, match="finished checkpoint"):
        convert(toys["openvdn"], tmp_path, format="edge-fp8")


def test_quantised_sources_pass_through_or_are_requantised(toys, tmp_path) -> None:
    """Int8 to int8 keeps every code; int8 to FP8 goes through bf16."""
    same = convert(toys["edge-int8"], tmp_path / "same", format="edge-int8")
    assert same["source_layout"] == "edge"
    source, found = open_checkpoint(toys["edge-int8"]), open_checkpoint(tmp_path / "same")
    for name, value in source.block_tensors(1).items():
        assert torch.equal(found.block_tensors(1)[name], value), name
    convert(toys["edge-int8"], tmp_path / "other", format="edge-fp8-rowwise")
    a, b = plain_state(source), plain_state(open_checkpoint(tmp_path / "other"))
    for name, value in a.items():
        assert (b[name].float() - value.float()).abs().max() <= 0.05 * value.float().abs().max()


def test_sources_without_projections_are_refused(toys, tmp_path) -> None:
    folder = tmp_path / "slim"
    shutil.copytree(toys["edge-fp8"], folder)
    shutil.rmtree(next(folder.rglob("adaln")))
    with pytest.raises(CheckpointError, match="no AdaLN projections"):
        convert(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_refused_before_anything_is_written(toys, tmp_path, monkeypatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DoesNotFit) as caught:
        convert(toys["openvdn"], tmp_path / "out")
    assert caught.value.short[0].axis == "disk" and caught.value.short[0].have_bytes == 1000
    assert not (tmp_path / "out").exists()


def test_the_size_forecast_is_right_within_the_headers(toys, tmp_path) -> None:
    result = convert(toys["openvdn"], tmp_path, format="edge-int8", projections=True)
    config = open_checkpoint(toys["openvdn"]).config
    forecast = output_bytes(config, "int8-convrot", schedules_for(), projections=True)
    tensors = sum(
        sum(span.nbytes for span in read_header(path).tensors.values())
        for path in tmp_path.rglob("*.safetensors")
    )
    assert tensors <= forecast * 1.01
    assert 0.9 * forecast <= tensors
    assert result["bytes"] >= tensors


def test_published_size_of_a_block_is_forecast_exactly() -> None:
    """432,433,052 and 432,694,800 byte files hold this many bytes of tensors beside headers."""
    from lowpeak.engine.model.config import ModelConfig

    one = ModelConfig(layers=1)
    root = output_bytes(ModelConfig(layers=0), "fp8-tensor", (), projections=False)
    fp8 = output_bytes(one, "fp8-tensor", (), projections=False) - root
    int8 = output_bytes(one, "int8-convrot", (), projections=False) - root
    assert fp8 == 423_886_848 + 8_538_080 + 28
    assert int8 == 423_886_848 + 8_538_080 + 265_216


def test_unknown_options_are_request_errors(toys, tmp_path) -> None:
    with pytest.raises(RequestError, match="edge-fp4"):
        convert(toys["openvdn"], tmp_path, format="edge-fp4")
    with pytest.raises(RequestError, match="ultra"):
        schedules_for(["ultra"])


def test_loading_says_what_conversion_would_save(toys) -> None:
    assert "GB" in (saving_of(open_checkpoint(toys["openvdn"])) or "")
    for source, says in (("openvdn", True), ("comfy", True), ("edge-int8", False)):
        notices = open_models(toys[source], "cpu").notices()
        assert any("models convert" in line for line in notices) is says, source
    assert saving_of(open_checkpoint(toys["edge-int8"])) is None


def test_a_source_that_changes_midway_stops_the_conversion(toys, tmp_path) -> None:
    folder = tmp_path / "source"
    shutil.copytree(toys["openvdn"], folder)

    def meddle(done: int, count: int, what: str) -> None:
        if what == "block 1":
            path = next(folder.glob("h3-base/transformer/*00002-of-00003*"))
            write_tensors(path, read_header(path).read_many())

    with pytest.raises(CheckpointError, match="changed"):
        convert(folder, tmp_path / "out", progress=meddle)


def test_merging_in_tiles_of_rows_changes_no_bit_and_keeps_the_workspace_small() -> None:
    """A weight of several tiles, against the whole difference added at once."""
    generator = torch.Generator().manual_seed(4)
    rows = 2 * TILE_ROWS + 77
    weight = torch.randn(rows, 96, generator=generator).to(torch.bfloat16)
    up = torch.randn(rows, 8, generator=generator).to(torch.bfloat16)
    down = torch.randn(8, 96, generator=generator).to(torch.bfloat16)
    whole = weight + ((up.float() @ down.float()) * 0.5).to(torch.bfloat16)
    add_low_rank(weight, up, down, 0.5)
    assert torch.equal(weight, whole)
