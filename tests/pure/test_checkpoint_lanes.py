"""Threads between files and tensors: the plain writer's bytes on any file system, or a reason."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest
import torch

from lowpeak.engine.checkpoint import disk, lanes
from lowpeak.engine.checkpoint.arena import Arena
from lowpeak.engine.checkpoint.header import read_header, write_tensors
from lowpeak.engine.checkpoint.lanes import Lanes
from lowpeak.engine.checkpoint.sources import Source
from lowpeak.engine.errors import CheckpointError

WAYS = (
    "as it is",
    "no direct file",
    "direct refused later",
    "no asking",
    "short pieces",
    "no positions",
)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch) -> None:
    monkeypatch.setattr(lanes, "PIECE_BYTES", 2 * disk.PAGE_BYTES)


def random_tensors(seed: int) -> dict[str, torch.Tensor]:
    """Some of no byte, some of several pieces, at places that no page begins at."""
    draw = torch.Generator().manual_seed(seed)
    return {
        "long": torch.randn(97, 331, generator=draw).bfloat16(),
        "empty": torch.empty(0, 4),
        "odd": torch.randint(0, 255, (12_345,), dtype=torch.uint8, generator=draw),
        "scalar": torch.randn((), generator=draw),
        "columns": torch.randn(70, 40, generator=draw).t(),
        "codes": torch.randn(200, 64, generator=draw).to(torch.float8_e4m3fn),
    }


def use_way(way: str, monkeypatch) -> None:
    """Let the system behave like one of several file systems."""
    opened, preadv, pwrite = os.open, os.preadv, os.pwrite

    def no_direct(path, flags, *rest):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "no direct files here")
        return opened(path, flags, *rest)

    def refuse_reads(descriptor, buffers, start, flags=0):
        if os.O_DIRECT & _flags(descriptor):
            raise OSError(errno.EINVAL, "not here")
        return preadv(descriptor, buffers, start, flags)

    def refuse_asking(descriptor, buffers, start, flags=0):
        if flags:
            raise OSError(errno.EOPNOTSUPP, "not here")
        return preadv(descriptor, buffers, start, flags)

    def refuse_writes(descriptor, view, start):
        if os.O_DIRECT & _flags(descriptor):
            raise OSError(errno.EINVAL, "not here")
        return pwrite(descriptor, view, start)

    if way == "no direct file":
        monkeypatch.setattr(os, "open", no_direct)
    elif way == "direct refused later":
        monkeypatch.setattr(os, "preadv", refuse_reads)
        monkeypatch.setattr(os, "pwrite", refuse_writes)
    elif way == "no asking":
        monkeypatch.setattr(os, "preadv", refuse_asking)
    elif way == "short pieces":  # a page at most; a kernel may always do less than it is asked
        monkeypatch.setattr(
            os,
            "preadv",
            lambda d, b, s, f=0: preadv(d, [memoryview(b[0])[: disk.PAGE_BYTES]], s, f),
        )
        monkeypatch.setattr(os, "pwrite", lambda d, v, s: pwrite(d, v[: disk.PAGE_BYTES], s))
    elif way == "no positions":
        monkeypatch.delattr(os, "preadv")
        monkeypatch.delattr(os, "pwrite")
        monkeypatch.delattr(os, "O_DIRECT")


def _flags(descriptor: int) -> int:
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_GETFL)


@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_files_have_the_bytes_of_the_plain_writer_and_come_back(
    tmp_path, monkeypatch, way, cached, staged
) -> None:
    """staged: as for a device, whose bytes pass through the threads' buffers."""
    use_way(way, monkeypatch)
    for seed in range(3):
        tensors, path = random_tensors(seed), tmp_path / f"{seed}.safetensors"
        write_tensors(tmp_path / "plain", tensors, {"seed": str(seed)})
        with Lanes() as both:
            both.staged = staged
            size = both.store(path, tensors, {"seed": str(seed)})
            assert path.read_bytes() == (tmp_path / "plain").read_bytes()
            assert size == path.stat().st_size == both.meter.values["write.bytes"]
            file, arena = read_header(path), Arena()
            if not cached:
                drop_from_cache(path)
            poison(arena, size)
            found = both.load({f"my {name}": Source(file, name) for name in tensors}, arena)
        for name, tensor in tensors.items():
            got = found[f"my {name}"]
            assert (got.dtype, got.shape) == (tensor.dtype, tensor.shape)
            assert torch.equal(bytes_of(got), bytes_of(tensor)), name
        values = both.meter.values
        assert values["read.bytes"] == sum(tensor.nbytes for tensor in tensors.values())
        assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("staged", [True, False])
def test_what_the_cache_does_not_hold_is_read_past_it(tmp_path, staged) -> None:
    tensors, path = random_tensors(7), tmp_path / "x.safetensors"
    write_tensors(path, tensors)
    file, arena = read_header(path), Arena()
    drop_from_cache(path)
    if not reads_past_cache(path):
        pytest.skip("this file system cannot read past the page cache")
    drop_from_cache(path)  # asking makes the system fetch a few pages
    with Lanes() as both:
        both.staged = staged
        found = both.load({name: Source(file, name) for name in tensors}, arena)
        assert both.meter.values["read.disk_bytes"] > 0
        drop = both.meter.values["read.disk_bytes"]
        path.read_bytes()
        again = both.load({name: Source(file, name) for name in tensors}, Arena())
        assert both.meter.values["read.disk_bytes"] == drop, "now the cache has it"
    for name, tensor in tensors.items():
        assert torch.equal(bytes_of(found[name]), bytes_of(tensor)), name
        assert torch.equal(bytes_of(again[name]), bytes_of(tensor)), name


def reads_past_cache(path: Path) -> bool:
    """Whether a dropped file is really out of the cache, and direct reads are possible."""
    if not (hasattr(os, "RWF_NOWAIT") and hasattr(os, "O_DIRECT")):
        return False
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
        with open(path, "rb") as file:
            os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def drop_from_cache(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def poison(arena: Arena, size: int) -> None:
    arena.begin([4 * size])
    arena.take(4 * size).fill_(0xFF)


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


@pytest.mark.parametrize("direct", [True, False])
def test_a_full_disk_names_file_and_tensor_and_leaves_nothing(
    tmp_path, monkeypatch, direct
) -> None:
    if not direct:
        use_way("no direct file", monkeypatch)
    tensors, pwrite = random_tensors(1), os.pwrite
    written = []

    def fill_up(descriptor, view, start):
        written.append(start)
        if start >= 3 * 2 * disk.PAGE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(descriptor, view, start)

    monkeypatch.setattr(os, "pwrite", fill_up)
    with Lanes() as both, pytest.raises(CheckpointError, match="No space left") as caught:
        both.store(tmp_path / "x.safetensors", tensors)
    assert caught.value.file.endswith("x.safetensors") and caught.value.tensor in tensors
    assert "call again" in str(caught.value)
    assert not list(tmp_path.iterdir()) and written


def test_a_write_that_makes_no_progress_is_a_full_disk(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(os, "pwrite", lambda descriptor, view, start: 0)
    with Lanes() as both, pytest.raises(CheckpointError, match="No space left"):
        both.store(tmp_path / "x.safetensors", random_tensors(1))


def test_a_file_that_cannot_be_made_is_named(tmp_path) -> None:
    (tmp_path / "folder").write_text("a file, not a folder")
    with Lanes() as both, pytest.raises((CheckpointError, FileExistsError, NotADirectoryError)):
        both.store(tmp_path / "folder" / "x.safetensors", random_tensors(1))


def test_unreadable_changed_and_cut_files_are_refused(tmp_path, monkeypatch) -> None:
    path, preadv = tmp_path / "x.safetensors", os.preadv
    write_tensors(path, random_tensors(2))
    file = read_header(path)
    wanted = {"odd": Source(file, "odd"), "long": Source(file, "long")}

    def broken(descriptor, buffers, start, flags=0):
        if start >= file.tensors["odd"].start_byte:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return preadv(descriptor, buffers, start, flags)

    with Lanes() as both, monkeypatch.context() as patch:
        patch.setattr(os, "preadv", broken)
        with pytest.raises(CheckpointError, match="cannot read: Input/output") as caught:
            both.load(wanted, Arena())
        assert caught.value.tensor in wanted and caught.value.file == str(path)
    with Lanes() as both, monkeypatch.context() as patch:
        last = file.tensors["odd"].end_byte - 10
        patch.setattr(os, "preadv", lambda d, b, s, f=0: cut(preadv, last, d, b, s, f))
        with pytest.raises(CheckpointError, match="file ended while") as caught:
            both.load(wanted, Arena())
        assert caught.value.tensor == "odd"
    write_tensors(path, random_tensors(3))
    with Lanes() as both:
        with pytest.raises(CheckpointError, match="changed"):
            both.load(wanted, Arena())
        path.unlink()
        with pytest.raises(CheckpointError, match="cannot read: No such file"):
            both.load(wanted, Arena())


def cut(preadv, last, descriptor, buffers, start, flags):
    """A read from a file that ends at byte `last`."""
    if start >= last:
        return 0
    return min(preadv(descriptor, buffers, start, flags), last - start)


def test_nothing_is_on_its_way_when_a_failure_comes_out(tmp_path, monkeypatch) -> None:
    """Else a descriptor would be closed, and perhaps opened anew, under a piece."""
    path, preadv = tmp_path / "x.safetensors", os.preadv
    write_tensors(path, random_tensors(2))
    file, running, finished = read_header(path), [], []

    def one_fails(descriptor, buffers, start, flags=0):
        running.append(start)
        if len(running) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        time.sleep(0.05)
        got = preadv(descriptor, buffers, start, flags)
        finished.append(start)
        return got

    monkeypatch.setattr(disk.InputFile, "is_cached", lambda self, start, stop: True)
    monkeypatch.setattr(os, "preadv", one_fails)
    with Lanes() as both:
        with pytest.raises(CheckpointError, match="cannot read"):
            both.load({"long": Source(file, "long")}, Arena())
        count = len(finished)
        assert len(running) == count + 1
        time.sleep(0.1)
        assert len(finished) == count


def test_reading_can_be_stopped(tmp_path) -> None:
    path = tmp_path / "x.safetensors"
    write_tensors(path, random_tensors(2))
    with Lanes() as both:
        both.stop_reading()
        with pytest.raises(CheckpointError, match="stopped"):
            both.load({"odd": Source(read_header(path), "odd")}, Arena())
        both.store(tmp_path / "y.safetensors", random_tensors(2))
    assert (tmp_path / "y.safetensors").read_bytes() == path.read_bytes()


def test_two_threads_may_be_refused_at_once(tmp_path, monkeypatch) -> None:
    """The second one sees an ordinary file by the time it is told, and writes to it."""
    file = disk.OutputFile(tmp_path / "f")
    if not file.is_direct:
        pytest.skip("this file system has no direct files")
    put, told = file._put, []

    def refused_once(view, start):
        if not told:
            told.append(start)
            file._be_ordinary()  # as the first thread does, meanwhile
            raise OSError(errno.EINVAL, "not here")
        return put(view, start)

    monkeypatch.setattr(file, "_put", refused_once)
    file.write(memoryview(bytearray(b"a" * disk.PAGE_BYTES)), 0, 10)
    file.finish(10)
    file.close()
    assert (tmp_path / "f").read_bytes() == b"a" * 10
