"""Names of the autoencoders' tensors: diffusers' layout, split in parts, and ComfyUI's."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

from .config import count_indexed

BLOCK_PREFIX = "decoder.transformer_blocks."


def split_video_state(
    state: Mapping[str, Tensor],
) -> tuple[dict[str, Tensor], dict[str, Tensor], list[dict[str, Tensor]]]:
    """(encoder, root, blocks) of a state in diffusers' names.

    encoder keeps its names without `encoder.`, plus `quant_conv.*`; root holds `post_quant_conv.*`
    and the decoder's own tensors without `decoder.`; blocks[i] has the names inside a block.
    """
    encoder: dict[str, Tensor] = {}
    root: dict[str, Tensor] = {}
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    blocks: list[dict[str, Tensor]] = [{} for _ in range(count_indexed(shapes, BLOCK_PREFIX))]
    pattern = re.compile(re.escape(BLOCK_PREFIX) + r"(\d+)\.(.+)")
    for name, value in state.items():
        match = pattern.match(name)
        if match:
            blocks[int(match[1])][match[2]] = value
        elif name.startswith("encoder."):
            encoder[name.removeprefix("encoder.")] = value
        elif name.startswith("quant_conv."):
            encoder[name] = value
        else:
            root[name.removeprefix("decoder.")] = value
    return encoder, root, blocks
