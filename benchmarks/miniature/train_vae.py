"""Stages `video`, `audio` and `decoder`: the two autoencoders."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from lowpeak.engine.vae.audio import decode_raw, encode_raw

from . import checks, data
from .loop import Run, State, Trainer, pick
from .models import AUDIO, VIDEO, audio_state, video_state
from .pool import Bucket
from .vae_twin import decode_clip, encode_video, shown, to_bytes, to_model

VIDEO_FILE, AUDIO_FILE = "video", "audio"
KL_WEIGHT = 1e-4
LATENT_NOISE = 0.15
EDGE_GAIN, EDGE_SPREAD = 8.0, 0.02  # a variance in the model's colours
CLIPS = ((22, 0), (39, 0), (39, 17), (56, 17), (56, 34), (73, 34))  # (frames, first of 22)


def views(scale: int, late: bool) -> list[tuple[int, int, float]]:
    """(canvas side, tile side, weight) in pixels."""
    if scale > 1:
        return [(64, 64, 1.0)]
    if late:
        return [(256, 256, 0.65), (384, 256, 0.15), (512, 256, 0.2)]
    return [(128, 128, 0.4), (256, 128, 0.4), (512, 128, 0.2)]


def random_clip(run: Run, generator: torch.Generator, index: int, late: bool) -> Tensor:
    """[B, 3, 22, h, w] in 0..1: windows into random clips, plain and in other colours."""
    choices = views(run.scale, late)
    canvas, tile, _ = choices[pick(generator, [c[2] for c in choices])]
    count = run.batch(10 if tile == 256 else 40)
    at = torch.arange(index, index + count, device=run.device)
    scenes = data.Scenes.of(at)
    frames, first = CLIPS[pick(generator, [1.0] * len(CLIPS))]
    slack = canvas - tile
    top, left = (int(torch.randint(0, slack + 1, (1,), generator=generator)) for _ in "yx")
    device = run.device
    grey = torch.tensor(list(data.BACKGROUNDS.values()), device=device)[scenes.background]
    other = torch.rand(count, 3, generator=generator).to(device)
    grounds = torch.where((data.uniform(at, 20) < 0.3)[:, None], other, grey[:, None])
    night = torch.tensor(data.NIGHT, device=device)
    grounds = torch.where((data.uniform(at, 21) < 0.1)[:, None], night, grounds)
    rims = data.uniform(at, 22) < 0.2
    moments = data.moments_of(frames, device, first, 22)
    box = (top, left, tile, tile)
    return data.render(scenes, moments, canvas, canvas, crop=box, grounds=grounds, rims=rims)


def train_video(run: Run, budget_s: float) -> State:
    """Train the video autoencoder for `budget_s` and keep it with its latents' statistics."""
    held = run.load(VIDEO_FILE, "")
    state = held or {k: v.to(run.device) for k, v in video_state(run.seed).items()}
    for name in ("latents_mean", "latents_std"):
        state.pop(name, None)
    trainer = Trainer(
        run, "video", state, budget_s, rate=2e-3, keep=lambda s: run.save(VIDEO_FILE, s)
    )
    generator = torch.Generator().manual_seed(run.seed + 1000 + int(trainer.before))
    index = int(trainer.before * 10_000)
    while trainer.running():
        pixels = to_model(
            random_clip(run, generator, index, held is not None or trainer.done > 0.5)
        )
        index += pixels.shape[0]
        w = _cast(state, run.fast)
        mean, log_variance = encode_video(pixels.to(run.fast), w, VIDEO)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        z = z + LATENT_NOISE * torch.rand(len(z), 1, 1, 1, 1, device=z.device) * torch.randn_like(z)
        error = shown(decode_clip(z, w, VIDEO, run.fast)).float() - pixels
        divergence = mean.square() + log_variance.exp() - 1 - log_variance
        weight = edge_weight(pixels)
        trainer.step(
            {
                "l1": (weight * error.abs()).mean(),
                "l2": (weight * error.square()).mean(),
                "kl": KL_WEIGHT * divergence.mean(),
            }
        )
    final = trainer.finish(steps=trainer.steps)
    final |= video_statistics(run, final)
    run.save(VIDEO_FILE, final)
    return final


def edge_weight(pixels: Tensor) -> Tensor:
    """[B, 1, T, H, W]: more where a latent's 16 x 16 pixels hold an edge, which few do; mean 1."""
    batch, _, frames, height, width = pixels.shape
    grey = pixels.mean(1).flatten(0, 1)[:, None]
    spread = F.avg_pool2d(grey.square(), 16) - F.avg_pool2d(grey, 16).square()
    weight = 1 + EDGE_GAIN * (spread > EDGE_SPREAD).float()
    weight = F.interpolate(weight / weight.mean(), scale_factor=16)
    return weight.view(batch, frames, height, width)[:, None]


def train_decoder(run: Run, budget_s: float, state: State, buckets: Sequence[Bucket]) -> State:
    """Train the video decoder alone, on the latents of the pool: the encoder and its latents stay.

    Latents get noise of up to a quarter of their spread: those of a sampler are not clean either.
    """
    held = {k: v for k, v in state.items() if not _of_decoder(k)}
    inner = {k: v.clone() for k, v in state.items() if _of_decoder(k)}
    trainer = Trainer(
        run, "decoder", inner, budget_s, rate=1.5e-3,
        keep=lambda s: run.save(VIDEO_FILE, {**held, **s}),
    )  # fmt: skip
    mean, std = (state[f"latents_{n}"].view(1, -1, 1, 1, 1) for n in ("mean", "std"))
    generator = torch.Generator().manual_seed(run.seed + 31)
    while trainer.running():
        bucket = buckets[pick(generator, [float(b.count) for b in buckets])]
        z, pixels = decoder_batch(run, bucket, run.batch(48), generator)
        noise = 0.25 * torch.rand(len(z), 1, 1, 1, 1, generator=generator).square().to(z.device)
        z = (z + noise * torch.randn_like(z)) * std + mean
        error = shown(decode_clip(z, _cast(inner, run.fast), VIDEO, run.fast)).float() - pixels
        weight = edge_weight(pixels)
        trainer.step({"l1": (weight * error.abs()).mean(), "l2": (weight * error.square()).mean()})
    final = held | trainer.finish(steps=trainer.steps)
    run.save(VIDEO_FILE, final)
    video_statistics(run, final, "decoder")
    return final


def decoder_batch(
    run: Run, bucket: Bucket, count: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Normalised latents [B, 24, 7, 16, 16] of one tile and clip, and its 22 frames."""
    size = bucket.size
    count = min(count, bucket.count)
    _, height, width = size.latent
    tall, wide = min(16, height), min(16, width)
    clip = int(torch.randint(0, (size.frames - 5) // 17, (1,), generator=generator))
    top, left = (
        int(torch.randint(0, slack + 1, (1,), generator=generator))
        for slack in (height - tall, width - wide)
    )
    at = torch.randint(0, bucket.count, (count,), generator=generator).to(run.device)
    z = bucket.video[at, :, 5 * clip : 5 * clip + 7, top : top + tall, left : left + wide]
    moments = data.moments_of(size.frames, run.device, 17 * clip, 22)
    box = (16 * top, 16 * left, 16 * tall, 16 * wide)
    pixels = data.render(bucket.scenes.take(at), moments, size.height, size.width, crop=box)
    return z.float(), to_model(pixels)


def _of_decoder(name: str) -> bool:
    return name.startswith(("decoder.", "post_quant"))


@torch.no_grad()
def video_statistics(run: Run, state: State, stage: str = "video") -> State:
    """Mean and deviation of each latent channel over plain clips; notes PSNR and the checks.

    The checks on decoded clips are what no transformer can do better than.
    """
    side, parts = (64, 1) if run.scale > 1 else (256, 4)
    found, errors, rows = [], [], []
    for part in range(parts):
        scenes = data.Scenes.of(torch.arange(16, device=run.device) + 9_000_000 + 16 * part)
        pixels = to_model(data.render(scenes, data.moments_of(22, run.device), side, side))
        mean, _ = encode_video(pixels.to(run.fast), state, VIDEO)
        found.append(mean)
        decoded = shown(decode_clip(mean, state, VIDEO, run.fast)).float()
        for i in range(scenes.count):
            frames = to_bytes(decoded[i])[::3, ::2, ::2]
            rows.append(checks.look(frames, None).against(scenes.words(i)))
        error = decoded - pixels
        errors.append((error * 0.226).square().mean((1, 2, 3, 4)))
    z = torch.cat(found)
    decibel = -10 * torch.log10(torch.cat(errors))
    mean_db, worst_db = round(float(decibel.mean()), 2), round(float(decibel.min()), 2)
    share = {n: v for n, v in checks.summary(rows).items() if n != "pitch"}
    run.note(stage, psnr_db=mean_db, worst_db=worst_db, decoded=share)
    run.say(f"{stage}: PSNR mean {mean_db} dB, worst {worst_db} dB; decoded clips {share}")
    std = z.std((0, 2, 3, 4)).clamp_min(0.1)
    run.say("video: latent std " + " ".join(f"{v:.2f}" for v in std.tolist()))
    return {"latents_mean": z.mean((0, 2, 3, 4)), "latents_std": std}


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
