"""Bytes that the tiled latent upscaler needs, from shapes alone. Standard library only."""

from __future__ import annotations

TILE_VOXELS = 16_384  # voxels of one tile: large enough for the matrix units, small against a plane
CUBE_TAPS = 27
FLOAT32_BYTES = 4


def tile_frames(height: int, width: int) -> int:
    """Latent frames that are worked on at a time.

    A function of the frame's size alone: the tiling decides how sums are rounded, so it must not
    depend on the memory that happens to be free.
    """
    return max(1, TILE_VOXELS // (height * width))


def entry_weight_bytes(width: int, dtype_bytes: int) -> int:
    """Weights of one residual block: two 3x3x3 convolutions (the vectors are small change)."""
    return 2 * CUBE_TAPS * width * width * dtype_bytes


def workspace_bytes(frames: int, h: int, w: int, width: int, dtype_bytes: int) -> int:
    """Device bytes at the peak of `upscaler_tiled.upscale_tiled`, libraries' own not included.

    frames, h, w: latent size of the lifted clip.  width: channels of the network.
    Two activation planes of the whole clip; of one tile: its frames and halo in float32, the
    activation with its halo, three frames stacked for every frame, the result; the weights of one
    block as read and as laid out for the convolution.
    """
    voxels = h * w
    frame = voxels * width * dtype_bytes
    tile = min(tile_frames(h, w), frames)
    planes = 2 * frames * frame
    float32 = 2 * (tile + 4) * voxels * width * FLOAT32_BYTES
    activations = ((tile + 2) + 3 * tile + tile) * frame
    return planes + float32 + activations + 2 * entry_weight_bytes(width, dtype_bytes)
