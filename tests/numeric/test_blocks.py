"""BlockStore and BlockStream: order, lifetimes, faults. No model, no card.

The spy device keeps two streams as lists of events and refuses a copy into a slot that queued
compute may still read, or a read of a slot whose copy compute has not waited for.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from lowpeak.engine.blocks import BlockStore, BlockStream, FileSource, TensorSource, plan_parts
from lowpeak.engine.blocks.layout import SLOT_ALIGNMENT, Piece
from lowpeak.engine.blocks.memory import CpuDevice, HostBuffer
from lowpeak.engine.blocks.reading import read_alone
from lowpeak.engine.errors import CheckpointError

BLOCKS, WIDTH = 6, 40


class SpyDevice(CpuDevice):
    """Copies at once, but checks what a real card would be allowed to assume."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clock = 0
        self.slots: list[torch.Tensor] = []
        self.read_until: dict[int, int] = {}  # slot -> compute event behind its last reader
        self.link_waited = 0  # compute events the link stream has waited for
        self.copied_at: dict[int, int] = {}  # slot -> link event behind its last copy
        self.compute_waited: set[int] = set()
        self.problems: list[str] = []
        self.last_copies: list[int] = []
        self.copies: Counter[int] = Counter()  # into every slot, since the start

    def slot_of(self, tensor: torch.Tensor) -> int:
        start = tensor.data_ptr()
        for index, slot in enumerate(self.slots):
            if slot.data_ptr() <= start < slot.data_ptr() + slot.numel():
                return index
        return -1

    def empty(self, nbytes: int) -> torch.Tensor:
        slot = torch.full((nbytes,), 255, dtype=torch.uint8)
        self.slots.append(slot)
        return slot

    def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        with self.lock:
            slot = self.slot_of(target)
            if self.read_until.get(slot, 0) > self.link_waited:
                self.problems.append(f"slot {slot} overwritten while compute may read it")
            self.last_copies.append(slot)
            self.copies[slot] += 1
        super().copy(target, source)

    def mark_copied(self) -> int:
        with self.lock:
            self.clock += 1
            for slot in self.last_copies:
                self.copied_at[slot] = self.clock
            self.last_copies = []
            return self.clock

    def mark_computed(self) -> int:
        with self.lock:
            self.clock += 1
            return self.clock

    def copy_waits(self, event: int) -> None:
        with self.lock:
            self.link_waited = max(self.link_waited, event)

    def compute_waits(self, event: int):
        self.compute_waited.add(event)

    def used(self, tensor: torch.Tensor) -> None:
        """A kernel reads the tensor: its copy must have been waited for."""
        with self.lock:
            slot = self.slot_of(tensor)
            if self.copied_at[slot] not in self.compute_waited:
                self.problems.append(f"slot {slot} read before its copy was waited for")
            self.read_until[slot] = self.clock + 1  # behind the next compute event


def tensors(index: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(index)
    return {
        "a.scale": torch.randn(3, generator=generator),
        "a.weight": torch.randn(WIDTH, WIDTH, generator=generator),
        "b.weight": torch.randn(WIDTH, WIDTH + index % 2, generator=generator),
    }


def sources():
    return [
        TensorSource(tensors(index), lambda index=index: tensors(index)) for index in range(BLOCKS)
    ]


def half(name: str) -> int:
    return int(name.startswith("b."))


@pytest.mark.parametrize("part_of", [None, half])
@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize(("resident", "pinned"), [((), range(6)), ((), ()), ((1, 4), (0, 3))])
def test_every_block_arrives_whole_and_no_slot_is_overwritten_early(
    part_of, slots, resident, pinned
):
    device = SpyDevice()
    store = BlockStore(
        sources(), pinned=pinned, first=resident, staging=2, pin=False, device=device
    )
    with BlockStream(store, device, resident=resident, slots=slots, part_of=part_of) as stream:
        kept = {device.slot_of(slot) for slot in stream._resident.values()}
        filled = {slot: device.copies[slot] for slot in kept}
        assert len(kept) == len(resident) * len(stream.parts[0]) and all(filled.values())
        for _ in range(3):
            for index in range(BLOCKS):
                with stream.block(index) as handle:
                    found = {}
                    for part in range(len(stream.parts[index])):
                        found |= handle.part(part)
                    for name, want in tensors(index).items():
                        device.used(found[name])
                        assert (device.slot_of(found[name]) in kept) == (index in resident)
                        assert torch.equal(found[name], want), (index, name)
    assert not device.problems, device.problems
    assert filled == {slot: device.copies[slot] for slot in kept}, "a resident block was refilled"


def test_the_spy_sees_a_missing_wait():
    """Break the stream on purpose: the check above must be able to fail."""
    device = SpyDevice()
    device.copy_waits = lambda event: None
    store = BlockStore(sources(), pinned=range(BLOCKS), staging=1, pin=False, device=device)
    with BlockStream(store, device, slots=1) as stream:
        for index in range(BLOCKS):
            with stream.block(index) as handle:
                for tensor in handle.part().values():
                    device.used(tensor)
    assert any("overwritten" in problem for problem in device.problems)


def test_closing_gives_every_buffer_back():
    device = CpuDevice()
    store = BlockStore(sources(), pinned=(0, 1), staging=2, pin=False, device=device)
    stream = BlockStream(store, device, slots=2)
    with stream.block(0) as handle:
        found = handle.part()
    watched = [weakref.ref(slot) for slot in stream._slots]
    del found, handle
    stream.close()
    stream.close()
    gc.collect()
    assert not any(ref() is not None for ref in watched)
    assert threading.active_count() == 1 or not [
        thread for thread in threading.enumerate() if thread.name.startswith("lowpeak")
    ]


class LateDevice(CpuDevice):
    """A busy link: copies are under way until somebody waits for one."""

    def __init__(self) -> None:
        self.queued: list[int] = []
        self.late: list[str] = []

    def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        self.queued.append(source.numel())
        super().copy(target, source)

    def finish(self, event: object) -> None:
        self.queued.clear()


@pytest.mark.parametrize("owns", [True, False])
def test_uploads_under_way_end_before_their_memory_is_given_back(monkeypatch, owns):
    device = LateDevice()
    closed = HostBuffer.close

    def close(self: HostBuffer) -> None:
        device.late += ["host"] * bool(device.queued)
        closed(self)

    monkeypatch.setattr(HostBuffer, "close", close)
    store = BlockStore(sources(), pinned=range(BLOCKS), staging=1, pin=False, device=device)
    stream = BlockStream(store, device, slots=2, owns_store=owns)
    with stream.block(0) as handle:
        handle.part()
    stream.close()
    assert not device.queued  # slots are given back behind this
    store.close()
    assert not device.late


def test_a_buffer_whose_reader_failed_is_given_back(monkeypatch):
    closed: list[HostBuffer] = []
    made: list[HostBuffer] = []
    begin, end = HostBuffer.__init__, HostBuffer.close
    monkeypatch.setattr(
        HostBuffer, "__init__", lambda self, *a, **k: (made.append(self), begin(self, *a, **k))[1]
    )
    monkeypatch.setattr(HostBuffer, "close", lambda self: (closed.append(self), end(self))[1])

    def fail(index: int):
        raise CheckpointError("unreadable")

    for pinned in ((0, 1), ()):
        broken = [TensorSource(tensors(i), lambda i=i: fail(i)) for i in range(2)]
        store = BlockStore(broken, pinned=pinned, staging=1, pin=False, device=CpuDevice())
        with pytest.raises(CheckpointError):
            store.take(0)
        store.close()
    assert made and closed == made


class CountedSource(TensorSource):
    """Counts who reads at the same time."""

    now, most = 0, 0
    lock, met = threading.Lock(), threading.Event()

    def __init__(self, index: int, beside: bool) -> None:
        super().__init__(tensors(index), lambda: tensors(index))
        self.beside = beside

    @classmethod
    def reset(cls) -> None:
        """Nobody has read yet."""
        cls.now, cls.most = 0, 0
        cls.met.clear()

    def read(self, buffer, readers):
        with self.lock:
            CountedSource.now += 1
            CountedSource.most = max(self.most, self.now)
            if self.now > 1:
                self.met.set()
        if self.beside:  # the first one waits for the other, however slow its thread starts
            self.met.wait(timeout=30)
        got = super().read(buffer, readers)
        with self.lock:
            CountedSource.now -= 1
        return got


@pytest.mark.parametrize("beside", [True, False])
def test_a_rate_is_taken_as_blocks_are_read(tmp_path, beside):
    CountedSource.reset()
    made = [CountedSource(index, beside) for index in range(BLOCKS)]
    read_alone(made, pin=False)
    assert CountedSource.most == 1 + beside
    files = []
    for index in range(3):
        path = tmp_path / f"{index}.safetensors"
        path.write_bytes(bytes(5000 + index))
        status = path.stat()
        files.append(FileSource(path, {}, (status.st_size, status.st_mtime_ns, status.st_ino)))
    done, seconds = read_alone(files, pin=False)
    assert done == 15_003 and seconds > 0


@pytest.mark.parametrize("pinned", [range(BLOCKS), (), (1, 4)])
@pytest.mark.parametrize("beside", [True, False])
def test_blocks_are_read_side_by_side_where_they_may_be(pinned, beside):
    CountedSource.reset()
    made = [CountedSource(index, beside) for index in range(BLOCKS)]
    device = CpuDevice()
    store = BlockStore(made, pinned=pinned, staging=3, pin=False, device=device)
    with BlockStream(store, device, slots=1) as stream:
        for index in [*range(BLOCKS)] * 3:
            with stream.block(index) as handle:
                found = handle.part()
                for name, want in tensors(index).items():
                    assert torch.equal(found[name], want), (index, name)
    assert CountedSource.most == 1 + beside


def test_a_part_is_aligned_and_copied_in_few_runs():
    pieces = {
        "big": Piece(torch.uint8, (1024,), 1000, 1024),
        "neighbour": Piece(torch.uint8, (512,), 2024, 512),
        "odd": Piece(torch.uint8, (7,), 2536, 7),
        "last": Piece(torch.uint8, (256,), 2543, 256),
    }
    (layout,) = plan_parts(pieces)
    assert all(offset % SLOT_ALIGNMENT == 0 for offset in layout.offsets.values())
    assert len(layout.copies) == 2  # three neighbours travel together, the misaligned one alone
    host = torch.randint(0, 255, (4096,), dtype=torch.uint8)
    slot = torch.zeros(layout.slot_bytes, dtype=torch.uint8)
    for source, target, count in layout.copies:
        slot[target : target + count] = host[source : source + count]
    for name, view in layout.views(slot).items():
        start = pieces[name].start_byte
        assert torch.equal(view, host[start : start + pieces[name].nbytes]), name


def test_a_reader_failure_reaches_whoever_waits_for_a_block():
    def broken():
        raise CheckpointError("no such tensor", tensor="a.weight")

    made = sources()
    made[3] = TensorSource(tensors(3), broken)
    device = CpuDevice()
    store = BlockStore(made, pinned=range(BLOCKS), staging=2, pin=False, device=device)
    with (
        BlockStream(store, device, slots=2) as stream,
        pytest.raises(CheckpointError, match=r"a\.weight"),
    ):
        for index in range(BLOCKS):
            with stream.block(index) as handle:
                handle.part()


def test_a_refused_lock_is_no_error_of_the_next_kernel(monkeypatch):
    """CUDA keeps the last error of a thread until somebody asks for it."""
    last = [0]

    def register(*arguments: int) -> int:
        last[0] = 2
        return 2

    library = SimpleNamespace(cudaGetLastError=lambda: last.clear() or last.append(0))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "cudart", lambda: SimpleNamespace(cudaHostRegister=register))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    buffer = HostBuffer(4096, pin=True)
    assert buffer.refused and not buffer.pinned and last == [0]
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())  # CUDA is not in sight
    assert HostBuffer(4096, pin=True).refused and last == [2]


def test_memory_that_cannot_be_locked_is_reported_and_used_all_the_same(monkeypatch):
    monkeypatch.setattr("lowpeak.engine.blocks.memory._register", lambda tensor: False)
    device = CpuDevice()
    store = BlockStore(sources(), pinned=range(BLOCKS), staging=2, pin=True, device=device)
    with BlockStream(store, device, slots=2) as stream:
        for index in range(BLOCKS):
            with stream.block(index) as handle:
                assert torch.equal(handle.part()["a.weight"], tensors(index)["a.weight"])
        assert any("page-locked" in notice for notice in store.notices)
