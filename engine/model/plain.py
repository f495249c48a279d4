"""The whole model in its plainest form: every row at once, a mask for the windows, no chunks.

This is the oracle of the engine. It is never optimised and takes any float dtype; in float64 it
tells rounding from mistakes. Names follow the published state dictionary (facts: model sheet a.2,
c.1); a dense model may be run from a VDN state, whose base attention lies one level down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from . import delta
from .config import ModelConfig, VdnConfig
from .head import assemble, normalise_rows, output_table, project_audio, project_video
from .layers import StateLayers
from .layout import PackedLayout, RowTimes
from .modulation import TIME_TABLE, adaln_table, modulate, split_table, time_embedding
from .refiner import feed_forward, refine_text, rms_norm
from .rope import apply_rotary, rotary_tables
from .windows import Windows

Mid = dict[str, Tensor]
Tables = Callable[[int, RowTimes], Tensor]


class PlainModel:
    """The transformer from a state dictionary.

    tables: gives block i's AdaLN table [3n, 6C] at a step's times, for checkpoints without the
    projections; by default the projections in `state` are used.
    """

    def __init__(
        self, state: Mapping[str, Tensor], config: ModelConfig, tables: Tables | None = None
    ) -> None:
        self.state, self.config = state, config
        self.layers = StateLayers(state)
        self.tables = tables

    def forward(
        self,
        video_rows: Tensor,
        audio_rows: Tensor,
        text: Tensor,
        times: RowTimes,
        layout: PackedLayout,
        mid: Mid | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Velocities (data minus noise) of all video and audio rows, condition rows included.

        video_rows: [n_v, video_row], audio_rows: [n_a, audio_channels], in the order of the
        layout's indices; text: [N_t, text_dim]; times: `layout.at(...)`. mid collects
        intermediate values by name.
        """
        config, layers = self.config, self.layers
        mid = {} if mid is None else mid
        mid["text_embeds"] = refine_text(layers, text, config)
        mid["temb"] = temb = time_embedding(self.state, times.distinct, config.freq_dim)
        x = assemble(layers, layout, video_rows, audio_rows, mid["text_embeds"])
        mid["packed_input"] = x
        cos, sin = rotary_tables(layout.position_ids, config.rope_freqs, config.rope_theta)
        mid["rotary_cos"], mid["rotary_sin"] = cos, sin
        for index in range(config.layers):
            inner: Mid = {}
            prefix = f"transformer_blocks.{index}."
            table = self._table(index, times, temb)
            x = plain_block(
                self.state, prefix, x, table, times.table_rows, layout, cos, sin, config, inner
            )
            mid[f"block{index}_adaln_table"], mid[f"block{index}_out"] = table, x
            mid.update({f"block{index}_{name}": value for name, value in inner.items()})
        shift_and_scale = output_table(layers, temb, activate=TIME_TABLE not in self.state)
        out = normalise_rows(layers, x, shift_and_scale, times.timestep_indices, config.eps)
        mid["norm_out"] = out
        video = project_video(layers, out[layout.video_indices])
        return video, project_audio(layers, out[layout.audio_indices])

    def _table(self, index: int, times: RowTimes, temb: Tensor) -> Tensor:
        if self.tables is not None:
            return self.tables(index, times)
        name = f"transformer_blocks.{index}.adaln_proj.linear"
        return adaln_table(self.state[f"{name}.weight"], self.state[f"{name}.bias"], temb)


def plain_block(
    state: Mapping[str, Tensor],
    prefix: str,
    x: Tensor,
    table: Tensor,
    table_rows: Tensor,
    layout: PackedLayout | None,
    cos: Tensor,
    sin: Tensor,
    config: ModelConfig,
    mid: Mid | None = None,
) -> Tensor:
    """One block [N, C] -> [N, C] (sheet a.8). table: [3n, 6C]; table_rows: [N] into it.

    layout may be None for a dense model.
    """
    mid = {} if mid is None else mid
    layers = StateLayers(state)
    part = split_table(table[table_rows].to(x.dtype))
    y = rms_norm(layers, f"{prefix}norm1.weight", x, config.eps)
    mid["attn_in"] = y = modulate(y, part.shift_msa, part.scale_msa)
    mid["attn_out"] = out = plain_attention(
        state, f"{prefix}attn.", y, layout, cos, sin, config, mid
    )
    x = x + part.gate_msa * out
    y = rms_norm(layers, f"{prefix}norm2.weight", x, config.eps)
    mid["ff_in"] = y = modulate(y, part.shift_mlp, part.scale_mlp)
    mid["ff_out"] = out = feed_forward(layers, f"{prefix}ff.", y)
    return x + part.gate_mlp * out


def plain_attention(
    state: Mapping[str, Tensor],
    prefix: str,
    y: Tensor,
    layout: PackedLayout | None,
    cos: Tensor,
    sin: Tensor,
    config: ModelConfig,
    mid: Mid | None = None,
) -> Tensor:
    """The attention of one block: y [N, C] -> [N, C], dense or hybrid as config says.

    state: tensors under `prefix` (ends with a dot); base attention at `orig.` if present. cos, sin:
    [N, 3 * freqs]. mid gets the intermediate values under the names of the recorded fixtures.
    """
    mid = {} if mid is None else mid
    layers, vdn = StateLayers(state), config.vdn
    base = f"{prefix}orig." if f"{prefix}orig.to_q.weight" in state else prefix
    raw = {
        name: layers.linear(f"{base}to_{name}", y).unflatten(-1, (config.heads, -1))
        for name in "qkv"
    }
    q = rms_norm(layers, f"{base}norm_q.weight", raw["q"], config.eps)
    k = rms_norm(layers, f"{base}norm_k.weight", raw["k"], config.eps)
    mid["q_rope"], mid["k_rope"] = q, k = apply_rotary(q, cos, sin), apply_rotary(k, cos, sin)
    windows = None
    if vdn is not None:
        assert layout is not None
        windows = Windows.of(vdn, layout.frames)
        if windows.full_cover:
            windows = None
    mask = None if windows is None else row_mask(windows, layout)
    mid["softmax_out"] = out = softmax_attention(q, k, raw["v"], mask)
    if vdn is not None and vdn.softmax_gate:
        mid["softmax_gate"] = gate = layers.linear(f"{prefix}softmax_gate.up", y).sigmoid()
        out = out * gate[..., None]
    mid["softmax_branch"] = out = layers.linear(f"{base}to_out.0", out.flatten(-2))
    if windows is None or not vdn.linear:
        return out
    readout = linear_readout(layers, prefix, y, raw, layout, windows, vdn, mid)
    mid["linear_readout"] = readout
    mid["linear_branch"] = branch = layers.linear(f"{prefix}to_out_linear", readout)
    out = out.clone()
    out[layout.video] += branch
    return out


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(q k^T / sqrt(D)) v over the allowed keys. q, k, v: [N, H, D]; mask: [N, N] bool."""
    kind = delta.wide(q.dtype)
    scores = torch.einsum("nhd,mhd->hnm", q.to(kind), k.to(kind)) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.einsum("hnm,mhd->nhd", scores.softmax(-1), v.to(kind)).to(q.dtype)


def row_mask(windows: Windows, layout: PackedLayout) -> Tensor:
    """[N, N] bool, queries first: false only between video rows outside each other's windows."""
    device = layout.token_tags.device
    mask = torch.ones(layout.rows, layout.rows, dtype=torch.bool, device=device)
    frames = torch.tensor(windows.mask(), device=device)
    tokens = layout.tokens_per_frame
    mask[layout.video, layout.video] = frames.repeat_interleave(tokens, 0).repeat_interleave(
        tokens, 1
    )
    return mask


def linear_readout(
    layers: StateLayers,
    prefix: str,
    y: Tensor,
    raw: Mapping[str, Tensor],
    layout: PackedLayout,
    windows: Windows,
    vdn: VdnConfig,
    mid: Mid,
) -> Tensor:
    """The input of to_out_linear for the video rows, [F*S, H*D]; zero on skipped end frames.

    y: [N, C]; raw: q, k, v of all rows before norm and rotation, each [N, H, D].
    """
    branch = f"{prefix}linear_attention."
    heads, head_dim = raw["q"].shape[1:]
    tokens, first = layout.tokens_per_frame, int(vdn.skip_ends)
    count = layout.frames - 2 * first
    readout = y.new_zeros(layout.frames, tokens, heads * head_dim)
    if count <= 0:
        return readout.flatten(0, 1)

    def inner(rows: Tensor) -> Tensor:
        return rows[layout.video].unflatten(0, (-1, tokens))[first : first + count]

    frames_y = inner(y)
    features = {}
    for name in "qkv":
        x = inner(raw[name])
        if name in vdn.short_conv:
            kernels = [layers.tensor(f"{branch}short_conv.{name}_{i}.weight") for i in ("sp", "tm")]
            grid = (layout.grid_height, layout.grid_width)
            x = delta.short_conv(x.flatten(-2), *kernels, grid).unflatten(-1, (heads, head_dim))
        features[name] = delta.feature(x, unit=name != "v")
        mid[f"feat_{name}"] = features[name].flatten(0, 1)
    beta = layers.linear(f"{branch}beta_proj", frames_y).sigmoid()
    mid["beta"] = beta.transpose(1, 2)
    mid["A"], mid["B"] = delta.statistics(features["k"], features["v"], beta)
    names = ("down.weight", "up.weight", "dt_bias", "A_log")
    alpha_weights = [layers.tensor(f"{branch}alpha.{name}") for name in names]
    mid["alpha"] = alpha = delta.frame_decay(frames_y, *alpha_weights, heads)
    t, j = delta.delta_rule(mid["A"], mid["B"], alpha, vdn.delta_rule, tokens)
    mid["transition"], mid["injection"] = t, j
    mid["text_state_scaled"] = start = text_state(layers, branch, y, raw, layout, vdn, mid)
    mid["prefix_states"] = prefix_states = delta.scan(t, j, start)
    mid["suffix_states"] = suffix_states = delta.scan(t, j, start, reverse=True)
    mid["linear_state"] = states = delta.linear_states(
        prefix_states, suffix_states, start, alpha, windows, vdn.bridge, vdn.skip_ends
    )
    read = torch.einsum("jhvk,jshk->jshv", states.to(y.dtype), features["q"])
    mid["readout_raw"] = read.flatten(0, 1)
    gate = layers.linear(f"{branch}output_gate.down", frames_y)
    gate = layers.linear(f"{branch}output_gate.up", gate).sigmoid()
    gate = gate.unflatten(-1, (heads, head_dim))
    mid["output_gate"] = gate.flatten(0, 1)
    read = delta.normalise_readout(read, layers.tensor(f"{branch}norm.weight")) * gate
    readout[first : first + count] = read.flatten(-2)
    return readout.flatten(0, 1)


def text_state(
    layers: StateLayers,
    branch: str,
    y: Tensor,
    raw: Mapping[str, Tensor],
    layout: PackedLayout,
    vdn: VdnConfig,
    mid: Mid,
) -> Tensor:
    """What both scans start from, [H, D, D]: half the state that one step over the text leaves."""
    heads, head_dim = raw["k"].shape[1:]
    kind = delta.wide(y.dtype)
    if not vdn.text_state:
        return torch.zeros(heads, head_dim, head_dim, dtype=kind, device=y.device)
    k = delta.feature(raw["k"][layout.text], unit=True)
    v = delta.feature(raw["v"][layout.text], unit=False)
    beta = layers.linear(f"{branch}beta_proj", y[layout.text]).sigmoid()
    a, b = delta.statistics(k[None], v[None], beta[None])
    still = torch.ones(1, heads, head_dim, dtype=kind, device=y.device)
    _, injection = delta.delta_rule(a, b, still, vdn.delta_rule, layout.text_rows)
    mid["text_beta"], mid["text_A"], mid["text_B"] = beta.T, a[0], b[0]
    mid["text_feat_k"], mid["text_feat_v"] = k.transpose(0, 1), v.transpose(0, 1)
    return delta.TEXT_STATE_SCALE * injection[0]
