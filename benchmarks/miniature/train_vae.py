"""Stages `video` and `audio`: the two autoencoders."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from lowpeak.engine.vae.audio import decode_raw, encode_raw

from . import checks, data, linear
from .loop import Run, State, Trainer, pick
from .models import AUDIO, VIDEO, audio_state
from .vae_twin import decode_clip, shown, to_bytes, to_model

VIDEO_FILE, AUDIO_FILE = "video", "audio"
KL_WEIGHT = 1e-4
LATENT_NOISE = 0.15
LEAST_DEVIATION = 0.15  # of a latent channel
CHECK_EVERY_S = 20.0
CLIPS = ((22, 0), (39, 0), (39, 17), (56, 17), (56, 34), (73, 34))  # (frames, first of 22)


def random_clip(run: Run, generator: torch.Generator, index: int) -> Tensor:
    """[B, 3, 22, side, side] in 0..1: one tile of random clips, plain and in other colours."""
    tile = 256 if run.scale == 1 else 64
    choices = [tile] * 3 + [tile * 3 // 2, 2 * tile]
    canvas = choices[pick(generator, [1.0] * len(choices))]
    count = run.batch(24)
    at = torch.arange(index, index + count, device=run.device)
    scenes = data.Scenes.of(at)
    frames, first = CLIPS[pick(generator, [3.0] + [1.0] * (len(CLIPS) - 1))]
    slack = (canvas - tile) // 16
    top, left = (16 * int(torch.randint(0, slack + 1, (1,), generator=generator)) for _ in "yx")
    device = run.device
    grey = torch.tensor(list(data.BACKGROUNDS.values()), device=device)[scenes.background]
    other = torch.rand(count, 3, generator=generator).to(device)
    grounds = torch.where((data.uniform(at, 20) < 0.1)[:, None], other, grey[:, None])
    night = torch.tensor(data.NIGHT, device=device)
    grounds = torch.where((data.uniform(at, 21) < 0.1)[:, None], night, grounds)
    rims = data.uniform(at, 22) < 0.15
    moments = data.moments_of(frames, device, first, 22)
    box = (top, left, tile, tile)
    return data.render(scenes, moments, canvas, canvas, crop=box, grounds=grounds, rims=rims)


def start_video(run: Run) -> State:
    """The video autoencoder so far, or its start in closed form, with its latents' statistics."""
    state = run.load(VIDEO_FILE, "")
    if state is None:
        began = time.monotonic()
        state = {k: v.to(run.device) for k, v in linear.video_start(run.seed).items()}
        state |= latent_statistics(run, state)
        run.save(VIDEO_FILE, state)
        run.say(f"video: encoder solved in {time.monotonic() - began:.1f} s")
    return state


def train_video(run: Run, budget_s: float) -> State:
    """Train the video decoder for `budget_s`: the encoder is solved, its latents stay.

    Latents get some noise: those of a sampler are not clean either.
    """
    state = start_video(run)
    held = {k: v for k, v in state.items() if not _of_decoder(k)}
    inner = {k: v.clone() for k, v in state.items() if _of_decoder(k)}
    matrices = linear.matrices_of(state)
    trainer = Trainer(
        run, "video", inner, budget_s, rate=2e-3,
        keep=lambda s: run.save(VIDEO_FILE, {**held, **s}),
    )  # fmt: skip
    std = state["latents_std"].view(1, -1, 1, 1, 1).clamp_max(0.3)
    generator = torch.Generator().manual_seed(run.seed + 1000 + int(trainer.before))
    index = int(trainer.before * 10_000)
    checked = time.monotonic()

    def loss(inputs: Sequence[Tensor]) -> Tensor:
        z, pixels = inputs
        made = shown(decode_clip(z, _cast(inner, run.fast), VIDEO, run.fast)).float()
        error = made - pixels
        weight = torch.ones_like(error[:1, :1, :, :1, :1])
        weight[:, :, :: error.shape[2] - 1] = 2.0  # the ends, which are asked for as pictures
        return torch.stack([0.3 * (weight * error.abs()).mean(), (weight * error.square()).mean()])

    while trainer.running():
        with torch.no_grad():
            pixels = to_model(random_clip(run, generator, index))
            index += len(pixels)
            z = linear.encode(pixels, matrices)
            most = LATENT_NOISE * torch.rand(len(z), 1, 1, 1, 1, device=z.device).square()
            z = z + most * std * torch.randn_like(z)
        trainer.step_of(tuple(z.shape), ("l1", "l2"), (z, pixels), loss)
        if run.scale == 1 and time.monotonic() - checked > CHECK_EVERY_S:
            check_video(run, {**held, **trainer.averaged()}, clips=8)
            checked = time.monotonic()
    final = {**held, **trainer.finish(steps=trainer.steps)}
    check_video(run, final)
    run.save(VIDEO_FILE, final)
    return final


def _of_decoder(name: str) -> bool:
    return name.startswith(("decoder.", "post_quant"))


@torch.no_grad()
def latent_statistics(run: Run, state: State) -> State:
    """Mean and deviation of each latent channel over plain clips.

    A small channel's deviation is not brought to one: its noise would cost as much as a colour's.
    """
    side = 64 if run.scale > 1 else 256
    scenes = data.Scenes.of(torch.arange(32, device=run.device) + 9_000_000)
    pixels = to_model(data.render(scenes, data.moments_of(22, run.device), side, side))
    z = linear.encode(pixels, linear.matrices_of(state))
    mean, std = z.mean((0, 2, 3, 4)), z.std((0, 2, 3, 4))
    return {"latents_mean": mean, "latents_std": std.clamp_min(LEAST_DEVIATION)}


@torch.no_grad()
def check_video(run: Run, state: State, clips: int = 48) -> None:
    """Notes PSNR and the checks on clips encoded and decoded: no transformer can do better."""
    side = 64 if run.scale > 1 else 256
    matrices = linear.matrices_of(state)
    state = {k: v.detach() for k, v in state.items()}
    errors, rows = [], []
    for first in range(0, clips, 8):
        scenes = data.Scenes.of(torch.arange(8, device=run.device) + 9_100_000 + first)
        pixels = to_model(data.render(scenes, data.moments_of(22, run.device), side, side))
        z = linear.encode(pixels, matrices)
        decoded = shown(decode_clip(z, _cast(state, run.fast), VIDEO, run.fast)).float()
        for i in range(scenes.count):
            frames = to_bytes(decoded[i])[::3, ::2, ::2]
            rows.append(checks.look(frames, None).against(scenes.words(i)))
        errors.append(((decoded - pixels) * 0.226).square().mean((1, 3, 4)))
    error = torch.cat(errors)  # [clips, 22]
    found = {
        "psnr_db": error.mean(1), "first_db": error[:, 0], "last_db": error[:, -1],
        "worst_db": error.mean(1).amax(),
    }  # fmt: skip
    decibel = {n: round(float((-10 * torch.log10(v)).mean()), 2) for n, v in found.items()}
    share = {n: v for n, v in checks.summary(rows).items() if n != "pitch"}
    run.note("video", **decibel, decoded=share)
    run.say(f"video: CHECK {decibel} decoded clips {share}")


def train_audio(run: Run, budget_s: float) -> State:
    """Train the audio autoencoder for `budget_s`."""
    state = run.load(AUDIO_FILE, "") or {
        k: v.to(run.device) for k, v in audio_state(run.seed).items()
    }
    for name in ("latents_mean", "latents_std"):
        state.pop(name, None)
    trainer = Trainer(
        run,
        "audio",
        state,
        budget_s,
        rate=1.5e-3,
        frozen=lambda n: n.endswith("filter"),
        keep=lambda s: run.save(AUDIO_FILE, s),
    )
    index = 5_000_000 + int(trainer.before * 10_000)
    while trainer.running():
        count = run.batch(32)
        scenes = data.Scenes.of(torch.arange(index, index + count, device=run.device))
        index += count
        wave = data.sound(scenes, 22)[..., : 800 * (8 if run.scale > 1 else 24)].flatten(0, 1)[
            :, None
        ]
        mean, log_deviation = encode_raw(wave, state, AUDIO)
        log_deviation = log_deviation.clamp(-10, 3)
        z = mean + log_deviation.exp() * torch.randn_like(mean)
        # Noise and the spectrum come late: with them a fresh decoder learns silence for good.
        late = min(1.0, max(0.0, (trainer.done - 0.3) / 0.3))
        most = late * LATENT_NOISE
        z = z + most * torch.rand(len(z), 1, 1, device=z.device) * torch.randn_like(z)
        made = decode_raw(z, state, AUDIO)
        divergence = mean.square() + (2 * log_deviation).exp() - 1 - 2 * log_deviation
        trainer.step(
            {
                "wave": 20 * (made - wave).square().mean(),
                "spectrum": 0.1 * late * _spectral(made[:, 0], wave[:, 0]),
                "kl": KL_WEIGHT * divergence.mean(),
            }
        )
    final = trainer.finish(steps=trainer.steps)
    final |= audio_statistics(run, final)
    run.save(AUDIO_FILE, final)
    return final


@torch.no_grad()
def audio_statistics(run: Run, state: State) -> State:
    """Mean and deviation of the latents over plain sounds, and the signal-to-noise ratio."""
    scenes = data.Scenes.of(torch.arange(64, device=run.device) + 9_000_000)
    wave = data.sound(scenes, 22).flatten(0, 1)[:, None]
    mean, _ = encode_raw(wave, state, AUDIO)
    error = decode_raw(mean, state, AUDIO) - wave
    ratio = float(10 * torch.log10(wave.square().mean() / error.square().mean()))
    run.note("audio", snr_db=round(ratio, 2))
    run.say(f"audio: signal to noise {ratio:.2f} dB")
    return {"latents_mean": mean.mean((0, 2)), "latents_std": mean.std((0, 2)).clamp_min(0.1)}


def _spectral(made: Tensor, wave: Tensor) -> Tensor:
    window = torch.hann_window(1024, device=made.device)
    a, b = (
        torch.stft(x, 1024, 256, window=window, return_complex=True).abs() for x in (made, wave)
    )
    return F.l1_loss((a + 1e-2).log(), (b + 1e-2).log())


def _cast(state: State, dtype: torch.dtype) -> State:
    """Big weights in the working type once a step; norms and the decoder's ends stay float32."""
    return {k: v.to(dtype) if v.ndim > 1 and "proj_in" not in k and "post_quant" not in k
            and "register" not in k else v for k, v in state.items()}  # fmt: skip
