"""Parts read ahead on a thread, and large tensors read by several."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

from lowpeak.engine.checkpoint import header
from lowpeak.engine.checkpoint.ahead import read_ahead
from lowpeak.engine.checkpoint.header import read_header, write_tensors
from lowpeak.engine.errors import CheckpointError


def test_items_come_in_order_with_one_made_ahead() -> None:
    made: list[int] = []
    another = threading.Event()

    def items():
        for index in range(5):
            made.append(index)
            if len(made) == 2:
                another.set()
            yield index

    with read_ahead(items()) as ahead:
        assert next(ahead) == 0
        assert another.wait(5), "the next item is made while the first is in use"
        another.clear()
        assert not another.wait(0.05) and made == [0, 1], "and none beyond it"
        assert list(ahead) == [1, 2, 3, 4]


def test_a_failure_comes_where_its_item_would_and_leaving_early_stops() -> None:
    def broken():
        yield 1
        raise CheckpointError("damaged")

    with read_ahead(broken()) as ahead:
        assert next(ahead) == 1
        with pytest.raises(CheckpointError, match="damaged"):
            next(ahead)

    made: list[int] = []

    def endless():
        while True:
            made.append(len(made))
            yield made[-1]

    with read_ahead(endless()) as ahead:
        assert next(ahead) == 0
    count = len(made)
    assert count <= 3 and not [t for t in threading.enumerate() if t.name == "lowpeak-ahead"]
    assert len(made) == count


def test_a_large_tensor_is_read_in_pieces_and_a_cut_one_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(header, "COPY_BYTES", 1000)
    path: Path = tmp_path / "x.safetensors"
    draw = torch.Generator().manual_seed(1)
    tensors = {
        "small": torch.randn(7, generator=draw),
        "large": torch.randn(91, 33, generator=draw).bfloat16(),
    }
    write_tensors(path, tensors)
    file = read_header(path)
    found = file.read_many()
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    span = file.tensors["large"]
    longer = header.TensorSpan(
        "U8", (span.nbytes * 2,), span.start_byte, span.end_byte + span.nbytes
    )
    with open(path, "rb", buffering=0) as opened, pytest.raises(CheckpointError, match="ended"):
        header._read_span(opened, path, "large", longer)
