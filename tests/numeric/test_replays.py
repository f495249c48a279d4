"""What a captured graph is keyed by, and what runs where nothing can be captured."""

from __future__ import annotations

import pytest
import torch

from lowpeak.engine.lora.apply import Branch
from lowpeak.engine.lora.online import AdaptedWeight
from lowpeak.engine.model.replays import Replays, fingerprint
from lowpeak.kernels.weights import Weight


def test_without_a_stream_every_call_runs():
    done = []
    replays = Replays(None)
    for _ in range(3):
        with replays.on_stream():
            replays.run("write", 1, lambda: done.append(1), lambda: 0)
    assert len(done) == 3 and not replays.notices


@pytest.mark.parametrize("change", ["address", "shape", "dtype", "kind", "rank", "scale"])
def test_a_fingerprint_sees_all_that_a_graph_depends_on(change):
    memory, other = torch.zeros(64), torch.zeros(64)

    def block(what: str) -> dict:
        codes = (other if what == "address" else memory)[:32].view(4, 8)
        if what == "shape":
            codes = codes.view(8, 4)
        if what == "dtype":
            codes = codes.view(torch.int32)
        rank = 3 if what == "rank" else 2
        factors = (memory[: 8 * rank].view(rank, 8), memory[: 4 * rank].view(4, rank))
        scale = (other if what == "scale" else memory)[:rank]
        kind = "fp8-rowwise" if what == "kind" else "plain"
        return {"q": AdaptedWeight(kind, codes, branch=Branch(*factors, scale)), "norm": memory[:8]}

    assert fingerprint(block("")) == fingerprint(block(""))
    assert fingerprint(block("")) != fingerprint(block(change))
    assert fingerprint({"q": Weight("plain", memory)}) != fingerprint(block(""))


def test_an_allocator_without_pools_queues_every_kernel_and_says_so(monkeypatch):
    def refuse():
        raise RuntimeError("this allocator does not support pools\nsecond line")

    monkeypatch.setattr(torch.cuda, "MemPool", refuse, raising=False)
    replays, done = Replays(object()), []
    for _ in range(3):
        replays.run("write", 1, lambda: done.append(1), lambda: 0)
    assert len(done) == 3
    assert replays.notices == [
        "kernels are queued one by one: this allocator does not support pools"
    ]
