"""The streamed, chunk-major engine against the whole-sequence model, and against itself.

A placement says where bytes wait; it must never change a bit of the result.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lowpeak.engine.checkpoint.assemble import plain_state
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.checkpoint.toy import write_toy_checkpoint
from lowpeak.engine.errors import Cancelled, CheckpointError
from lowpeak.engine.model import sweep
from lowpeak.engine.model.block import ChunkMajorBlock
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.model.modulation import ScheduleCursor
from lowpeak.engine.model.plain import PlainModel
from lowpeak.engine.model.root import output_tables
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.sampling.schedules import ConditionTimes, schedule
from lowpeak.engine.streamed import StreamedDenoiser, choose_places
from lowpeak.engine.streaming import StreamedDenoisers
from lowpeak.kernels import reference

CPU = torch.device("cpu")
GRIDS = {
    7: (6, 4),
    11: (4, 6),
    12: (2, 6),
    15: (6, 2),
    17: (4, 4),
    22: (2, 4),
    27: (4, 2),
    32: (2, 2),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("engine")
    return {
        name: write_toy_checkpoint(root / name, size="tiny", format=name, seed=3)
        for name in ("openvdn", "edge-fp8-rowwise")
    }


def problem(config, frames: int, keyframes=(), seed=0):
    """A layout with rows and text for it."""
    height, width = GRIDS[frames]
    generator = torch.Generator().manual_seed(seed + frames)
    layout = build_layout(
        latent_frames=frames,
        latent_height=height,
        latent_width=width,
        audio_latents=5,
        text_tags=[1, 0, 0, 1, 1],
        keyframes=keyframes,
    )
    target = frames * height * width // 4

    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    return (
        layout,
        draw(target, config.video_row),
        draw(10, config.audio_channels),
        draw(5, config.text_dim),
        draw(layout.condition_video_rows, config.video_row),
    )


def times_of(conditions=False):
    steps = schedule(8).steps(ConditionTimes(visual=conditions))
    return tuple(step.distinct for step in steps), steps[3]


def run(checkpoint, placement, data, *, conditions=False, dtype=None, device=CPU):
    layout, video, audio, text, condition = data
    times, step = times_of(conditions)
    denoiser = StreamedDenoiser(checkpoint, times, placement, device, dtype=dtype)
    if dtype == torch.float32:  # the published rule rounds norm_out to its weight's bfloat16

        def wide(root):
            return {k: v.float() if isinstance(v, torch.Tensor) else v for k, v in root.items()}

        denoiser.prelude.head = wide(denoiser.prelude.head)
        denoiser.prelude.outputs = output_tables(
            wide(checkpoint.load_root()),
            denoiser.prelude.tables.cursor.timesteps,
            checkpoint.config,
            denoiser.choice,
            device,
            dtype,
        )
    try:
        velocity = denoiser.bind(layout, text, condition)
        first = velocity(video, audio, step)
        again = velocity(video, audio, step)
    finally:
        denoiser.close()
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True)), "second step differs"
    return first


def digest(parts) -> str:
    return hashlib.sha256(b"".join(p.contiguous().numpy().tobytes() for p in parts)).hexdigest()


def placement(config, resident=0, disk=0, **settings) -> Placement:
    pinned = config.layers - resident - disk
    return Placement(resident_blocks=resident, disk_blocks=disk, pinned_blocks=pinned, **settings)


@pytest.mark.parametrize("frames", sorted(GRIDS))
@pytest.mark.parametrize("keyframes", [(), ("first", "last")])
def test_chunk_major_is_the_whole_sequence_model(folders, frames, keyframes):
    assert_is_the_whole_sequence_model(folders, frames, keyframes)


GROUPS = [(1, 17), (1, 32), (2, 15), (2, 17), (2, 27), (3, 11), (3, 22), (3, 32), (5, 27)]


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


def assert_is_the_whole_sequence_model(folders, frames, keyframes, *, chunk=None):
    checkpoint = open_checkpoint(folders["openvdn"])
    config = checkpoint.config
    if chunk is not None:
        config = replace(config, vdn=replace(config.vdn, chunk=chunk))
        checkpoint = replace(checkpoint, config=config)
    data = problem(config, frames, keyframes)
    layout, video, audio, text, condition = data
    got = run(checkpoint, placement(config), data, conditions=bool(keyframes), dtype=torch.float32)
    times, step = times_of(bool(keyframes))
    tables = checkpoint.tables_for(times)
    cursor = ScheduleCursor(tables.times)

    def table(index, rows):
        return cursor.table(tables.load_block(index), rows.distinct).float()

    model = PlainModel(plain_state(checkpoint, torch.float32), config, table)
    rows = layout.at(step.t_video, step.t_audio, t_condition=step.t_condition)
    want = model.forward(torch.cat([condition, video]), audio, text, rows, layout)
    want = (want[0][len(condition) :], want[1])
    for name, mine, right in zip(("video", "audio"), got, want, strict=True):
        error = float((mine - right).abs().max() / right.abs().max())
        print(f"PARITY | chunk-major {name} F={frames} | whole-sequence fp32 | {error:.1e}")
        assert error <= 1e-5


def placements(config, frames: int) -> list[Placement]:
    """Every key source and residual, each with blocks in several places and slots of both kinds."""
    ways = itertools.product(("store", "recompute", "host"), ("device", "host"))
    every = config.layers
    spots = [((0, 0), 2, False), ((1, 1), 3, True)]
    if frames == 17:
        spots += [((every, 0), 2, False), ((0, every), 1, False)]
    return [
        placement(
            config, resident, disk, keys=keys, residual=residual, transfer_slots=slots,
            half_slots=half,
        )
        for keys, residual in ways
        for (resident, disk), slots, half in spots
    ]  # fmt: skip


@pytest.mark.parametrize("frames", [12, 17, 7])
def test_no_placement_changes_a_bit(folders, frames):
    checkpoint = open_checkpoint(folders["edge-fp8-rowwise"])
    data = problem(checkpoint.config, frames)
    chosen = placements(checkpoint.config, frames)
    hashes = {item: digest(run(checkpoint, item, data)) for item in chosen}
    assert len(hashes) == (24 if frames == 17 else 12)
    assert len(set(hashes.values())) == 1, hashes


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


def test_cancel_is_honoured_at_a_block_border(folders):
    checkpoint = open_checkpoint(folders["edge-fp8-rowwise"])
    data = problem(checkpoint.config, 12)
    times, step = times_of()
    asked = []

    def cancelled():
        asked.append(1)
        return len(asked) > 2

    denoiser = StreamedDenoiser(
        checkpoint, times, placement(checkpoint.config), CPU, is_cancelled=cancelled
    )
    try:
        velocity = denoiser.bind(data[0], data[3], data[4])
        with pytest.raises(Cancelled, match="block 2 of 3"):
            velocity(data[1], data[2], step)
    finally:
        denoiser.close()


@pytest.mark.parametrize("fault", ["changed", "vanished", "truncated"])
def test_a_file_that_changes_while_in_use_stops_the_run_with_its_name(tmp_path, fault):
    folder = write_toy_checkpoint(tmp_path / "toy", size="tiny", format="edge-fp8-rowwise", seed=1)
    checkpoint = open_checkpoint(folder)
    config = checkpoint.config
    path = checkpoint.block_files[1].path
    data = problem(config, 12)
    times, step = times_of()
    denoiser = StreamedDenoiser(checkpoint, times, placement(config, disk=config.layers), CPU)
    try:
        velocity = denoiser.bind(data[0], data[3], data[4])
        velocity(data[1], data[2], step)
        if fault == "vanished":
            path.unlink()
        elif fault == "truncated":
            os.truncate(path, path.stat().st_size // 2)
        else:
            path.write_bytes(path.read_bytes()[::-1])
        with pytest.raises(CheckpointError, match=path.name):
            for _ in range(4):
                velocity(data[1], data[2], step)
    finally:
        denoiser.close()


def test_disk_blocks_are_spread_and_resident_ones_too():
    resident, pinned = choose_places(
        Placement(resident_blocks=5, pinned_blocks=20, disk_blocks=25), 50
    )
    disk = sorted(set(range(50)) - set(resident) - set(pinned))
    assert (len(resident), len(pinned), len(disk)) == (5, 20, 25)
    assert max(b - a for a, b in itertools.pairwise(disk)) == 2
    assert max(b - a for a, b in itertools.pairwise(resident)) <= 11


def test_the_engine_uses_the_reference_operations_on_a_cpu(folders):
    checkpoint = open_checkpoint(folders["edge-fp8-rowwise"])
    times, _ = times_of()
    denoiser = StreamedDenoiser(checkpoint, times, placement(checkpoint.config), CPU)
    try:
        assert denoiser.choice.chosen["branch"] == "reference"
        for name in ("norm_modulate", "delta_solve", "attention"):
            assert getattr(denoiser.choice.ops, name) is getattr(reference, name)
        assert "cuda" in denoiser.choice.against["triton (branch)"]
    finally:
        denoiser.close()


def test_two_passes_read_the_blocks_once_when_all_are_pinned(folders):
    checkpoint = open_checkpoint(folders["edge-fp8-rowwise"])
    times, step = times_of()
    places = {
        "sample_low": placement(checkpoint.config, keys="store"),
        "sample_high": placement(checkpoint.config, keys="recompute", transfer_slots=1),
    }
    denoisers = StreamedDenoisers(checkpoint, times, places, CPU)
    data = problem(checkpoint.config, 12)
    found, stores = [], []
    try:
        for phase in places:
            denoiser = denoisers.for_phase(phase, lambda: False)
            velocity = denoiser.bind(data[0], data[3], data[4])
            found.append(digest(velocity(data[1], data[2], step)))
            stores.append(denoiser.stream.store)
            denoisers.release()
    finally:
        denoisers.close()
    assert found[0] == found[1]
    assert stores[0] is stores[1]
    assert stores[0].disk_bytes == sum(file.identity.size_bytes for file in checkpoint.block_files)
