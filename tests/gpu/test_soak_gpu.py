"""On a card: copies and kernels are delayed at random, for many runs; the latents never change.

A missing wait between the copy stream, the compute stream and those beside it shows as another
digest: the last tests take one wait away and expect to see it.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import contextmanager

import pytest
import torch
from gpu_digest import SMALL, UNGROUPED, latents_digest, placement

from lowpeak.engine.blocks.memory import CudaDevice
from lowpeak.engine.model.side import SideStream

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SECONDS = float(os.environ.get("LOWPEAK_SOAK_SECONDS", "20"))
LONGEST = 4_000_000  # clock cycles, about 2 ms: longer than the upload of a half block


def delays(patch, rng: random.Random, *, copies: int = LONGEST, compute: int = LONGEST) -> None:
    """Every copy, the compute behind every wait, and work beside it start so many cycles late."""
    copy, waits, beside = CudaDevice.copy, CudaDevice.compute_waits, SideStream.beside

    @contextmanager
    def late_beside(self):
        if self.used:  # what the side stream has to wait for, and what waits for it
            torch.cuda._sleep(1 + rng.randrange(compute))
        with beside(self):
            if self.used:
                torch.cuda._sleep(1 + rng.randrange(compute))
            yield

    def late_copy(self, target, source):
        with torch.cuda.stream(self.link):
            torch.cuda._sleep(1 + rng.randrange(copies))
        copy(self, target, source)

    def late_compute(self, event):
        found = waits(self, event)
        with torch.cuda.stream(self.compute):
            torch.cuda._sleep(1 + rng.randrange(compute))
        return found

    patch.setattr(CudaDevice, "copy", late_copy)
    patch.setattr(CudaDevice, "compute_waits", late_compute)
    patch.setattr(SideStream, "beside", late_beside)


def random_placement(rng: random.Random):
    resident = rng.choice((0, 0, 0, 1))
    return placement(
        2, resident, rng.randrange(3 - resident),
        keys=rng.choice(("store", "recompute", "host")),
        residual=rng.choice(("device", "host")),
        transfer_slots=rng.choice((1, 2, 3)),
        half_slots=rng.random() < 0.5,
    )  # fmt: skip


def test_delays_change_no_bit(folder, shared, monkeypatch):
    plain = placement(2, resident=2, keys="recompute")
    expected = {
        geometry: latents_digest(folder, plain, geometry, prelude=shared)
        for geometry in (SMALL, UNGROUPED)
    }
    rng = random.Random(11)
    delays(monkeypatch, rng)
    until, runs = time.monotonic() + SECONDS, 0
    while runs < 4 or time.monotonic() < until:
        chosen = random_placement(rng)
        geometry = (SMALL, UNGROUPED)[runs % 2]
        found = latents_digest(folder, chosen, geometry, prelude=shared)
        assert found == expected[geometry], (runs, chosen, geometry)
        runs += 1
    print(f"{runs} delayed runs, the same bits")


def test_the_delays_would_show_a_missing_wait(folder, monkeypatch):
    expected = latents_digest(folder, placement(2, resident=2), SMALL)
    delays(monkeypatch, random.Random(12), copies=1000, compute=400_000_000)
    monkeypatch.setattr(CudaDevice, "copy_waits", lambda self, event: None)
    chosen = placement(2, transfer_slots=1, keys="recompute")  # no side streams beside it
    assert latents_digest(folder, chosen, SMALL) != expected


def test_the_delays_would_show_a_missing_wait_for_attention(folder, monkeypatch):
    expected = latents_digest(folder, placement(2, resident=2), SMALL, capture=False)
    delays(monkeypatch, random.Random(13), copies=1000)
    monkeypatch.setattr(SideStream, "reach", lambda self, mark: None)
    chosen = placement(2, resident=2)
    assert latents_digest(folder, chosen, SMALL, capture=False) != expected
