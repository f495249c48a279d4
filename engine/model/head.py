"""Into the packed sequence and out of it again (facts: model sheet a.9).

Rows are selected first and projected then: the published order, projecting every row and selecting
afterwards, gives the same numbers for more work.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from .layers import Layers
from .layout import PackedLayout
from .modulation import modulate, norm_out_table


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


def output_table(layers: Layers, temb: Tensor) -> tuple[Tensor, Tensor]:
    """Shift and scale [n, C] of the output norm at temb [n, time_dim]."""
    weight, bias = layers.tensor("norm_out.linear.weight"), layers.tensor("norm_out.linear.bias")
    return norm_out_table(weight, bias, temb)


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
