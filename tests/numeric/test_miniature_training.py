"""The miniature's training code against the engine: equal models, equal samplers, honest checks."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lowpeak.benchmarks.miniature import (
    checks,
    data,
    linear,
    loop,
    pool,
    targets,
    train_dit,
    twin,
    vae_twin,
)
from lowpeak.benchmarks.miniature.models import (
    MODEL,
    VIDEO,
    audio_state,
    model_state,
    video_state,
)
from lowpeak.engine.model.layout import build_layout, patchify, unpatchify
from lowpeak.engine.model.plain import PlainModel
from lowpeak.engine.text.toy import pieces
from lowpeak.engine.vae.decoder import decode_video
from lowpeak.engine.vae.encoder import encode_video
from lowpeak.engine.vae.keys import split_video_state

CONFIG = replace(MODEL, layers=2, heads=2, head_dim=32, hidden=48, ffn=64, rope_freqs=4)
CPU = torch.device("cpu")


def shaken(state: dict[str, torch.Tensor], seed: int) -> dict[str, torch.Tensor]:
    """Every tensor moved away from its start, so that no branch is a no-op."""
    generator = torch.Generator().manual_seed(seed)
    return {k: v + 0.1 * torch.randn(v.shape, generator=generator) for k, v in state.items()}


@pytest.mark.parametrize(
    ("frames", "keyframes", "exact"),
    [(7, (), True), (12, ("first", "last"), True), (22, ("last",), True), (17, (), False)],
)
def test_the_batched_twin_is_the_plain_model(
    frames: int, keyframes: tuple[str, ...], exact: bool
) -> None:
    state = shaken(model_state(1, CONFIG), 2)
    tags = [1] * 3 + [0] * 5 + [1] * 4 if keyframes else [1] * 6
    layout = build_layout(
        latent_frames=frames, latent_height=4, latent_width=6, audio_latents=5, text_tags=tags,
        keyframes=keyframes,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(3)

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    video, audio = noise(2, len(layout.video_indices), 96), noise(2, 10, 32)
    text = noise(2, len(tags), CONFIG.text_dim)
    times = torch.tensor([[0.1, 0.3, 0.999], [0.9995, 0.9, 0.9995]])
    pack = twin.Pack.of(layout, CONFIG, CPU)
    made = twin.forward(state, CONFIG, pack, video, audio, text, times, exact=exact)
    for i in range(2):
        at = layout.at(float(times[i, 0]), float(times[i, 1]))
        wanted = PlainModel(state, CONFIG).forward(video[i], audio[i], text[i], at, layout)
        assert wanted[0].std() > 0.05
        torch.testing.assert_close(
            made[0][i], wanted[0][layout.condition_video_rows :], rtol=1e-3, atol=1e-4
        )
        torch.testing.assert_close(made[1][i], wanted[1], rtol=1e-3, atol=1e-4)


def test_the_inverse_has_the_gradient_of_the_inverse() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(3, 40, 8, generator=generator)
    a = (rows.transpose(1, 2) @ rows / 10).requires_grad_(True)
    weight = torch.randn(3, 8, 8, generator=generator)
    grads = []
    for found in (twin.Inverse.apply(a, False), torch.linalg.inv(torch.eye(8) + a)):
        grads.append(torch.autograd.grad((found * weight).sum(), a)[0])
    torch.testing.assert_close(*grads, rtol=1e-3, atol=1e-5)


def test_the_autoencoder_twin_is_the_engines() -> None:
    state = shaken(video_state(3), 4)
    encoder, root, blocks = split_video_state(state)
    generator = torch.Generator().manual_seed(5)
    pixels = torch.randn(1, 3, 39, 48, 32, generator=generator)
    wanted = encode_video(pixels, encoder, VIDEO)
    mean, log_variance = vae_twin.encode_video(pixels, state, VIDEO)
    torch.testing.assert_close(mean, wanted.mean, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(log_variance, wanted.log_variance, rtol=1e-4, atol=1e-4)
    z = torch.randn(1, 24, 7, 3, 2, generator=generator)
    frames = decode_video(z, root, blocks, VIDEO)
    assert frames is not None and frames.shape[2] == 22
    made = vae_twin.shown(vae_twin.decode_clip(z, state, VIDEO, torch.float32))
    torch.testing.assert_close(made, frames, rtol=1e-4, atol=1e-4)


def test_rows_are_the_engines_rows() -> None:
    z = torch.randn(2, 24, 7, 4, 6, generator=torch.Generator().manual_seed(6))
    rows = train_dit.patchify(z)
    assert torch.equal(rows[1], patchify(z[1]))
    assert torch.equal(train_dit.unpatchify(rows, 7, 4, 6), z)
    assert torch.equal(unpatchify(rows[0], 7, 4, 6), z[0])


def test_times_bend_as_the_schedules_do() -> None:
    for grid in (train_dit.schedule(8), train_dit.community_schedule()):
        raw = torch.tensor(grid.raw)
        for shift, sigmas in ((12.0, grid.video_sigmas), (3.0, grid.audio_sigmas)):
            torch.testing.assert_close(train_dit.bend(raw, shift), torch.tensor(sigmas))
    generator = torch.Generator().manual_seed(1)
    raw = train_dit.draw_raw(4000, generator, refine=True, late=False)
    assert float(raw.min()) > 0 and float(raw.max()) <= 1
    inside = train_dit.bend(raw, 12.0) <= train_dit.REFINE_SIGMA
    assert 0.7 < float(inside.float().mean()) < 0.95


def test_clips_depend_on_their_index_alone_and_held_out_ones_are_apart() -> None:
    both = data.Scenes.of(torch.arange(100, 130))
    one = data.Scenes.of(torch.tensor([117]))
    for name in ("colour", "shape", "motion", "background", "radius", "across"):
        assert float(getattr(one, name)[0]) == float(getattr(both, name)[17])
    seen = set(data.combinations(held_out=False))
    kept = set(data.combinations(held_out=True))
    assert not seen & kept and len(seen | kept) == 96 and len(kept) >= 15
    assert {c for c, _, _ in kept} == set(range(6)) and {m for _, _, m in kept} == set(range(4))
    held = data.Scenes.of(torch.arange(200), held_out=True)
    drawn = zip(held.colour.tolist(), held.shape.tolist(), held.motion.tolist(), strict=True)
    assert set(drawn) <= kept


def test_captions_of_a_template_have_equally_many_rows() -> None:
    scenes = data.Scenes.of(torch.arange(80))
    for template in range(len(data.TEMPLATES)):
        counts = {len(pieces(scenes.caption(i, template))) for i in range(scenes.count)}
        assert len(counts) == 1, data.TEMPLATES[template]


def test_the_checks_see_what_was_drawn_and_nothing_else() -> None:
    scenes = data.Scenes.of(torch.arange(24), held_out=True)
    frames = data.render(scenes, data.moments_of(8, "cpu"), 96, 128)
    pixels = (frames * 255).round().to(torch.uint8).permute(0, 2, 3, 4, 1)
    waves = data.sound(scenes, 22)
    rows = []
    for i in range(scenes.count):
        words = scenes.words(i)
        rows.append(checks.look(pixels[i], waves[i]).against(words))
        wrong = checks.look(pixels[i], waves[i]).against(
            {"colour": "none", "shape": "ring" if words["shape"] != "ring" else "circle",
             "motion": "none"}
        )  # fmt: skip
        assert not any(wrong.values())
    assert all(all(row.values()) for row in rows)
    grey = torch.full((8, 96, 128, 3), 120, dtype=torch.uint8)
    seen = checks.look(grey, torch.zeros(2, 8000))
    assert (seen.colour, seen.shape, seen.motion, seen.tone_hz) == (None,) * 4
    still = pixels[0][:1].expand(8, -1, -1, -1)
    assert checks.look(still, None).motion is None


def test_the_checks_know_a_style() -> None:
    for style, number in (("night", data.STYLE_NIGHT), ("outline", data.STYLE_OUTLINE)):
        for drawn in (data.STYLE_PLAIN, number):
            scenes = data.Scenes.of(torch.arange(12), style=drawn)
            frames = data.render(scenes, data.moments_of(3, "cpu"), 96, 96)
            pixels = (frames * 255).round().to(torch.uint8).permute(0, 2, 3, 4, 1)
            found = [checks.has_style(part, style) for part in pixels]
            assert found == [drawn == number] * 12, (style, drawn)


@pytest.fixture(scope="module")
def solved() -> dict[str, torch.Tensor]:
    return linear.video_start(clips=16)


def test_the_solved_encoder_is_the_linear_map_that_training_uses(
    solved: dict[str, torch.Tensor],
) -> None:
    scenes = data.Scenes.of(torch.arange(2))
    for frames in (22, 1):
        moments = data.moments_of(22, "cpu", 0, frames)
        pixels = vae_twin.to_model(data.render(scenes, moments, 128, 96))
        stored = {k: v.bfloat16().float() for k, v in solved.items()}
        wanted, log_variance = vae_twin.encode_video(pixels, stored, VIDEO)
        made = linear.encode(pixels, linear.matrices_of(solved))
        assert float(wanted.abs().amax()) > 0.5
        assert float((made - wanted).abs().max()) < 0.02
        assert float(log_variance.max()) < -8


def test_the_solved_autoencoder_draws_before_any_training(solved: dict[str, torch.Tensor]) -> None:
    scenes = data.Scenes.of(torch.arange(500, 504))
    pixels = vae_twin.to_model(data.render(scenes, data.moments_of(22, "cpu"), 128, 128))
    z = linear.encode(pixels, linear.matrices_of(solved))
    made = vae_twin.shown(vae_twin.decode_clip(z, solved, VIDEO, torch.float32))
    error = ((made - pixels) * 0.226).square().mean((0, 1, 3, 4))
    whole = [i for i in range(22) if i not in (0, 17)]  # latents of four frames
    assert float(-10 * torch.log10(error[whole].mean())) > 22


def test_a_part_of_a_tile_has_the_angles_of_its_place() -> None:
    state = shaken(video_state(3), 4)
    z = torch.randn(1, 24, 7, 2, 2, generator=torch.Generator().manual_seed(1))
    plain = vae_twin.decode_clip(z, state, VIDEO, torch.float32)
    whole = vae_twin.decode_clip(z, state, VIDEO, torch.float32, (2, 2, 0, 0))
    apart = vae_twin.decode_clip(z, state, VIDEO, torch.float32, (4, 6, 1, 2))
    assert torch.equal(plain, whole) and not torch.allclose(plain, apart, atol=1e-3)


def test_sounds_out_of_the_table_are_those_of_the_clips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def statistics(state: dict[str, torch.Tensor], channels: int) -> dict[str, torch.Tensor]:
        return state | {
            "latents_mean": torch.zeros(channels), "latents_std": torch.ones(channels)
        }  # fmt: skip

    video, audio = statistics(linear.video_start(clips=16), 24), statistics(audio_state(1), 32)
    encoders = pool.Encoders(run_of(tmp_path), video, audio)
    monkeypatch.setattr(pool, "PLACES", 3)
    scenes = data.Scenes.of(torch.arange(30, 36))
    across = data.ACROSS * torch.tensor([-1.0, 0.0, 1.0, 0.96, 1.0, -1.0])
    made = encoders.sound_rows(replace(scenes, across=across), 3)
    near = replace(scenes, across=across.sign() * data.ACROSS)
    torch.testing.assert_close(made, encoders.encode_sound(data.sound(near, 3)))
    assert not torch.allclose(made, made.roll(1, 0), atol=1e-2)


def run_of(folder: Path) -> loop.Run:
    return loop.Run(folder, CPU, scale=8)


def test_a_step_follows_the_gradient_and_skips_what_is_not_finite(tmp_path: Path) -> None:
    start = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    trainers = [
        loop.Trainer(run_of(tmp_path / n), "t", {"w": start.clone()}, 9.0, rate=1e-2) for n in "ab"
    ]

    def loss(inputs: Sequence[torch.Tensor], weight: torch.Tensor) -> torch.Tensor:
        return torch.stack([(weight @ inputs[0]).square().mean()])

    value = torch.randn(3, 5, generator=torch.Generator().manual_seed(2))
    first, second = (t.weights["w"] for t in trainers)
    for _ in range(3):
        trainers[0].step({"l": loss([value], first)[0]})
        trainers[1].step_of("k", ("l",), [value], lambda held: loss(held, second))
    torch.testing.assert_close(first, second)
    assert not torch.allclose(first, start)
    before = second.detach().clone()
    trainers[1].step_of("k", ("l",), [value * torch.nan], lambda held: loss(held, second))
    assert torch.equal(before, second) and float(trainers[1].bad) == 1
    trainers[1].step_of("k", ("l",), [value], lambda held: loss(held, second))
    assert not torch.equal(before, second) and float(trainers[1].bad) == 0


def test_a_paused_run_waits_and_does_not_count_the_time(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    trainer = loop.Trainer(run, "t", {"w": torch.ones(2, 2)}, 60.0, rate=1e-2)
    assert run.pause() == 0
    sign = tmp_path / loop.PAUSE
    sign.touch()
    seen: list[bool] = []

    def later() -> None:
        until = time.monotonic() + 60
        while not (held := (tmp_path / f"PAUSED.{run.name}").exists()) and time.monotonic() < until:
            time.sleep(0.02)
        seen.append(held)
        time.sleep(3.0)
        sign.unlink()

    thread = threading.Thread(target=later)
    thread.start()
    before = trainer.elapsed
    assert trainer.running()
    thread.join()
    assert seen == [True] and not (tmp_path / f"PAUSED.{run.name}").exists()
    assert trainer.elapsed - before < 2.0


def test_training_goes_on_from_what_it_saved(tmp_path: Path) -> None:
    """A second attempt starts at the weights, the seconds and the curve of the first."""

    def attempt(budget_s: float) -> tuple[loop.Run, loop.Trainer]:
        run = run_of(tmp_path)
        state = run.load("model", "") or {"w": torch.ones(4, 3)}
        trainer = loop.Trainer(
            run, "t", state, budget_s, rate=1e-2, keep=lambda kept: run.save("model", kept)
        )
        for _ in range(16):
            trainer.step({"l": trainer.weights["w"].square().mean()})
        trainer.finish(steps=trainer.steps)
        return run, trainer

    run, first = attempt(30.0)
    saved = run.load("model", "")
    assert saved is not None and torch.equal(saved["w"], first.averaged()["w"])
    assert not torch.equal(saved["w"], torch.ones(4, 3))
    told = run.spent("t")
    again, second = attempt(30.0)
    assert second.before == told and again.spent("t") >= told
    assert second.curve[: len(first.curve)] == first.curve and len(second.curve) > len(first.curve)
    later = again.load("model", "")
    assert later is not None and float(later["w"].detach().mean()) < float(saved["w"].mean())


def test_weights_of_the_losses_are_where_the_shape_is() -> None:
    z = torch.zeros(2, 24, 3, 4, 8)
    z[:, 0, 1, 2:, 2:4] = 1.0
    shown = pool.off_ground(z)
    assert shown.shape == (2, 24) and shown[0].nonzero().flatten().tolist() == [13]
    weight = train_dit.object_weight(shown, torch.tensor([0.5, 0.99]))
    assert torch.allclose(weight.mean(1), torch.ones(2))
    assert float(weight[0, 13] / weight[0, 0]) == pytest.approx(1 + train_dit.OBJECT_GAIN)
    assert torch.equal(weight[1], torch.ones(24))


def test_a_missed_target_is_named() -> None:
    good: dict[str, Any] = {"colour_and_shape": 92.5, "motion": 100.0, "pitch": 100.0}
    rows = [
        {"variant": "bf16", **good},
        {"variant": "int8", **good, "motion": 80.0},
        {"variant": "fp8-tensor", **good, "colour_and_shape": 95.5},
        {"variant": "first-and-last", **good, "first_psnr_db": 22.0, "last_psnr_db": 21.9},
    ]
    needed = {name for pair in targets.PAIRS for name in pair}
    rows += [{"variant": name, **good} for name in sorted(needed - {r["variant"] for r in rows})]
    assert targets.missed(rows) == {
        ("int8", "motion"),
        ("int8", "motion as in bf16"),
        ("first-and-last", "last_psnr_db"),
    }
    assert targets.missed(rows[:1]) == {(name, "not measured") for name in needed - {"bf16"}}
