"""Encoders that are damaged, cut, changed in use or of another model are named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from qwen_formats import PROMPT, in_format, note, write_single
from text_parts import LAYERS, random_model
from torch import Tensor

from lowpeak.engine.errors import CheckpointError
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.text.files import open_qwen_file
from lowpeak.engine.text.qwen import open_qwen_encoder


def damaged(change: Callable[[dict[str, Tensor]], None]) -> dict[str, Tensor]:
    held, _ = in_format("nvfp4")
    change(held)
    return held


Q = "layers.1.self_attn.q_proj"
INT8 = {"weight": torch.ones(128, 64, dtype=torch.int8), "weight_scale": torch.ones(128)}


def as_faulty_int8(tensors: dict[str, Tensor], **change: Tensor | None) -> None:
    for end in ("weight", "weight_scale", "weight_scale_2", "pre_quant_scale", "comfy_quant"):
        tensors.pop(f"{Q}.{end}")
    parts = {**INT8, "comfy_quant": note(format="int8_tensorwise"), **change}
    tensors |= {f"{Q}.{end}": value for end, value in parts.items() if value is not None}


FAULTS: dict[str, tuple[Callable[[dict[str, Tensor]], object], str]] = {
    "int8 without scale": (
        lambda t: as_faulty_int8(t, weight_scale=None),
        "missing scale.*q_proj.weight_scale",
    ),
    "int8 with a short scale": (
        lambda t: as_faulty_int8(t, weight_scale=torch.ones(5)),
        "wrong scale.*q_proj.weight_scale.*1 or 128",
    ),
    "int8 without note": (
        lambda t: as_faulty_int8(t, comfy_quant=None),
        "unknown quantisation.*q_proj.*note",
    ),
    "int8 with a strange group": (
        lambda t: as_faulty_int8(
            t, comfy_quant=note(format="int8_tensorwise", convrot=True, convrot_groupsize=32)
        ),
        "unknown quantisation.*power of four, found 32",
    ),
    "missing layer tensor": (lambda t: t.pop("layers.2.mlp.down_proj.weight"), "down_proj"),
    "missing scale": (lambda t: t.pop(f"{Q}.weight_scale"), "missing scale.*q_proj.weight_scale"),
    "missing tensor scale": (lambda t: t.pop(f"{Q}.weight_scale_2"), "q_proj.weight_scale_2"),
    "short scale": (
        lambda t: t.update({f"{Q}.weight_scale": t[f"{Q}.weight_scale"][:64].contiguous()}),
        "wrong shape.*q_proj.weight_scale",
    ),
    "wrong smoothing": (
        lambda t: t.update({f"{Q}.pre_quant_scale": torch.ones(3)}),
        "wrong shape.*pre_quant_scale",
    ),
    "other quantisation": (
        lambda t: t.update({f"{Q}.comfy_quant": note(format="mxfp4")}),
        "unknown quantisation.*q_proj.*nvfp4.*mxfp4",
    ),
    "note is no JSON": (
        lambda t: t.update({f"{Q}.comfy_quant": torch.tensor([1, 2], dtype=torch.uint8)}),
        "unknown quantisation.*q_proj",
    ),
    "norm of another width": (
        lambda t: t.update({"layers.0.input_layernorm.weight": torch.ones(5)}),
        "wrong shape.*input_layernorm",
    ),
    "no embedding": (lambda t: t.pop("embed_tokens.weight"), "embed_tokens"),
    "vision block gone": (lambda t: t.pop("visual.blocks.3.attn.qkv.weight"), "visual.*attn.qkv"),
    "fewer layers than config": (
        lambda t: [t.pop(k) for k in list(t) if k.startswith(f"layers.{LAYERS - 1}.")],
        f"expected {LAYERS} or more, found {LAYERS - 1}",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_file_is_named_with_its_tensor(tmp_path: Path, fault: str) -> None:
    change, message = FAULTS[fault]
    file = write_single(tmp_path, damaged(change))  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match=message) as raised:
        open_qwen_file(file)
    assert str(file) in str(raised.value)


def test_a_truncated_or_empty_place_is_a_checkpoint_error(tmp_path: Path) -> None:
    file = write_single(tmp_path, random_model())
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="truncated"):
        open_qwen_encoder(file, "cpu")
    file.unlink()
    with pytest.raises(CheckpointError, match="no model file"):
        open_qwen_encoder(tmp_path, "cpu")


def test_a_file_that_changes_in_use_is_an_error_and_no_other_picture(tmp_path: Path) -> None:
    file = write_single(tmp_path, random_model())
    encoder = open_qwen_encoder(file, "cpu")
    status = file.stat()
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    with pytest.raises(CheckpointError, match="changed"):
        encoder.encode(PROMPT)
    encoder.close()


def test_weights_that_give_no_numbers_are_a_checkpoint_error(tmp_path: Path) -> None:
    model = random_model()
    model["layers.3.mlp.up_proj.weight"][:] = float("nan")
    encoder = open_qwen_encoder(write_single(tmp_path, model), "cpu")
    with pytest.raises(CheckpointError, match="not finite"):
        encoder.encode(PROMPT)
    encoder.close()


def test_a_placement_for_another_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=f"{LAYERS} layers, found 50"):
        open_qwen_encoder(write_single(tmp_path, random_model()), "cpu", Placement(disk_blocks=50))
