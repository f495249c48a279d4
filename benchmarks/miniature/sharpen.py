"""Goes on with a trained transformer where a card is no longer there, on a few CPU cores:

    python -m lowpeak.benchmarks.miniature.sharpen --out DIR --budget-seconds 1500 [--seed 1]

For a model that knows what to draw but draws it bluntly: small batches, mostly at the times of the
last, long steps of requests, with more weight on rows that show the shape. A schedule of its own,
from `RATE` to nothing. Runs of several seeds from one state may be averaged (`--average A,B`), and
`--style night` trains an adapter in the same small way.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from lowpeak.engine.sampling.schedules import community_schedule, schedule

from . import data
from .loop import Run, State, Trainer, pick
from .pool import Encoders, Size, make_bucket
from .train_dit import PARTS, Batches, cast, draw_batch, draw_raw, velocity_losses
from .train_extras import STYLES, train_style
from .words import Words

RATE = 5e-4
FIRST = 50_000_000  # clips that no other stage draws
LATE_SIGMA = 0.96  # times below it are the ones to sharpen
SHARPEN_SHARE = 0.75
POOL_S = 75.0  # to make the clips
SIZES: tuple[tuple[Size, int, int, float], ...] = (  # size, clips, batch, weight
    (Size(256, 256, 22), 1200, 6, 0.72),
    (Size(384, 256, 22), 200, 4, 0.09),
    (Size(256, 384, 22), 100, 4, 0.04),
    (Size(512, 512, 22), 120, 1, 0.15),
)


def late_times() -> torch.Tensor:
    """Raw times of the steps of short schedules that begin below `LATE_SIGMA`."""
    grids = [schedule(8)] * 3 + [schedule(12), community_schedule()]
    return torch.tensor(
        [
            raw
            for grid in grids
            for raw, sigma in zip(grid.raw[:-1], grid.video_sigmas[:-1], strict=True)
            if sigma < LATE_SIGMA
        ]
    )


def draw_late(count: int, generator: torch.Generator, *, refine: bool, late: bool) -> torch.Tensor:
    """[count] raw times: `SHARPEN_SHARE` of them late ones, the rest as in training."""
    plain = draw_raw(count, generator, refine=refine, late=late)
    held = late_times()
    held = held[torch.randint(0, len(held), (count,), generator=generator)]
    return torch.where(torch.rand(count, generator=generator) < SHARPEN_SHARE, held, plain)


def sharpen(run: Run, budget_s: float, video: State, audio: State, model: State) -> State:
    """Train `model` for `budget_s` from its present weights; kept as `model`."""
    encoders, batches = Encoders(run, video, audio), Batches(run, Words(run.device))
    chosen = SIZES if run.scale == 1 else ((Size(64, 64, 22), 4, 2, 1.0),)
    first = FIRST + 10_000 * run.seed
    small = replace(run, scale=8 * run.scale)  # a few clips at a time: no card's memory here
    encoders.sound_rows(data.Scenes.of(torch.arange(1)), chosen[0][0].frames)  # not in clips' time
    pool = {
        s: make_bucket(small, encoders, s, n, first=first, limit_s=POOL_S * weight)
        for s, n, _, weight in chosen
    }
    trainer = Trainer(
        run, "sharpen", model, budget_s, rate=RATE, average=0.98, floor=0.0, warmup=20,
        keep=lambda s: run.save("model", cast(s, torch.bfloat16)),
    )  # fmt: skip
    generator = torch.Generator().manual_seed(run.seed + 177 + int(trainer.before))
    torch.manual_seed(run.seed + 178 + int(trainer.before))
    while trainer.running():
        size, _, count, _ = chosen[pick(generator, [c[3] for c in chosen])]
        key, inputs, pack = draw_batch(
            run, batches, pool[size], count, generator, True, draw=draw_late
        )
        trainer.step_of(
            key, PARTS, inputs,
            lambda held, pack=pack: velocity_losses(cast(model, run.fast), pack, held),  # type: ignore[misc]
        )  # fmt: skip
    return trainer.finish(steps=trainer.steps)


def adapt(run: Run, style: str, budget_s: float, video: State, audio: State, model: State) -> State:
    """One adapter in few steps of few clips; kept as the training on a card keeps it."""
    number = STYLES[style][0]
    size = Size(256, 256, 22) if run.scale == 1 else Size(64, 64, 22)
    small, encoders = replace(run, scale=8 * run.scale), Encoders(run, video, audio)
    encoders.sound_rows(data.Scenes.of(torch.arange(1)), size.frames)  # not in the clips' time
    clips = make_bucket(
        small, encoders, size, 240, first=30_000_000, style=number, limit_s=POOL_S / 2
    )
    return train_style(
        run, style, budget_s, model, [(clips, 4, 1.0)], rate=4e-3, warmup=5, average=0.93
    )


def average(folders: list[Path], out: Run) -> None:
    """The mean of the transformers of several folders, kept in `out`."""
    states = [Run(folder, out.device).load("model", "") for folder in folders]
    held = [state for state in states if state is not None]
    if len(held) != len(folders):
        raise FileNotFoundError(f"model.safetensors is not in each of {folders}")
    mean = {name: torch.stack([s[name] for s in held]).mean(0) for name in held[0]}
    out.save("model", cast(mean, torch.bfloat16))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the state to go on from")
    parser.add_argument("--budget-seconds", type=float, default=1500.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=int, default=1, help="rehearsal: toy clips")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--style", default="", help="an adapter instead of the transformer")
    parser.add_argument("--average", default="", help="folders with commas, instead of training")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    run = Run(options.out, torch.device("cpu"), options.scale, options.seed)
    if options.average:
        average([Path(name) for name in options.average.split(",")], run)
        return
    states = [run.load(name, "") for name in ("video", "audio", "model")]
    video, audio, model = states
    if video is None or audio is None or model is None:
        raise FileNotFoundError(f"{run.folder}: video, audio and model.safetensors are needed")
    if options.style:
        adapt(run, options.style, options.budget_seconds, video, audio, model)
    else:
        sharpen(run, options.budget_seconds, video, audio, model)


if __name__ == "__main__":
    main()
