"""Keyframes and references against diffusers' own pipeline pieces, and their refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from lowpeak.engine.errors import RequestError
from lowpeak.engine.model.layout import Reference, build_layout
from lowpeak.engine.sampling.canvas import plan_two_pass_canvas
from lowpeak.engine.sampling.condition_latents import (
    ConditionSet,
    pixels_for_encoder,
    reference_block,
    sample_condition,
    sound_rows,
)
from lowpeak.engine.sampling.conditions import (
    canvas_for_aspect,
    check_references,
    fit_keyframes,
    fit_reference_image,
    fit_reference_video,
    fit_sound,
    frame_indices,
    keyframe_notices,
    reference_image_size,
)
from lowpeak.engine.sampling.noise import draw_noise
from lowpeak.engine.sampling.packing import condition_times, row_times
from lowpeak.engine.sampling.schedules import ConditionTimes, schedule
from lowpeak.engine.sampling.two_pass import noised_condition_rows


@pytest.fixture(scope="module")
def pieces() -> SimpleNamespace:
    pytest.importorskip("diffusers")
    from diffusers.modular_pipelines.minimax_h3 import (
        before_denoise,
        before_encoder,
        encoders,
        modular_pipeline,
    )

    return SimpleNamespace(
        denoise=before_denoise,
        encoder=before_encoder,
        encoders=encoders,
        pipeline=modular_pipeline,
    )


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    generator = np.random.default_rng(seed)
    return Image.fromarray(generator.integers(0, 256, (height, width, 3), dtype=np.uint8))


def test_golden_canvases_are_exact(golden_file: Callable[[str], Path]) -> None:
    for want in json.loads(golden_file("geometry.json").read_text())["canvas"]:
        if "error" in want:
            with pytest.raises(RequestError, match="4:1"):
                canvas_for_aspect(*want["aspect"])
            continue
        assert canvas_for_aspect(*want["aspect"]) == (want["width"], want["height"]), want


def test_canvases_are_parity_with_diffusers(pieces: SimpleNamespace) -> None:
    generator = np.random.default_rng(5)
    for width, height in generator.integers(20, 4000, (300, 2)).tolist():
        if max(width / height, height / width) > 4:
            continue
        want = pieces.pipeline.resolve_canvas_size(width, height, 32, 768, 768 * 1344)
        assert canvas_for_aspect(width, height) == (want[1], want[0])


@pytest.mark.parametrize(
    ("names", "sizes"),
    [
        (("image",), [(50, 37)]),
        (("last_image",), [(50, 37)]),
        (("image", "last_image"), [(37, 50), (61, 40)]),
        (("image", "last_image"), [(96, 64), (31, 95)]),
    ],
)
def test_keyframe_fits_are_parity_with_diffusers(pieces: SimpleNamespace, names, sizes) -> None:
    from diffusers.image_processor import VaeImageProcessor
    from diffusers.modular_pipelines.modular_pipeline import PipelineState

    pictures = [picture(*size, seed=i) for i, size in enumerate(sizes)]
    state = PipelineState()
    state.set("image", None)
    state.set("last_image", None)
    for name, item in zip(names, pictures, strict=True):
        state.set(name, item)
    state.set("height", 64)
    state.set("width", 96)
    components = SimpleNamespace(image_processor=VaeImageProcessor(vae_scale_factor=16))
    _, state = pieces.encoder.MiniMaxH3ResizeStep()(components, state)
    for found, want in zip(fit_keyframes(pictures, 96, 64), state.get("keyframes"), strict=True):
        assert found.size == (96, 64)
        assert np.array_equal(np.asarray(found), np.asarray(want))


def test_a_fit_of_another_aspect_is_said() -> None:
    sizes = [(100, 100), (300, 100)]
    notices = keyframe_notices(sizes, ["first", "last"], 1344, 768)
    assert "first frame 100x100 is stretched" in notices[0]
    assert "last frame 300x100 is scaled to cover" in notices[1]
    assert keyframe_notices([(2688, 1536)], ["last"], 1344, 768) == []


def test_reference_pictures_have_a_short_edge_of_2048_on_the_grid() -> None:
    # The rule of the setup step: short edge 2048, both sides rounded to the grid, LANCZOS.
    for width, height in ((640, 480), (333, 1000), (2048, 2048), (97, 51)):
        factor = 2048 / min(width, height)
        want = tuple(max(32, round(side * factor / 32) * 32) for side in (width, height))
        assert reference_image_size(width, height) == want
    small = fit_reference_image(picture(40, 30), max_area_px=96 * 64)
    assert small.size[0] * small.size[1] <= 96 * 64 * 1.3 and small.size[0] % 32 == 0
    with pytest.raises(RequestError, match="4:1"):
        reference_image_size(900, 200)


@pytest.mark.parametrize("fps", [24.0, 12.0, 23.976, 25.0, 30.0, 60.0, 7.5])
@pytest.mark.parametrize("count", [22, 41, 80])
def test_reference_videos_are_parity_with_diffusers(
    pieces: SimpleNamespace, fps: float, count: int
) -> None:
    frames = np.random.default_rng(1).integers(0, 256, (count, 3, 4, 3), dtype=np.uint8)
    step = pieces.encoder.MiniMaxH3Ref2VASetupStep
    # A canvas small enough to compare pixels: the rule is the same at any short edge.
    want = step._normalize_video_condition(frames, fps, 39, 32, 32, 32 * 64, 24.0)
    indices = frame_indices(count, fps)[:39]
    found = [Image.fromarray(frames[i]).resize(want.shape[2:0:-1], Image.Resampling.LANCZOS)
             for i in indices]  # fmt: skip
    assert np.array_equal(np.stack([np.asarray(item) for item in found]), want)


def test_a_reference_video_gets_its_own_canvas_and_17n_plus_5_frames() -> None:
    frames = np.zeros((41, 16, 28, 3), dtype=np.uint8)
    found = fit_reference_video(frames, 24.0, 124)
    assert found.shape == (39, *reversed(canvas_for_aspect(28, 16)), 3)
    assert len(fit_reference_video(frames, 24.0, 22)) == 22
    with pytest.raises(RequestError, match="too short"):
        fit_reference_video(frames[:21], 24.0, 124)
    with pytest.raises(RequestError, match="too short"):
        fit_reference_video(frames[:1], 24.0, 124)
    with pytest.raises(RequestError, match="frames a second"):
        fit_reference_video(frames, 0.0, 124)


def test_sounds_are_parity_with_diffusers(pieces: SimpleNamespace) -> None:
    step = pieces.encoder.MiniMaxH3Ref2VASetupStep
    for channels in (1, 2):
        samples = torch.randn(channels, 60_000)
        want = step._normalize_audio_condition(samples, 32_000, 32_000, 39 / 24)
        assert torch.equal(fit_sound(samples, 39), want)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (torch.zeros(2, 100), "silent"),
        (torch.zeros(2, 0), "silent"),
        (torch.full((1, 8), torch.nan), "not finite"),
        (torch.randn(3, 8), "channels"),
        (torch.randn(8), "channels"),
    ],
)
def test_useless_sounds_are_refused(samples: torch.Tensor, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        fit_sound(samples, 39)


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (["image"] * 10, "at most 9"),
        (["image"] + ["video"] * 4, "at most 3"),
        (["image"] + ["audio"] * 4, "at most 3"),
        (["image"] * 9 + ["video"] * 3 + ["audio"], "at most 12"),
        (["audio"], "alone"),
        (["audio", "audio"], "alone"),
        (["smell"], "none of"),
    ],
)
def test_too_many_references_are_refused(kinds: list[str], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        check_references(kinds)


def test_allowed_references_and_the_mix_with_keyframes() -> None:
    check_references([])
    check_references(["image"] * 9 + ["video"] * 3)
    check_references(["audio", "image"])
    check_references([], keyframes=2)
    with pytest.raises(RequestError, match="one or the other"):
        check_references(["image"], keyframes=1)


class _Encoder:
    """A stand-in autoencoder with a random posterior, in the shape that diffusers' pieces call."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(3)
        self.parameters = torch.randn(1, 48, 2, 3, 4, generator=generator) * 3
        self.config = SimpleNamespace(
            latents_mean=torch.randn(24, generator=generator).tolist(),
            latents_std=(torch.rand(24, generator=generator) + 0.5).tolist(),
        )
        self.seen: torch.Tensor | None = None

    def encode(self, pixels: torch.Tensor, return_dict: bool) -> tuple:
        from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution

        self.seen = pixels
        return (DiagonalGaussianDistribution(self.parameters),)


def test_a_visual_condition_is_parity_with_diffusers(pieces: SimpleNamespace) -> None:
    encoder = _Encoder()
    pixels = torch.randint(0, 256, (5, 8, 6, 3), dtype=torch.uint8)
    want = pieces.encoders.encode_vae_condition(
        encoder,
        pixels.permute(3, 0, 1, 2)[None],
        (0.485, 0.456, 0.406),
        (0.229, 0.224, 0.225),
    )
    mean, log_variance = encoder.parameters.chunk(2, dim=1)
    found = sample_condition(
        mean, log_variance, encoder.config.latents_mean, encoder.config.latents_std
    )
    assert torch.equal(found, want)
    assert encoder.seen is not None
    assert torch.allclose(pixels_for_encoder(pixels), encoder.seen, atol=1e-6, rtol=0)
    print("PARITY | condition posterior, rounding, normalisation | diffusers | 0.0e+00")


def test_noised_condition_rows_are_parity_with_diffusers(pieces: SimpleNamespace) -> None:
    from diffusers import MiniMaxH3Scheduler
    from diffusers.utils.torch_utils import randn_tensor

    latents = [torch.randn(1, 24, 1, 4, 6), torch.randn(1, 24, 2, 2, 4)]
    generator = torch.Generator().manual_seed(9)
    want = []
    for item in latents:
        noise = randn_tensor(item.shape, generator=generator, dtype=torch.float32)
        noised = MiniMaxH3Scheduler().scale_noise(item, 0.999, noise)
        want.append(pieces.denoise.patchify_video_latents(noised, (1, 2, 2)))
    video = randn_tensor((1, 24, 7, 4, 6), generator=generator, dtype=torch.float32)
    sound = randn_tensor((18, 32), generator=generator, dtype=torch.float32)
    found = draw_noise(
        9,
        latent_frames=7,
        latent_height=4,
        latent_width=6,
        audio_latents=9,
        condition_shapes=[item.shape for item in latents],
    )
    assert torch.equal(noised_condition_rows(latents, found), torch.cat(want))
    assert torch.equal(found.video, video) and torch.equal(found.audio_rows, sound)
    print("PARITY | draw order and condition rows | diffusers | 0.0e+00")


def test_row_times_are_parity_with_diffusers(pieces: SimpleNamespace) -> None:
    references = (Reference("image", 1, 4, 4), Reference("audio", audio_latents=3))
    for blocks, keyframes in ((references, ()), ((), ("first", "last")), ((), ())):
        layout = build_layout(
            latent_frames=7,
            latent_height=4,
            latent_width=6,
            audio_latents=5,
            text_tags=[1, 0, 1],
            references=blocks,
            keyframes=keyframes,
        )
        for times in schedule(8).steps(condition_times(layout)):
            distinct, indices = pieces.denoise.MiniMaxH3SetTimestepsStep.build_row_timesteps(
                layout.video_indices,
                layout.audio_indices,
                layout.condition_video_rows,
                layout.condition_audio_rows,
                layout.text_rows,
                times.t_video,
                times.t_audio,
                max(times.t_video, 0.999),
                1.0,
            )
            assert tuple(distinct.tolist()) == times.distinct
            found = row_times(layout, times)
            assert torch.equal(found.timestep_indices, indices)


def test_sound_rows_are_channel_major_and_normalised() -> None:
    mean, shift, factor = torch.randn(2, 32, 5), torch.randn(32), torch.rand(32) + 0.5
    rows = sound_rows(mean, shift.tolist(), factor.tolist())
    assert rows.shape == (10, 32)
    assert torch.allclose(rows[5 + 2], (mean[1, :, 2] - shift) / factor)


def test_a_condition_set_shrinks_keyframes_and_leaves_references() -> None:
    canvas = plan_two_pass_canvas(512, 544)
    keyframes = ConditionSet(("first",), latents=(torch.randn(1, 24, 1, 34, 32),))
    small = keyframes.for_first_pass(canvas)
    assert small.shapes == ((1, 24, 1, 18, 16),)
    assert keyframes.times == ConditionTimes(visual=True)
    block = reference_block("video", torch.randn(1, 24, 7, 4, 4), torch.randn(12, 32))
    assert block == Reference("video", 7, 4, 4, 6)
    references = ConditionSet(
        references=(block,),
        latents=(torch.randn(1, 24, 7, 4, 4),),
        audio_rows=(torch.randn(12, 32),),
    )
    assert references.for_first_pass(canvas) is references
    assert references.times == ConditionTimes(visual=True, reference_audio=True)
    packed = references.packed_audio()
    assert packed is not None and packed.shape == (12, 32)
    assert keyframes.packed_audio() is None


def test_condition_sets_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(RequestError, match="1 visual and 0 sounding"):
        ConditionSet(("first",))
    with pytest.raises(RequestError, match="cannot be mixed"):
        ConditionSet(("first",), (Reference("image", 1, 4, 4),))
    with pytest.raises(RequestError, match="uint8"):
        pixels_for_encoder(torch.zeros(1, 4, 4, 3))
