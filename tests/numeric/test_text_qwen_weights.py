"""The encoder's files: every layout and weight format, checked headers, layers read as a stack."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from text_parts import (
    CONFIG,
    LAYERS,
    comfy_name,
    random_model,
    settings,
    tiny_tokenizer,
    write_folder,
)
from torch import Tensor

from lowpeak.engine.checkpoint.header import write_tensors
from lowpeak.engine.errors import CheckpointError, RequestError
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.text import qwen_weights
from lowpeak.engine.text.cache import CachedEncoder
from lowpeak.engine.text.encoder import open_text_encoder
from lowpeak.engine.text.files import open_qwen_file
from lowpeak.engine.text.qwen import QwenTextEncoder, open_qwen_encoder
from lowpeak.engine.text.qwen_shapes import linear_shapes
from lowpeak.engine.text.qwen_weights import Form, apply_linear, weight_rows
from lowpeak.kernels.reference.quantise import (
    convrot_group,
    dequantise_int8_convrot,
    quantise_int8_convrot,
)

PROMPT = "a red fox"
QUANTISED = [name for name in linear_shapes(CONFIG) if name != "embed_tokens"]
Pair = tuple[dict[str, Tensor], Tensor]  # what the file holds, what the weight means


def picture(seed: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (56, 64, 3), generator=generator, dtype=torch.uint8)


def write_single(
    folder: Path, tensors: dict[str, Tensor], *, config: bool = True, name: str = "encoder"
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.safetensors"
    write_tensors(file, {comfy_name(key): value for key, value in tensors.items()})
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    if config:
        (folder / "config.json").write_text(json.dumps(settings()))
    return file


def encode(path: Path, placement: Placement | None = None, *, layers: int = LAYERS) -> Tensor:
    encoder = open_qwen_encoder(path, "cpu", placement, layers=layers)
    try:
        return encoder.encode(PROMPT, images=[picture()]).embeds
    finally:
        encoder.close()


def note(**fields: object) -> Tensor:
    return torch.tensor(list(json.dumps(fields).encode()), dtype=torch.uint8)


def as_int8(weight: Tensor) -> Pair:
    codes, scale = quantise_int8_convrot(weight)
    group = convrot_group(weight.shape[1])
    about = note(format="int8_tensorwise", convrot=True, convrot_groupsize=group)
    held = {"weight": codes, "weight_scale": scale, "comfy_quant": about}
    return held, dequantise_int8_convrot(codes, scale)


def as_unrotated_int8(weight: Tensor) -> Pair:
    codes, scale = quantise_int8_convrot(weight, 1)
    held = {"weight": codes, "weight_scale": scale, "comfy_quant": note(format="int8_tensorwise")}
    return held, codes.float() * scale


def as_int8_of_one_scale(weight: Tensor) -> Pair:
    scale = weight.abs().max() / 127
    codes = (weight / scale).round().to(torch.int8)
    held = {"weight": codes, "weight_scale": scale, "comfy_quant": note(format="int8_tensorwise")}
    return held, codes.float() * scale


def as_nested_int8(weight: Tensor) -> Pair:
    held, meant = as_int8(weight)
    params = {"convrot": True, "convrot_groupsize": convrot_group(weight.shape[1])}
    return {**held, "comfy_quant": note(format="int8_tensorwise", params=params)}, meant


def as_fp8(weight: Tensor) -> Pair:
    scale = weight.abs().max() / 448
    codes = (weight / scale).to(torch.float8_e4m3fn)
    held = {"weight": codes, "weight_scale": scale, "comfy_quant": note(format="float8_e4m3fn")}
    return held, codes.float() * scale


def as_nvfp4(weight: Tensor) -> Pair:
    eager = pytest.importorskip("comfy_kitchen.backends.eager.quantization")
    smooth = 0.5 + torch.rand(weight.shape[1], generator=torch.Generator().manual_seed(1))
    tensor_scale = (weight / smooth).abs().max() / (448 * 6)
    codes, scales = eager.quantize_nvfp4(weight / smooth, tensor_scale)
    held = {
        "weight": codes,
        "weight_scale": scales,
        "weight_scale_2": tensor_scale,
        "pre_quant_scale": smooth,
        "comfy_quant": note(format="nvfp4"),
    }
    return held, eager.dequantize_nvfp4(codes, tensor_scale, scales, torch.float32) * smooth


def as_nvfp4_with_bytes(weight: Tensor) -> Pair:
    held, meant = as_nvfp4(weight)
    return {**held, "weight_scale": held["weight_scale"].view(torch.uint8)}, meant


def as_bf16(weight: Tensor) -> Pair:
    return {"weight": weight.bfloat16()}, weight.bfloat16().float()


FORMATS: dict[str, Callable[[Tensor], Pair]] = {
    "bf16": as_bf16,
    "int8 convrot": as_int8,
    "int8": as_unrotated_int8,
    "fp8": as_fp8,
    "nvfp4": as_nvfp4,
    "int8, one scale": as_int8_of_one_scale,
    "int8, note within": as_nested_int8,
    "nvfp4, scales as bytes": as_nvfp4_with_bytes,
}


def in_format(kind: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The random model as a file of that kind holds it, and what it means in fp32."""
    held, meant = made(kind)
    return dict(held), dict(meant)


@functools.cache
def made(kind: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    held, meant = random_model(), random_model()
    for name in QUANTISED:
        weight = held.pop(f"{name}.weight")
        parts, meant[f"{name}.weight"] = FORMATS[kind](weight)
        held |= {f"{name}.{end}": value for end, value in parts.items()}
    return held, meant


@pytest.mark.parametrize("kind", FORMATS)
def test_every_weight_format_encodes_as_its_meaning(tmp_path: Path, kind: str) -> None:
    held, meant = in_format(kind)
    file = write_single(tmp_path / "single", held)
    folder = write_folder(tmp_path / "folder", meant)
    found, expected = encode(file, layers=3), encode(folder, layers=3)
    # fp32 rounding alone: x * s against W * s in nvfp4, the order of tiles elsewhere
    assert float((found - expected).abs().max() / expected.abs().max()) <= 1e-5


def test_halves_of_a_quantised_layer_change_no_bit(tmp_path: Path) -> None:
    held, _ = in_format("nvfp4")
    file = write_single(tmp_path, held)
    halves = Placement(disk_blocks=2, half_slots=True)
    assert torch.equal(encode(file, layers=2), encode(file.parent, halves, layers=2))


@pytest.mark.parametrize(("rows", "columns"), [(128, 64), (300, 48), (2048 + 16, 80), (16, 16)])
def test_parity_of_nvfp4_with_comfy_kitchen(rows: int, columns: int) -> None:
    eager = pytest.importorskip("comfy_kitchen.backends.eager.quantization")
    weight = torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows))
    weight[:, :16] *= 30  # block scales that differ
    scale = weight.abs().max() / (448 * 6)
    codes, scales = eager.quantize_nvfp4(weight, scale)
    expected = eager.dequantize_nvfp4(codes, scale, scales, torch.float32)
    tensors = {"weight": codes, "weight_scale": scales, "weight_scale_2": scale}
    form = Form("nvfp4", rows, columns)
    tiles = [
        weight_rows(form, tensors, start, min(start + 256, rows)) for start in range(0, rows, 256)
    ]
    found = torch.cat(tiles)
    error = float((found - expected).abs().max() / expected.abs().max())
    print(f"PARITY | NVFP4 weights {rows}x{columns} | comfy-kitchen eager | {error:.1e}")
    assert torch.equal(found, expected)


@pytest.mark.parametrize("kind", ["int8 convrot", "nvfp4", "fp8"])
def test_a_layer_in_tiles_is_the_same_layer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.randn(300, 64, generator=torch.Generator().manual_seed(2))
    held, meant = FORMATS[kind](weight)
    held.pop("comfy_quant")
    held["bias"] = torch.randn(300)
    group = convrot_group(64) if kind.startswith("int8") else 1
    form = Form(kind.split()[0], 300, 64, group)
    x = torch.randn(5, 64)
    seen: list[int] = []

    def spy(form: Form, tensors: dict[str, Tensor], start: int, stop: int) -> Tensor:
        seen.append(stop - start)
        return weight_rows(form, tensors, start, stop)

    monkeypatch.setattr(qwen_weights, "TILE_ELEMENTS", 128 * 64)
    monkeypatch.setattr(qwen_weights, "weight_rows", spy)
    found = apply_linear(form, held, x)
    expected = x @ meant.T + held["bias"]
    assert seen == [128, 128, 44]
    assert float((found - expected).abs().max() / expected.abs().max()) <= 1e-5


def test_only_the_rows_of_the_prompt_leave_the_embedding_table(tmp_path: Path) -> None:
    model = random_model()
    for kind in ("fp8", "int8", "int8, one scale", "int8 convrot"):
        held, meant = FORMATS[kind](model["embed_tokens.weight"])
        tensors = {k: v for k, v in model.items() if k != "embed_tokens.weight"}
        tensors |= {f"embed_tokens.{end}": value for end, value in held.items()}
        file = open_qwen_file(write_single(tmp_path / kind, tensors))
        ids = [5, 260, 5, 0]
        assert torch.equal(file.embed(ids), meant[ids])
        source = file.sources["embed_tokens.weight"]
        content = bytearray(file.path.read_bytes())
        row = source.span.nbytes // CONFIG.text.vocab
        content[source.span.start_byte + row : source.span.start_byte + 2 * row] = b"\x7f" * row
        file.path.write_bytes(content)
        assert torch.equal(open_qwen_file(file.path).embed(ids), meant[ids])


def test_a_prompt_reads_every_layer_once_and_nothing_twice(tmp_path: Path) -> None:
    held, _ = in_format("int8 convrot")
    encoder = open_qwen_encoder(write_single(tmp_path, held), "cpu")
    stream = encoder._open_stream()
    stored = sum(
        source.span.nbytes
        for index in range(LAYERS)
        for source in encoder.file.layer_spans(index).values()
    )
    links = [sum(part.link_bytes for part in parts) for parts in stream.parts]
    assert stored <= sum(links) <= stored + LAYERS * 4096 * len(encoder.file.layer_spans(0))
    for source in stream.store.sources:
        assert not any("comfy_quant" in name for name in source.pieces)
    encoder.close()


def test_a_file_without_config_needs_one_for_an_unknown_tower(tmp_path: Path) -> None:
    file = write_single(tmp_path, random_model(), config=False)
    with pytest.raises(CheckpointError, match=r"deepstack_merger_list.*config\.json"):
        open_qwen_file(file)
    text = {k: v for k, v in random_model().items() if not k.startswith("visual.")}
    found = open_qwen_file(write_single(tmp_path / "text", text, config=False))
    assert found.config.text == CONFIG.text and found.config.vision is None


def test_pictures_for_an_encoder_without_eyes_are_a_request_error(tmp_path: Path) -> None:
    text = {k: v for k, v in random_model().items() if not k.startswith("visual.")}
    encoder = open_qwen_encoder(write_single(tmp_path, text, config=False), "cpu")
    with pytest.raises(RequestError, match="no vision tower"):
        encoder.encode(PROMPT, images=[picture()])
    encoder.close()


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


def test_a_real_encoder_is_used_when_one_is_there(tmp_path: Path) -> None:
    expected = encode(write_folder(tmp_path / "a" / "text_encoder", random_model()))
    single = write_single(tmp_path / "b", random_model())
    for place in (tmp_path / "a" / "text_encoder", tmp_path / "b", single):
        encoder = open_text_encoder(place, device="cpu")
        assert isinstance(encoder, QwenTextEncoder) and encoder.text_dim == CONFIG.text.hidden
        assert torch.equal(encoder.encode(PROMPT, images=[picture()]).embeds, expected)
        encoder.close()


def test_a_cached_encoder_reads_no_layer_again_and_other_weights_miss(tmp_path: Path) -> None:
    write_folder(tmp_path / "folder", random_model())
    store = tmp_path / "prompts"

    def run() -> tuple[Tensor, bool]:
        encoder = open_text_encoder(tmp_path / "folder", cache=store)
        assert isinstance(encoder, CachedEncoder)
        embeds = encoder.encode(PROMPT).embeds
        inner = encoder.encoder
        assert isinstance(inner, QwenTextEncoder)
        was_read = inner._stream is not None
        encoder.close()
        return embeds, was_read

    first, read_first = run()
    again, read_again = run()
    assert torch.equal(first, again) and (read_first, read_again) == (True, False)
    write_folder(tmp_path / "folder", random_model(seed=8))
    other, read_other = run()
    assert read_other and not torch.equal(first, other)
