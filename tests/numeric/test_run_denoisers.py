"""The streamed transformer stands where the plain one stands, through the same seam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lowpeak.engine.checkpoint.header import TensorFile
from lowpeak.engine.denoiser import Denoisers, PlainDenoiser
from lowpeak.engine.errors import Cancelled
from lowpeak.engine.events import QuietHost
from lowpeak.engine.files import SampledLatents
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.lora.loraset import LoraSet
from lowpeak.engine.models import ModelSet, open_models
from lowpeak.engine.plain_loader import load_plain_model
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.report import RunReport
from lowpeak.engine.request import Request
from lowpeak.engine.sampling.quality import plan_request
from lowpeak.engine.session import Session
from lowpeak.engine.stages import Conditioning, sample
from lowpeak.engine.toy import write_toy

CPU = torch.device("cpu")
REQUEST = Request(
    Geometry(320, 256, 39), prompt="fox", seed=2, base_steps=2, refine_steps=1, two_pass=True
)
PASSES = plan_request(REQUEST)
TIMES = [step for item in PASSES.passes for step in item.schedule.table_times()]
STREAMED = Placement("store", "device", 0, 2, 1, 2)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> ModelSet:
    folder = tmp_path_factory.mktemp("openvdn")
    write_toy(folder, size="tiny", weight_format="openvdn", seed=9)
    return open_models(folder, CPU)


def sampled(models: ModelSet, denoisers: Denoisers, host: QuietHost | None = None) -> RunReport:
    report = RunReport({}, {})
    with models.text_encoder() as encoder:
        conditioning = Conditioning(encoder.encode(REQUEST.prompt))
    with Session(CPU, host or QuietHost(), report, {}) as session:
        found = sample(session, REQUEST, conditioning, denoisers)
    report.files["latents"] = found  # type: ignore[assignment]
    return report


def latents(report: RunReport) -> SampledLatents:
    found = report.files["latents"]
    assert isinstance(found, SampledLatents)
    return found


def test_streamed_and_plain_give_the_same_latents(
    models: ModelSet, relative_error: Callable[[Tensor, Tensor], float]
) -> None:
    plain = PlainDenoiser(load_plain_model(models.checkpoint, TIMES, CPU, LoraSet()), CPU)
    expected = latents(sampled(models, plain))
    placements = dict.fromkeys(("sample_low", "sample_high"), STREAMED)
    with models.denoiser(TIMES, placements) as streamed:
        report = sampled(models, streamed)
    found = latents(report)
    assert relative_error(found.video, expected.video) < 1e-4
    assert relative_error(found.audio, expected.audio) < 1e-4
    measured = [item["measured"] for item in report.phases]
    assert [item["steps"] for item in measured] == [2, 1]
    assert all(item["link_bytes"] > 0 for item in measured)


def test_every_pass_gets_its_own_placement_and_the_same_bits(models: ModelSet) -> None:
    found = set()
    for low, high in (
        (STREAMED, STREAMED),
        (Placement("store", "device", 3, 0, 0, 0), Placement("recompute", "host", 0, 0, 3, 1)),
        (Placement("host", "host", 1, 1, 1, 2, half_slots=True), STREAMED),
    ):
        with models.denoiser(TIMES, {"sample_low": low, "sample_high": high}) as denoisers:
            found.add(latents(sampled(models, denoisers)).sha256)
    assert len(found) == 1


def test_what_comes_before_the_blocks_is_read_once_for_both_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_toy(tmp_path / "edge", size="tiny", weight_format="edge-fp8-rowwise", seed=9)
    models = open_models(tmp_path / "edge", CPU)
    read: list[str] = []
    plain = TensorFile.read_many

    def noted(self: TensorFile, names: Any = None, *more: Any) -> dict[str, Tensor]:
        if self.path.name == "root.safetensors":
            read.extend(self.tensors if names is None else names)
        return plain(self, names, *more)

    monkeypatch.setattr(TensorFile, "read_many", noted)
    other = replace(STREAMED, half_slots=True)
    placements = {"sample_low": STREAMED, "sample_high": other}
    with models.denoiser(TIMES, placements) as denoisers:
        sampled(models, denoisers)
    root = models.checkpoint.root_file
    assert root is not None and sorted(read) == sorted(root.tensors)


def test_the_upscaler_stops_at_a_layer(models: ModelSet) -> None:
    asked: list[int] = []

    def is_cancelled() -> bool:
        asked.append(1)
        return len(asked) == 2

    with pytest.raises(Cancelled, match="layer 2"):
        models.lift(is_cancelled)(torch.randn(1, 24, 2, 4, 4), (8, 8))


def test_cancelling_inside_a_step_stops_at_a_block_border(models: ModelSet) -> None:
    class StopsInTheSecondBlock(QuietHost):
        asked = 0

        def is_cancelled(self) -> bool:
            self.asked += 1
            return self.asked > 3  # once before the step, then once a block

    placements = dict.fromkeys(("sample_low", "sample_high"), STREAMED)
    with models.denoiser(TIMES, placements) as denoisers, pytest.raises(Cancelled, match="block"):
        sampled(models, denoisers, StopsInTheSecondBlock())
