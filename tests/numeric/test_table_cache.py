"""Computed AdaLN tables: evaluated once, then read; never those of other weights."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from lowpeak.engine.checkpoint import table_cache
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.checkpoint.table_cache import drop_oldest, tables_identity
from lowpeak.engine.checkpoint.tables import ComputedTables
from lowpeak.engine.checkpoint.toy import write_toy_checkpoint
from lowpeak.engine.sampling.schedules import schedule

TIMES = schedule(5).table_times()  # no published table has five steps


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOWPEAK_HOME", str(tmp_path / "home"))
    return write_toy_checkpoint(tmp_path / "toy", size="tiny", format="openvdn", seed=4)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Blocks whose projection was read."""
    blocks: list[int] = []
    real = ComputedTables.load_block

    def counted(self: ComputedTables, block: int) -> dict[str, torch.Tensor]:
        blocks.append(block)
        return real(self, block)

    monkeypatch.setattr(ComputedTables, "load_block", counted)
    return blocks


def load(folder: Path, times: tuple = TIMES) -> list[dict[str, torch.Tensor]]:
    checkpoint = open_checkpoint(folder)
    tables = checkpoint.tables_for(times)
    assert tables is not None and tables.times == tuple(tuple(step) for step in times)
    return [tables.load_block(block) for block in range(checkpoint.config.layers)]


def test_projections_are_read_once_for_a_schedule(
    folder: Path, computed: list[int], tmp_path: Path
) -> None:
    first = load(folder)
    assert computed == [0, 1, 2]
    again = load(folder)
    assert computed == [0, 1, 2], "read again although it was kept"
    for one, other in zip(first, again, strict=True):
        assert one.keys() == other.keys() and len(one) == 5
        assert all(torch.equal(one[name], other[name]) for name in one)
    (kept,) = (tmp_path / "home/adaln").iterdir()
    (kept / "01.safetensors").write_bytes(b"half a file")
    assert torch.equal(load(folder)[1]["step_2"], first[1]["step_2"]) and computed[3:] == [1]
    load(folder, schedule(6).table_times())
    assert computed[4:] == [0, 1, 2] and len(list(kept.parent.iterdir())) == 2


def test_other_weights_or_adapters_have_other_tables(folder: Path, computed: list[int]) -> None:
    first = load(folder)
    shards = sorted((folder / "h3-base/transformer").glob("*.safetensors"))
    content = bytearray(shards[0].read_bytes())
    content[-64:] = content[-64:][::-1]
    shards[0].write_bytes(content)
    load(folder)
    assert computed == [0, 1, 2, 0, 1, 2] and first
    checkpoint = open_checkpoint(folder)
    plain = tables_identity(checkpoint.files, TIMES, {})
    names = {tables_identity(checkpoint.files, TIMES, {"lora": {"identity": i}}) for i in "ab"}
    assert len(names | {plain}) == 3


def test_the_oldest_go_first_and_a_read_only_home_is_no_error(
    folder: Path, computed: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "kept"
    for age, name in enumerate("abc"):
        (root / name).mkdir(parents=True)
        (root / name / "00.safetensors").write_bytes(bytes(100))

        os.utime(root / name, (age, age))
    drop_oldest(root, keep=root / "c", limit_bytes=250)
    assert sorted(item.name for item in root.iterdir()) == ["b", "c"]
    drop_oldest(root, keep=root / "c", limit_bytes=10)
    assert [item.name for item in root.iterdir()] == ["c"]

    def refused(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(table_cache, "write_tensors", refused)
    assert len(load(folder)) == 3 and len(load(folder)) == 3 and computed == [0, 1, 2, 0, 1, 2]
