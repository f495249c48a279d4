"""Conversion on a card: the same bytes every time, the codes of the CPU but for single steps."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lowpeak.engine.checkpoint.convert import convert
from lowpeak.engine.checkpoint.edge_needs import EDGE_FORMATS
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.checkpoint.toy import write_toy_checkpoint

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> dict[str, Path]:
    top = tmp_path_factory.mktemp("toys")
    return {
        name: write_toy_checkpoint(top / name, format=name, seed=5, blocks=3)
        for name in ("openvdn", "comfy", "edge-int8")
    }


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("format", EDGE_FORMATS)
@pytest.mark.parametrize("source", ["openvdn", "comfy", "edge-int8"])
def test_a_card_gives_the_codes_of_the_cpu(toys, tmp_path, source, format) -> None:
    convert(toys[source], tmp_path / "cpu", format=format, projections=True)
    result = convert(
        toys[source], tmp_path / "card", format=format, projections=True, device="cuda"
    )
    assert result["stages"]["compute.device_seconds"] > 0
    plain, found = open_checkpoint(tmp_path / "cpu"), open_checkpoint(tmp_path / "card")
    different = total = 0
    for block in range(3):
        wanted, got = plain.block_tensors(block), found.block_tensors(block)
        assert wanted.keys() == got.keys()
        for name, tensor in wanted.items():
            if name.endswith(("weight_fp8", "weight_int8")):
                apart = (tensor.view(torch.int8).int() - got[name].view(torch.int8).int()).abs()
                different, total = different + int((apart > 0).sum()), total + apart.numel()
            else:
                torch.testing.assert_close(got[name], tensor, rtol=2**-7, atol=1e-6)
    assert different <= total * 1e-3, (different, total)


def test_twice_and_after_a_stop_the_bytes_are_the_same(toys, tmp_path) -> None:
    def stop(done: int, count: int, what: str) -> None:
        if what == "block 2":
            raise KeyboardInterrupt

    for name in ("a", "b"):
        convert(toys["openvdn"], tmp_path / name, device="cuda")
    with pytest.raises(KeyboardInterrupt):
        convert(toys["openvdn"], tmp_path / "c", device="cuda", progress=stop)
    seen: list[str] = []
    convert(toys["openvdn"], tmp_path / "c", device="cuda", progress=lambda *a: seen.append(a[2]))
    assert seen == ["root", "block 2", "manifest"]
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b") == files_of(tmp_path / "c")
