"""What a bench row says of its weights: a model's own, or made up.

A toy is told by what its writer leaves: a line in the edge layout's manifest, the text encoder of
words beside it, widths that no published model has. Random weights that someone else wrote at a
model's full widths cannot be told from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .checkpoint.index import Checkpoint
from .checkpoint.toy import GENERATOR
from .errors import CheckpointError
from .model.config import ModelConfig
from .parts import OWN_NAMES, TEXT
from .text.encoder import TextEncoder, open_text_encoder, read_config
from .text.qwen import QwenTextEncoder
from .text.toy import TOY_FORMAT

TOY, REAL = "toy", "real"
FOLDERS_UP = 2  # from the file or cache that was opened to the checkpoint's own folder
PUBLISHED = ModelConfig()


def transformer_weights(checkpoint: Checkpoint) -> Mapping[str, str]:
    """The `checkpoint` of a row: {"kind": "toy" | "real", "format"}."""
    config, path = checkpoint.config, checkpoint.path
    toy = (
        (config.hidden, config.inner) != (PUBLISHED.hidden, PUBLISHED.inner)
        or checkpoint.metadata.get("generator") == GENERATOR
        or any(map(_has_toy_text, (path, *path.parents[:FOLDERS_UP])))
    )
    return {"kind": TOY if toy else REAL, "format": checkpoint.weight_format}


def encoder_weights(path: Path) -> Mapping[str, str]:
    """The same of a text encoder at `path`. Raises CheckpointError."""
    encoder: TextEncoder = open_text_encoder(path)
    try:
        if not isinstance(encoder, QwenTextEncoder):
            return {"kind": TOY, "format": TOY}
        kind = REAL if encoder.text_dim == PUBLISHED.text_dim else TOY
        return {"kind": kind, "format": encoder.file.forms["layers.0.mlp.up_proj"].kind}
    finally:
        encoder.close()


def _has_toy_text(folder: Path) -> bool:
    """Whether the miniature's text encoder lies in `folder`."""
    try:
        return read_config(folder / OWN_NAMES[TEXT]).get("format") == TOY_FORMAT
    except CheckpointError:
        return False
