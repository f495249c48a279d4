"""Memory that parts are read into by turns."""

from __future__ import annotations

import pytest
import torch

from lowpeak.engine.checkpoint.arena import Arena
from lowpeak.engine.checkpoint.header import read_header, write_tensors
from lowpeak.engine.checkpoint.lanes import Lanes
from lowpeak.engine.checkpoint.sources import Source


def test_an_arena_gives_its_pages_again_and_grows_when_it_must(tmp_path) -> None:
    tensors = {"a": torch.arange(100.0), "b": torch.ones(3, 5, dtype=torch.bfloat16)}
    write_tensors(tmp_path / "x.safetensors", tensors)
    file, arena = read_header(tmp_path / "x.safetensors"), Arena()

    def read() -> dict[str, torch.Tensor]:
        with Lanes() as lanes:
            return lanes.load({name: Source(file, name) for name in file.tensors}, arena)

    first = read()
    assert all(torch.equal(first[name], tensor) for name, tensor in tensors.items())
    place = first["a"].data_ptr()
    assert place % 64 == first["b"].data_ptr() % 64 and place != first["b"].data_ptr()
    first["a"].zero_()
    again = read()
    assert again["a"].data_ptr() == place and torch.equal(again["a"], tensors["a"])
    assert torch.equal(first["a"], tensors["a"]), "the same memory, read anew"
    arena.begin([10_000])
    arena.take(10_000).fill_(1)
    with pytest.raises(AssertionError, match="announced"):
        arena.take(1)
