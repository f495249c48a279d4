"""Qwen3-VL as the text encoder: decoder layers stream from disk through the device, one at a time.

The result is the residual after the last layer that runs (50 of the published 64), before any final
norm. Embedding rows are fetched one by one, the vision tower block by block, and only when there
are pictures; so the device holds two layers and the rows of one prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch
from torch import Tensor

from ..blocks import BlockStore, BlockStream, Traffic
from ..blocks.memory import device_for
from ..errors import CheckpointError, RequestError
from ..planner.types import Placement
from ..streamed import choose_places
from .encoder import Shown, TextConditioning, pictures_shown
from .files import QwenFile, open_qwen_file
from .qwen_config import LAYERS_USED
from .qwen_language import Linear, attention_half, feed_forward_half, rotary_tables
from .qwen_source import SpanSource
from .qwen_tokenizer import find_tokenizer
from .qwen_weights import Form, apply_linear
from .tokens import PromptTokens
from .vision import Part, PictureRows, cut_patches, fitted, see

STAGING_BUFFERS = 2


class QwenTextEncoder:
    """See TextEncoder. Files are read when a prompt comes, never before."""

    def __init__(
        self,
        file: QwenFile,
        tokenizer: Path,
        *,
        device: torch.device,
        placement: Placement | None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """placement: where layers wait; None reads each from disk. dtype: None takes bf16 on a GPU
        and fp32 elsewhere. Raises CheckpointError when the placement is for another model."""
        layers = file.config.text.layers
        placement = placement or Placement(disk_blocks=layers)
        total = placement.resident_blocks + placement.pinned_blocks + placement.disk_blocks
        if total != layers:
            raise CheckpointError(
                "the placement is for another text encoder",
                file=file.path,
                expected=f"{layers} layers",
                found=total,
            )
        self.file, self.device, self.placement = file, device, placement
        self.dtype = dtype or (torch.bfloat16 if device.type == "cuda" else torch.float32)
        self._tokenizer_file = tokenizer
        self._tokens: PromptTokens | None = None
        self._resources = ExitStack()
        self._stream: BlockStream | None = None

    @property
    def text_dim(self) -> int:
        """Width of a row."""
        return self.file.config.text.hidden

    @property
    def identity(self) -> str:
        """Changes when the weights, the tokenizer or the arithmetic do."""
        status = self._tokenizer_file.stat()
        arithmetic = f"{self.device.type} {self.dtype}"
        return f"{self.file.identity} {status.st_size} {status.st_mtime_ns} {arithmetic}"

    def count_rows(self, prompt: str) -> int:
        """Rows that a prompt without pictures becomes. Raises RequestError beyond the limit."""
        return len(self._open_tokens().rows(prompt).ids)

    def encode(
        self, prompt: str, *, images: Sequence[Tensor] = (), shown: Sequence[Shown] = ()
    ) -> TextConditioning:
        """See TextEncoder.encode."""
        before = [*pictures_shown(images), *shown]
        if not before:  # layers are read while the tokenizer is; a vision tower needs their memory
            self._open_stream()
        tokens = self._open_tokens()
        counts = [self._rows_of(item) for item in before]
        labels = [item.label for item in before]
        rows = tokens.rows(prompt, shown=list(zip(labels, counts, strict=True)))
        with torch.inference_mode():
            pictures = [self._see(item) for item in before if item.frames is not None]
            places = rows.positions([(picture.height, picture.width) for picture in pictures])
            x = self.file.embed(rows.ids).to(self.device, self.dtype)
            for (first, count), picture in zip(rows.pictures, pictures, strict=True):
                x[first : first + count] = picture.rows
            positions = torch.tensor(places, device=self.device).T
            x = self._run(x, positions, rows.pictures, pictures)
            embeds = x.float().cpu()
        if not bool(embeds.isfinite().all()):
            raise CheckpointError(
                "the text encoder gave numbers that are not finite",
                file=self.file.path,
                remedy="Verify the file; fetch it again when its checksum differs.",
            )
        return TextConditioning(embeds.clone(), torch.tensor(rows.tags, dtype=torch.int64))

    def close(self) -> None:
        """See TextEncoder.close."""
        self._resources.close()
        self._stream = None

    def traffic(self) -> Traffic:
        """See TextEncoder.traffic."""
        return Traffic() if self._stream is None else self._stream.traffic()

    def _run(
        self,
        x: Tensor,
        positions: Tensor,
        places: Sequence[tuple[int, int]],
        pictures: Sequence[PictureRows],
    ) -> Tensor:
        """All decoder layers. x: [N, C]; positions: [3, N]. Returns [N, C]."""
        config = self.file.config.text
        tables = rotary_tables(positions, config, self.dtype)
        stream, finished = self._open_stream(), False
        try:
            for index in range(config.layers):
                with stream.block(index) as block:
                    tensors = block.part(0)
                    x = attention_half(x, self._linear(index, tensors), tensors, config, tables)
                    if self.placement.half_slots:
                        tensors = block.part(1)
                    x = feed_forward_half(x, self._linear(index, tensors), tensors, config)
                for (first, count), picture in zip(places, pictures, strict=True):
                    if index < len(picture.taps):
                        x[first : first + count] += picture.taps[index]
            finished = True
        finally:
            if not finished:  # a stream gives its blocks in order: the next prompt needs a new one
                self.close()
        return x

    def _rows_of(self, item: Shown) -> int:
        """Rows of the vision block behind a label. Raises RequestError without a vision tower."""
        vision = self.file.config.vision
        if item.frames is None:
            return 0
        if vision is None:
            raise RequestError(
                f"{self.file.path.name} has no vision tower, so it cannot take pictures",
                field="first_frame",
            )
        _, (height, width) = fitted(item.frames, vision, item.of_frames)
        return (height // vision.patch) * (width // vision.patch) // vision.cell

    def _see(self, item: Shown) -> PictureRows:
        vision = self.file.config.vision
        assert vision is not None and item.frames is not None
        patches = cut_patches(item.frames, vision, of_frames=item.of_frames)
        return see(patches, self._vision_part, vision, device=self.device, dtype=self.dtype)

    def _vision_part(self, prefix: str) -> Part:
        prefix = f"visual.{prefix}"
        names = self.file.names(prefix)
        if prefix == "visual.":
            names = [name for name in names if name.startswith(("patch_embed.", "pos_embed."))]
        tensors = self.file.read(prefix, names)
        tensors = {name: value.to(self.device) for name, value in tensors.items()}
        return linears(self.file.forms, prefix, tensors), tensors

    def _linear(self, index: int, tensors: Mapping[str, Tensor]) -> Linear:
        return linears(self.file.forms, f"layers.{index}.", tensors)

    def _open_tokens(self) -> PromptTokens:
        if self._tokens is None:
            vocab = self.file.config.text.vocab
            self._tokens = PromptTokens.open(self._tokenizer_file, vocab=vocab)
        return self._tokens

    def _open_stream(self) -> BlockStream:
        if self._stream is None:
            layers = self.file.config.text.layers
            resident, pinned = choose_places(self.placement, layers)
            calls = device_for(self.device)
            # Buffers are written by other threads, which are in no inference mode of the caller's.
            with torch.inference_mode(False):
                store = BlockStore(
                    [SpanSource(self.file.layer_spans(index)) for index in range(layers)],
                    pinned=pinned,
                    first=resident,
                    staging=STAGING_BUFFERS,
                    pin=self.device.type == "cuda",
                    device=calls,
                )
                self._resources.enter_context(store)
                stream = BlockStream(
                    store,
                    calls,
                    resident=resident,
                    slots=max(1, self.placement.transfer_slots),
                    part_of=part_of if self.placement.half_slots else None,
                )
            self._stream = self._resources.enter_context(stream)
        return self._stream


def part_of(name: str) -> int:
    """The half of a layer that a tensor belongs to: 0 attention, 1 feed-forward."""
    return int(name.startswith(("mlp.", "post_attention_layernorm.")))


def linears(forms: Mapping[str, Form], prefix: str, tensors: Mapping[str, Tensor]) -> Linear:
    """`linear(name, x)` over tensors named "<name>.weight", "<name>.weight_scale", ..."""

    def linear(name: str, x: Tensor) -> Tensor:
        start = f"{name}."
        own = {key[len(start) :]: value for key, value in tensors.items() if key.startswith(start)}
        return apply_linear(forms[prefix + name], own, x)

    return linear


def open_qwen_encoder(
    path: str | Path,
    device: torch.device | str,
    placement: Placement | None = None,
    *,
    layers: int = LAYERS_USED,
    dtype: torch.dtype | None = None,
) -> QwenTextEncoder:
    """The encoder of a folder or a single file; headers alone are read.

    layers: decoder layers to run at most. Raises CheckpointError naming file, tensor, expected and
    found.
    """
    path = Path(path)
    file = open_qwen_file(path, layers=layers)
    return QwenTextEncoder(
        file, find_tokenizer(path), device=torch.device(device), placement=placement, dtype=dtype
    )
