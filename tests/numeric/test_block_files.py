"""Files of blocks: read byte for byte however a system allows it; a changed one is an error."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from lowpeak.engine.blocks import FileSource
from lowpeak.engine.blocks.files import PAGE_BYTES, READ_BYTES
from lowpeak.engine.blocks.memory import HostBuffer
from lowpeak.engine.checkpoint.header import FileIdentity, TensorFile, TensorSpan
from lowpeak.engine.checkpoint.sources import Source
from lowpeak.engine.errors import CheckpointError
from lowpeak.engine.text.qwen_source import SpanSource


@pytest.mark.parametrize("system", ["direct", "buffered", "no positioned reads"])
def test_a_file_is_read_byte_for_byte(tmp_path: Path, monkeypatch, system):
    if system != "direct":
        monkeypatch.delattr("os.O_DIRECT", raising=False)
    if system == "no positioned reads":  # Windows
        monkeypatch.delattr("os.preadv")
    path = tmp_path / "block.bin"
    data = torch.randint(0, 255, (20_000_003,), dtype=torch.uint8)
    path.write_bytes(data.numpy().tobytes())
    status = path.stat()
    source = FileSource(path, {}, (status.st_size, status.st_mtime_ns, status.st_ino))
    buffer = HostBuffer(source.buffer_bytes, pin=False)
    with ThreadPoolExecutor(3) as readers:
        assert source.read(buffer.tensor, readers) == len(data)
    assert torch.equal(buffer.tensor[: len(data)], data)
    buffer.close()


class Refusing:
    """A file system that opens with O_DIRECT and then does not read so. short: it reads, but only
    up to the middle of a page. meet: reads that are refused at the same time."""

    def __init__(self, monkeypatch, *, short: bool = False, meet: int = 1) -> None:
        self.preadv, self.short = os.preadv, short
        self.direct: list[int] = []
        self.ordinary: list[int] = []
        self.met = threading.Barrier(meet)
        monkeypatch.setattr(os, "preadv", self.read)

    def read(self, descriptor, buffers, start, flags=0):
        import fcntl

        if not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            self.ordinary.append(start)
            return self.preadv(descriptor, buffers, start, flags)
        self.direct.append(start)
        if self.short:
            return min(self.preadv(descriptor, buffers, start, flags), PAGE_BYTES + 100)
        self.met.wait(timeout=30)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def direct_file(path: Path, data: torch.Tensor) -> None:
    """Write a file, on a file system that opens it with O_DIRECT."""
    path.write_bytes(data.numpy().tobytes())
    if not hasattr(os, "O_DIRECT"):
        pytest.skip("this system has no O_DIRECT")
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("this file system has no direct files")


@pytest.mark.parametrize("way", ["refused", "two refused at once", "short"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_direct_read_that_is_refused_goes_on_in_the_ordinary_way(
    tmp_path, monkeypatch, way, whole
):
    path = tmp_path / "block.safetensors"
    data = torch.randint(0, 255, (READ_BYTES + 1_000_003,), dtype=torch.uint8)
    direct_file(path, data)
    if whole:
        status = path.stat()
        source = FileSource(path, {}, (status.st_size, status.st_mtime_ns, status.st_ino))
    else:
        identity = FileIdentity.of(path.stat())
        span = TensorSpan("U8", (len(data),), 0, len(data))
        file = TensorFile(path, {"a": span}, identity, "")
        source = SpanSource({"a": Source(file, "a")})
    seen = Refusing(monkeypatch, short=way == "short", meet=2 if way.startswith("two") else 1)
    buffer = HostBuffer(source.buffer_bytes, pin=False)
    with ThreadPoolExecutor(1 if way == "refused" else 2) as readers:
        assert source.read(buffer.tensor, readers) == len(data)
    assert torch.equal(buffer.tensor[: len(data)], data)
    assert seen.direct and seen.ordinary
    if way == "refused":
        assert seen.direct == [0]  # the next piece knows
    buffer.close()


def test_a_file_exchanged_before_it_is_opened_again_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "block.bin"
    data = torch.randint(0, 255, (10_000,), dtype=torch.uint8)
    direct_file(path, data)
    status = path.stat()
    source = FileSource(path, {}, (status.st_size, status.st_mtime_ns, status.st_ino))

    def exchange(descriptor, buffers, start, flags=0):
        path.write_bytes(b"y" * 10_001)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "preadv", exchange)
    buffer = HostBuffer(source.buffer_bytes, pin=False)
    with ThreadPoolExecutor(1) as readers, pytest.raises(CheckpointError, match="changed"):
        source.read(buffer.tensor, readers)
    buffer.close()


@pytest.mark.parametrize("fault", ["vanished", "changed", "grew"])
def test_a_changed_file_is_an_error_with_its_name(tmp_path: Path, fault):
    path = tmp_path / "block.bin"
    path.write_bytes(b"x" * 10_000)
    status = path.stat()
    source = FileSource(path, {}, (status.st_size, status.st_mtime_ns, status.st_ino))
    if fault == "vanished":
        path.unlink()
    elif fault == "grew":
        path.write_bytes(b"x" * 10_001)
    else:
        path.write_bytes(b"y" * 10_000)
    buffer = HostBuffer(source.buffer_bytes, pin=False)
    with ThreadPoolExecutor(1) as readers, pytest.raises(CheckpointError, match=r"block\.bin"):
        source.read(buffer.tensor, readers)
