"""What the passes of a request share before their first block: read once, freed, never mixed up."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lowpeak.engine import prelude
from lowpeak.engine.blocks.memory import HostBuffer
from lowpeak.engine.checkpoint.index import Checkpoint, open_checkpoint
from lowpeak.engine.checkpoint.toy import write_toy_checkpoint
from lowpeak.engine.errors import CheckpointError
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.streamed import StreamedDenoiser
from lowpeak.engine.streaming import StreamedDenoisers

CPU = torch.device("cpu")
STEPS = schedule(8).steps()
TIMES = tuple(step.distinct for step in STEPS)
PLACEMENTS = {
    "sample_low": Placement(pinned_blocks=3),
    "sample_high": Placement(pinned_blocks=3, keys="recompute", half_slots=True),
}
FRAMES = {"sample_low": 12, "sample_high": 17}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return open_checkpoint(write_toy_checkpoint(tmp_path_factory.mktemp("toy") / "toy", seed=3))


@pytest.fixture
def denoisers(checkpoint: Checkpoint) -> Iterator[StreamedDenoisers]:
    made = StreamedDenoisers(checkpoint, TIMES, PLACEMENTS, CPU)
    yield made
    made.close()


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which part of the root was read, in order."""
    found: list[str] = []
    plain = prelude.load_part

    def noted(checkpoint, wanted):
        found.append("text" if wanted("token_refiner.x") else "rest")
        return plain(checkpoint, wanted)

    monkeypatch.setattr(prelude, "load_part", noted)
    return found


def prompt(checkpoint: Checkpoint, seed: int, rows: int = 5) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(rows, checkpoint.config.text_dim, generator=draw)


def first_step(denoiser: StreamedDenoiser, text: Tensor, frames: int) -> tuple[Tensor, Tensor]:
    config, draw = denoiser.config, torch.Generator().manual_seed(frames)
    layout = build_layout(
        latent_frames=frames,
        latent_height=4,
        latent_width=4,
        audio_latents=3,
        text_tags=[1] * len(text),
    )
    velocity = denoiser.bind(layout, text, torch.empty(0, config.video_row))
    video = torch.randn(4 * frames, config.video_row, generator=draw)
    audio = torch.randn(6, config.audio_channels, generator=draw)
    return velocity(video, audio, STEPS[0])


def alone(checkpoint: Checkpoint, phase: str, text: Tensor) -> tuple[Tensor, Tensor]:
    """A pass that shares nothing."""
    denoiser = StreamedDenoiser(checkpoint, TIMES, PLACEMENTS[phase], CPU)
    try:
        return first_step(denoiser, text, FRAMES[phase])
    finally:
        denoiser.close()


def same(found: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_two_passes_read_root_and_refiner_once_and_give_what_each_gives_alone(
    checkpoint, denoisers, parts
):
    text, found, shared = prompt(checkpoint, 1), {}, set()
    for phase in PLACEMENTS:
        denoiser = denoisers.for_phase(phase, lambda: False)
        shared.add(denoiser.prelude)
        found[phase] = first_step(denoiser, text, FRAMES[phase])
        denoisers.release()
    assert parts == ["rest", "text"]
    assert len(shared) == 1
    for phase, result in found.items():
        assert same(result, alone(checkpoint, phase, text)), phase


def test_another_prompt_is_refined_anew_and_the_first_one_again(checkpoint, denoisers, parts):
    first, second = prompt(checkpoint, 1), prompt(checkpoint, 2)
    longer = torch.cat([first, second[:2]])
    denoiser = denoisers.for_phase("sample_low", lambda: False)
    asked = [first, first.clone(), second, longer, first]
    found = [first_step(denoiser, text, 12) for text in asked]
    assert parts == ["rest", "text", "text", "text", "text"]
    for text, result in zip(asked, found, strict=True):
        assert same(result, alone(checkpoint, "sample_low", text))
    assert not same(found[0], found[2])


def test_a_prompt_changed_in_place_is_another_prompt(checkpoint, denoisers):
    text = prompt(checkpoint, 1)
    denoiser = denoisers.for_phase("sample_low", lambda: False)
    before = first_step(denoiser, text, 12)
    text += 1.0
    after = first_step(denoiser, text, 12)
    assert same(after, alone(checkpoint, "sample_low", text))
    assert not same(before, after)


def test_a_pass_that_ends_leaves_what_is_shared_and_the_last_one_frees_it(checkpoint):
    denoisers = StreamedDenoisers(checkpoint, TIMES, PLACEMENTS, CPU)
    denoiser = denoisers.for_phase("sample_low", lambda: False)
    first_step(denoiser, prompt(checkpoint, 1), 12)
    shared = denoiser.prelude
    denoisers.release()
    assert shared.tables.steps
    buffers = [weakref.ref(buffer.tensor) for buffer in shared.tables._buffers]
    heads = [weakref.ref(getattr(value, "codes", value)) for value in shared.head.values()]
    assert buffers and heads
    denoisers.close()
    assert shared.tables.steps == []
    del denoiser, shared
    gc.collect()
    assert not [ref for ref in [*buffers, *heads] if ref() is not None]


def test_tables_are_given_back_when_the_root_cannot_be_read(
    checkpoint, monkeypatch: pytest.MonkeyPatch
):
    made, closed = [], []
    plain_init, plain_close = HostBuffer.__init__, HostBuffer.close

    def init(self, nbytes, *, pin):
        plain_init(self, nbytes, pin=pin)
        made.append(self)

    def close(self):
        plain_close(self)
        closed.append(self)

    def refused(checkpoint, wanted):
        raise CheckpointError("cannot read", file=Path("root.safetensors"))

    monkeypatch.setattr(HostBuffer, "__init__", init)
    monkeypatch.setattr(HostBuffer, "close", close)
    monkeypatch.setattr(prelude, "load_part", refused)
    with pytest.raises(CheckpointError, match="cannot read"):
        StreamedDenoiser(checkpoint, TIMES, PLACEMENTS["sample_low"], CPU)
    assert made and made == closed
