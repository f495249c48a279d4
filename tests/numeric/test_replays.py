"""What a captured graph is keyed by, and what runs where nothing can be captured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from lowpeak.engine import streamed
from lowpeak.engine.bench import pinned_placement, random_pass
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.lora.apply import Branch
from lowpeak.engine.lora.online import AdaptedWeight
from lowpeak.engine.model.replays import Replays, fingerprint
from lowpeak.engine.model.streamed import runs_beside
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.streamed import StreamedDenoiser
from lowpeak.engine.toy import write_toy
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


class Allocator:
    """The device allocator's books of one pool, as PyTorch keeps them: who holds it, and whether
    allocations are recorded to it now. A broken capture ends neither."""

    def __init__(self, broken: str) -> None:
        self.broken, self.holders, self.recording = broken, 1, False
        self.id = (0, 7)

    def use_count(self) -> int:
        return self.holders

    def begin(self) -> None:
        self.holders += 1
        if self.recording:
            raise RuntimeError("already recording to mempool_id")
        self.recording = True

    def end(self, *_: object) -> None:
        if not self.recording:
            raise RuntimeError("not currently recording to mempool_id")
        self.recording = False

    def release(self, *_: object) -> None:
        self.holders -= 1

    @contextmanager
    def use(self, _: object) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            self.end()
            self.release()


class Graph:
    """torch.cuda.CUDAGraph over those books."""

    def __init__(self, books: Allocator) -> None:
        self.books, self.ended, self.replayed = books, False, 0

    def capture_begin(self, **_: object) -> None:
        self.books.begin()
        if self.books.broken == "begin":
            raise RuntimeError("no capture here")

    def capture_end(self) -> None:
        if self.books.broken in ("begin", "work", "end"):
            raise RuntimeError("operation failed due to a previous error during capture")
        self.books.end()
        if self.books.broken == "invalid":
            raise RuntimeError("Invalid capture.")
        self.ended = True

    def replay(self) -> None:
        self.replayed += 1

    def reset(self) -> None:
        if self.ended:
            self.books.release()
        self.ended = False


@pytest.fixture
def books(monkeypatch) -> Allocator:
    books = Allocator("")
    monkeypatch.setattr(torch.cuda, "MemPool", lambda: books, raising=False)
    monkeypatch.setattr(torch.cuda, "use_mem_pool", books.use)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: Graph(books))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", books.end, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_releasePool", books.release, raising=False)
    return books


@pytest.mark.parametrize("broken", ["begin", "work", "end", "invalid"])
def test_after_a_failed_capture_the_same_work_runs_directly_and_the_pool_is_given_back(
    books, broken
):
    replays, did = Replays(object()), Counter()

    def work() -> None:
        did["moved"] += 10
        if did["failing"]:
            did["failing"] = 0
            raise torch.OutOfMemoryError("CUDA out of memory")
        did["done"] += 1

    def run(key: int) -> None:
        replays.run("write", key, work, lambda: did["moved"])

    run(0)
    run(0)
    assert books.holders == 2 and did["moved"] + replays.link_bytes == 20
    books.broken, did["failing"] = broken, broken == "work"
    before = did["done"]
    run(1)
    assert did["done"] > before and not books.recording
    assert books.holders == 2  # the pass and the graph that it has
    assert did["moved"] + replays.link_bytes == 30
    assert len(replays.notices) == 1
    run(2)
    run(0)
    assert did["moved"] + replays.link_bytes == 50
    assert books.holders == 2 and len(replays.notices) == 1


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    write_toy(folder, size="tiny", weight_format="edge-int8", seed=3, device="cpu", blocks=2)
    return open_checkpoint(folder)


STEP = schedule(8).steps()[2]


def opened(checkpoint) -> StreamedDenoiser:
    placement = pinned_placement(checkpoint.config.layers, transfer_slots=1)
    return StreamedDenoiser(checkpoint, (STEP.distinct,), placement, torch.device("cpu"))


@pytest.mark.parametrize(("frames", "kinds"), [(39, ["write", "read"] * 2), (22, ["read"] * 2)])
def test_an_event_of_a_failed_capture_is_not_waited_for_and_no_graph_is_empty(
    checkpoint, monkeypatch, frames, kinds
):
    denoiser = opened(checkpoint)
    try:
        layout, text, video, audio = random_pass(checkpoint, Geometry(256, 256, frames), 20)
        velocity = denoiser.bind(layout, text, torch.empty(0, checkpoint.config.video_row))
        bound = denoiser._passes[-1]
        assert bound.context.full_cover is ("write" not in kinds)
        if not bound.context.full_cover:
            bound.block.linear.rings_read = object()
        ran, honest = [], bound.replays.run
        monkeypatch.setattr(
            bound.replays, "run", lambda kind, *rest: (ran.append(kind), honest(kind, *rest))[1]
        )
        assert all(bool(part.isfinite().all()) for part in velocity(video, audio, STEP))
        assert ran == kinds
    finally:
        denoiser.close()


def test_a_stream_that_cannot_be_opened_leaves_nothing_open(checkpoint, monkeypatch):
    def refuse(store, *_: object, **__: object):
        stores.append(store)
        raise torch.OutOfMemoryError("CUDA out of memory")

    stores: list = []
    monkeypatch.setattr(streamed, "BlockStream", refuse)
    with pytest.raises(torch.OutOfMemoryError):
        opened(checkpoint)
    assert stores[0]._closed and not stores[0]._thread.is_alive()


def test_side_streams_need_an_allocator_that_keeps_memory_by_stream(monkeypatch):
    card, stored = torch.device("cuda"), pinned_placement(2, transfer_slots=1)
    assert stored.keys == "store"
    for backend, beside in (("native", True), ("cudaMallocAsync", False)):
        monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda backend=backend: backend)
        assert runs_beside(card, stored) is beside
    assert not runs_beside(torch.device("cpu"), stored)
    monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: "native")
    assert not runs_beside(card, replace(stored, keys="host"))
