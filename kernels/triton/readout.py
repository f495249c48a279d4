"""Linear readout, one program a row tile and head: features of q, two products, norm and gate."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..tuning import for_width, tuned


@triton.jit
def _readout(
    raw, states, norm, hidden, up, bias, out, tokens, heads, hidden_stride, eps, tiles,
    D: tl.constexpr, G: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    frame = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    head = tl.program_id(1)
    s = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    here = (s < tokens)[:, None]
    row = (frame * tokens + s)[:, None]
    d = tl.arange(0, D)
    g = tl.arange(0, G)
    channel = head * D + d
    q = tl.load(raw + row * heads * D + channel[None, :], here, 0.0).to(tl.float32)
    q = q * tl.sigmoid(q)
    q = q / tl.maximum(tl.sqrt(tl.sum(q * q, 1)), 1e-6)[:, None]
    at = states + (frame * heads + head) * D * D + d[None, :] * D + d[:, None]  # [key, value]
    state = tl.load(at)
    r = tl.dot(q.to(state.dtype), state, input_precision="ieee")
    r = r * tl.rsqrt(tl.sum(r * r, 1) / D + eps)[:, None]
    r = r * tl.load(norm + d).to(tl.float32)[None, :]
    h = tl.load(hidden + row * hidden_stride + g[None, :], here, 0.0)
    u = tl.load(up + channel[None, :] * G + g[:, None])
    gate = tl.dot(h, u.to(h.dtype), input_precision="ieee")
    gate += tl.load(bias + channel).to(tl.float32)[None, :]
    value = r * tl.sigmoid(gate)
    tl.store(out + row * heads * D + channel[None, :], value.to(out.dtype.element_ty), here)


def linear_readout(
    raw: Tensor,
    states: Tensor,
    norm_weight: Tensor,
    gate_hidden: Tensor,
    gate_weight: Tensor,
    gate_bias: Tensor,
    *,
    eps: float,
) -> Tensor:
    """As kernels.reference.readout.linear_readout. gate_hidden may be a column slice."""
    frames, heads, width, _ = states.shape
    tokens = raw.shape[0] // frames
    out = torch.empty_like(raw)
    launch = tuned(for_width("linear_readout", width), raw.device)
    tiles = triton.cdiv(tokens, launch["BLOCK_M"])
    _readout[(frames * tiles, heads)](
        raw, states, norm_weight, gate_hidden, gate_weight, gate_bias, out, tokens, heads,
        gate_hidden.stride(0), eps, tiles,
        D=width, G=gate_weight.shape[1], **launch,
    )  # fmt: skip
    return out
