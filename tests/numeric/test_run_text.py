"""The toy text encoder behind the interface that every encoder shares."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from text_parts import CONFIG, LAYERS, random_model, write_folder

from lowpeak.engine.errors import CheckpointError, RequestError
from lowpeak.engine.facts import text_sizes
from lowpeak.engine.parts import TEXT, find_part
from lowpeak.engine.planner.types import Placement
from lowpeak.engine.text.encoder import MAX_TEXT_ROWS, TextEncoder, open_text_encoder
from lowpeak.engine.text.toy import pieces, write_toy_text_encoder

WIDTH = 24


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    write_toy_text_encoder(tmp_path, text_dim=WIDTH, seed=5)
    return tmp_path


def test_equal_prompts_give_equal_rows_and_others_differ(checkpoint: Path) -> None:
    encoder = open_text_encoder(checkpoint)
    assert isinstance(encoder, TextEncoder)
    first, again = encoder.encode("a red fox runs"), encoder.encode("a red fox runs")
    other = encoder.encode("a red cat runs")
    assert first.embeds.shape == (4, WIDTH) and first.tags.tolist() == [1, 1, 1, 1]
    assert torch.equal(first.embeds, again.embeds)
    assert [bool((a != b).any()) for a, b in zip(first.embeds, other.embeds, strict=True)] == [
        False,
        False,
        True,
        False,
    ]


def test_an_empty_prompt_is_one_row(checkpoint: Path) -> None:
    empty = open_text_encoder(checkpoint).encode("")
    assert empty.embeds.shape == (1, WIDTH) and empty.embeds.abs().max() > 0


@pytest.mark.parametrize(
    "prompt", [" ", "\n\n", "日本語のとても長い文章です。", "🦊" * 40, "\ud800"]
)
def test_any_unicode_string_has_an_encoding(checkpoint: Path, prompt: str) -> None:
    encoded = open_text_encoder(checkpoint).encode(prompt)
    assert encoded.rows >= 1 and bool(encoded.embeds.isfinite().all())
    assert "".join(pieces(prompt)) == prompt


def test_white_space_is_part_of_the_prompt(checkpoint: Path) -> None:
    encoder = open_text_encoder(checkpoint)
    one, two = encoder.encode("fox runs").embeds, encoder.encode("fox  runs").embeds
    assert one.shape == two.shape and bool((one[1] != two[1]).any())


def test_pictures_come_first_and_carry_the_vision_tag(checkpoint: Path) -> None:
    encoder = open_text_encoder(checkpoint)
    picture = torch.randint(0, 256, (40, 60, 3), dtype=torch.uint8)
    both = encoder.encode("fox", images=[picture, 255 - picture])
    tags = both.tags.tolist()
    label = len(pieces("Picture 1: "))
    assert tags == ([1] * label + [0] * 18) * 2 + [1]
    assert torch.equal(both.embeds[-1], encoder.encode("fox").embeds[0])
    assert bool((both.embeds[label + 1 : label + 17].std(0) > 0).all())


def test_a_prompt_beyond_the_limit_says_count_and_limit(checkpoint: Path) -> None:
    with pytest.raises(RequestError, match=rf"{MAX_TEXT_ROWS + 1} tokens.*{MAX_TEXT_ROWS}"):
        open_text_encoder(checkpoint).encode("a" + " a" * MAX_TEXT_ROWS)


def test_a_damaged_encoder_is_a_checkpoint_error_with_the_file(checkpoint: Path) -> None:
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        open_text_encoder(checkpoint)
    weights.unlink()
    with pytest.raises(CheckpointError, match=r"missing.*model\.safetensors"):
        open_text_encoder(checkpoint)
    (checkpoint / "config.json").write_text("[]")
    with pytest.raises(CheckpointError, match="not a JSON object"):
        open_text_encoder(checkpoint)


def test_a_qwen_encoder_is_found_by_its_header_and_run_by_the_plan(tmp_path: Path) -> None:
    parts = tmp_path / "text_encoders" / "some name"
    write_folder(parts, random_model())
    found = find_part(tmp_path, TEXT)
    assert found == parts
    sizes = text_sizes(found)
    assert sizes["text_encoder_layers"] == LAYERS and sizes["text_ffn"] == CONFIG.text.ffn
    assert sizes["text_encoder_bytes"] > LAYERS * sizes["text_layer_bytes"] > 0
    from_disk = open_text_encoder(found)
    kept = open_text_encoder(found, "cpu", Placement(pinned_blocks=LAYERS))
    assert isinstance(from_disk, TextEncoder) and from_disk.text_dim == CONFIG.text.hidden
    try:
        one, other = from_disk.encode("a red fox"), kept.encode("a red fox")
    finally:
        from_disk.close()
        kept.close()
    assert one.embeds.shape[1] == CONFIG.text.hidden and torch.equal(one.embeds, other.embeds)


def test_a_part_that_is_nowhere_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no text encoder.*text_encoder.*models list"):
        find_part(tmp_path, TEXT)
