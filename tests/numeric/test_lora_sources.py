"""Block files with adapters in them: changed in the buffer they are read into, kept by identity."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lowpeak.engine.blocks.memory import HostBuffer
from lowpeak.engine.checkpoint.header import read_header
from lowpeak.engine.checkpoint.index import Checkpoint, open_checkpoint
from lowpeak.engine.checkpoint.toy import SIZES, write_toy_checkpoint
from lowpeak.engine.lora import sources
from lowpeak.engine.lora.adapted import with_loras
from lowpeak.engine.lora.loading import load_loras
from lowpeak.engine.lora.loraset import LoraSet
from lowpeak.engine.lora.planned import sizes_of, sizes_of_files
from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.request import LoraChoice

CONFIG = SIZES["tiny"]
FORMATS = ("edge-fp8-rowwise", "edge-fp8", "edge-int8")
REREAD = (1, 2)


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> dict[str, Checkpoint]:
    top = tmp_path_factory.mktemp("toys")
    return {
        name: open_checkpoint(write_toy_checkpoint(top / name, format=name, seed=4))
        for name in FORMATS
    }


@pytest.fixture(scope="module")
def adapter(tmp_path_factory) -> Path:
    """Low rank, a norm, and a Kronecker product: what can run online and what cannot."""
    draw = torch.Generator().manual_seed(2)
    inner, hidden, ffn = CONFIG.inner, CONFIG.hidden, CONFIG.ffn
    sizes = (("attn.to_k", inner, hidden), ("ff.net.0.proj", 2 * ffn, hidden))
    tensors = {}
    for block, rank in ((0, 2), (1, 4)):  # the third block stays as it is
        base = f"diffusion_model.transformer_blocks.{block}"
        for name, rows, columns in sizes:
            tensors[f"{base}.{name}.lora_A.weight"] = torch.randn(rank, columns, generator=draw)
            tensors[f"{base}.{name}.lora_B.weight"] = torch.randn(rows, rank, generator=draw) / 9
        tensors[f"{base}.norm2.diff"] = torch.randn(hidden, generator=draw)
        tensors[f"{base}.ff.net.2.lokr_w1"] = torch.randn(4, 2, generator=draw) / 9
        tensors[f"{base}.ff.net.2.lokr_w2"] = torch.randn(hidden // 4, ffn // 2, generator=draw)
    path = tmp_path_factory.mktemp("lora") / "mixed.safetensors"
    save_file(tensors, path)
    return path


def loaded(adapter: Path, strength: float = 0.7) -> LoraSet:
    return load_loras([LoraChoice(str(adapter), strength)], ModelShapes.from_config(CONFIG))


def read(checkpoint: Checkpoint, block: int) -> dict[str, torch.Tensor]:
    """What a store would hold: every tensor of the source's buffer."""
    source = checkpoint.sources[block]
    buffer = HostBuffer(source.buffer_bytes, pin=False)
    buffer.tensor.fill_(0xFF)  # NaN in every float format: nothing may be left unwritten
    with ThreadPoolExecutor(2) as readers:
        assert (
            source.read(buffer.tensor, readers) == checkpoint.files[1 + block].identity.size_bytes
        )
    return {
        name: buffer.tensor[p.start_byte : p.start_byte + p.nbytes]
        .clone()
        .view(p.dtype)
        .view(p.shape)
        for name, p in source.pieces.items()
    }


def same(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(raw(one[n]), raw(two[n])) for n in one)


def raw(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


@pytest.mark.parametrize("mode", ["merged", "online"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_buffer_holds_the_bytes_of_the_changed_block(toys, adapter, name, mode) -> None:
    base = toys[name]
    adapted = with_loras(base, loaded(adapter), mode=mode)
    for block in range(CONFIG.layers):
        found = read(adapted, block)
        assert same(found, adapted.block_tensors(block))
        changed = not same(
            {n: found[n] for n in base.block_tensors(block)}, base.block_tensors(block)
        )
        assert changed is (block < 2)
    factors = {n for n in adapted.sources[2].pieces if ".lora_" in n}
    assert len(factors) == (6 if mode == "online" else 0)


def test_headers_alone_give_the_sizes_of_the_read_adapters(toys, adapter) -> None:
    shapes = ModelShapes.from_config(CONFIG)
    choices = [LoraChoice(str(adapter), 0.7), LoraChoice(str(adapter), 0.1)]
    found, wanted = sizes_of_files(choices, shapes), sizes_of(load_loras(choices, shapes))
    assert found.slot_bytes == wanted.slot_bytes > 0
    assert (found.row_flops, found.row_bytes) == (wanted.row_flops, wanted.row_bytes)
    assert found.merge_bytes == wanted.merge_bytes > 0
    assert wanted.host_bytes < found.host_bytes <= wanted.host_bytes + 2 * 8192  # headers
    assert sizes_of_files([LoraChoice(str(adapter), 0.0)], shapes) is None


def test_reread_blocks_are_merged_once_and_kept(toys, adapter, tmp_path, monkeypatch) -> None:
    base = toys["edge-fp8-rowwise"]

    def open_again(strength: float = 0.7, mode: str = "merged") -> Checkpoint:
        return with_loras(
            base, loaded(adapter, strength), mode=mode, reread=REREAD, keep_in=tmp_path
        )

    adapted = open_again()
    first = [read(adapted, block) for block in range(CONFIG.layers)]
    files = sorted(tmp_path.rglob("*"))
    assert [f.name for f in files if f.is_file()] == ["01.safetensors"], (
        "neither a block that stays in memory nor one without a change is written"
    )
    kept = next(f for f in files if f.is_file())
    assert read_header(kept).header_sha256 == base.block_files[1].header_sha256
    with monkeypatch.context() as patched:
        patched.setattr(sources, "merge_bytes_", lambda *given: pytest.fail("merged again"))
        for again in (adapted, open_again()):
            assert same(read(again, 1), first[1])
    kept.write_bytes(kept.read_bytes()[:-5])
    assert same(read(adapted, 1), first[1])  # cut: merged again, and written whole
    assert kept.stat().st_size == base.block_files[1].identity.size_bytes
    other, online = open_again(0.2), open_again(0.2, "online")
    assert not same(read(other, 1), first[1])
    assert same(read(online, 1), online.block_tensors(1))
    assert len(list(tmp_path.iterdir())) == sources.KEPT_SETS


def test_the_oldest_set_goes_and_a_full_disk_keeps_nothing(toys, adapter, tmp_path, monkeypatch):
    base = toys["edge-int8"]
    settings = {"mode": "merged", "reread": REREAD, "keep_in": tmp_path}
    for age, strength in enumerate((1.0, 2.0, 3.0)):
        read(with_loras(base, loaded(adapter, strength), **settings), 1)
        newest = max(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime)
        os.utime(newest, (age, age))
    left = sorted(path.stat().st_mtime for path in tmp_path.iterdir())
    assert left == [1, 2]
    monkeypatch.setattr(sources, "KEPT_ROOM_BYTES", 1 << 60)
    crowded = with_loras(base, loaded(adapter, 4.0), **settings)
    assert same(read(crowded, 1), crowded.block_tensors(1))
    assert not list(tmp_path.rglob("*4*.part")) and not any(
        list(path.iterdir()) for path in tmp_path.iterdir() if path.stat().st_mtime > 2
    )


def test_a_refused_write_costs_nothing_but_the_file(toys, adapter, tmp_path, monkeypatch) -> None:
    base = toys["edge-fp8"]
    adapted = with_loras(base, loaded(adapter), mode="merged", reread=REREAD, keep_in=tmp_path)

    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sources.os, "replace", full)
    assert same(read(adapted, 1), adapted.block_tensors(1))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
