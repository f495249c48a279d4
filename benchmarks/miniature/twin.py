"""The transformer in a form that trains: a batch of clips of one layout, differentiable, fast.

Equal to engine/model/plain.py clip by clip (a test holds them together), but windows are dense
attention with gathered keys, convolutions are products with banded matrices, and the ridge step's
inverse comes from Newton's iteration with a gradient of its own. Every clip has its own times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from lowpeak.engine.model import delta
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.layout import CLOCK_AUDIO, CLOCK_CONDITION, PackedLayout
from lowpeak.engine.model.modulation import time_embedding
from lowpeak.engine.model.rope import rotary_tables
from lowpeak.engine.model.windows import Windows

Weights = Mapping[str, Tensor]
NEWTON_STEPS = 10


@dataclass(frozen=True)
class Pack:
    """A layout made ready for batches: segments of rows with one table row, key groups, angles.

    segments: (rows, kind), kind = 3 * clock + tag with clocks video, audio, condition.
    pieces: rows of [globals, first frame, inner frames of each chunk, last frame], which every
    query and key set is put together from. groups: (query pieces, key pieces) of each window; None
    where everything sees everything. spatial, temporal: which tap stands where, one-hot.
    """

    layout: PackedLayout
    segments: tuple[tuple[int, int], ...]
    pieces: tuple[int, ...]
    groups: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] | None
    windows: Windows
    cos: Tensor
    sin: Tensor
    spatial: Tensor
    temporal: Tensor
    reads: tuple[tuple[tuple[int, ...], Tensor], ...]

    @classmethod
    def of(cls, layout: PackedLayout, config: ModelConfig, device: torch.device) -> Pack:
        """Of a layout, on `device`."""
        clock = {CLOCK_AUDIO: 1, CLOCK_CONDITION: 2}
        kinds = [
            3 * clock.get(c, 0) + t
            for c, t in zip(layout.row_clocks.tolist(), layout.token_tags.tolist(), strict=True)
        ]
        segments: list[tuple[int, int]] = []
        for kind in kinds:
            if segments and segments[-1][1] == kind:
                segments[-1] = (segments[-1][0] + 1, kind)
            else:
                segments.append((1, kind))
        assert config.vdn is not None and config.vdn.anchors == "both"
        windows = Windows.of(config.vdn, layout.frames)
        cos, sin = rotary_tables(layout.position_ids, config.rope_freqs, config.rope_theta)
        pieces, groups = _pieces(windows, layout)
        return cls(
            layout.to(device),
            tuple(segments),
            pieces,
            None if windows.full_cover else groups,
            windows,
            cos.to(device),
            sin.to(device),
            _spatial(layout.grid_height, layout.grid_width, device),
            _temporal(layout.frames - 2, device),
            _reads(windows, layout.frames - 2, device),
        )


def _pieces(
    windows: Windows, layout: PackedLayout
) -> tuple[tuple[int, ...], tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]]:
    """Sizes of the pieces in rows, and the groups in piece numbers."""
    tokens, last = layout.tokens_per_frame, layout.frames - 1
    chunks = [
        [
            f
            for f in range(c * windows.group, min(last + 1, (c + 1) * windows.group))
            if 0 < f < last
        ]
        for c in range(windows.groups)
    ]
    sizes = (layout.video.start, tokens, *(tokens * len(c) for c in chunks), tokens)
    final = len(sizes) - 1
    groups: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((0, 1, final), tuple(range(len(sizes))))
    ]
    for index, inner in enumerate(chunks):
        if inner:
            near = range(
                max(0, index - windows.radius), min(len(chunks), index + windows.radius + 1)
            )
            groups.append(((2 + index,), (0, 1, *(2 + i for i in near), final)))
    return sizes, tuple(groups)


@lru_cache
def _spatial(height: int, width: int, device: torch.device) -> Tensor:
    return _one_hot(_band2d(height, width), 25).to(device)


@lru_cache
def _temporal(count: int, device: torch.device) -> Tensor:
    return _one_hot(_band1d(count), 5).to(device)


def _band2d(height: int, width: int) -> Tensor:
    """[S, S] index of the 5x5 tap that takes column s' to row s; 25 where none does."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    y, x = y.flatten(), x.flatten()
    dy, dx = y[None] - y[:, None] + 2, x[None] - x[:, None] + 2
    inside = (dy >= 0) & (dy < 5) & (dx >= 0) & (dx < 5)
    return torch.where(inside, 5 * dy + dx, 25)


def _band1d(count: int) -> Tensor:
    at = torch.arange(count)
    d = at[None] - at[:, None] + 2
    return torch.where((d >= 0) & (d < 5), d, 5)


def _one_hot(band: Tensor, taps: int) -> Tensor:
    """[taps, n * n] float32: a product with it lays taps out, its transpose sums gradients."""
    return (band.flatten()[None] == torch.arange(taps)[:, None]).float()


class Inverse(torch.autograd.Function):
    """(I + A)^-1 of symmetric positive A [..., D, D] float32 by Newton's iteration."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, a: Tensor, exact: bool) -> Tensor:  # type: ignore[override]
        one = torch.eye(a.shape[-1], device=a.device, dtype=a.dtype)
        b = one + a
        if exact:
            x = torch.cholesky_inverse(torch.linalg.cholesky(b))
        else:
            size = b.abs().sum(-1).amax(-1)[..., None, None]  # bounds the largest eigenvalue
            x = (2.0 / (1.0 + size)) * one
            for _ in range(NEWTON_STEPS):
                x = 2 * x - x @ (b @ x)
            x = (x + x.transpose(-1, -2)) / 2
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return -(x @ grad @ x), None


def forward(
    w: Weights,
    config: ModelConfig,
    pack: Pack,
    video: Tensor,
    audio: Tensor,
    text: Tensor,
    times: Tensor,
    *,
    exact: bool = False,
) -> tuple[Tensor, Tensor]:
    """Velocities of all video and audio rows.

    w: by full names; root's time and projections float32, the rest in the working type.
    video: [B, n_v, 96], audio: [B, n_a, 32], text: [B, N_t, text_dim]; times: [B, 3] of video,
    audio and conditions. exact: invert by Cholesky, for tests.
    """
    layout, batch = pack.layout, text.shape[0]
    x_text = _refine(w, text, config)
    x = torch.cat(
        [
            x_text,
            _lin(w, "proj_in", video[:, : layout.condition_video_rows]).to(x_text.dtype),
            _lin(w, "audio_proj_in", audio).to(x_text.dtype),
            _lin(w, "proj_in", video[:, layout.condition_video_rows :]).to(x_text.dtype),
        ],
        1,
    )
    temb = time_embedding(w, times.flatten(), config.freq_dim)  # [3B, time_dim]
    lit = F.silu(temb)
    for index in range(config.layers):
        at = f"transformer_blocks.{index}."
        table = _lin(w, f"{at}adaln_proj.linear", lit.to(x.dtype))
        x = block(w, at, config, pack, x, table.view(batch, 9, 6, config.hidden), exact)
    out_table = _lin(w, "norm_out.linear", lit.to(w["norm_out.linear.weight"].dtype))
    shift, scale = out_table.view(batch, 3, 2, config.hidden).to(x.dtype).unbind(2)
    y = F.rms_norm(x, x.shape[-1:], w["norm_out.norm.weight"].to(x.dtype), config.eps)
    first, last = layout.audio, layout.video
    sound = torch.addcmul(shift[:, 1:2], y[:, first], 1 + scale[:, 1:2])
    frames = torch.addcmul(shift[:, 0:1], y[:, last], 1 + scale[:, 0:1])
    return _lin(w, "proj_out", frames), _lin(w, "audio_proj_out", sound)


def block(
    w: Weights, at: str, config: ModelConfig, pack: Pack, x: Tensor, table: Tensor, exact: bool
) -> Tensor:
    """One block [B, N, C]. table: [B, 9, 6, C], rows by kind."""
    sizes = [rows for rows, _ in pack.segments]
    kinds = [kind for _, kind in pack.segments]

    def modulated(y: Tensor, shift: int, scale: int) -> Tensor:
        parts = [
            torch.addcmul(table[:, k, shift, None], p, 1 + table[:, k, scale, None])
            for p, k in zip(y.split(sizes, 1), kinds, strict=True)
        ]
        return torch.cat(parts, 1)

    def gated(x: Tensor, out: Tensor, gate: int) -> Tensor:
        parts = [
            torch.addcmul(p, table[:, k, gate, None], o)
            for p, o, k in zip(x.split(sizes, 1), out.split(sizes, 1), kinds, strict=True)
        ]
        return torch.cat(parts, 1)

    y = F.rms_norm(x, x.shape[-1:], w[f"{at}norm1.weight"], config.eps)
    y = modulated(y, 0, 1)
    x = gated(x, attention(w, f"{at}attn.", config, pack, y, exact), 2)
    y = F.rms_norm(x, x.shape[-1:], w[f"{at}norm2.weight"], config.eps)
    y = modulated(y, 3, 4)
    value, gate = _lin(w, f"{at}ff.net.0.proj", y).chunk(2, -1)
    return gated(x, _lin(w, f"{at}ff.net.2", value * F.silu(gate)), 5)


def attention(
    w: Weights, at: str, config: ModelConfig, pack: Pack, y: Tensor, exact: bool
) -> Tensor:
    """The hybrid attention of a block."""
    layout = pack.layout
    raw = {n: _lin(w, f"{at}orig.to_{n}", y).unflatten(-1, (config.heads, -1)) for n in "qkv"}
    q, k = (
        _turn(
            F.rms_norm(raw[n], raw[n].shape[-1:], w[f"{at}orig.norm_{n}.weight"], config.eps), pack
        )
        for n in "qk"
    )
    if pack.groups is None:
        out = _sdpa(q, k, raw["v"])
    else:
        out = _windowed(q, k, raw["v"], pack)
    gate = _lin(w, f"{at}softmax_gate.up", y).sigmoid()
    out = _lin(w, f"{at}orig.to_out.0", (out * gate[..., None]).flatten(2))
    if pack.groups is None:
        return out
    branch = _lin(w, f"{at}to_out_linear", linear_readout(w, at, config, pack, y, raw, exact))
    tokens = layout.tokens_per_frame
    first, last = layout.video.start + tokens, layout.video.stop - tokens
    return torch.cat([out[:, :first], out[:, first:last] + branch, out[:, last:]], 1)


def _windowed(q: Tensor, k: Tensor, v: Tensor, pack: Pack) -> Tensor:
    """Dense attention of each group over its own keys; rows come back in packed order."""
    assert pack.groups is not None
    parts = [x.split(pack.pieces, 1) for x in (q, k, v)]
    found: dict[int, Tensor] = {}
    for asked, seen in pack.groups:
        rows = torch.cat([parts[0][i] for i in asked], 1)
        keys, values = (torch.cat([part[i] for i in seen], 1) for part in parts[1:])
        out = _sdpa(rows, keys, values).split([pack.pieces[i] for i in asked], 1)
        found |= dict(zip(asked, out, strict=True))
    return torch.cat([found[i] for i in sorted(found)], 1)


def linear_readout(
    w: Weights,
    at: str,
    config: ModelConfig,
    pack: Pack,
    y: Tensor,
    raw: dict[str, Tensor],
    exact: bool,
) -> Tensor:
    """The linear branch of the inner frames, [B, J*S, H*D]."""
    layout, name = pack.layout, f"{at}linear_attention."
    tokens, count, batch = layout.tokens_per_frame, layout.frames - 2, y.shape[0]
    inner = slice(layout.video.start + tokens, layout.video.stop - tokens)
    heads, width = config.heads, config.head_dim
    wide = torch.float32

    def frames(rows: Tensor) -> Tensor:
        return rows[:, inner].unflatten(1, (count, tokens))

    fy = frames(y)
    q = delta.feature(frames(raw["q"]), unit=True)
    k = delta.feature(_short_conv(w, name, "k", frames(raw["k"]), pack), unit=True)
    v = delta.feature(_short_conv(w, name, "v", frames(raw["v"]), pack), unit=False)
    beta = F.linear(fy, w[f"{name}beta_proj.weight"]).sigmoid()
    a, b = _statistics(k, v, beta)  # [B, J, H, D, D]
    m = Inverse.apply(a, exact)
    mean = fy.mean(2, dtype=wide)
    dt = F.linear(mean, w[f"{name}alpha.down.weight"].to(wide))
    dt = F.linear(dt, w[f"{name}alpha.up.weight"].to(wide)) + w[f"{name}alpha.dt_bias"].to(wide)
    rate = w[f"{name}alpha.A_log"].to(wide).exp()[:, None]
    log_alpha = -rate * F.softplus(dt).view(batch, count, heads, width)
    transition, injection = log_alpha.exp()[..., None] * m, b @ m
    start = _text_state(w, name, y, raw, layout, exact)
    states = _states(transition, injection, start, log_alpha, pack).to(y.dtype)
    # [B, J, H, S, K] @ [B, J, H, K, V]
    read = (q.transpose(2, 3) @ states.transpose(-1, -2)).transpose(2, 3)
    gate = F.linear(fy, w[f"{name}output_gate.down.weight"])
    gate = _lin(w, f"{name}output_gate.up", gate).sigmoid().unflatten(-1, (heads, width))
    read = delta.normalise_readout(read, w[f"{name}norm.weight"]) * gate
    return read.reshape(batch, count * tokens, heads * width)


def _statistics(k: Tensor, v: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """A, B [..., H, D, D] float32 of k, v [..., S, H, D] and beta [..., S, H]."""
    k, v = k.transpose(-3, -2), v.transpose(-3, -2)  # [..., H, S, D]
    weight = beta.transpose(-2, -1)[..., None]
    a = ((k * weight).transpose(-1, -2) @ k).float()
    b = ((v * weight).transpose(-1, -2) @ k).float()
    return (a + a.transpose(-1, -2)) / 2, b


def _text_state(
    w: Weights, name: str, y: Tensor, raw: dict[str, Tensor], layout: PackedLayout, exact: bool
) -> Tensor:
    rows = layout.text
    k = delta.feature(raw["k"][:, rows], unit=True)
    v = delta.feature(raw["v"][:, rows], unit=False)
    beta = F.linear(y[:, rows], w[f"{name}beta_proj.weight"]).sigmoid()
    a, b = _statistics(k, v, beta)
    return delta.TEXT_STATE_SCALE * (b @ Inverse.apply(a, exact))


def _states(t: Tensor, j: Tensor, start: Tensor, log_alpha: Tensor, pack: Pack) -> Tensor:
    """What each inner frame reads [B, J, H, D, D]: see engine/model/delta.py linear_states."""
    batch, count, heads = t.shape[:3]
    steps = [part.transpose(0, 1).flatten(1, 2).unbind(0) for part in (t, j)]  # J of [B*H, D, D]
    start = start.flatten(0, 1)
    states = [start]
    for frame in range(count):
        states.append(torch.baddbmm(steps[1][frame], states[-1], steps[0][frame]))
    backward = [start]
    for frame in reversed(range(count)):
        backward.append(torch.baddbmm(steps[1][frame], backward[-1], steps[0][frame]))
    log = log_alpha.clamp_min(math.log(delta.ALPHA_FLOOR)).flatten(2)  # [B, J, H*D]
    found = []
    for held, (number, mask) in zip((states, backward), pack.reads, strict=True):
        read = torch.stack([held[i] for i in number]).unflatten(1, (batch, heads))
        summed = (mask[..., None] * log[:, None]).sum(2)  # a product would round to TF32
        decay = summed.exp().unflatten(-1, (heads, -1))  # [B, J, H, D]
        found.append(read.transpose(0, 1) * decay[..., None, :])
    return found[0] + found[1]


def _reads(
    windows: Windows, count: int, device: torch.device
) -> tuple[tuple[tuple[int, ...], Tensor], ...]:
    """For the states before and after a frame's window: which one, and the frames it fades over.

    Numbers count steps of a scan from either end; masks are float32 [J, J].
    """
    before, after = [], []
    masks = torch.zeros(2, count, count)
    for frame in range(count):
        low, high = (bound - 1 for bound in windows.raw_bounds(frame + 1))
        before.append(max(low, 0))
        after.append(max(count - 1 - high, 0))
        masks[0, frame, max(low, 0) : frame + 1] = 1
        masks[1, frame, frame : min(high, count - 1) + 1] = 1
    masks = masks.to(device)
    return (tuple(before), masks[0]), (tuple(after), masks[1])


def _short_conv(w: Weights, name: str, which: str, x: Tensor, pack: Pack) -> Tensor:
    """5x5 over the grid, then 5 taps over frames, as products with banded matrices.

    x: [B, J, S, H, D].
    """
    batch, count, tokens, heads, width = x.shape
    taps = w[f"{name}short_conv.{which}_sp.weight"].flatten(1).to(x.dtype)  # [C, 25]
    space = (taps @ pack.spatial.to(x.dtype)).view(-1, tokens, tokens)  # [C, S, S]
    taps = w[f"{name}short_conv.{which}_tm.weight"].flatten(1).to(x.dtype)
    time = (taps @ pack.temporal.to(x.dtype)).view(-1, count, count)  # [C, J, J]
    rows = x.flatten(3).permute(3, 2, 0, 1).reshape(heads * width, tokens, batch * count)
    rows = (space @ rows).view(heads * width, tokens * batch, count)
    rows = (rows @ time.transpose(1, 2)).view(heads, width, tokens, batch, count)
    return rows.permute(3, 4, 2, 0, 1)


def _turn(x: Tensor, pack: Pack) -> Tensor:
    half = pack.cos.shape[-1]
    cos, sin = (t.to(x.dtype)[None, :, None] for t in (pack.cos, pack.sin))
    a, b = x[..., :half], x[..., half : 2 * half]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., 2 * half :]], -1)


def _sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    out = F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in (q, k, v)))
    return out.transpose(1, 2)


def _refine(w: Weights, text: Tensor, config: ModelConfig) -> Tensor:
    x = _lin(w, "context_embedder", text)
    for index in range(config.refiner_layers):
        at = f"token_refiner.refiner_blocks.{index}."
        y = F.rms_norm(x, x.shape[-1:], w[f"{at}norm1.weight"], config.eps)
        q, k, v = (_lin(w, f"{at}attn.to_{n}", y).unflatten(-1, (config.heads, -1)) for n in "qkv")
        q = F.rms_norm(q, q.shape[-1:], w[f"{at}attn.norm_q.weight"], config.eps)
        k = F.rms_norm(k, k.shape[-1:], w[f"{at}attn.norm_k.weight"], config.eps)
        x = x + _lin(w, f"{at}attn.to_out.0", _sdpa(q, k, v).flatten(2))
        y = F.rms_norm(x, x.shape[-1:], w[f"{at}norm2.weight"], config.eps)
        value, gate = _lin(w, f"{at}ff.net.0.proj", y).chunk(2, -1)
        x = x + _lin(w, f"{at}ff.net.2", value * F.silu(gate))
    return F.rms_norm(x, x.shape[-1:], w["token_refiner.final_norm.weight"], config.eps)


def _lin(w: Weights, name: str, x: Tensor) -> Tensor:
    weight = w[f"{name}.weight"]
    bias = w.get(f"{name}.bias")
    return F.linear(x.to(weight.dtype), weight, None if bias is None else bias.to(weight.dtype))
