"""What a prompt becomes: rows of the packed sequence, one vector and one tag each.

Every encoder answers the same call, so that the toy, the streamed Qwen3-VL stack and ComfyUI's own
conditioning can stand in for each other. The prompt is taken verbatim: no template, no special
tokens, no padding, no negative prompt (facts: model sheet f). An empty prompt is one pad row,
because a text range of zero rows would leave the scans without the state that they start from.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import Tensor

from ..blocks import Traffic
from ..errors import CheckpointError, RequestError
from ..planner.types import Placement

TAG_VISION = 0
TAG_TEXT = 1
MAX_TEXT_ROWS = 16_384
CONFIG_FILE = "config.json"


@dataclass(frozen=True)
class TextConditioning:
    """Encoded prompt. embeds: [N_t, text_dim] float32; tags: [N_t] int64, 1 text and 0 vision."""

    embeds: Tensor
    tags: Tensor

    def __post_init__(self) -> None:
        if self.embeds.ndim != 2 or self.tags.shape != self.embeds.shape[:1]:
            raise RequestError(
                f"conditioning of shape {tuple(self.embeds.shape)} has {tuple(self.tags.shape)} "
                "tags: expected [rows, width] and one tag a row",
                field="prompt",
            )
        if not 1 <= self.rows <= MAX_TEXT_ROWS:
            raise RequestError(
                f"the prompt makes {self.rows} text tokens, the limit is {MAX_TEXT_ROWS}",
                field="prompt",
            )

    @property
    def rows(self) -> int:
        """N_t."""
        return self.embeds.shape[0]


@dataclass(frozen=True)
class Shown:
    """What an encoder reads before the prompt: a label, and what stands behind it, if anything.

    frames: uint8 [t, H, W, 3]; one frame is a picture, two are a moment of a video. of_frames:
    frames read of the whole video, which decides how large its moments may be.
    """

    label: str
    frames: Tensor | None = None
    of_frames: int = 1


def pictures_shown(images: Sequence[Tensor]) -> tuple[Shown, ...]:
    """Pictures, uint8 [H, W, 3] each, under their labels, counted from 1."""
    return tuple(
        Shown(f"<Picture {number}>: ", image[None]) for number, image in enumerate(images, start=1)
    )


@runtime_checkable
class TextEncoder(Protocol):
    """Prompt and pictures in, conditioning out. Deterministic; knows no request and no plan."""

    @property
    def text_dim(self) -> int:
        """Width of a row."""

    def encode(
        self, prompt: str, *, images: Sequence[Tensor] = (), shown: Sequence[Shown] = ()
    ) -> TextConditioning:
        """Encode `prompt` verbatim, after one labelled vision block for each picture.

        images: [height, width, 3] uint8 each, in the order of their labels ("<Picture 1>: ", ...).
        shown: what comes behind them, with labels of its own (references).
        Raises RequestError when the prompt is longer than MAX_TEXT_ROWS rows.
        """

    def traffic(self) -> Traffic:
        """What its layers moved and were waited for since the last call; ask before `close`."""

    def close(self) -> None:
        """Give back weights and files. Safe to call twice."""


def open_text_encoder(
    path: Path,
    device: str = "cpu",
    placement: Placement | None = None,
    *,
    cache: Path | None = None,
) -> TextEncoder:
    """The encoder at `path`, a folder or one file, chosen by what its config says, never by name.

    placement: where its layers wait; None reads each from disk. cache: folder that remembers what
    prompts became; None remembers nothing. Raises CheckpointError when there is no encoder, or
    when it is of a kind that is unknown here.
    """
    from .cache import CachedEncoder, PromptCache
    from .qwen import open_qwen_encoder
    from .toy import TOY_FORMAT, ToyTextEncoder

    if (path / CONFIG_FILE).is_file() and read_config(path).get("format") == TOY_FORMAT:
        return ToyTextEncoder.open(path)
    found = open_qwen_encoder(path, device, placement)
    return found if cache is None else CachedEncoder(found, PromptCache(cache))


def read_config(folder: Path) -> dict[str, object]:
    """The encoder's config. Raises CheckpointError when it is missing or no JSON object."""
    file = folder / CONFIG_FILE
    if not file.is_file():
        raise CheckpointError("the text encoder's config is missing", file=file)
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as damage:
        raise CheckpointError(f"the config is not JSON: {damage}", file=file) from damage
    if not isinstance(config, dict):
        raise CheckpointError("the config is not a JSON object", file=file)
    return config
