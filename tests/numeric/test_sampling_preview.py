"""Preview factors: the map, its fit, and the pace."""

from __future__ import annotations

import pytest
import torch

from lowpeak.engine.sampling.preview import (
    PreviewFactors,
    PreviewPace,
    fit_preview_factors,
    preview_rgb,
)


def test_the_map_is_linear_clamped_and_shaped() -> None:
    latents = torch.randn(1, 24, 2, 3, 5)
    factors = PreviewFactors(torch.randn(24, 3) * 0.05, torch.tensor([0.2, 0.5, 0.8]))
    found = preview_rgb(latents, factors)
    assert found.shape == (2, 3, 5, 3) and found.dtype == torch.uint8
    want = (latents[0, :, 1, 2, 4] @ factors.weights + factors.offset).clamp(0, 1) * 255
    assert (found[1, 2, 4].float() - want).abs().max() <= 0.5
    wild = PreviewFactors(torch.full((24, 3), torch.nan), torch.zeros(3))
    assert int(preview_rgb(latents, wild).max()) == 0


def test_a_fit_finds_the_map_that_made_the_frames() -> None:
    latents = torch.randn(1, 24, 7, 6, 8)
    true = PreviewFactors(torch.randn(24, 3) * 0.03, torch.full((3,), 0.5))
    shown = (latents[0].permute(1, 2, 3, 0) @ true.weights + true.offset).clamp(0, 1)
    spans = [1 if index % 5 == 0 else 4 for index in range(7)]
    frames = shown.repeat_interleave(torch.tensor(spans), 0)
    assert len(frames) == 22
    pixels = (frames.repeat_interleave(16, 1).repeat_interleave(16, 2) * 255).round()
    found = fit_preview_factors(latents, pixels.to(torch.uint8), ridge=1e-6)
    assert (found.weights - true.weights).abs().max() <= 2e-3
    assert (found.offset - true.offset).abs().max() <= 2e-3
    difference = preview_rgb(latents, found).int() - (shown * 255).round().int()
    assert int(difference.abs().max()) <= 3
    with pytest.raises(ValueError, match="do not belong"):
        fit_preview_factors(latents, pixels[:-1].to(torch.uint8))


def test_at_most_two_previews_a_second() -> None:
    now = [0.0]
    pace = PreviewPace(lambda: now[0])
    shown = 0
    for tick in range(1000):
        now[0] = tick * 0.01
        shown += pace.is_due()
    assert shown == 20
