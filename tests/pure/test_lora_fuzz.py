"""Adapter files of any names, shapes and bytes end in a report or a typed error."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lora_files import GOOD, SHAPES, Q, encoded, floats, write

from lowpeak.engine.errors import CheckpointError, LowpeakError
from lowpeak.engine.lora.keymap import read_key
from lowpeak.engine.lora.loading import inspect_lora, load_loras
from lowpeak.engine.request import LoraChoice

MODULES = [
    "blocks.0.attn.qkv_proj", "blocks.1.mlp.fc1", Q, "final_layer.video_out",
    "time_embedder.proj_in",
    "lora_unet_blocks_0_attn_qkv_proj", "transformer.transformer_blocks.99999.attn.to_q",
    "blocks.٣.mlp.fc1", "", ".", "base_model.model.", "lora_unet_", "adaln_t_table",
]  # fmt: skip
SUFFIXES = [
    ".lora_A.weight", ".lora_B.weight", ".lora_A.default.weight", ".lora_B.default.weight",
    ".lora_down.weight", ".lora_up.weight", ".lora_mid.weight", ".alpha", ".diff", ".diff_b",
    ".lokr_w1", ".lokr_w2", ".lokr_w2_a", ".lokr_w2_b", ".lokr_t2", ".hada_w1_a", ".hada_w1_b",
    ".hada_w2_a", ".hada_w2_b", ".hada_t1", ".dora_scale", ".lora_B.bias", ".weight", ".oft_blocks",
]  # fmt: skip
keys = st.one_of(
    st.builds(str.__add__, st.sampled_from(MODULES), st.sampled_from(SUFFIXES)),
    st.text(max_size=30),
)
sizes = st.lists(st.sampled_from([0, 1, 2, 3, 8, 12, 16, 24, 48, 96, 216]), max_size=3)
FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
metadata_keys = st.sampled_from(["alpha", "lora_adapter_metadata", "x"])


@FUZZ
@given(
    tensors=st.dictionaries(keys, sizes, max_size=6),
    metadata=st.dictionaries(metadata_keys, st.text(max_size=12), max_size=2),
)
def test_any_names_and_shapes_end_in_a_report_or_a_typed_error(tmp_path, tensors, metadata) -> None:
    tensors.pop("__metadata__", None)
    content = encoded({name: floats(*shape) for name, shape in tensors.items()}, metadata)
    file = write(tmp_path, content)
    for model in (SHAPES, None):
        try:
            report = inspect_lora(file, model)
        except LowpeakError as refused:
            assert str(refused) and json.dumps(refused.as_json())
            continue
        assert report.tensors == len(tensors) and 0 <= report.bound_tensors <= report.tensors
        left = {name for item in report.skipped for name in item.tensors}
        assert report.bound_tensors + len(left) == report.tensors
        assert report.table() and json.dumps(report.as_json())
        if model is not None:
            loras = load_loras([LoraChoice(str(file))], SHAPES, allow_partial=True)
            for name, items in loras.differences.items():
                base = _zeros(SHAPES.parameters[name])
                for item in items:
                    assert tuple(item.delta(base).shape) == SHAPES.parameters[name]


@FUZZ
@given(data=st.data())
def test_any_bytes_end_in_a_typed_error_or_a_report(tmp_path, data) -> None:
    content = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(content)))
    file = write(tmp_path, bytes(content[:end]) if data.draw(st.booleans()) else bytes(content))
    try:
        inspect_lora(file, SHAPES)
    except CheckpointError as refused:
        assert str(refused)


@FUZZ
@given(name=st.text(max_size=60))
def test_any_name_is_read_as_something(name) -> None:
    assert read_key(name).name == name


def _zeros(shape: tuple[int, ...]):
    import torch

    return torch.ones(shape)
