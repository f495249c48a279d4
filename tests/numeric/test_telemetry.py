"""What a report says of bytes and waits: all that was read and moved, by phase, from real files."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from text_parts import LAYERS, random_model, write_folder

from lowpeak.engine.blocks import BlockStore, BlockStream, TensorSource
from lowpeak.engine.blocks.memory import CpuDevice
from lowpeak.engine.decoding import decode
from lowpeak.engine.events import QuietHost
from lowpeak.engine.files import SampledLatents
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.model.streamed import StepTelemetry
from lowpeak.engine.models import ModelSet, open_models
from lowpeak.engine.parts import VIDEO_VAE, find_part
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.report import PhaseMeasurement, RunReport
from lowpeak.engine.request import Request
from lowpeak.engine.sampling.quality import plan_request
from lowpeak.engine.session import Session
from lowpeak.engine.stages import Conditioning, _add_telemetry, encode_prompt, sample
from lowpeak.engine.text.encoder import open_text_encoder
from lowpeak.engine.toy import write_toy
from lowpeak.engine.vae.files import open_video_vae

CPU = torch.device("cpu")
REQUEST = Request(
    Geometry(320, 256, 22), prompt="fox", seed=2, base_steps=2, refine_steps=1, two_pass=True
)
TIMES = [step for item in plan_request(REQUEST).passes for step in item.schedule.table_times()]
SLOW_SECONDS, BLOCKS = 0.05, 4


def slow_sources() -> list[TensorSource]:
    def make() -> dict[str, torch.Tensor]:
        """A block that takes its time."""
        time.sleep(SLOW_SECONDS)
        return {"a": torch.ones(100)}

    return [TensorSource({"a": torch.ones(100)}, make) for _ in range(BLOCKS)]


@pytest.mark.parametrize("pinned", [(), range(BLOCKS)])
def test_waiting_for_the_disk_is_counted_as_that(pinned) -> None:
    store = BlockStore(slow_sources(), pinned=pinned, staging=1, pin=False, device=CpuDevice())
    with BlockStream(store, CpuDevice(), slots=1) as stream:
        began = time.perf_counter()
        for index in range(BLOCKS):
            with stream.block(index) as handle:
                handle.part()
        took, stalls = time.perf_counter() - began, stream.stalls()
        assert 0.8 * BLOCKS * SLOW_SECONDS < stalls["disk"] <= took
        assert stalls["link"] < 0.2 * stalls["disk"]
        for index in range(BLOCKS):
            with stream.block(index) as handle:
                handle.part()
        again = stream.stalls()["disk"]
        assert (again > 0.8 * BLOCKS * SLOW_SECONDS) == (not pinned)  # read once, or every time


def test_traffic_is_told_once_and_counts_what_was_read_before_the_first_block() -> None:
    store = BlockStore(
        slow_sources(), pinned=(2, 3), first=(0, 1), staging=1, pin=False, device=CpuDevice()
    )
    with BlockStream(store, CpuDevice(), resident=(0, 1), slots=2) as stream:
        for index in range(BLOCKS):
            with stream.block(index) as handle:
                handle.part()
        first, second = stream.traffic(), stream.traffic()
    assert first.disk_bytes == BLOCKS * 400 and first.link_bytes >= BLOCKS * 400
    assert second.disk_bytes == 0 and second.link_bytes < first.link_bytes


@pytest.fixture(scope="module", params=["edge-fp8-rowwise", "openvdn", "comfy"])
def models(request, tmp_path_factory) -> ModelSet:
    folder = tmp_path_factory.mktemp("telemetry")
    write_toy(folder, size="tiny", weight_format=request.param, seed=9)
    return open_models(folder, CPU)


def sampled(models: ModelSet, places: dict[str, Placement]) -> list[dict]:
    """Measurements of both passes."""
    report = RunReport({}, {})
    with models.text_encoder() as encoder:
        conditioning = Conditioning(encoder.encode(REQUEST.prompt))
    with (
        models.denoiser(TIMES, places) as denoisers,
        Session(CPU, QuietHost(), report, {}) as session,
    ):
        sample(session, REQUEST, conditioning, denoisers)
    return [item["measured"] for item in report.phases]


def test_a_pass_counts_blocks_that_were_read_before_its_first_step(models: ModelSet) -> None:
    layers = models.checkpoint.config.layers
    kept = Placement(pinned_blocks=layers)
    low, high = sampled(models, {"sample_low": kept, "sample_high": kept})
    assert low["disk_bytes"] > 0
    assert high["disk_bytes"] == 0, "the store was kept from the first pass"
    if models.checkpoint.block_files:
        stored = sum(file.identity.size_bytes for file in models.checkpoint.block_files)
        assert low["disk_bytes"] == stored


def test_a_pass_that_reads_blocks_again_says_how_much(models: ModelSet) -> None:
    layers = models.checkpoint.config.layers
    places = Placement(disk_blocks=layers - 1, resident_blocks=1)
    low, high = sampled(models, {"sample_low": places, "sample_high": places})
    for measured in (low, high):
        assert measured["disk_bytes"] > 0 and measured["link_bytes"] > 0
        assert measured["stall_seconds"]["disk"] > 0
    assert low["disk_bytes"] > high["disk_bytes"]  # two steps, and the resident block


def test_the_text_encoder_counts_its_layers(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "text", random_model())
    report = RunReport({}, {})
    encoder = open_text_encoder(folder, "cpu", Placement(disk_blocks=LAYERS), cache=tmp_path / "c")
    with Session(CPU, QuietHost(), report, {}) as session:
        for _ in range(2):
            encode_prompt(session, REQUEST, encoder)
    encoder.close()
    measured, known = (item["measured"] for item in report.phases)
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    assert 0.3 * stored < measured["disk_bytes"] and measured["link_bytes"] > 0
    assert measured["stall_seconds"]["disk"] > 0
    assert known["stall_seconds"]["disk"] == 0, "the prompt was kept"


def test_the_decoder_counts_its_blocks(checkpoint: Path, tmp_path: Path) -> None:
    report, size = RunReport({}, {}), Geometry(128, 128, 22)
    models = open_models(checkpoint, CPU)
    blocks = open_video_vae(find_part(checkpoint, VIDEO_VAE)).config.blocks
    forecasts = {"decode": {"placement": Placement(disk_blocks=blocks).as_json()}}
    shape = (1, 24, size.latent_frames, size.latent_height, size.latent_width)
    latents = SampledLatents(torch.randn(shape), torch.randn(1, 32, 2, size.audio_latents))
    with Session(CPU, QuietHost(), report, forecasts) as session:
        decode(session, size, latents, models, tmp_path / "v.mp4")
    measured = report.phases[0]["measured"]
    assert measured["disk_bytes"] > 0 and measured["link_bytes"] > 0
    assert measured["stall_seconds"]["disk"] > 0


@dataclass
class Told:
    """A denoiser on a card, as far as figures go."""

    telemetry: list[StepTelemetry] = field(
        default_factory=lambda: [
            StepTelemetry(1.0, 10, 5, {"link": 0.25, "disk": 0.5}, 0.1, peak) for peak in (7, 9)
        ]
    )


def test_steps_keep_their_peaks() -> None:
    measured = PhaseMeasurement("sample_low", 2.0)
    _add_telemetry(measured, Told())  # type: ignore[arg-type]
    assert measured.as_json()["step_vram_peak_bytes"] == [7, 9]
    assert (measured.link_bytes, measured.disk_bytes) == (20, 10)
    assert measured.stall_seconds == {"link": 0.5, "disk": 1.0}
