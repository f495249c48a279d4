"""Prompts to token rows: verbatim, any Unicode, labelled pictures, a limit that says its count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from text_parts import SPECIALS, VOCAB, tiny_tokenizer, write_pair
from tokenizers import AddedToken, Tokenizer, models

from lowpeak.engine.errors import CheckpointError, RequestError
from lowpeak.engine.text.encoder import MAX_TEXT_ROWS
from lowpeak.engine.text.qwen_tokenizer import find_tokenizer
from lowpeak.engine.text.tokens import (
    EXTRA_FIRST_ID,
    EXTRA_TOKENS,
    PromptTokens,
    whole_characters,
)
from lowpeak.engine.text.vision import fit_size

PAD, START, CELL, END = range(256, 260)


def tokens(vocab: int = VOCAB) -> PromptTokens:
    return PromptTokens(tiny_tokenizer(), vocab=vocab, file=Path("tokenizer.json"))


def spelled(ids: tuple[int, ...]) -> str:
    return tiny_tokenizer().decode(list(ids), skip_special_tokens=False)


@pytest.mark.parametrize(
    "prompt",
    [
        "fox",
        "  two  spaces \n\n",
        "日本語",
        "🦊👩‍👩‍👧",
        "a\u0301 (NFD)",
        "\x00\x07",
        "עברית",
        "\u202e\u0645\u0631\u062d\u0628\u0627",  # right to left
    ],
)
def test_any_unicode_is_taken_verbatim(prompt: str) -> None:
    rows = tokens().rows(prompt)
    assert spelled(rows.ids) == prompt
    assert len(rows.ids) == len(prompt.encode()) and set(rows.tags) == {1}


def test_half_characters_become_replacement_marks_and_pairs_become_whole() -> None:
    assert whole_characters("a\ud800b") == "a\ufffdb"
    assert whole_characters("\ud83e\udd8a") == "🦊"
    assert spelled(tokens().rows("\udfff").ids) == "\ufffd"


def test_zero_characters_are_one_pad_row() -> None:
    rows = tokens().rows("")
    assert (rows.ids, rows.tags) == ((PAD,), (1,))
    with_picture = tokens().rows("", [4])
    assert PAD not in with_picture.ids and with_picture.ids[-1] == END


def test_no_template_and_no_special_token_surround_the_prompt() -> None:
    tokenizer = tiny_tokenizer()
    from tokenizers.processors import TemplateProcessing

    tokenizer.post_processor = TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", PAD)]
    )
    tokenizer.enable_padding(length=64)
    tokenizer.enable_truncation(2)
    rows = PromptTokens(tokenizer, vocab=VOCAB, file=Path("t")).rows("fox!")
    assert spelled(rows.ids) == "fox!"


def test_pictures_are_labelled_counted_and_tagged() -> None:
    rows = tokens().rows("fox", [6, 2])
    label = len("<Picture 1>: ")
    expected = (
        "<Picture 1>: <|vision_start|>" + "<|image_pad|>" * 6 + "<|vision_end|>"
        "<Picture 2>: <|vision_start|>" + "<|image_pad|>" * 2 + "<|vision_end|>fox"
    )
    assert spelled(rows.ids) == expected
    assert rows.tags == (1,) * label + (0,) * 8 + (1,) * label + (0,) * 4 + (1,) * 3
    assert rows.pictures == ((label + 1, 6), (2 * label + 9, 2))
    assert all(rows.ids[first : first + n] == (CELL,) * n for first, n in rows.pictures)


def test_positions_spread_a_picture_and_go_on_behind_its_longer_side() -> None:
    rows = tokens().rows("ab", [6])
    label = len("<Picture 1>: ")
    places = rows.positions([(2, 3)])
    text = [(i, i, i) for i in range(label + 1)]
    at = label + 1
    cells = [(at, at + y, at + x) for y in range(2) for x in range(3)]
    tail = [(at + 3 + i,) * 3 for i in range(3)]
    assert places == text + cells + tail and len(places) == len(rows.ids)


def test_a_typed_image_token_is_text_and_moves_nothing() -> None:
    rows = tokens().rows("a<|image_pad|>b")
    assert rows.ids.count(CELL) == 1 and rows.pictures == () and set(rows.tags) == {1}
    assert rows.positions([]) == [(i, i, i) for i in range(3)]


def test_beyond_the_limit_the_error_says_count_and_limit() -> None:
    assert len(tokens().rows("a" * MAX_TEXT_ROWS).ids) == MAX_TEXT_ROWS
    with pytest.raises(
        RequestError, match=rf"{MAX_TEXT_ROWS + 1} text tok.*{MAX_TEXT_ROWS}"
    ) as raised:
        tokens().rows("a" * (MAX_TEXT_ROWS + 1))
    assert raised.value.field == "prompt"


def test_tokenizer_and_table_must_fit(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="ids below 200, found 256"):
        tokens(vocab=200)
    other = Tokenizer(models.WordLevel({"fox": 0, "<unk>": 1}, unk_token="<unk>"))
    other.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(CheckpointError, match=r"another model.*endoftext"):
        PromptTokens.open(tmp_path / "tokenizer.json", vocab=VOCAB)
    larger = tiny_tokenizer()
    larger.add_tokens([AddedToken("extra", normalized=False)])
    with pytest.raises(CheckpointError, match="ids below 260, found 260"):
        PromptTokens(larger, vocab=260, file=Path("t")).rows("an extra word")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"model": {"type": "Nothing"}}', b"\xff"])
def test_a_damaged_tokenizer_is_a_checkpoint_error_with_the_file(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"tokenizer.*tokenizer\.json"):
        PromptTokens.open(file, vocab=VOCAB)


def test_the_tokenizer_is_looked_for_beside_and_in_the_neighbour_folder(tmp_path: Path) -> None:
    encoder = tmp_path / "text_encoder"
    encoder.mkdir()
    with pytest.raises(CheckpointError, match=r"tokenizer is missing.*tokenizer\.json"):
        find_tokenizer(encoder)
    (tmp_path / "tokenizer").mkdir()
    far, near = tmp_path / "tokenizer" / "tokenizer.json", encoder / "tokenizer.json"
    far.write_text("{}")
    assert find_tokenizer(encoder).resolve() == far
    near.write_text("{}")
    assert find_tokenizer(encoder) == near
    single = encoder / "one.safetensors"
    single.write_bytes(b"")
    assert find_tokenizer(single) == near


def test_a_host_can_bring_the_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, host = tmp_path / "models" / "text_encoders", tmp_path / "host"
    encoder.mkdir(parents=True)
    write_pair(host)
    monkeypatch.setenv("LOWPEAK_TOKENIZER", str(host))
    file = find_tokenizer(encoder / "one.safetensors")
    assert file == host / "vocab.json"
    (host / "merges.txt").write_text("a b c\n")
    with pytest.raises(CheckpointError, match=r"damaged tokenizer.*vocab\.json"):
        PromptTokens.open(file, vocab=VOCAB + 100)
    (host / "merges.txt").write_text("q9 zz\n")
    with pytest.raises(CheckpointError, match=r"damaged tokenizer.*merges\.txt"):
        PromptTokens.open(file, vocab=VOCAB + 100)


def test_a_published_tokenizer_gets_the_tokens_of_the_conditioning() -> None:
    words = {f"w{i}": i for i in range(EXTRA_FIRST_ID - len(SPECIALS))}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS])
    assert tokenizer.get_vocab_size() == EXTRA_FIRST_ID
    found = PromptTokens(tokenizer, vocab=151_936, file=Path("t"))
    assert found.rows("<d></d>").ids == (EXTRA_FIRST_ID, EXTRA_FIRST_ID + 1)
    assert tokenizer.token_to_id(EXTRA_TOKENS[-1]) == EXTRA_FIRST_ID + len(EXTRA_TOKENS) - 1


def test_sizes_of_pictures_are_multiples_within_the_range() -> None:
    assert fit_size(768, 1344, 32) == (768, 1344)
    assert fit_size(50, 70, 32) == (64, 64)
    assert fit_size(20, 20, 32) == (64, 64)
    height, width = fit_size(5000, 9000, 32)
    assert height * width <= 12_845_056 and height % 32 == width % 32 == 0
    assert abs(width / height - 1.8) < 0.03
    with pytest.raises(RequestError, match="too narrow"):
        fit_size(1, 300, 32)
    with pytest.raises(RequestError, match="uint8"):
        from lowpeak.engine.text.vision import VisionConfig, cut_patches

        cut_patches(torch.zeros(4, 4, 3), VisionConfig(64, 80, 4, 4, 4, 2, 2, 64, 6, (0, 2)))


def test_the_tiny_tokenizer_is_what_a_file_gives(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    tiny_tokenizer().save(str(file))
    assert json.loads(file.read_text())["model"]["type"] == "BPE"
    assert PromptTokens.open(file, vocab=VOCAB).rows("fox").ids == tokens().rows("fox").ids
