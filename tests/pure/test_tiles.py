"""The tile and clip layout of the video autoencoder: exact cover, exact weights."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowpeak.engine.errors import RequestError
from lowpeak.engine.vae.tiles import Axis, ClipRule, split_axis


def test_published_sizes_get_the_published_starts() -> None:
    tall, wide = split_axis(768), split_axis(1344)
    assert tall.starts == (0, 160, 336, 512) and tall.overlaps == (96, 80, 80)
    assert wide.starts == (0, 176, 352, 528, 704, 896, 1088)
    assert wide.overlaps == (80, 80, 80, 80, 64, 64)


def test_a_short_axis_is_one_tile_of_its_own_length() -> None:
    assert split_axis(240) == Axis(240, 240, (0,), ())
    assert split_axis(256).tiles == 1
    assert split_axis(272).overlaps == (240,)


@given(st.integers(1, 300), st.integers(1, 20), st.integers(0, 19))
def test_overlaps_are_fair_and_the_tiles_are_the_fewest(
    length: int, tile: int, overlap: int
) -> None:
    overlap = min(overlap, tile - 1)
    axis = split_axis(16 * length, 16 * tile, 16 * overlap)
    assert axis.starts[-1] + axis.size == 16 * length
    if axis.tiles > 1:
        assert min(axis.overlaps) >= 16 * overlap
        assert max(axis.overlaps) - min(axis.overlaps) <= 16
        assert list(axis.overlaps) == sorted(axis.overlaps, reverse=True)
        one_less = (axis.tiles - 1) * 16 * tile - (axis.tiles - 2) * 16 * overlap
        assert one_less < 16 * length, "one tile less would have covered it"


def weights(tall: Axis, wide: Axis) -> dict[tuple[int, int], dict[tuple[int, int], Fraction]]:
    """For every position (a step of 16), the share of every tile in it, as stitching defines it."""
    shares: dict[tuple[int, int], dict[tuple[int, int], Fraction]] = {}
    for i in range(tall.tiles):
        for j in range(wide.tiles):
            for y in range(*tall.kept(i)):
                for x in range(*wide.kept(j)):
                    down, across = y - tall.starts[i], x - wide.starts[j]
                    wy = Fraction(down, tall.fade(i)) if down < tall.fade(i) else Fraction(1)
                    wx = Fraction(across, wide.fade(j)) if across < wide.fade(j) else Fraction(1)
                    share = {(i, j): wx * wy}
                    if wy < 1:
                        share[i - 1, j] = wx * (1 - wy)
                    if wx < 1:
                        share[i, j - 1] = 1 - wx
                    assert (y, x) not in shares, "two tiles keep one position"
                    shares[y, x] = share
    return shares


@pytest.mark.parametrize("size", [(40, 24), (24, 24), (16, 50), (17, 33)])
def test_constant_tiles_compose_to_a_constant_corners_included(size: tuple[int, int]) -> None:
    tall = split_axis(16 * size[0]).scaled_down(16)
    wide = split_axis(16 * size[1]).scaled_down(16)
    shares = weights(tall, wide)
    assert len(shares) == size[0] * size[1]
    for (y, x), share in shares.items():
        assert sum(share.values()) == 1
        for i, j in share:
            assert 0 <= y - tall.starts[i] < tall.size and 0 <= x - wide.starts[j] < wide.size


@pytest.mark.parametrize("length", [0, -16, 100])
def test_lengths_off_the_grid_are_refused(length: int) -> None:
    with pytest.raises(RequestError):
        split_axis(length)


def test_tiles_off_the_grid_are_refused() -> None:
    with pytest.raises(RequestError, match="grid"):
        split_axis(512, 200, 64)
    with pytest.raises(RequestError, match="grid"):
        split_axis(512, 64, 64)
    with pytest.raises(RequestError, match="grid of 16"):
        split_axis(48, 40, 8, 8).scaled_down(16)


def test_a_clip_is_seven_latents_with_stride_five_and_five_faded_frames() -> None:
    rule = ClipRule()
    assert (rule.clip_latents, rule.stride_latents, rule.shared_latents) == (7, 5, 2)
    assert (rule.padding_frames, rule.fade_frames) == (3, 5)
    for clips in range(1, 12):
        assert rule.clips(5 * clips + 2) == clips
        assert rule.frames(5 * clips + 2) == 17 * clips + 5


@pytest.mark.parametrize("latents", [0, 1, 2, 3, 6, 8, 13])
def test_lengths_that_are_not_whole_clips_are_refused(latents: int) -> None:
    with pytest.raises(RequestError, match="latent frames"):
        ClipRule().clips(latents)


def test_of_a_decoded_clip_seventeen_frames_are_shown_and_five_held() -> None:
    used = list(ClipRule().decoded_frames())
    shown = [f for f in used if not f.held]
    held = [f for f in used if f.held]
    assert [f.frame for f in shown] == list(range(3, 20))
    assert [f.position for f in shown] == list(range(17))
    assert [f.frame for f in held] == list(range(23, 28))
    assert [f.position for f in held] == list(range(5))
