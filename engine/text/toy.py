"""A text encoder without a language model: words become vectors through a hash.

A piece (a word with the white space before it, at most `PIECE_CHARS` long) hashes to two rows of a
table that lies in the checkpoint; their sum is its vector. So equal prompts give equal rows on
every machine, different prompts different ones, and any Unicode string has an encoding. Pictures
become vision rows from the mean colours of a 4 x 4 grid. It has no meaning and needs none: it
stands where the real encoder stands, in the demo and in tests.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ..blocks import Traffic
from ..errors import CheckpointError, RequestError
from .encoder import (
    CONFIG_FILE,
    MAX_TEXT_ROWS,
    TAG_TEXT,
    TAG_VISION,
    Shown,
    TextConditioning,
    pictures_shown,
    read_config,
)

TOY_FORMAT = "lowpeak-toy-text-v1"
WEIGHTS_FILE = "model.safetensors"
TABLE_ROWS = 2048
PIECE_CHARS = 8
GRID = 4
PAD, VISION_START, VISION_END = "\0pad", "\0vision_start", "\0vision_end"


class ToyTextEncoder:
    """The hash encoder over one table. table: [TABLE_ROWS, text_dim] float32."""

    def __init__(self, table: Tensor, colours: Tensor) -> None:
        self._table = table
        self._colours = colours  # [3, text_dim]: what red, green and blue add to a vision row

    @classmethod
    def open(cls, folder: Path) -> ToyTextEncoder:
        """Read the encoder of a toy checkpoint. Raises CheckpointError for a file that is off."""
        config, file = read_config(folder), folder / WEIGHTS_FILE
        if not file.is_file():
            raise CheckpointError("the text encoder's weights are missing", file=file)
        try:
            tensors = load_file(file)
        except SafetensorError as damage:
            raise CheckpointError(f"cannot be read: {damage}", file=file) from damage
        width = config.get("text_dim")
        for name, rows in (("table", TABLE_ROWS), ("colours", 3)):
            found = tuple(tensors[name].shape) if name in tensors else "nothing"
            if found != (rows, width):
                raise CheckpointError(
                    "wrong shape", file=file, tensor=name, expected=(rows, width), found=found
                )
        return cls(tensors["table"].float(), tensors["colours"].float())

    @property
    def text_dim(self) -> int:
        """Width of a row."""
        return self._table.shape[1]

    def encode(
        self, prompt: str, *, images: Sequence[Tensor] = (), shown: Sequence[Shown] = ()
    ) -> TextConditioning:
        """See TextEncoder.encode. An empty prompt without pictures is one pad row."""
        rows: list[Tensor] = []
        tags: list[int] = []
        for item in [*pictures_shown(images), *shown]:
            label = [self._vector(piece) for piece in pieces(item.label)]
            rows += label
            tags += [TAG_TEXT] * len(label)
            if item.frames is None:
                continue
            found = self._picture(item.frames)
            vision = [self._vector(VISION_START), *found, self._vector(VISION_END)]
            rows += vision
            tags += [TAG_VISION] * len(vision)
        words = pieces(prompt)
        if not rows and not words:
            words = [PAD]
        if len(rows) + len(words) > MAX_TEXT_ROWS:
            raise RequestError(
                f"the prompt makes {len(rows) + len(words)} tokens, the limit is {MAX_TEXT_ROWS}",
                field="prompt",
            )
        rows += [self._vector(word) for word in words]
        tags += [TAG_TEXT] * len(words)
        return TextConditioning(torch.stack(rows), torch.tensor(tags, dtype=torch.int64))

    def traffic(self) -> Traffic:
        """See TextEncoder.traffic: it has no layers."""
        return Traffic()

    def close(self) -> None:
        """Nothing is held beyond the table."""

    def _vector(self, piece: str) -> Tensor:
        digest = hashlib.blake2b(piece.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        first = int.from_bytes(digest[:4], "little") % TABLE_ROWS
        second = int.from_bytes(digest[4:], "little") % TABLE_ROWS
        return (self._table[first] + self._table[second]) * math.sqrt(0.5)

    def _picture(self, frames: Tensor) -> list[Tensor]:
        """Rows of a picture, or of the mean of a moment's frames: uint8 [t, H, W, 3]."""
        if frames.ndim != 4 or frames.shape[3] != 3 or frames.dtype != torch.uint8:
            raise RequestError(
                f"a picture must be [height, width, 3] uint8, not {tuple(frames.shape[1:])} "
                f"{frames.dtype}",
                field="first_frame",
            )
        pixels = frames.permute(0, 3, 1, 2).float().mean(0, keepdim=True) / 127.5 - 1
        grid = torch.nn.functional.adaptive_avg_pool2d(pixels, GRID)[0].flatten(1).T
        return list(grid @ self._colours)


def pieces(text: str) -> list[str]:
    """`text` cut into words with the white space before them; nothing is lost or normalised."""
    words = re.findall(r"\s*\S+|\s+$", text)
    return [
        word[start : start + PIECE_CHARS]
        for word in words
        for start in range(0, len(word), PIECE_CHARS)
    ]


def write_toy_text_encoder(folder: Path, *, text_dim: int, seed: int) -> None:
    """Write the toy encoder into `folder` (created); equal seeds give equal files."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        "table": torch.randn(TABLE_ROWS, text_dim, generator=generator),
        "colours": torch.randn(3, text_dim, generator=generator),
    }
    save_file(tensors, folder / WEIGHTS_FILE)
    config = {"format": TOY_FORMAT, "text_dim": text_dim, "seed": seed}
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
