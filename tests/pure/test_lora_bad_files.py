"""Damaged, foreign and contradictory adapter files: a typed error with names, and no crash."""

from __future__ import annotations

import json
import struct

import pytest
from lora_files import ENTRY, GOOD, SHAPES, Q, floats, pair, with_header, write

from lowpeak.engine.errors import CheckpointError, RequestError
from lowpeak.engine.lora.errors import LoraBindingError, LoraFileError
from lowpeak.engine.lora.header import read_header
from lowpeak.engine.lora.loading import inspect_lora, load_loras
from lowpeak.engine.lora.report import require_complete
from lowpeak.engine.request import LoraChoice


def test_the_good_file_is_good(tmp_path) -> None:
    report = inspect_lora(write(tmp_path, GOOD), SHAPES)
    assert report.complete and (report.bound_tensors, report.modules) == (2, 1)
    assert report.targets[0].parameter == "transformer_blocks.0.attn.orig.to_q.weight"


@pytest.mark.parametrize("kept", [0, 7, 8, 40, len(GOOD) // 2, len(GOOD) - 1])
def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path, kept) -> None:
    with pytest.raises(LoraFileError, match="truncated") as caught:
        inspect_lora(write(tmp_path, GOOD[:kept]), SHAPES)
    assert "bad.safetensors" in caught.value.file
    assert caught.value.expected is not None and caught.value.found is not None
    if kept == len(GOOD) - 1:
        assert caught.value.tensor == f"{Q}.lora_B.weight"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "LFS pointer"),
        (b"PK\x03\x04" + b"0" * 80, "pickle"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"GGUF" + b"\x00" * 40, "GGUF"),
        (b"\xff" * 64, "not a safetensors"),
        (with_header(b"{nonsense!"), "not JSON"),
        (with_header(b"\xff\xfe{}"), "not JSON"),
        (with_header([1, 2]), "not a JSON object"),
        (with_header({"__metadata__": 7, "a": ENTRY}, b"0000"), "metadata"),
        (with_header({"a": 3}), "wrongly"),
        (with_header({"a": {**ENTRY, "shape": [-1]}}, b"0000"), "wrongly"),
        (with_header({"a": {**ENTRY, "shape": [True]}}, b"0000"), "wrongly"),
        (with_header({"a": {**ENTRY, "shape": [1.0]}}, b"0000"), "wrongly"),
        (with_header({"a": {**ENTRY, "extra": 1}}, b"0000"), "wrongly"),
        (with_header({"a": {**ENTRY, "dtype": "F31"}}, b"0000"), "unknown number format"),
        (with_header({"a": {**ENTRY, "dtype": ["F32"]}}, b"0000"), "unknown number format"),
        (with_header({"a": {**ENTRY, "shape": [2]}}, b"0000"), "disagree"),
        (with_header({"a": ENTRY, "b": ENTRY}, b"0000"), "overlap or leave a gap"),
        (with_header({"a": {**ENTRY, "data_offsets": [4, 8]}}, b"0" * 8), "overlap or leave"),
        (with_header({"a": ENTRY}, b"0" * 9), "longer than its header"),
        (with_header(b'{"a": %s, "a": %s}' % ((json.dumps(ENTRY).encode(),) * 2), b"0000"),
         "tensors twice"),
        (with_header({}), "no tensors"),
    ],
)  # fmt: skip
def test_a_damaged_or_foreign_file_is_named(tmp_path, content, says) -> None:
    with pytest.raises(CheckpointError, match=says) as caught:
        inspect_lora(write(tmp_path, content), SHAPES)
    assert caught.value.exit_code == 4 and caught.value.as_json()["file"]


def test_a_missing_file_and_a_folder_are_typed_errors(tmp_path) -> None:
    for file in (tmp_path / "none.safetensors", tmp_path):
        with pytest.raises(LoraFileError, match="cannot be read"):
            read_header(file)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_values_that_are_not_finite_are_refused(tmp_path, value) -> None:
    tensors = pair(Q)
    tensors[f"{Q}.lora_B.weight"][1][5] = value
    with pytest.raises(LoraFileError, match="NaN or Inf") as caught:
        inspect_lora(write(tmp_path, tensors), SHAPES)
    assert caught.value.tensor == f"{Q}.lora_B.weight" and "1 of 32" in caught.value.found


def test_a_number_too_large_for_fp32_is_not_finite_either(tmp_path) -> None:
    data = struct.pack("<24d", *([1e300] * 24)) + struct.pack("<32d", *([1.0] * 32))
    header = {f"{Q}.lora_A.weight": {"dtype": "F64", "shape": [2, 12], "data_offsets": [0, 192]},
              f"{Q}.lora_B.weight": {"dtype": "F64", "shape": [16, 2],
                                     "data_offsets": [192, 448]}}  # fmt: skip
    with pytest.raises(LoraFileError, match="NaN or Inf"):
        inspect_lora(write(tmp_path, with_header(header, data)), SHAPES)


def bad_contents() -> list:
    half = {f"{Q}.lora_A.weight": floats(2, 12)}
    return [
        ({f"{Q}.lora_A.weight": floats(3, 12), f"{Q}.lora_B.weight": floats(16, 2)},
         "ranks of a pair differ", f"{Q}.lora_B.weight"),
        (half, "half of a pair", f"{Q}.lora_A.weight"),
        ({f"{Q}.lora_B.weight": floats(16, 2)}, "half of a pair", f"{Q}.lora_B.weight"),
        ({f"{Q}.hada_w1_a": floats(16, 2)}, "half of a pair", f"{Q}.hada_w1_a"),
        ({f"{Q}.lokr_w1": floats(4, 4)}, "half of a pair", ""),
        ({f"{Q}.lora_A.weight": floats(24), f"{Q}.lora_B.weight": floats(16, 2)},
         "not a matrix", f"{Q}.lora_A.weight"),
        ({f"{Q}.lora_A.weight": floats(0, 12), f"{Q}.lora_B.weight": floats(16, 0)},
         "not a matrix", f"{Q}.lora_B.weight"),
        (pair(Q) | {f"{Q}.alpha": floats(3)}, "alpha is not one number", f"{Q}.alpha"),
        (pair(Q) | {f"{Q}.lora_A.bias": floats(2)}, "bias on the first factor",
         f"{Q}.lora_A.bias"),
    ]  # fmt: skip


@pytest.mark.parametrize(("content", "says", "tensor"), bad_contents())
def test_pairs_that_do_not_belong_together_are_named(tmp_path, content, says, tensor) -> None:
    with pytest.raises(LoraFileError, match=says) as caught:
        inspect_lora(write(tmp_path, content), SHAPES)
    assert caught.value.tensor == tensor


@pytest.mark.parametrize(
    "other",
    [
        pair(f"transformer.{Q}"),
        pair(f"base_model.model.{Q.replace('.attn.', '.attn.orig.')}"),
        {n.replace("lora_A", "lora_down").replace("lora_B", "lora_up"): t
         for n, t in pair(Q).items()},
        {n.replace("lora_A", "lora_A.two").replace("lora_B", "lora_B.two"): t
         for n, t in pair(Q).items()},
        pair("diffusion_model.blocks.0.attn.qkv_proj", rows=48),
        pair(Q.replace(".0.", ".00.", 1)),
    ],
)  # fmt: skip
def test_one_parameter_reached_twice_is_a_duplicate(tmp_path, other) -> None:
    with pytest.raises(LoraFileError, match=r"same part|two adapters") as caught:
        inspect_lora(write(tmp_path, pair(Q) | other), SHAPES)
    assert len(caught.value.names) >= 2
    assert set(caught.value.names) <= set(pair(Q) | other)


def test_integer_factors_are_refused_by_name(tmp_path) -> None:
    header = {f"{Q}.lora_A.weight": {"dtype": "I8", "shape": [2, 12], "data_offsets": [0, 24]}}
    with pytest.raises(LoraFileError, match="floating-point") as caught:
        inspect_lora(write(tmp_path, with_header(header, b"0" * 24)), SHAPES)
    assert caught.value.found == "I8"


@pytest.mark.parametrize(
    ("module", "sizes", "family"),
    [
        ("diffusion_model.blocks.0.self_attn.q", (5120, 5120), "Wan"),
        ("transformer.single_transformer_blocks.0.attn.to_q", (3072, 3072), "Flux"),
        ("lora_unet_down_blocks_0_attentions_0_proj_in", (320, 320), "Stable Diffusion"),
        ("transformer_blocks.0.attn1.to_q", (2048, 2048), "LTX-Video"),
        ("diffusion_model.double_blocks.0.img_attn_qkv", (96, 32), "HunyuanVideo"),
        ("transformer_blocks.1.txt_mlp.net.2", (32, 32), "Qwen-Image"),
    ],
)
@pytest.mark.parametrize("model", [SHAPES, None])
def test_an_adapter_of_another_model_says_which(tmp_path, module, sizes, family, model) -> None:
    down, up = ("lora_down", "lora_up") if module.startswith("lora_unet") else ("lora_A", "lora_B")
    content = {f"{module}.{down}.weight": floats(1, sizes[1]),
               f"{module}.{up}.weight": floats(sizes[0], 1)}  # fmt: skip
    # Even when some names happen to be ours: half an adapter of another model is none.
    for extra in ({}, pair(Q)):
        with pytest.raises(LoraBindingError, match=family) as caught:
            inspect_lora(write(tmp_path, content | extra), model)
        assert caught.value.looks_like == family


def test_another_width_of_the_same_names_says_so(tmp_path) -> None:
    with pytest.raises(LoraBindingError, match="0 of 2 tensors bind") as caught:
        inspect_lora(write(tmp_path, pair(Q, rows=32, columns=24)), SHAPES)
    assert "expected [16, 12], found [32, 24]" in str(caught.value)
    assert "another width than 12" in caught.value.looks_like


def test_a_file_without_any_adapter_says_what_it_holds(tmp_path) -> None:
    whole = {"blocks.0.attn.qkv_proj.weight": floats(48, 12), "blocks.0.norm1.weight": floats(12)}
    with pytest.raises(LoraBindingError, match=r"no adapter is in this file: 2 x full-weight"):
        inspect_lora(write(tmp_path, whole), SHAPES)
    gate = {"diffusion_model.blocks.0.attn.to_gate_compress.weight": floats(2, 12)}
    with pytest.raises(LoraBindingError, match="to_gate_compress"):
        inspect_lora(write(tmp_path, gate), SHAPES)
    with pytest.raises(LoraBindingError, match="scales only"):
        inspect_lora(write(tmp_path, {f"{Q}.alpha": floats(1)}), SHAPES)


@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        ({"diffusion_model.blocks.0.attn.to_gate_compress.weight": floats(2, 12)}, "vsa-gate"),
        ({"final_layer.pdd_heads.0.weight": floats(4, 12)}, "interval-heads"),
        ({"diffusion_model.final_layer.video_out.diff": floats(3 * 96, 12)}, "interval-heads"),
        (pair("lora_te_text_model_x"), "text-encoder"),
        (pair("transformer_blocks.0.attn.to_w"), "no-module"),
        (pair("transformer_blocks.7.attn.to_q"), "no-block"),
        (pair("transformer_blocks.1.attn.to_q", rows=17), "shape"),
        (pair("blocks.1.attn.qkv_proj", rows=47), "shape"),
        (pair("transformer_blocks.1.adaln_proj.linear", rows=216, columns=8), "pruned-adaln"),
        ({"transformer_blocks.1.ff.net.2.diff_b": floats(12)}, "no-bias"),
        (pair("transformer_blocks.1.norm1", rows=12, columns=1), "shape"),
        ({"blocks.0.mlp.fc1.oft_blocks": floats(2, 3)}, "oft"),
    ],
)
def test_less_than_everything_is_refused_with_names_unless_allowed(tmp_path, extra, kind) -> None:
    file = write(tmp_path, pair(Q) | extra)
    report = inspect_lora(file, SHAPES)
    assert not report.complete and report.bound_tensors == 2
    assert {item.kind for item in report.skipped} == {kind}
    assert {name for item in report.missing for name in item.tensors} == set(extra)
    with pytest.raises(LoraBindingError, match=f"only 2 of {2 + len(extra)}") as caught:
        load_loras([LoraChoice(str(file))], SHAPES)
    assert set(caught.value.names) == set(extra)
    with pytest.raises(LoraBindingError):
        require_complete(report, allow_partial=False)
    partial = load_loras([LoraChoice(str(file))], SHAPES, allow_partial=True)
    assert list(partial.differences) == ["transformer_blocks.0.attn.orig.to_q.weight"]
    assert "NOT APPLIED" in partial.reports[0].table()


def test_what_is_zero_need_not_bind(tmp_path) -> None:
    outside = pair("transformer_blocks.7.attn.to_q")
    zero = {name: (shape, [0.0] * len(values)) for name, (shape, values) in outside.items()}
    gate = {"blocks.0.attn.to_gate_compress.weight": ([2, 2], [0.0] * 4)}
    loras = load_loras([LoraChoice(str(write(tmp_path, pair(Q) | zero | gate)))], SHAPES)
    report = loras.reports[0]
    assert report.complete and report.bound_tensors == 2 and report.tensors == 5
    assert len(report.skipped) == 2 and "no effect" in report.table()


@pytest.mark.parametrize("strength", [4.01, -5.0, float("nan"), float("inf")])
def test_a_strength_out_of_range_is_refused_and_never_clamped(tmp_path, strength) -> None:
    file = write(tmp_path, GOOD)
    with pytest.raises(RequestError, match="outside"):
        inspect_lora(file, SHAPES, strength=strength)
    with pytest.raises(RequestError, match="outside"):
        LoraChoice(str(file), strength)


def test_control_characters_of_a_file_do_not_reach_the_console(tmp_path) -> None:
    name = "\x1b[2J\ud800\u202e.thing"
    file = write(tmp_path, pair(Q) | {name: floats(1)})
    report = inspect_lora(file, SHAPES)
    with pytest.raises(LoraBindingError) as caught:
        require_complete(report, allow_partial=False)
    for text in (report.table(), str(caught.value)):
        assert text.isascii() and "\x1b" not in text and "\\x1b[2J" in text


def test_the_report_is_json_and_ascii_without_folders(tmp_path) -> None:
    report = inspect_lora(write(tmp_path, GOOD), SHAPES, strength=-4.0)
    document = json.loads(json.dumps(report.as_json()))
    assert document["tensors"] == 2 and document["complete"] is True
    assert document["strength"] == -4.0 and len(document["identity"]) == 64
    report.table().encode("ascii")
    assert str(tmp_path) not in json.dumps(document) + report.table()


def test_the_command_shows_the_report_and_its_exit_code_tells_partial_from_whole(
    tmp_path, capsys
) -> None:
    from lowpeak.cli import run

    gate = {"blocks.0.attn.to_gate_compress.weight": floats(2, 12)}
    for content, code, says in (
        (pair(Q), 0, "2 of 2 tensors"),
        (pair(Q) | gate, 4, "NOT APPLIED: 1 tensors, vsa-gate"),
        (GOOD[:-1], 4, "truncated"),
        (pair("diffusion_model.blocks.0.self_attn.q"), 4, "made for Wan"),
    ):
        file = str(write(tmp_path, content))
        assert run(["inspect-lora", file]) == code
        shown = capsys.readouterr()
        assert says in shown.out + shown.err
    assert run(["inspect-lora", str(write(tmp_path, GOOD)), "--strength", "4.5"]) == 2
    assert run(["inspect-lora", file.replace("bad", "none")]) == 4


# -- fuzz: nothing but typed errors ----------------------------------------------------------------
