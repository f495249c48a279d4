"""Small passes through the streamed engine, and digests of what they give."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import torch

from lowpeak.engine.checkpoint.assemble import plain_state
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.model.modulation import ScheduleCursor
from lowpeak.engine.model.plain import PlainModel
from lowpeak.engine.model.root import output_tables
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.sampling.schedules import ConditionTimes, schedule
from lowpeak.engine.streamed import StreamedDenoiser

CPU = torch.device("cpu")
GRIDS = {
    7: (6, 4),
    11: (4, 6),
    12: (2, 6),
    15: (6, 2),
    17: (4, 4),
    22: (2, 4),
    27: (4, 2),
    32: (2, 2),
}


def problem(config, frames: int, keyframes=(), seed=0):
    """A layout with rows and text for it."""
    height, width = GRIDS[frames]
    generator = torch.Generator().manual_seed(seed + frames)
    layout = build_layout(
        latent_frames=frames,
        latent_height=height,
        latent_width=width,
        audio_latents=5,
        text_tags=[1, 0, 0, 1, 1],
        keyframes=keyframes,
    )
    target = frames * height * width // 4

    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    return (
        layout,
        draw(target, config.video_row),
        draw(10, config.audio_channels),
        draw(5, config.text_dim),
        draw(layout.condition_video_rows, config.video_row),
    )


def times_of(conditions=False):
    steps = schedule(8).steps(ConditionTimes(visual=conditions))
    return tuple(step.distinct for step in steps), steps[3]


def run(checkpoint, placement, data, *, conditions=False, dtype=None, device=CPU):
    layout, video, audio, text, condition = data
    times, step = times_of(conditions)
    denoiser = StreamedDenoiser(checkpoint, times, placement, device, dtype=dtype)
    if dtype == torch.float32:  # the published rule rounds norm_out to its weight's bfloat16

        def wide(root):
            return {k: v.float() if isinstance(v, torch.Tensor) else v for k, v in root.items()}

        denoiser.prelude.head = wide(denoiser.prelude.head)
        denoiser.prelude.outputs = output_tables(
            wide(checkpoint.load_root()),
            denoiser.prelude.tables.cursor.timesteps,
            checkpoint.config,
            denoiser.choice,
            device,
            dtype,
        )
    try:
        velocity = denoiser.bind(layout, text, condition)
        first = velocity(video, audio, step)
        again = velocity(video, audio, step)
    finally:
        denoiser.close()
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True)), "second step differs"
    return first


def digest(parts) -> str:
    return hashlib.sha256(b"".join(p.contiguous().numpy().tobytes() for p in parts)).hexdigest()


def placement(config, resident=0, disk=0, **settings) -> Placement:
    pinned = config.layers - resident - disk
    return Placement(resident_blocks=resident, disk_blocks=disk, pinned_blocks=pinned, **settings)


def assert_is_the_whole_sequence_model(folders, frames, keyframes, *, chunk=None):
    checkpoint = open_checkpoint(folders["openvdn"])
    config = checkpoint.config
    if chunk is not None:
        config = replace(config, vdn=replace(config.vdn, chunk=chunk))
        checkpoint = replace(checkpoint, config=config)
    data = problem(config, frames, keyframes)
    layout, video, audio, text, condition = data
    got = run(checkpoint, placement(config), data, conditions=bool(keyframes), dtype=torch.float32)
    times, step = times_of(bool(keyframes))
    tables = checkpoint.tables_for(times)
    cursor = ScheduleCursor(tables.times)

    def table(index, rows):
        return cursor.table(tables.load_block(index), rows.distinct).float()

    model = PlainModel(plain_state(checkpoint, torch.float32), config, table)
    rows = layout.at(step.t_video, step.t_audio, t_condition=step.t_condition)
    want = model.forward(torch.cat([condition, video]), audio, text, rows, layout)
    want = (want[0][len(condition) :], want[1])
    for name, mine, right in zip(("video", "audio"), got, want, strict=True):
        error = float((mine - right).abs().max() / right.abs().max())
        print(f"PARITY | chunk-major {name} F={frames} | whole-sequence fp32 | {error:.1e}")
        assert error <= 1e-5
