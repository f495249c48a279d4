"""Row groups of several chunks: the whole-sequence model, and the same bits for every placement."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from engine_passes import (
    CPU,
    GRIDS,
    assert_is_the_whole_sequence_model,
    digest,
    placement,
    problem,
    run,
)

from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.checkpoint.toy import write_toy_checkpoint
from lowpeak.engine.model import sweep, waiting
from lowpeak.engine.model.block import ChunkMajorBlock
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.planner import workload
from lowpeak.kernels import reference

GROUPS = [(1, 17), (1, 32), (2, 15), (2, 17), (2, 27), (3, 11), (3, 22), (3, 32), (5, 27)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("engine")
    return {
        name: write_toy_checkpoint(root / name, size="tiny", format=name, seed=3)
        for name in ("openvdn", "edge-fp8-rowwise")
    }


@pytest.fixture
def grouped(monkeypatch):
    """Set the chunks of a group, whatever the size of the picture."""

    def set_to(chunks: int) -> None:
        monkeypatch.setattr(sweep, "grouped_chunks", lambda tokens, chunk: chunks)

    return set_to


@pytest.mark.parametrize(("chunks", "frames"), GROUPS)
def test_any_group_of_chunks_is_the_whole_sequence_model(folders, grouped, chunks, frames):
    """Last groups that are shorter, groups longer than the clip, a last chunk of one frame."""
    grouped(chunks)
    assert_is_the_whole_sequence_model(folders, frames, ())


@pytest.mark.parametrize(("chunk", "chunks"), [(2, 1), (2, 3), (3, 1), (3, 2), (4, 2), (6, 1)])
def test_a_chunk_of_other_frames_is_the_whole_sequence_model(folders, grouped, chunk, chunks):
    """The temporal taps reach over more than one short chunk."""
    grouped(chunks)
    assert_is_the_whole_sequence_model(folders, 22, (), chunk=chunk)


@pytest.mark.parametrize(("chunks", "frames"), [(1, 17), (2, 22), (3, 27)])
def test_no_placement_changes_a_bit_whatever_the_group(folders, grouped, chunks, frames):
    grouped(chunks)
    checkpoint = open_checkpoint(folders["edge-fp8-rowwise"])
    data = problem(checkpoint.config, frames)
    ways = itertools.product(("store", "recompute", "host"), ("device", "host"))
    hashes = {
        way: digest(
            run(checkpoint, placement(checkpoint.config, keys=way[0], residual=way[1]), data)
        )
        for way in ways
    }
    assert len(set(hashes.values())) == 1, hashes


@pytest.mark.parametrize("chunks", [1, 2])
def test_a_group_read_ahead_of_the_one_before_changes_no_bit(folders, grouped, monkeypatch, chunks):
    """What side streams do on a card: the next group's branches are queued before x is updated."""
    grouped(chunks)
    checkpoint = open_checkpoint(folders["edge-fp8-rowwise"])
    data = problem(checkpoint.config, 22)
    want = digest(run(checkpoint, placement(checkpoint.config), data))
    plain = ChunkMajorBlock.__init__

    def ahead(self, *args):
        plain(self, *args)
        assert self.ahead is False, "nothing to run beside on a CPU"
        self.ahead = True

    monkeypatch.setattr(ChunkMajorBlock, "__init__", ahead)
    for keys, residual in itertools.product(("store", "recompute", "host"), ("device", "host")):
        chosen = placement(checkpoint.config, keys=keys, residual=residual)
        assert digest(run(checkpoint, chosen, data)) == want, (keys, residual)


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_keys_are_made_by_the_same_rows_again(folders, grouped, monkeypatch, chunks):
    """A product's last bits may depend on how many rows it has, on a card if not here."""
    grouped(chunks)
    checkpoint = open_checkpoint(folders["edge-fp8-rowwise"])
    made: list[tuple[int, int]] = []
    plain = ChunkMajorBlock._key_value

    def noted(self, act, rows, keys, values):
        made.append((rows.start, rows.stop))
        return plain(self, act, rows, keys, values)

    monkeypatch.setattr(ChunkMajorBlock, "_key_value", noted)
    found = {}
    for keys in ("store", "recompute"):
        made.clear()
        run(checkpoint, placement(checkpoint.config, keys=keys), problem(checkpoint.config, 27))
        found[keys] = made.copy()
    evaluated = 2 * checkpoint.config.layers  # blocks of two steps
    once = len(found["store"]) // evaluated  # the global rows, then the groups
    assert once == 1 + -(-6 // chunks)
    assert len(found["recompute"]) == evaluated * (2 * once - 1)
    assert set(found["recompute"]) == set(found["store"])


@pytest.mark.parametrize(("frames", "stored"), [(15, 15), (17, 3), (22, 8), (32, 18)])
def test_the_first_chunks_of_stored_keys_wait_in_the_ring(
    folders, grouped, monkeypatch, frames, stored
):
    """Frames that the store has room for, and the bits of keys that are made again."""
    grouped(1)
    checkpoint = open_checkpoint(folders["edge-fp8-rowwise"])
    data = problem(checkpoint.config, frames)
    rooms = []
    plain = ChunkMajorBlock.__init__

    def noted(self, context, keys, *args):
        plain(self, context, keys, *args)
        for buffer in (self.ring.k, self.ring.v, *(self.waiting.store or ())):
            buffer.fill_(torch.nan)
        store = self.waiting.store
        rooms.append(store and store[0].shape[0] // context.tokens)

    monkeypatch.setattr(ChunkMajorBlock, "__init__", noted)
    found = {
        digest(run(checkpoint, placement(checkpoint.config, keys=keys), data))
        for keys in ("store", "recompute", "host")
    }
    assert len(found) == 1
    assert rooms == [stored, None, frames]


def test_the_plan_and_the_engine_leave_the_same_chunks_in_the_ring():
    """The planner imports no engine, so the number stands in both."""
    assert workload.IN_RING == waiting.IN_RING


def test_groups_and_chunks_cover_the_rows_once(grouped):
    for chunks, frames in itertools.product((1, 2, 3, 4, 9), (11, 12, 15, 17, 32)):
        grouped(chunks)
        c = context_of(frames)
        assert [i for group in range(c.groups) for i in c.group_chunks(group)] == [*range(c.chunks)]
        for rows, of_frames, of_rows in (
            (range(c.chunks), c.chunk_frames, c.chunk_rows),
            (range(c.groups), c.group_frames, c.group_rows),
        ):
            found = [frame for index in rows for frame in range(*of_frames(index))]
            assert found == [*range(frames)]
            found = [
                row for index in rows for row in range(of_rows(index).start, of_rows(index).stop)
            ]
            assert found == [*range(c.global_rows, c.total_rows)]
        assert max(len(c.group_chunks(index)) for index in range(c.groups)) <= chunks


def context_of(frames: int) -> sweep.SweepContext:
    none = torch.empty(0)
    return sweep.SweepContext(
        ModelConfig(), reference, CPU, torch.float32, 7, slice(0, 3), frames, GRIDS[frames], none,
        none, none,
    )  # fmt: skip


@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_a_stale_row_would_be_seen(folders, monkeypatch, grouped, chunks):
    """Poison: whatever a buffer held before must not reach the result."""
    grouped(chunks)
    checkpoint = open_checkpoint(folders["openvdn"])
    data = problem(checkpoint.config, 17)
    want = digest(run(checkpoint, placement(checkpoint.config), data))
    plain = torch.empty

    def poisoned(*shape, **settings):
        made = plain(*shape, **settings)
        return made.fill_(float("nan")) if made.is_floating_point() else made

    monkeypatch.setattr(torch, "empty", poisoned)
    for keys in ("store", "recompute", "host"):
        assert digest(run(checkpoint, placement(checkpoint.config, keys=keys), data)) == want
