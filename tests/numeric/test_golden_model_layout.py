"""Packing and positions against recorded requests."""

from __future__ import annotations

import json

import pytest
import torch

from lowpeak.engine.errors import RequestError
from lowpeak.engine.geometry import plan_geometry
from lowpeak.engine.model.layout import (
    Reference,
    build_layout,
    patchify,
    unpatchify,
)


@pytest.fixture(scope="module")
def requests(golden_file):
    cases = json.loads(golden_file("geometry.json").read_text())["requests"]
    return [case for case in cases if "position_sum" in case]


def layout_of(case):
    tags = [1] * case["request"].get("text", 64)
    return build_layout(
        latent_frames=case["latent_frames"],
        latent_height=case["latent_height"],
        latent_width=case["latent_width"],
        audio_latents=case["audio_latents"],
        text_tags=tags,
        keyframes=case["request"].get("anchors", ()),
    )


def test_golden_parity_of_positions_of_every_request(requests) -> None:
    worst = 0.0
    for case in requests:
        layout = layout_of(case)
        positions = layout.position_ids
        assert layout.rows == positions.shape[0] == case["sequence_length"]
        assert layout.video.start == case["video_start"]
        assert layout.audio.start == case["audio_start"]
        assert layout.condition_video_rows == case["condition_rows"]
        assert layout.tokens_per_frame == case["tokens_per_frame"]
        weights = torch.arange(1, layout.rows + 1, dtype=torch.float64)[:, None]
        for found, expected in (
            (positions.sum(0), case["position_sum"]),
            ((positions * weights).sum(0), case["position_weighted_sum"]),
            (positions.max(0).values, case["position_max"]),
        ):
            want = torch.tensor(expected, dtype=torch.float64)
            worst = max(worst, float(((found - want) / want).abs().max()))
        for row, expected in case["sample_rows"].items():
            want = torch.tensor(expected, dtype=torch.float64)
            torch.testing.assert_close(positions[int(row)], want, rtol=1e-12, atol=1e-12)
    print(f"PARITY | positions of {len(requests)} requests | recorded sums | {worst:.1e}")
    assert worst <= 1e-9


def test_golden_geometry_of_every_request(requests) -> None:
    for case in requests:
        request = case["request"]
        geometry, _ = plan_geometry(
            request["width"],
            request["height"],
            frames=request.get("frames"),
            seconds=request.get("seconds"),
        )
        names = ("frames", "latent_frames", "latent_height", "latent_width", "audio_latents")
        for name in (*names, "tokens_per_frame", "video_tokens"):
            assert getattr(geometry, name) == case[name], (request, name)


def test_patchify_orders_channels_before_the_patch() -> None:
    latents = torch.arange(2 * 3 * 4 * 6, dtype=torch.float32).reshape(1, 2, 3, 4, 6)
    rows = patchify(latents)
    assert rows.shape == (3 * 2 * 3, 8)
    frame, row, column, channel = 1, 1, 2, 1
    patch = latents[0, channel, frame, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
    assert torch.equal(rows[frame * 6 + row * 3 + column, 4:], patch.flatten())
    assert torch.equal(unpatchify(rows, 3, 4, 6), latents[0])


def test_times_follow_four_clocks() -> None:
    layout = build_layout(
        latent_frames=2,
        latent_height=2,
        latent_width=4,
        audio_latents=3,
        text_tags=[1, 0],
        references=[Reference("image", 1, 2, 2), Reference("audio", audio_latents=1)],
    )
    times = layout.at(0.25, 0.5)
    row_times = times.distinct[times.timestep_indices]
    expected = [0.25] * 2 + [0.999] + [1.0] * 2 + [0.5] * 6 + [0.25] * 4
    assert torch.equal(row_times, torch.tensor(expected))
    tags = [1, 0] + [0] + [2] * 2 + [2] * 6 + [0] * 4
    assert torch.equal(times.table_rows, 3 * times.timestep_indices + torch.tensor(tags))
    assert layout.at(0.0, 0.0).distinct.tolist() == pytest.approx([0.0, 0.999, 1.0])
    # Past 0.999 a condition is never noisier than the picture.
    assert float(layout.at(0.9995, 0.5).distinct[1]) == pytest.approx(0.9995)
    # Rows of a vision block are text by index and video by tag.
    assert layout.video_indices.tolist() == [2, 11, 12, 13, 14]
    assert layout.text_indices.tolist() == [0, 1]


def test_an_empty_prompt_has_no_text_rows() -> None:
    layout = build_layout(
        latent_frames=7, latent_height=4, latent_width=4, audio_latents=2, text_tags=[]
    )
    assert layout.text_rows == 0 and layout.rows == 4 + 28
    assert float(layout.position_ids[0, 0]) == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"keyframes": ["middle"]},
        {"latent_width": 5},
        {"keyframes": ["first"], "references": [Reference("audio", audio_latents=4)]},
    ],
)
def test_impossible_layouts_are_refused(wrong) -> None:
    sizes = {"latent_frames": 7, "latent_height": 4, "latent_width": 4, "audio_latents": 2}
    with pytest.raises(RequestError):
        build_layout(**{**sizes, "text_tags": [1], **wrong})


def test_a_reference_without_sizes_is_refused() -> None:
    with pytest.raises(RequestError, match="impossible"):
        Reference("video", audio_latents=4)
    with pytest.raises(RequestError, match="none of"):
        Reference("smell")
