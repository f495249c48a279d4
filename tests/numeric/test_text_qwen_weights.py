"""The encoder's files: every layout and weight format, checked headers, layers read as a stack."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from qwen_formats import FORMATS, PROMPT, encode, in_format, picture, write_single
from text_parts import CONFIG, LAYERS, random_model, write_folder
from torch import Tensor

from lowpeak.engine.errors import CheckpointError, RequestError
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.text import qwen_weights
from lowpeak.engine.text.cache import CachedEncoder
from lowpeak.engine.text.encoder import open_text_encoder
from lowpeak.engine.text.files import open_qwen_file
from lowpeak.engine.text.qwen import QwenTextEncoder, open_qwen_encoder
from lowpeak.engine.text.qwen_weights import Form, apply_linear, weight_rows
from lowpeak.kernels.reference.quantise import convrot_group


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
