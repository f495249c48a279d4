"""What tests on a card share: a placement in few words, and the digest of latents sampled with it.

Run as a program it prints the digest of a checkpoint, for tests that need another process.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import torch

from lowpeak.engine import bench
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.kernels_here import default_dtype
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.prelude import Prelude
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.sampling.solver import euler_step
from lowpeak.engine.streamed import StreamedDenoiser, choose_for

TIMES = tuple(step.distinct for step in schedule(8).steps())
SMALL = Geometry(448, 256, 124)  # 37 latent frames of 8 x 14 tokens: two groups of four chunks
UNGROUPED = Geometry(768, 704, 73)  # 22 latent frames of 22 x 24 tokens: a group a chunk, five


def placement(blocks: int, resident=0, disk=0, **settings) -> Placement:
    return Placement(
        resident_blocks=resident,
        disk_blocks=disk,
        pinned_blocks=blocks - resident - disk,
        **settings,
    )


def open_prelude(folder: Path) -> Prelude:
    """What the passes of many tests may share: two thirds of what a digest reads."""
    checkpoint, device = open_checkpoint(folder), the_card()
    dtype = default_dtype(device)
    choice = choose_for(checkpoint, device, dtype)
    return Prelude(checkpoint, TIMES, device, choice, dtype)


def the_card() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device())


def latents_digest(
    folder: Path,
    chosen: Placement,
    geometry: Geometry,
    steps: int = 2,
    *,
    capture: bool = True,
    prelude: Prelude | None = None,
) -> str:
    """SHA-256 of video and audio rows after a few evaluations from fixed noise."""
    checkpoint, device = open_checkpoint(folder), the_card()
    layout, text, video, audio = bench.random_pass(checkpoint, geometry, 60)
    denoiser = StreamedDenoiser(checkpoint, TIMES, chosen, device, capture=capture, prelude=prelude)
    plan = schedule(8)
    try:
        velocity = denoiser.bind(layout, text, torch.empty(0, denoiser.config.video_row))
        for index, step in enumerate(plan.steps()[:steps]):
            found = velocity(video, audio, step)
            pairs = (plan.video_sigmas[index : index + 2], plan.audio_sigmas[index : index + 2])
            video = euler_step(video, found[0], step.t_video, pairs[0])
            audio = euler_step(audio, found[1], step.t_audio, pairs[1])
    finally:
        torch.cuda.synchronize(device)  # tests take waits away: nothing may run on what is freed
        denoiser.close()
    return hashlib.sha256(video.numpy().tobytes() + audio.numpy().tobytes()).hexdigest()


if __name__ == "__main__":
    print(latents_digest(Path(sys.argv[1]), placement(2), SMALL))
