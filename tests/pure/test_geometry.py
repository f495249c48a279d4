"""Sizes on and off the grid."""

from __future__ import annotations

import math

import pytest

from lowpeak.engine.errors import RequestError
from lowpeak.engine.geometry import Geometry, plan_geometry, snap_frames


def test_the_reference_size_has_the_published_numbers() -> None:
    geometry, notices = plan_geometry(1344, 768, frames=243)
    assert not notices
    assert (geometry.latent_frames, geometry.tokens_per_frame) == (72, 1008)
    assert geometry.video_tokens == 72_576
    assert geometry.audio_latents == 405
    assert geometry.chunks == 15


@pytest.mark.parametrize(("frames", "latent"), [(22, 7), (39, 12), (56, 17), (362, 107)])
def test_pixel_frames_and_latent_frames(frames: int, latent: int) -> None:
    assert Geometry(256, 256, frames).latent_frames == latent


def test_sizes_off_the_grid_are_snapped_and_said_so() -> None:
    geometry, notices = plan_geometry(1000, 760, frames=100)
    assert (geometry.width_px, geometry.height_px, geometry.frames) == (992, 768, 107)
    assert len(notices) == 3
    assert "1000" in notices[0] and "992" in notices[0]


@pytest.mark.parametrize(
    ("width", "height", "frames", "seconds"),
    [
        (math.nan, 768, 22, None),
        (math.inf, 768, 22, None),
        (200, 768, 22, None),
        (9000, 768, 22, None),
        (1344, 256, 22, None),
        (512, 512, 5, None),
        (512, 512, -3, None),
        (512, 512, 10**9, None),
        (512, 512, None, math.nan),
        (512, 512, None, -1.0),
        (512, 512, None, 1e12),
        (512, 512, None, None),
        (512, 512, 22, 1.0),
    ],
)
def test_absurd_sizes_are_refused(width, height, frames, seconds) -> None:
    with pytest.raises(RequestError):
        plan_geometry(width, height, frames=frames, seconds=seconds)


def test_snapping_never_shortens_a_clip() -> None:
    for frames in range(6, 500):
        snapped = snap_frames(frames)
        assert 0 <= snapped - frames < 17 and (snapped - 5) % 17 == 0


@pytest.mark.parametrize(
    ("width", "height", "frames", "chunks"),
    [
        (1344, 768, 243, 1),
        (1920, 1088, 345, 1),
        (672, 384, 243, 4),
        (672, 384, 22, 2),  # all there are
        (960, 544, 243, 2),
        (832, 480, 90, 2),
        (256, 256, 243, 4),
    ],
)
def test_small_pictures_are_taken_in_groups_of_as_many_rows(width, height, frames, chunks):
    found = Geometry(width, height, frames)
    assert found.grouped == chunks
    rows = chunks * 5 * found.tokens_per_frame
    assert chunks == 1 or rows <= 5120
