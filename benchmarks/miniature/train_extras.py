"""Stages `upscaler`, `night` and `outline`: the latent lift and two adapters."""

from __future__ import annotations

import math

import torch

from lowpeak.engine.sampling.upscaler import upscale

from . import data
from .loop import WARMUP_STEPS, Run, State, Trainer, pick
from .models import MODEL, UPSCALER, upscaler_state
from .pool import Bucket, Encoders, Size, make_bucket
from .train_dit import Batches, cast, train_step
from .words import Words

FILE = "extras"
RANK = 8
ATTENTION = ("attn.orig.to_q", "attn.orig.to_k", "attn.orig.to_v", "attn.orig.to_out.0")
FEED_FORWARD = ("ff.net.0.proj", "ff.net.2")
STYLES = {"night": (data.STYLE_NIGHT, ATTENTION), "outline": (data.STYLE_OUTLINE, FEED_FORWARD)}
STYLE_SIZES: tuple[tuple[Size, int, int, float], ...] = (
    (Size(256, 256, 22), 1500, 48, 0.6),
    (Size(256, 256, 39), 500, 24, 0.2),
    (Size(512, 512, 22), 300, 16, 0.2),
)


def train_upscaler(run: Run, budget_s: float, pool: dict[Size, Bucket]) -> State:
    """Lift latents of small canvases to those of the same clips on canvases twice as large."""
    pairs = [
        (pool[small], pool[big])
        for small in pool
        if (big := Size(2 * small.width, 2 * small.height, small.frames)) in pool
    ]
    state = run.load(FILE, "upscaler.") or {
        k: v.to(run.device) for k, v in upscaler_state(run.seed).items()
    }
    trainer = Trainer(
        run,
        "upscaler",
        state,
        budget_s,
        rate=1.5e-3,
        keep=lambda s: run.save(FILE, {f"upscaler.{k}": v for k, v in s.items()}),
    )
    generator = torch.Generator().manual_seed(run.seed + 5)
    while trainer.running():
        small, big = pairs[pick(generator, [1.0] * len(pairs))]
        most = min(small.count, big.count)
        count = run.batch(24 if small.size.frames == 22 else 12)
        at = torch.randint(0, most, (count,), generator=generator).to(run.device)
        low, high = small.video[at].float(), big.video[at].float()
        low = low + 0.1 * torch.rand(count, 1, 1, 1, 1, device=low.device) * torch.randn_like(low)
        weights = {k: v.to(run.fast) for k, v in state.items()}
        error = upscale(low, (high.shape[-2], high.shape[-1]), weights, UPSCALER) - high
        trainer.step({"l1": error.abs().mean(), "l2": error.square().mean()})
    return trainer.finish(steps=trainer.steps)


def lora_start(targets: tuple[str, ...], base: State, seed: int) -> State:
    """Fresh low-rank pairs: `{module}.lora_A.weight` [r, in], `{module}.lora_B.weight` [out, r]."""
    generator = torch.Generator().manual_seed(seed)
    found: State = {}
    for block in range(MODEL.layers):
        for name in targets:
            module = f"transformer_blocks.{block}.{name}"
            rows, columns = base[f"{module}.weight"].shape
            down = torch.randn(RANK, columns, generator=generator) / math.sqrt(columns)
            found[f"{module}.lora_A.weight"] = down
            found[f"{module}.lora_B.weight"] = torch.zeros(rows, RANK)
    return found


def merged(base: State, lora: State, strength: float = 1.0) -> State:
    """The base with an adapter added; differentiable in the adapter."""
    found = dict(base)
    for name, down in lora.items():
        if name.endswith(".lora_A.weight"):
            module = name.removesuffix(".lora_A.weight")
            up = lora[f"{module}.lora_B.weight"]
            found[f"{module}.weight"] = base[f"{module}.weight"] + strength * (up @ down)
    return found


def style_buckets(
    run: Run, style: str, video: State, audio: State, limit_s: float
) -> list[tuple[Bucket, int, float]]:
    """(clips of a style, batch, weight) of each size."""
    encoders = Encoders(run, video, audio)
    choices = STYLE_SIZES if run.scale == 1 else ((Size(64, 64, 22), 8, 16, 1.0),)
    limit_s /= len(choices)
    number = STYLES[style][0]
    return [
        (make_bucket(run, encoders, s, n, first=30_000_000, style=number, limit_s=limit_s), c, w)
        for s, n, c, w in choices
    ]


def train_style(
    run: Run, style: str, budget_s: float, base: State, buckets: list[tuple[Bucket, int, float]],
    rate: float = 2e-3, warmup: int = WARMUP_STEPS, average: float = 0.99,
) -> State:  # fmt: skip
    """One adapter on the frozen transformer."""
    number, targets = STYLES[style]
    batches = Batches(run, Words(run.device))
    state = run.load(FILE, f"{style}.") or {
        k: v.to(run.device) for k, v in lora_start(targets, base, run.seed + number).items()
    }
    trainer = Trainer(
        run,
        style,
        state,
        budget_s,
        rate=rate,
        warmup=warmup,
        average=average,
        decay=0.0,
        keep=lambda s: run.save(FILE, {f"{style}.{k}": v for k, v in s.items()}),
    )
    generator = torch.Generator().manual_seed(run.seed + 9 + number)
    frozen = {k: v.detach() for k, v in base.items()}
    while trainer.running():
        bucket, count, _ = buckets[pick(generator, [b[2] for b in buckets])]
        train_step(
            trainer, batches, lambda: cast(merged(frozen, state), run.fast), bucket, count,
            generator, trainer.done > 0.5,
        )  # fmt: skip
    return trainer.finish(steps=trainer.steps)
