"""On a card: no placement, allocator or cap changes a bit of the latents.

Block size means the real width with two blocks. The full-size test wants a full toy checkpoint in
LOWPEAK_FULL_CHECKPOINT (`lowpeak toy-checkpoint DIR --size full`).
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import gpu_digest
import pytest
import torch
from gpu_digest import SMALL, TIMES, UNGROUPED, latents_digest, placement, the_card

from lowpeak.engine import bench
from lowpeak.engine.blocks import memory
from lowpeak.engine.blocks.memory import HostBuffer
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.errors import Cancelled
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.streamed import StreamedDenoiser

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def test_no_placement_changes_a_bit_at_block_size(folder, shared):
    blocks = open_checkpoint(folder).config.layers
    ways = itertools.product(("store", "recompute", "host"), ("device", "host"))
    spots = [((0, 0), 2, False), ((1, 0), 1, False), ((1, 1), 3, True), ((blocks, 0), 2, False)]
    found = {}
    for (keys, residual), ((resident, disk), slots, half) in itertools.product(ways, spots):
        chosen = placement(
            blocks, resident, disk, keys=keys, residual=residual, transfer_slots=slots,
            half_slots=half,
        )  # fmt: skip
        found[chosen] = latents_digest(folder, chosen, SMALL, prelude=shared)
    assert len(found) == 24
    assert len(set(found.values())) == 1, found
    assert SMALL.grouped > 1
    assert SMALL.chunks > SMALL.grouped, "one group has nothing to be read ahead of"


def test_no_placement_changes_a_bit_where_a_chunk_is_a_group(folder, shared):
    assert UNGROUPED.grouped == 1
    assert UNGROUPED.chunks > 4, "the first three wait in the ring, others in the store"
    ways = (("store", "device"), ("store", "host"), ("recompute", "device"), ("host", "device"))
    found = {
        way: latents_digest(
            folder,
            placement(2, keys=way[0], residual=way[1], half_slots=True),
            UNGROUPED,
            prelude=shared,
        )
        for way in ways
    }
    assert len(set(found.values())) == 1, found


def test_memory_that_cannot_be_locked_changes_no_bit(folder, shared, monkeypatch):
    ways = [
        placement(2, disk=disk, keys=keys, residual=residual)
        for disk in (0, 1)
        for keys, residual in (("store", "device"), ("host", "host"))
    ]
    expected = latents_digest(folder, placement(2), SMALL, prelude=shared)
    monkeypatch.setattr("lowpeak.engine.blocks.memory._register", lambda tensor: False)
    found = {item: latents_digest(folder, item, SMALL, prelude=shared) for item in ways}
    assert set(found.values()) == {expected}, found


def test_a_refused_lock_leaves_no_error_for_the_next_kernel():
    buffer = HostBuffer(1 << 20, pin=True)
    try:
        assert buffer.pinned and not memory._register(buffer.tensor), "it is locked already"
        assert float(torch.ones(1, device=the_card()).add_(1)) == 2
    finally:
        buffer.close()


def test_no_cap_changes_a_bit(folder, shared):
    total = torch.cuda.mem_get_info()[1]
    found = set()
    try:
        for cap_gib in (3.4, 7.0, total / 2**30):
            torch.cuda.empty_cache()
            torch.cuda.set_per_process_memory_fraction(min(1.0, cap_gib * 2**30 / total))
            chosen = placement(2, keys="recompute")
            found.add(latents_digest(folder, chosen, SMALL, prelude=shared))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert len(found) == 1


def test_no_allocator_changes_a_bit(folder):
    found = {}
    for setting in ("backend:native", "backend:cudaMallocAsync", "expandable_segments:True"):
        done = subprocess.run(
            [sys.executable, gpu_digest.__file__, str(folder)],
            env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": setting},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        found[setting] = done.stdout.split()[-1]
    assert len(set(found.values())) == 1, found


def test_cancel_leaves_the_device_as_it_was(folder):
    checkpoint = open_checkpoint(folder)
    layout, text, video, audio = bench.random_pass(checkpoint, SMALL, 60)
    device = the_card()
    latents_digest(folder, placement(2), SMALL, steps=1)  # libraries take their workspaces once
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    denoiser = StreamedDenoiser(checkpoint, TIMES, placement(2), device, is_cancelled=lambda: True)
    velocity = denoiser.bind(layout, text, torch.empty(0, denoiser.config.video_row))
    with pytest.raises(Cancelled):
        velocity(video, audio, schedule(8).steps()[0])
    denoiser.close()
    del velocity, denoiser
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() - before < 2**20


@pytest.mark.skipif(
    "LOWPEAK_FULL_CHECKPOINT" not in os.environ,
    reason="needs a full toy checkpoint in LOWPEAK_FULL_CHECKPOINT",
)
def test_no_placement_changes_a_bit_at_full_size():
    folder = Path(os.environ["LOWPEAK_FULL_CHECKPOINT"])
    geometry = Geometry(672, 384, 243)
    chosen = [
        placement(50, disk=40, resident=5),
        placement(50, resident=50, keys="recompute"),
        placement(50, disk=30, keys="recompute", transfer_slots=3, half_slots=True),
    ]
    assert len({latents_digest(folder, item, geometry) for item in chosen}) == 1
