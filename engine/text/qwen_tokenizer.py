"""Qwen's tokenizer from a tokenizer.json, or from vocab.json and merges.txt as ComfyUI has them.

A byte-level BPE over text in normal form C, cut by one published pattern before any merge. The
special tokens stand behind the vocabulary in a fixed order; the pair of files may not list them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from ..checkpoint.sources import read_json
from ..errors import CheckpointError

TOKENIZER_FILE, VOCAB_FILE, MERGES_FILE = "tokenizer.json", "vocab.json", "merges.txt"
PLACES = (".", "tokenizer", "../tokenizer", "processor", "../processor")
VARIABLE = "LOWPEAK_TOKENIZER"  # a folder to look in last: a host that brings a tokenizer sets it
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIALS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>",
    "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
ORDINARY = (
    "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
    "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>",
    "<think>", "</think>",
)  # fmt: skip


def find_tokenizer(path: Path) -> Path:
    """The tokenizer of an encoder's folder or file: its tokenizer.json, or its vocab.json.

    Looked for beside it, in the folders of a pipeline, then where the host's is. Raises
    CheckpointError when there is none.
    """
    folder = path if path.is_dir() else path.parent
    places = [folder / place for place in PLACES]
    named = os.environ.get(VARIABLE)
    if named:
        places.append(Path(named))
    for place in places:
        if (place / TOKENIZER_FILE).is_file():
            return place / TOKENIZER_FILE
        if (place / VOCAB_FILE).is_file() and (place / MERGES_FILE).is_file():
            return place / VOCAB_FILE
    raise CheckpointError(
        "the tokenizer is missing",
        file=folder / TOKENIZER_FILE,
        remedy=f"Put the model's {TOKENIZER_FILE} beside it, or name a folder in {VARIABLE}.",
    )


def load_tokenizer(file: Path) -> Tokenizer:
    """A tokenizer from what `find_tokenizer` gave. Raises CheckpointError when it is damaged."""
    if file.name == VOCAB_FILE:
        return _from_pair(file, file.with_name(MERGES_FILE))
    text = _text(file)
    return _made(lambda: Tokenizer.from_str(text), file)


def _from_pair(vocab_file: Path, merges_file: Path) -> Tokenizer:
    vocab = read_json(vocab_file)
    lines = [line.rstrip("\r") for line in _text(merges_file).split("\n")]
    merges = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    if not isinstance(vocab, dict) or any(len(pair) != 2 for pair in merges):
        raise CheckpointError(
            "damaged tokenizer", file=vocab_file, expected="a vocabulary and pairs to merge"
        )
    tokenizer = _made(lambda: Tokenizer(models.BPE(vocab=vocab, merges=merges)), merges_file)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokens = [AddedToken(token, special=True, normalized=False) for token in SPECIALS]
    tokens += [AddedToken(token, special=False, normalized=False) for token in ORDINARY]
    tokenizer.add_tokens(tokens)
    return tokenizer


def _made(make: Callable[[], Tokenizer], file: Path) -> Tokenizer:
    try:
        return make()
    except Exception as damage:
        # The library has no type of its own for damage; wrong JSON types come as TypeError.
        if type(damage) not in (Exception, TypeError, ValueError):
            raise
        raise CheckpointError(f"damaged tokenizer: {damage}", file=file) from damage


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        raise CheckpointError(f"cannot read the tokenizer: {failed}", file=file) from failed
