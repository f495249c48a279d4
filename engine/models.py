"""The models of one checkpoint folder, opened when a stage asks for them and closed after it.

    <folder>/                       the transformer, in any layout that engine/checkpoint knows
    <folder>/text_encoder/          <folder>/vae/          <folder>/audio_vae/
    <folder>/upscaler.safetensors

This is the one place that says which implementation runs a stage; stages and the story of a run
only see the interfaces. Headers are read at once, so that a damaged folder fails before anything
is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..kernels.reference.quantise import dequantise
from ..kernels.weights import Weight
from .checkpoint.index import Checkpoint, open_checkpoint
from .denoiser import Denoiser, PlainDenoiser
from .errors import CheckpointError
from .facts import facts_of, folder_bytes
from .lora.shapes import ModelShapes
from .model.layout import RowTimes
from .model.modulation import ScheduleCursor
from .model.plain import PlainModel
from .planner.types import ModelFacts, Placement
from .sampling.two_pass import Lift
from .sampling.upscaler_file import open_upscaler
from .sampling.upscaler_tiled import tiled_lift
from .text.encoder import FOLDER as TEXT_FOLDER
from .text.encoder import TextEncoder, open_text_encoder

VAE_FOLDER, AUDIO_FOLDER, UPSCALER_FILE = "vae", "audio_vae", "upscaler.safetensors"
Times = Sequence[Sequence[float]]


@dataclass(frozen=True)
class ModelSet:
    """The models of `folder`, run on `device`."""

    folder: Path
    device: torch.device
    checkpoint: Checkpoint

    def facts(self) -> ModelFacts:
        """Sizes for the planner."""
        return facts_of(self.checkpoint, self._stack_sizes())

    def headers(self) -> dict[str, Any]:
        """What a report says of the checkpoint."""
        return {
            "layout": self.checkpoint.layout,
            "weight_format": self.checkpoint.weight_format,
            "layers": self.checkpoint.config.layers,
            "header_sha256": self.checkpoint.header_sha256,
        }

    def notices(self) -> tuple[str, ...]:
        """What a user should know about these files."""
        return self.checkpoint.notes

    def kernels(self) -> dict[str, Any]:
        """Which implementation runs each stage, and why."""
        reason = "the whole-sequence reference runs every stage in this version"
        return {"transformer": {"implementation": "reference", "reason": reason}}

    @contextmanager
    def text_encoder(self) -> Iterator[TextEncoder]:
        """The text encoder, for the body."""
        encoder = open_text_encoder(self.folder)
        wanted, found = self.checkpoint.config.text_dim, encoder.text_dim
        try:
            if wanted != found:
                raise CheckpointError(
                    "text encoder and transformer do not fit together",
                    file=self.folder / TEXT_FOLDER,
                    expected=f"rows of width {wanted}",
                    found=f"rows of width {found}",
                )
            yield encoder
        finally:
            encoder.close()

    @contextmanager
    def denoiser(self, times: Times, placements: Mapping[str, Placement]) -> Iterator[Denoiser]:
        """The transformer for passes at `times` (distinct times of every evaluation)."""
        found = PlainDenoiser(self._plain_model(times), self.device)
        try:
            yield found
        finally:
            found.close()

    def lift(self) -> Lift:
        """The latent upscaler. Raises CheckpointError when its file is missing or damaged."""
        return tiled_lift(open_upscaler(self.folder / UPSCALER_FILE), self.device)

    def encode_picture(self, picture: Tensor) -> Tensor:
        """Normalised latents [1, 24, 1, H/16, W/16] of a keyframe, uint8 [H, W, 3]."""
        raise CheckpointError("keyframes cannot be encoded yet", file=self.folder / VAE_FOLDER)

    def _plain_model(self, times: Times) -> PlainModel:
        config = self.checkpoint.config
        state = dict(self._plain_tensors(self.checkpoint.load_root()))
        for block in range(config.layers):
            tensors = self._plain_tensors(self.checkpoint.load_block(block))
            state |= {f"transformer_blocks.{block}.{name}": value for name, value in tensors}
        tables = self.checkpoint.tables_for(times)
        if tables is None:
            raise CheckpointError(
                "no AdaLN tables for this schedule, and no projections to compute them from",
                file=self.folder,
                expected=f"tables for {len(times)} evaluations",
                found=", ".join(item.name for item in self.checkpoint.table_sets) or "no tables",
                remedy="Choose another --quality, or fetch the tables with `lowpeak models pull`.",
            )
        cursor = ScheduleCursor(tables.times, source=tables.name)
        stored = [
            {name: tensor.to(self.device) for name, tensor in tables.load_block(block).items()}
            for block in range(config.layers)
        ]

        def table(block: int, at: RowTimes) -> Tensor:
            return cursor.table(stored[block], at.distinct).float()

        return PlainModel(state, config, table)

    def _plain_tensors(
        self, tensors: Mapping[str, Weight | Tensor]
    ) -> Iterator[tuple[str, Tensor]]:
        """Float32 tensors under the names of the published state dictionary."""
        for name, value in tensors.items():
            if isinstance(value, Tensor):
                yield name, value.to(self.device, torch.float32)
                continue
            yield f"{name}.weight", dequantise(value).to(self.device, torch.float32)
            if value.bias is not None:
                yield f"{name}.bias", value.bias.to(self.device, torch.float32)

    def _stack_sizes(self) -> dict[str, int]:
        upscaler = self.folder / UPSCALER_FILE
        sizes = {"text_encoder_bytes": folder_bytes(self.folder / TEXT_FOLDER)}
        if upscaler.is_file():
            sizes["upscaler_bytes"] = upscaler.stat().st_size
        return sizes


def open_models(folder: Path, device: torch.device | str) -> ModelSet:
    """Open the models of a checkpoint folder. Raises CheckpointError; reads headers alone."""
    return ModelSet(folder, torch.device(device), open_checkpoint(folder))


def lora_shapes(folder: Path) -> ModelShapes:
    """The transformer of a checkpoint as an adapter sees it. Raises CheckpointError."""
    checkpoint = open_checkpoint(folder)
    return ModelShapes.from_config(checkpoint.config, adaln_projections=checkpoint.has_projections)
