"""A bench row says whether its weights are a model's or made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lowpeak.engine import bench_cases
from lowpeak.engine.bench_weights import transformer_weights
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.models import open_models
from lowpeak.engine.toy import write_toy


@pytest.mark.parametrize("weight_format", ["edge-fp8-rowwise", "openvdn", "comfy"])
def test_a_toy_is_known_in_every_layout_also_at_a_models_widths(
    tmp_path: Path, weight_format: str
) -> None:
    write_toy(tmp_path / "toy", size="tiny", weight_format=weight_format, seed=3)
    checkpoint = open_models(tmp_path / "toy", "cpu").checkpoint
    assert transformer_weights(checkpoint)["kind"] == "toy"
    full = replace(checkpoint, config=ModelConfig())
    assert transformer_weights(full)["kind"] == "toy", "by the text encoder beside it"
    moved = replace(full, path=tmp_path / "elsewhere")
    known = "toy" if weight_format.startswith("edge") else "real"
    assert transformer_weights(moved)["kind"] == known, "by the manifest"


def test_rows_of_a_model_say_real(tmp_path: Path) -> None:
    write_toy(tmp_path / "toy", size="tiny", weight_format="edge-fp8-rowwise", seed=3)
    opened = open_models(tmp_path / "toy", "cpu").checkpoint
    own = replace(opened, config=ModelConfig(), metadata={}, path=tmp_path / "model" / "cache")
    models = SimpleNamespace(device=torch.device("cpu"), checkpoint=own)
    row = bench_cases._about(models, "decode")  # type: ignore[arg-type]
    assert row["checkpoint"] == {"kind": "real", "format": "fp8-rowwise"}
    narrow = replace(own, config=replace(ModelConfig(), hidden=96))
    assert transformer_weights(narrow)["kind"] == "toy", "no published model has that width"
