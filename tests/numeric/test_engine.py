"""The streamed, chunk-major engine against the whole-sequence model, and against itself.

A placement says where bytes wait; it must never change a bit of the result.
"""

from __future__ import annotations

import gc
import itertools
import os
import weakref
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
    times_of,
)

from lowpeak.engine.blocks.memory import HostBuffer
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.checkpoint.toy import write_toy_checkpoint
from lowpeak.engine.errors import Cancelled, CheckpointError
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.streamed import StreamedDenoiser, choose_places
from lowpeak.engine.streaming import StreamedDenoisers
from lowpeak.kernels import reference


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("engine")
    return {
        name: write_toy_checkpoint(root / name, size="tiny", format=name, seed=3)
        for name in ("openvdn", "edge-fp8-rowwise")
    }


@pytest.mark.parametrize("frames", sorted(GRIDS))
@pytest.mark.parametrize("keyframes", [(), ("first", "last")])
def test_chunk_major_is_the_whole_sequence_model(folders, frames, keyframes):
    assert_is_the_whole_sequence_model(folders, frames, keyframes)


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


def test_memory_that_cannot_be_locked_changes_no_bit_and_is_reported(folders, monkeypatch):
    checkpoint = open_checkpoint(folders["edge-fp8-rowwise"])
    data = problem(checkpoint.config, 17)
    chosen = [
        item for item in placements(checkpoint.config, 17) if "host" in (item.keys, item.residual)
    ]
    expected = digest(run(checkpoint, placement(checkpoint.config), data))
    begin = HostBuffer.__init__
    monkeypatch.setattr(
        HostBuffer, "__init__", lambda self, count, *, pin: begin(self, count, pin=True)
    )
    monkeypatch.setattr("lowpeak.engine.blocks.memory._register", lambda tensor: False)
    found = {item: digest(run(checkpoint, item, data)) for item in chosen}
    assert len(found) == 16 and set(found.values()) == {expected}, found
    both = placement(checkpoint.config, keys="host", residual="host")
    denoiser = StreamedDenoiser(checkpoint, times_of()[0], both, CPU)
    try:
        denoiser.bind(data[0], data[3], data[4])
        said = [notice for notice in denoiser.notices if "page-locked" in notice]
        for what in ("keys", "values", "the residual"):
            assert sum(what in notice for notice in said) == 1, said
    finally:
        denoiser.close()


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


def test_a_cancelled_denoiser_is_gone_when_it_is_dropped(folders):
    """What it has on a card goes with it, not when the garbage collector comes by."""
    checkpoint = open_checkpoint(folders["edge-fp8-rowwise"])
    layout, video, audio, text, _ = problem(checkpoint.config, 17)
    times = tuple(step.distinct for step in schedule(8).steps())
    gc.collect()
    gc.disable()
    try:
        denoiser = StreamedDenoiser(
            checkpoint, times, placement(checkpoint.config), CPU, is_cancelled=lambda: True
        )
        velocity = denoiser.bind(layout, text, torch.empty(0, checkpoint.config.video_row))
        with pytest.raises(Cancelled):
            velocity(video, audio, schedule(8).steps()[0])
        denoiser.close()
        left = [weakref.ref(denoiser), weakref.ref(denoiser.prelude)]
        del velocity, denoiser
        assert [item() for item in left] == [None, None]
    finally:
        gc.enable()
