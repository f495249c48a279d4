"""ModelFacts of an opened checkpoint: what the planner must know, from headers alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .planner.types import ModelFacts

if TYPE_CHECKING:
    from .checkpoint.index import Checkpoint

ATTENTION_HALF = ("attn.", "norm1.")  # what the first half of a slot holds
ADALN = "adaln_proj."
MODALITIES, COMPONENTS = 3, 6
BF16 = 2

# Parts of the root that leave the device before the first step (engine.model.streamed).
PASSING = ("token_refiner", "context_embedder", "time_embedder", "norm_out.linear")


def facts_of(checkpoint: Checkpoint, stacks: Mapping[str, int] | None = None) -> ModelFacts:
    """Sizes of a checkpoint. Bytes are those of its files' tensors, as a slot will hold them.

    stacks: overrides for the other stacks' fields (text encoder, decoder, upscaler), by name.
    Layouts whose blocks are merged or split when read are counted by expected shapes at two bytes.
    """
    config = checkpoint.config
    blocks = [_sizes(file.tensors) for file in checkpoint.block_files]
    block_bytes = max((sum(sizes.values()) for sizes in blocks), default=0)
    half = max((_attention_bytes(sizes) for sizes in blocks), default=0)
    if not blocks:
        block_bytes, half = _bytes_by_shape(checkpoint)
    root = checkpoint.root_file
    root_bytes = root.data_bytes if root is not None else _root_bytes_by_shape(checkpoint)
    refiner_bytes, device_bytes = 0, root_bytes
    if root is not None:
        sizes = _sizes(root.tensors)
        refiner_bytes = sum(size for name, size in sizes.items() if "token_refiner" in name)
        passing = sum(size for name, size in sizes.items() if any(p in name for p in PASSING))
        device_bytes = root_bytes - passing
    return ModelFacts(
        blocks=config.layers,
        block_bytes=block_bytes,
        attention_half_bytes=half,
        root_bytes=root_bytes,
        hidden=config.hidden,
        heads=config.heads,
        head_dim=config.head_dim,
        ffn=config.ffn,
        text_dim=config.text_dim,
        adaln_row_bytes=MODALITIES * COMPONENTS * config.hidden * BF16,
        weight_format=checkpoint.weight_format,
        refiner_bytes=refiner_bytes,
        root_device_bytes=device_bytes,
        source=checkpoint.path.name,
        dense=config.vdn is None,
        **(stacks or {}),
    )


def text_sizes(path: Path) -> dict[str, int]:
    """The text encoder's fields of ModelFacts, from its headers.

    The miniature has no layers; it counts as one that holds everything.
    """
    from .text.encoder import CONFIG_FILE, read_config
    from .text.files import open_qwen_file
    from .text.toy import TOY_FORMAT

    if (path / CONFIG_FILE).is_file():
        config = read_config(path)
        if config.get("format") == TOY_FORMAT:
            size_bytes = sum(file.stat().st_size for file in path.rglob("*.safetensors"))
            return {
                "text_encoder_bytes": size_bytes,
                "text_encoder_layers": 1,
                "text_layer_bytes": size_bytes,
                "text_ffn": 1,
            }
    file = open_qwen_file(path)
    layers = [
        sum(source.span.nbytes for source in file.layer_spans(index).values())
        for index in range(file.config.text.layers)
    ]
    return {
        "text_encoder_bytes": sum(source.span.nbytes for source in file.sources.values()),
        "text_encoder_layers": file.config.text.layers,
        "text_layer_bytes": max(layers),
        "text_ffn": file.config.text.ffn,
    }


def _sizes(tensors: Mapping[str, object]) -> dict[str, int]:
    return {name: span.nbytes for name, span in tensors.items()}  # type: ignore[attr-defined]


def _attention_bytes(sizes: Mapping[str, int]) -> int:
    return sum(size for name, size in sizes.items() if name.startswith(ATTENTION_HALF))


def _bytes_by_shape(checkpoint: Checkpoint) -> tuple[int, int]:
    from .checkpoint.names import block_shapes

    shapes = {
        name: shape
        for name, shape in block_shapes(checkpoint.config).items()
        if not name.startswith(ADALN)
    }
    sizes = {name: BF16 * _count(shape) for name, shape in shapes.items()}
    return sum(sizes.values()), _attention_bytes(sizes)


def _root_bytes_by_shape(checkpoint: Checkpoint) -> int:
    from .checkpoint.names import root_shapes

    shapes: Iterable[tuple[int, ...]] = root_shapes(checkpoint.config).values()
    return sum(2 * BF16 * _count(shape) for shape in shapes)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
