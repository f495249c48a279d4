"""A checkpoint as the plain whole-sequence model: weights in float32, adapters merged.

For small sizes and as the oracle. Quantised weights are dequantised after adapters were merged at
the checkpoint's own granularity, so the result is what the streamed engine computes with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from ..kernels.reference.quantise import dequantise
from ..kernels.weights import Weight
from .checkpoint.index import Checkpoint
from .checkpoint.schedule_tables import Times, find_tables
from .checkpoint.tables import time_features
from .errors import CheckpointError
from .lora.apply import adaln_table_with, merge_tensors
from .lora.loraset import LoraSet
from .lora.report import FETCH_PROJECTIONS
from .model.layout import RowTimes
from .model.modulation import ScheduleCursor
from .model.plain import PlainModel


def load_plain_model(
    checkpoint: Checkpoint, times: Times, device: torch.device, loras: LoraSet
) -> PlainModel:
    """The model on `device` for steps at `times`. Raises CheckpointError without AdaLN for them."""
    config = checkpoint.config
    root = merge_tensors(checkpoint.load_root(), loras.merges(None, online=False))
    state = dict(_plain_tensors(root, device))
    for block in range(config.layers):
        tensors = merge_tensors(checkpoint.load_block(block), loras.merges(block, online=False))
        prefix = f"transformer_blocks.{block}."
        state |= {prefix + name: value for name, value in _plain_tensors(tensors, device)}
    if loras.adaln_parameters:
        held, stored = times, _tables_with(checkpoint, state, times, loras)
    else:
        tables = find_tables(checkpoint, times)
        held = tables.times
        stored = [tables.load_block(block) for block in range(config.layers)]
    cursor = ScheduleCursor(held, source=str(checkpoint.path))

    def table(block: int, at: RowTimes) -> Tensor:
        return cursor.table(stored[block], at.distinct).to(device, torch.float32)

    return PlainModel(state, config, table)


def _tables_with(
    checkpoint: Checkpoint, root: Mapping[str, Tensor], times: Times, loras: LoraSet
) -> list[dict[str, Tensor]]:
    """Per block the tables of changed projections, or of a changed time embedder."""
    if not checkpoint.has_projections:
        raise CheckpointError(
            "an adapter changes AdaLN, and this checkpoint holds tables only",
            file=checkpoint.path,
            expected="AdaLN projections",
            found="prepared tables",
            remedy=FETCH_PROJECTIONS,
        )
    features = [time_features(root, checkpoint.config, step).cpu() for step in times]
    stored = []
    for block in range(checkpoint.config.layers):
        weight, bias = checkpoint.reader.projection(block)
        changes = loras.adaln(block)
        stored.append(
            {
                f"step_{index}": adaln_table_with(
                    weight,
                    bias,
                    temb,
                    weight_differences=changes.get("weight", ()),
                    bias_differences=changes.get("bias", ()),
                )
                for index, temb in enumerate(features)
            }
        )
    return stored


def _plain_tensors(
    tensors: Mapping[str, Weight | Tensor], device: torch.device
) -> Iterator[tuple[str, Tensor]]:
    """Tensors under the names of the published state dictionary, float32 with one exception."""
    for name, value in tensors.items():
        if isinstance(value, Tensor):
            # The output modulation is computed in its weight's own precision, like every AdaLN.
            kept = value.dtype if name.startswith("norm_out.linear.") else torch.float32
            yield name, value.to(device, kept)
            continue
        yield f"{name}.weight", dequantise(value).to(device, torch.float32)
        if value.bias is not None:
            yield f"{name}.bias", value.bias.to(device, torch.float32)
