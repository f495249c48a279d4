"""Prompt to token ids: verbatim, without template, special tokens, padding or truncation.

    "<Picture 1>: " vision_start image_pad*n vision_end ["<Picture 2>: " ...] prompt

Each text segment is tokenised by itself. A whole vision block, its two borders included, carries
the vision tag (facts: model sheet f). A moment of a video is a block like a picture's, behind its
time; what the vision tower saw replaces its rows, so their token does not matter. An empty prompt
without pictures is one pad token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Tokenizer

from ..errors import CheckpointError, RequestError
from .encoder import MAX_TEXT_ROWS, TAG_TEXT, TAG_VISION
from .qwen_tokenizer import load_tokenizer

VISION_START, VISION_PAD, VISION_END = "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"
PAD = "<|endoftext|>"
# The conditioning was trained with these behind the published vocabulary.
EXTRA_FIRST_ID = 151_669
EXTRA_TOKENS = (
    "<d>", "</d>", "<|cutoff|>", "<|lyrics_start|>", "<|lyrics_end|>", "<|caption_start|>",
    "<|caption_end|>",
)  # fmt: skip


@dataclass(frozen=True)
class TokenRows:
    """ids: one a row. tags: TAG_TEXT or TAG_VISION. pictures: (first pad row, pad rows) each."""

    ids: tuple[int, ...]
    tags: tuple[int, ...]
    pictures: tuple[tuple[int, int], ...] = ()

    def positions(self, cells: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
        """Time, height, width of every row. cells: (height, width) of each picture.

        Text moves all three by one a row. A picture stands still in time, spreads over height and
        width, and moves what follows by its longer side.
        """
        found: list[tuple[int, int, int]] = []
        now = row = 0
        for (first, count), (height, width) in zip(self.pictures, cells, strict=True):
            found += [(now + i,) * 3 for i in range(first - row)]
            now += first - row
            found += [(now, now + y, now + x) for y in range(height) for x in range(width)]
            now += max(height, width)
            row = first + count
        return found + [(now + i,) * 3 for i in range(len(self.ids) - row)]


class PromptTokens:
    """A tokenizer and the ids that pictures need."""

    def __init__(self, tokenizer: Tokenizer, *, vocab: int, file: Path) -> None:
        """vocab: rows of the embedding table. Raises CheckpointError when a token is missing."""
        if tokenizer.get_vocab_size() == EXTRA_FIRST_ID:
            tokenizer.add_special_tokens(
                [AddedToken(token, special=True, normalized=False) for token in EXTRA_TOKENS]
            )
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer, self._vocab, self._file = tokenizer, vocab, file
        names = (PAD, VISION_START, VISION_PAD, VISION_END)
        self._pad, self._start, self._cell, self._end = (self._id(name) for name in names)

    @classmethod
    def open(cls, file: Path, *, vocab: int) -> PromptTokens:
        """Read what `find_tokenizer` gave. Raises CheckpointError when it is missing or damaged."""
        return cls(load_tokenizer(file), vocab=vocab, file=file)

    def rows(
        self,
        prompt: str,
        pictures: Sequence[int] = (),
        *,
        shown: Sequence[tuple[str, int]] = (),
    ) -> TokenRows:
        """pictures: rows that each picture needs. shown: (label, rows of the vision block behind
        it, 0 for none), after the pictures. Raises RequestError beyond MAX_TEXT_ROWS."""
        ids: list[int] = []
        tags: list[int] = []
        places: list[tuple[int, int]] = []
        named = [(f"<Picture {number}>: ", count) for number, count in enumerate(pictures, start=1)]
        for text, count in [*named, *shown]:
            label = self._segment(text)
            ids += label
            tags += [TAG_TEXT] * len(label)
            if count:
                places.append((len(ids) + 1, count))
                ids += [self._start, *[self._cell] * count, self._end]
                tags += [TAG_VISION] * (count + 2)
        words = self._segment(prompt)
        if not ids and not words:
            words = [self._pad]
        ids += words
        tags += [TAG_TEXT] * len(words)
        if len(ids) > MAX_TEXT_ROWS:
            raise RequestError(
                f"the prompt makes {len(ids)} text tokens, the limit is {MAX_TEXT_ROWS}",
                field="prompt",
            )
        return TokenRows(tuple(ids), tuple(tags), tuple(places))

    def _segment(self, text: str) -> list[int]:
        if not text:
            return []
        ids = self._tokenizer.encode(whole_characters(text), add_special_tokens=False).ids
        if ids and max(ids) >= self._vocab:
            raise self._mismatch(max(ids))
        return ids

    def _id(self, token: str) -> int:
        found = self._tokenizer.token_to_id(token)
        if found is None:
            raise CheckpointError(
                "the tokenizer belongs to another model", file=self._file, expected=token
            )
        if found >= self._vocab:
            raise self._mismatch(found)
        return found

    def _mismatch(self, token_id: int) -> CheckpointError:
        return CheckpointError(
            "tokenizer and embedding table do not fit together",
            file=self._file,
            expected=f"ids below {self._vocab}",
            found=token_id,
        )


def whole_characters(text: str) -> str:
    """`text` with half characters (lone surrogates) replaced, since no encoding can carry them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
