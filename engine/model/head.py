"""Into the packed sequence and out of it again (facts: model sheet a.9).

Rows are selected first and projected then: the published order, projecting every row and selecting
afterwards, gives the same numbers for more work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from .layers import Layers
from .layout import PackedLayout
from .modulation import TIME_TABLE, modulate, norm_out_table, time_embedding


def assemble(
    layers: Layers, layout: PackedLayout, video: Tensor, audio: Tensor, text_embeds: Tensor
) -> Tensor:
    """The packed input x [N, C] in text_embeds' dtype.

    video: [rows of layout.video_indices, video_row]; audio: [rows of layout.audio_indices,
    audio_channels]; text_embeds: [N_t, C], already refined.
    """
    x = text_embeds.new_zeros(layout.rows, text_embeds.shape[-1])
    x[layout.text] = text_embeds
    x[layout.video_indices] = layers.linear("proj_in", video).to(x.dtype)
    x[layout.audio_indices] = layers.linear("audio_proj_in", audio).to(x.dtype)
    return x


def output_table(layers: Layers, temb: Tensor, *, activate: bool = True) -> tuple[Tensor, Tensor]:
    """Shift and scale [n, C] of the output norm at temb [n, time_dim]; see norm_out_table."""
    weight, bias = layers.tensor("norm_out.linear.weight"), layers.tensor("norm_out.linear.bias")
    return norm_out_table(weight, bias, temb, activate=activate)


class OutputTables:
    """Shift and scale of the output norm at the times of every step, made once: the weights behind
    them (180 MB at full size) need not stay on the device.

    layers, weights: hold `norm_out.linear.*` and `time_embedder.*` (or TIME_TABLE). steps: distinct
    times of each.
    """

    def __init__(
        self,
        layers: Layers,
        weights: Mapping[str, Tensor],
        steps: Sequence[Sequence[float]],
        freq_dim: int,
        device: torch.device,
    ) -> None:
        self._tables: dict[tuple[float, ...], tuple[Tensor, Tensor]] = {}
        for times in steps:
            moments = torch.tensor(list(times), dtype=torch.float32, device=device)
            temb = time_embedding(weights, moments, freq_dim)
            table = output_table(layers, temb, activate=TIME_TABLE not in weights)
            self._tables.setdefault(tuple(times), table)

    def at(self, times: Sequence[float]) -> tuple[Tensor, Tensor]:
        """Shift and scale [n, C]. times: a step's, or some that stand in several steps."""
        whole = self._tables.get(tuple(times))
        if whole is not None:
            return whole
        rows = [
            next((parts, held.index(time)) for held, parts in self._tables.items() if time in held)
            for time in times
        ]
        shift, scale = (torch.stack([parts[i][at] for parts, at in rows]) for i in (0, 1))
        return shift, scale


def normalise_rows(
    layers: Layers, x: Tensor, table: tuple[Tensor, Tensor], timestep_indices: Tensor, eps: float
) -> Tensor:
    """The output norm of rows x [M, C] whose times are timestep_indices [M]; in x's dtype."""
    weight = layers.tensor("norm_out.norm.weight").to(x.dtype)
    shift, scale = (part[timestep_indices].to(x.dtype) for part in table)
    return modulate(F.rms_norm(x, weight.shape, weight, eps), shift, scale)


def project_video(layers: Layers, rows: Tensor) -> Tensor:
    """Normalised rows [M, C] -> velocities [M, video_row] in the head's own dtype (float32)."""
    return layers.linear("proj_out", rows)


def project_audio(layers: Layers, rows: Tensor) -> Tensor:
    """Normalised rows [M, C] -> velocities [M, audio_channels] in the head's own dtype."""
    return layers.linear("audio_proj_out", rows)
