"""Keyframe files of a request, on the target's canvas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lowpeak.engine.errors import RequestError
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.pictures import load_pictures
from lowpeak.engine.request import Request


def save(path: Path, width: int, height: int) -> str:
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return str(path)


def test_first_is_stretched_and_last_is_cropped_and_both_are_said(tmp_path: Path) -> None:
    geometry = Geometry(256, 320, 22)
    first, last = save(tmp_path / "a.png", 90, 50), save(tmp_path / "b.png", 500, 400)
    said: list[str] = []
    found = load_pictures(Request(geometry, first_frame=first, last_frame=last), said.append)
    assert [tuple(item.shape) for item in found] == [(320, 256, 3)] * 2
    assert all(item.dtype == torch.uint8 for item in found)
    assert "first frame 90x50 is stretched" in said[0] and "last frame 500x400 is scaled" in said[1]
    stretched = Image.open(first).resize((256, 320), Image.Resampling.LANCZOS)
    assert np.array_equal(found[0].numpy(), np.asarray(stretched))
    covered = Image.open(last).resize((400, 320), Image.Resampling.LANCZOS)
    assert np.array_equal(found[1].numpy(), np.asarray(covered)[:, 72:328])


def test_a_picture_of_the_canvas_size_passes_untouched_and_silently(tmp_path: Path) -> None:
    file = save(tmp_path / "a.png", 256, 320)
    said: list[str] = []
    (found,) = load_pictures(Request(Geometry(256, 320, 22), last_frame=file), said.append)
    assert np.array_equal(found.numpy(), np.asarray(Image.open(file))) and not said


def test_a_corrupt_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"not a picture")
    geometry = Geometry(256, 256, 22)
    with pytest.raises(RequestError, match=r"bad\.png"):
        load_pictures(Request(geometry, first_frame=str(tmp_path / "bad.png")), print)
