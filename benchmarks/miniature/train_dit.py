"""Stage `model`: the transformer, by flow matching in the engine's convention.

x_t = t x0 + (1 - t) noise, target x0 - noise; video and sound share one raw time, each bent by its
own shift, as every schedule does. Most times are drawn from the whole range, a third from the grids
that requests use, so that few steps suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from lowpeak.engine.checkpoint.names import FP32_ROOT
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.sampling.schedules import (
    CONDITION_TIME,
    Schedule,
    community_schedule,
    schedule,
)

from . import checks, data, twin
from .loop import Run, State, Trainer, pick
from .models import AUDIO, MODEL, VIDEO, model_state
from .pool import Bucket, Encoders, Size, make_bucket
from .vae_twin import decode_clip, shown, to_bytes
from .words import Words

KEYFRAMES: tuple[tuple[str, ...], ...] = ((), ("first",), ("last",), ("first", "last"))
KEYFRAME_SHARE = (0.7, 0.1, 0.06, 0.14)
OBJECT_GAIN, OBJECT_SIGMA = 4.0, 0.93
CHECK_EVERY_S = 50.0
EASY_SIGMA = 0.7  # below it the error of the picture counts, not that of the velocity
REFINE_SIGMA = 0.93  # second passes start below it
SIZES: tuple[tuple[Size, int, int, float], ...] = (  # size, clips, batch, weight
    (Size(256, 256, 22), 8_000, 48, 0.48),
    (Size(256, 256, 39), 3_000, 24, 0.22),
    (Size(512, 512, 22), 900, 16, 0.12),
    (Size(512, 512, 39), 450, 8, 0.12),
    (Size(384, 256, 22), 700, 32, 0.03),
    (Size(256, 384, 22), 700, 32, 0.03),
)
FIRST_SHARE = 0.4  # of the time, for the first two sizes alone
REHEARSAL: tuple[tuple[Size, int, int, float], ...] = (
    (Size(64, 64, 22), 12, 64, 0.6),
    (Size(64, 64, 39), 4, 64, 0.4),
    (Size(32, 32, 22), 8, 64, 0.0),
)
PARTS = ("video", "audio")


def sizes(run: Run) -> tuple[tuple[Size, int, int, float], ...]:
    """What is trained on: the real sizes, or toys in a rehearsal."""
    return REHEARSAL if run.scale > 1 else SIZES


def bend(raw: Tensor, shift: float) -> Tensor:
    """sigma of a raw time."""
    return shift * raw / (1 + (shift - 1) * raw)


def grid_times() -> Tensor:
    """Raw times of the evaluations of every schedule that requests use."""
    grids = [schedule(8)] * 4 + [schedule(n) for n in (12, 16, 20)] + [community_schedule()] * 3
    return torch.tensor([t for g in grids for t in g.raw[:-1]])


def draw_raw(count: int, generator: torch.Generator, *, refine: bool, late: bool) -> Tensor:
    """[count] raw times in (0, 1]."""
    even = torch.rand(count, generator=generator)
    sigma = torch.rand(count, generator=generator)
    low = sigma / (12 - 11 * sigma)  # even in sigma: the last, long steps
    grid = grid_times()
    grid = grid[torch.randint(0, len(grid), (count,), generator=generator)]
    kind = torch.rand(count, generator=generator)
    bounds = (0.2, 0.35) if late else (0.5, 0.7)
    raw = torch.where(kind < bounds[0], even, torch.where(kind < bounds[1], low, grid))
    if refine:
        most = REFINE_SIGMA / (12 - 11 * REFINE_SIGMA)
        inside = most * torch.rand(count, generator=generator)
        steps = torch.tensor(community_schedule().raw[:-1])
        steps = steps[torch.randint(0, len(steps), (count,), generator=generator)]
        inside = torch.where(kind < 0.5, inside, steps)
        raw = torch.where(torch.rand(count, generator=generator) < 0.75, inside, raw)
    return raw.clamp_min(1e-4)


def patchify(z: Tensor) -> Tensor:
    """[B, 24, F, H, W] to rows [B, F*S, 96], in the engine's order."""
    b, c, f, h, w = z.shape
    parts = z.reshape(b, c, f, h // 2, 2, w // 2, 2)
    return parts.permute(0, 2, 3, 5, 1, 4, 6).reshape(b, -1, 4 * c)


def unpatchify(rows: Tensor, f: int, h: int, w: int) -> Tensor:
    """The inverse of `patchify`."""
    parts = rows.reshape(rows.shape[0], f, h // 2, w // 2, -1, 2, 2)
    return parts.permute(0, 4, 1, 2, 5, 3, 6).reshape(rows.shape[0], -1, f, h, w)


def cast(weights: State, dtype: torch.dtype) -> State:
    """Weights in the types in which checkpoints hold them: the root's ends stay float32."""
    return {k: v if k.startswith(FP32_ROOT) else v.to(dtype) for k, v in weights.items()}


class Batches:
    """Packs by layout, and batches out of buckets."""

    def __init__(self, run: Run, words: Words) -> None:
        self.run, self.words = run, words
        self.packs: dict[tuple[object, ...], twin.Pack] = {}

    def pack(self, size: Size, tags: list[int], names: tuple[str, ...]) -> twin.Pack:
        """The layout of a size, text and keyframes, made once."""
        key = (size, tuple(tags), names)
        if key not in self.packs:
            f, h, w = size.latent
            layout = build_layout(
                latent_frames=f,
                latent_height=h,
                latent_width=w,
                audio_latents=data.audio_latents(size.frames),
                text_tags=tags,
                keyframes=names,
            )
            self.packs[key] = twin.Pack.of(layout, MODEL, self.run.device)
        return self.packs[key]

    def conditions(
        self,
        bucket: Bucket,
        at: Tensor,
        names: tuple[str, ...],
        template: int,
        variant: int,
    ) -> tuple[Tensor, Tensor, twin.Pack]:
        """(text rows, noised condition rows, pack) of clips `at` of a bucket."""
        scenes = bucket.scenes.take(at)
        text = self.words.captions(scenes, template)
        tags = [1] * text.shape[1]
        which = [("first", "last").index(n) for n in names]
        rows = bucket.video.new_zeros(len(at), 0, 96, dtype=torch.float32)
        if which:
            vision, vision_tags = self.words.pictures(bucket.grids[at][:, which])
            text, tags = torch.cat([vision, text], 1), vision_tags + tags
            z = bucket.keys[at][:, which, variant].float()
            z = CONDITION_TIME * z + (1 - CONDITION_TIME) * torch.randn_like(z)
            rows = torch.cat([patchify(z[:, i, :, None]) for i in range(len(which))], 1)
        return text, rows, self.pack(bucket.size, tags, names)


@torch.no_grad()
def draw_batch(
    run: Run, batches: Batches, bucket: Bucket, count: int, generator: torch.Generator, late: bool,
    draw: Callable[..., Tensor] = draw_raw,
) -> tuple[Hashable, list[Tensor], twin.Pack]:  # fmt: skip
    """A random batch of a bucket: its layout's name, what `velocity_losses` takes, the layout.

    draw: gives the raw times, as `draw_raw` does.
    """
    at = torch.randint(0, bucket.count, (count,), generator=generator).to(run.device)
    names = KEYFRAMES[pick(generator, KEYFRAME_SHARE)]
    template = pick(generator, [1.0] * len(data.TEMPLATES))
    variant = int(torch.rand(1, generator=generator) < 0.5) if not bucket.size.big else 0
    text, rows, pack = batches.conditions(bucket, at, names, template, variant)
    raw = draw(count, generator, refine=bucket.size.big, late=late).to(run.device)
    sigma = {"video": bend(raw, 12.0), "audio": bend(raw, 3.0)}
    times = torch.stack([1 - sigma["video"], 1 - sigma["audio"]], 1)
    times = torch.cat([times, times[:, :1].clamp_min(CONDITION_TIME)], 1)
    clean = {"video": patchify(bucket.video[at].float()), "audio": bucket.audio[at].float()}
    noise = {n: torch.randn_like(x) for n, x in clean.items()}
    noisy = {n: x + sigma[n][:, None, None] * (noise[n] - x) for n, x in clean.items()}
    goal = {n: clean[n] - noise[n] for n in clean}
    weight = object_weight(bucket.shown[at], sigma["video"])
    weight = weight * (sigma["video"] / EASY_SIGMA).square().clamp_max(1)[:, None]
    inputs = [torch.cat([rows, noisy["video"]], 1), noisy["audio"], text, times]
    key = (bucket.size, text.shape[1], names, count)
    return key, [*inputs, goal["video"], goal["audio"], weight], pack


def velocity_losses(weights: State, pack: twin.Pack, inputs: Sequence[Tensor]) -> Tensor:
    """[2]: the flow matching losses of video and sound. weights: already cast."""
    video, audio, text, times, video_goal, audio_goal, weight = inputs
    made = twin.forward(weights, MODEL, pack, video, audio, text, times)
    errors = [
        (m - g).square().mean(-1) for m, g in zip(made, (video_goal, audio_goal), strict=True)
    ]
    return torch.stack([(weight * errors[0]).mean(), 0.5 * errors[1].mean()])


def train_step(
    trainer: Trainer, batches: Batches, weights: Callable[[], State], bucket: Bucket,
    count: int, generator: torch.Generator, late: bool,
) -> None:  # fmt: skip
    """One update on a random batch. weights: gives the model's, cast, from the trained ones."""
    run = trainer.run
    key, inputs, pack = draw_batch(run, batches, bucket, run.batch(count), generator, late)
    trainer.step_of(key, PARTS, inputs, lambda held: velocity_losses(weights(), pack, held))


def object_weight(shown: Tensor, sigma: Tensor) -> Tensor:
    """[B, N] mean 1: more on rows that are not plain ground, where noise no longer hides them.

    shown: bool [B, N]; sigma: [B]. Most rows show ground alone and are soon learnt. At high noise
    every row counts alike: a weight that depends on what is hidden would bend the mean.
    """
    weight = 1 + OBJECT_GAIN * (shown & (sigma < OBJECT_SIGMA)[:, None]).float()
    return weight / weight.mean(1, keepdim=True)


@torch.no_grad()
def sample(
    weights: State,
    pack: twin.Pack,
    text: Tensor,
    rows: Tensor,
    plan: Schedule,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Video rows and audio rows of a batch from noise: the engine's Euler steps, batched."""
    layout, batch, device = pack.layout, text.shape[0], text.device
    counts = layout.video.stop - layout.video.start, layout.audio.stop - layout.audio.start
    video = torch.randn(batch, counts[0], 96, generator=generator).to(device)
    audio = torch.randn(batch, counts[1], 32, generator=generator).to(device)
    for step, (tv, ta) in enumerate(zip(plan.video_times, plan.audio_times, strict=True)):
        times = torch.tensor([tv, ta, max(tv, CONDITION_TIME)], device=device).expand(batch, 3)
        v, a = twin.forward(weights, MODEL, pack, torch.cat([rows, video], 1), audio, text, times)
        for sigmas, time in ((plan.video_sigmas, tv), (plan.audio_sigmas, ta)):
            ratio = sigmas[step + 1] / sigmas[step]
            if sigmas is plan.video_sigmas:
                video = ratio * video + (1 - ratio) * (video + (1 - time) * v.float())
            else:
                audio = ratio * audio + (1 - ratio) * (audio + (1 - time) * a.float())
    return video, audio


@torch.no_grad()
def evaluate(
    run: Run,
    batches: Batches,
    weights: State,
    video_vae: State,
    audio_vae: State,
    bucket: Bucket,
    steps: int = 8,
    most: int = 1000,
) -> dict[str, object]:
    """Checks over the clips of a held-out bucket, at most `most`; captions by template 0."""
    from lowpeak.engine.vae.audio import decode_raw

    generator = torch.Generator().manual_seed(99)
    rows: list[dict[str, bool]] = []
    f, h, w = bucket.size.latent
    at_once = 16 if run.scale > 1 else 48
    total = min(most, bucket.count)
    for first in range(0, total, at_once):
        at = torch.arange(first, min(first + at_once, total), device=run.device)
        text, conditions, pack = batches.conditions(bucket, at, (), 0, 0)
        video, audio = sample(weights, pack, text, conditions, schedule(steps), generator)
        mean, std = (video_vae[f"latents_{n}"].view(1, -1, 1, 1, 1) for n in ("mean", "std"))
        z = unpatchify(video, f, h, w) * std + mean
        frames = torch.cat(
            [
                (shown(part) if last else part[:, :, 3:20])
                for last, part in (
                    (c == (f - 2) // 5 - 1,
                     decode_clip(z[:, :, 5 * c : 5 * c + 7], video_vae, VIDEO, run.fast).float())
                    for c in range((f - 2) // 5)
                )
            ],
            2,
        )  # fmt: skip
        mean, std = (audio_vae[f"latents_{n}"][:, None] for n in ("mean", "std"))
        sound = audio.reshape(len(at) * 2, -1, 32).transpose(1, 2) * std + mean
        wave = decode_raw(sound, audio_vae, AUDIO)[:, 0].unflatten(0, (len(at), 2)).cpu()
        for i in range(len(at)):
            seen = checks.look(to_bytes(frames[i])[::3, ::2, ::2].cpu(), wave[i])
            rows.append(seen.against(bucket.scenes.words(first + i)))
    return checks.summary(rows)


def make_pool(run: Run, video: State, audio: State, limit_s: float) -> dict[Size, Bucket]:
    """Clips of every size, in about `limit_s` seconds at most."""
    encoders, choices = Encoders(run, video, audio), sizes(run)
    total = sum(n * s.width * s.height * s.frames for s, n, _, _ in choices)
    return {
        s: make_bucket(
            run, encoders, s, n, limit_s=limit_s * n * s.width * s.height * s.frames / total
        )
        for s, n, _, _ in choices
    }


def train_model(
    run: Run, budget_s: float, video: State, audio: State, pool: dict[Size, Bucket]
) -> State:
    """Train for `budget_s`, check now and then, keep."""
    encoders, batches = Encoders(run, video, audio), Batches(run, Words(run.device))
    choices = sizes(run)
    test = make_bucket(
        run, encoders, choices[0][0], 96 if run.scale == 1 else 4, held_out=True, first=20_000_000
    )
    state = run.load("model", "") or {k: v.to(run.device) for k, v in model_state(run.seed).items()}
    trainer = Trainer(
        run, "model", state, budget_s, rate=1.5e-3, average=0.999,
        keep=lambda s: run.save("model", cast(s, torch.bfloat16)),
    )  # fmt: skip
    generator = torch.Generator().manual_seed(run.seed + 77 + int(trainer.before))
    torch.manual_seed(run.seed + 78 + int(trainer.before))
    checked = trainer.elapsed
    while trainer.running():
        early = trainer.done < FIRST_SHARE
        chosen = choices[:2] if early else choices
        size, _, count, _ = chosen[pick(generator, [c[3] for c in chosen])]
        train_step(
            trainer, batches, lambda: cast(state, run.fast), pool[size], count, generator,
            trainer.done > 0.7,
        )  # fmt: skip
        if trainer.elapsed - checked > CHECK_EVERY_S and run.scale == 1:
            now = cast(trainer.averaged(), run.fast)
            result = evaluate(run, batches, now, video, audio, test, most=48)
            run.say(f"model: CHECK held out {result}")
            checked = trainer.elapsed
    final = trainer.finish(steps=trainer.steps)
    result = evaluate(run, batches, cast(final, run.fast), video, audio, test)
    run.note("model", held_out=result)
    run.say(f"model: CHECK held out {result}")
    return final
