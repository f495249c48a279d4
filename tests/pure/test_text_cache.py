"""The prompt cache: what is remembered, what is forgotten, what is never trusted."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lowpeak.engine.text import cache as module
from lowpeak.engine.text.cache import CachedEncoder, PromptCache, prompt_key
from lowpeak.engine.text.encoder import Shown, TextConditioning, TextEncoder

WIDTH = 16


class Counting:
    """An encoder that counts its calls."""

    def __init__(self, identity: str = "weights 1") -> None:
        self.identity, self.text_dim, self.calls, self.closed = identity, WIDTH, 0, False

    def encode(
        self, prompt: str, *, images: Sequence[Tensor] = (), shown: Sequence[Shown] = ()
    ) -> TextConditioning:
        self.calls += 1
        return conditioning(len(prompt) + len(images) + len(shown))

    def close(self) -> None:
        self.closed = True


def conditioning(rows: int, seed: int = 0) -> TextConditioning:
    generator = torch.Generator().manual_seed(seed)
    embeds = torch.randn(rows, WIDTH, generator=generator)
    return TextConditioning(embeds, torch.randint(0, 2, (rows,), generator=generator))


def picture(seed: int, height_px: int = 4, width_px: int = 6) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (height_px, width_px, 3), generator=generator, dtype=torch.uint8)


def test_a_prompt_is_encoded_once_and_comes_back_bit_for_bit(tmp_path: Path) -> None:
    inner = Counting()
    first = CachedEncoder(inner, PromptCache(tmp_path)).encode("fox", images=[picture(1)])
    encoder = CachedEncoder(inner, PromptCache(tmp_path))
    again = encoder.encode("fox", images=[picture(1)])
    assert isinstance(encoder, TextEncoder) and inner.calls == 1
    assert torch.equal(first.embeds, again.embeds) and torch.equal(first.tags, again.tags)
    encoder.close()
    assert inner.closed


def test_everything_that_decides_the_encoding_is_in_the_key() -> None:
    flat = picture(1).reshape(6, 4, 3)
    keys = [
        prompt_key("fox", [], "a"),
        prompt_key("fox ", [], "a"),
        prompt_key("fox", [], "b"),
        prompt_key("", [], "afox"),
        prompt_key("\ud800", [], "a"),
        prompt_key("fox", [picture(1)], "a"),
        prompt_key("fox", [flat], "a"),
        prompt_key("fox", [], "a", [Shown("<Audio 1>: ")]),
        prompt_key("fox", [], "a", [Shown("<Picture 1>: ", picture(1)[None])]),
        prompt_key("fox", [], "a", [Shown("<Picture 1>: ", picture(1)[None], 2)]),
        prompt_key("fox", [picture(1), picture(2)], "a"),
        prompt_key("fox", [picture(2), picture(1)], "a"),
    ]
    assert len(set(keys)) == len(keys)
    assert prompt_key("fox", [picture(1).clone()], "a") == keys[5]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "folder", "other"])
def test_a_damaged_entry_is_encoded_again(tmp_path: Path, damage: str) -> None:
    inner = Counting()
    encoder = CachedEncoder(inner, PromptCache(tmp_path))
    expected = encoder.encode("fox")
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    if damage == "truncated":
        file.write_bytes(content[:-5])
    elif damage == "flipped":
        file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        body = module.save({"something": torch.ones(2)})
        file.write_bytes(module.hashlib.sha256(body).digest() + body)
    found = encoder.encode("fox")
    assert inner.calls == 2 and torch.equal(found.embeds, expected.embeds)
    if damage != "folder":
        encoder.encode("fox")
        assert inner.calls == 2, "the damaged entry was not replaced"


def test_the_folder_stays_below_its_limit_and_the_longest_unused_goes_first(tmp_path: Path) -> None:
    size = 32 + len(module.save({"embeds": conditioning(9).embeds, "tags": conditioning(9).tags}))
    cache = PromptCache(tmp_path, limit_bytes=3 * size)
    now = time.time()
    for age, key in enumerate("abc"):
        cache.put(key, conditioning(9, seed=age))
        os.utime(tmp_path / f"{key}.prompt", (now - 100 + age, now - 100 + age))
    assert cache.get("a") is not None  # used again: b is now the oldest
    cache.put("d", conditioning(9, seed=4))
    left = {key for key in "abcd" if (tmp_path / f"{key}.prompt").exists()}
    assert left == {"a", "c", "d"}
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= cache.limit_bytes


def test_an_entry_beyond_the_limit_is_not_kept(tmp_path: Path) -> None:
    cache = PromptCache(tmp_path, limit_bytes=1000)
    cache.put("a", conditioning(1))
    cache.put("b", conditioning(100))
    assert cache.get("a") is not None and cache.get("b") is None


def test_nothing_half_written_is_left_or_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = PromptCache(tmp_path)
    cache.put("a", conditioning(3, seed=1))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "replace", fail)
    cache.put("a", conditioning(3, seed=2))
    found = cache.get("a")
    assert found is not None and torch.equal(found.embeds, conditioning(3, seed=1).embeds)
    assert [file.name for file in tmp_path.iterdir()] == ["a.prompt"]


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    inner = Counting()
    encoder = CachedEncoder(inner, PromptCache(blocked))
    encoder.encode("fox")
    assert encoder.encode("fox").rows == 3 and inner.calls == 2


def test_names_of_entries_hold_no_prompt(tmp_path: Path) -> None:
    CachedEncoder(Counting(), PromptCache(tmp_path)).encode("a secret prompt")
    (file,) = tmp_path.iterdir()
    assert "secret" not in file.name and b"secret" not in file.read_bytes()


def test_rows_that_fit_bf16_are_kept_at_half_the_size(tmp_path: Path) -> None:
    cache, rows = PromptCache(tmp_path), conditioning(40)
    cache.put("wide", rows)
    half = TextConditioning(rows.embeds.bfloat16().float(), rows.tags)
    cache.put("half", half)
    for key, expected in (("wide", rows), ("half", half)):
        found = cache.get(key)
        assert found is not None and found.embeds.dtype == torch.float32
        assert torch.equal(found.embeds, expected.embeds)
    sizes = [(tmp_path / f"{key}.prompt").stat().st_size for key in ("wide", "half")]
    assert sizes[0] - sizes[1] >= 40 * WIDTH * 2 - 64


def test_a_hit_of_a_published_size_takes_less_than_50_ms(tmp_path: Path) -> None:
    big = TextConditioning(torch.randn(300, 5120), torch.ones(300, dtype=torch.int64))
    cache, prompt = PromptCache(tmp_path), "a prompt of 300 tokens " * 50
    cache.put(prompt_key(prompt, [], "weights"), big)
    times = []
    for _ in range(5):
        begin = time.thread_time()  # not wall time: other processes are no part of a hit
        assert cache.get(prompt_key(prompt, [], "weights")) is not None
        times.append(time.thread_time() - begin)
    assert min(times) < 0.05, times
