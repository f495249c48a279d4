"""Short convolutions of the linear branch and the features made from them.

Depthwise 5x5 in space, then 5 taps in time, both zero padded; then SiLU, and for keys an L2 norm
over the head (model sheet b.4). Frames live in a ring of R frames (slot = frame % R) so that a
chunk-wise sweep keeps a two-frame halo without moving anything.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

L2_EPS = 1e-6


def conv_taps(weight: Tensor) -> Tensor:
    """The taps [C, 1, 5, 5] or [C, 1, 5] as this implementation reads them; made once a block."""
    return weight


def conv_spatial(
    rows: Tensor, weight: Tensor | None, ring: Tensor, *, first: int, grid: tuple[int, int]
) -> None:
    """Depthwise 5x5 of whole frames, into the ring.

    rows: [n*S, C], n frames in row order; weight: [C, 1, 5, 5], None copies; ring: [R, S, C],
    slots first..first+n-1 (modulo R) are written; grid: (height, width) in tokens, S = h*w.
    """
    height, width = grid
    channels = ring.shape[2]
    frames = rows.shape[0] // (height * width)
    out = rows.view(frames, height * width, channels)
    if weight is not None:
        image = out.view(frames, height, width, channels).permute(0, 3, 1, 2)
        image = F.conv2d(image, weight.to(rows.dtype), padding=2, groups=channels)
        out = image.permute(0, 2, 3, 1).reshape(frames, height * width, channels)
    for index in range(frames):
        ring[(first + index) % ring.shape[0]] = out[index]


def conv_temporal_features(
    ring: Tensor,
    weight: Tensor | None,
    beta: Tensor,
    *,
    first: int,
    count: int,
    low: int,
    high: int,
    heads: int,
    normalise: bool,
) -> Tensor:
    """Five taps in time, SiLU, the L2 norm if asked, and the square root of beta.

    ring: [R, S, C] spatially convolved frames; weight: [C, 1, 5], tap a meets frame j+a-2, None
    skips the taps; beta: [F*S, H], by absolute frame; output frames first..first+count-1; frames
    outside low..high count as zero. Returns sqrt(beta) * feature, [count, H, S, D] in ring's dtype,
    so that both statistics are plain products (design: chunk-major notes, the Gram form).
    """
    slots, tokens, channels = ring.shape
    wide = torch.promote_types(ring.dtype, torch.float32)
    outputs = []
    for frame in range(first, first + count):
        if weight is None:
            total = ring[frame % slots].to(wide)
        else:
            total = torch.zeros(tokens, channels, dtype=wide, device=ring.device)
            for tap in range(5):
                source = frame + tap - 2
                if low <= source <= high:
                    total += weight[:, 0, tap].to(wide) * ring[source % slots].to(wide)
        value = F.silu(total).view(tokens, heads, -1)
        if normalise:
            value = value / value.norm(dim=-1, keepdim=True).clamp_min(L2_EPS)
        scale = beta[frame * tokens : (frame + 1) * tokens].to(wide).sqrt()
        outputs.append((value * scale[..., None]).permute(1, 0, 2).to(ring.dtype))
    return torch.stack(outputs)
