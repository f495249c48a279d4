"""Latent upscaler for small cards: two planes of the clip, everything else a few frames at a time.

A plane is [F, H, W, C]. Every layer walks the clip in tiles of frames with a halo, twice where it
normalises: once for GroupNorm's statistics, which belong to the whole clip, once for the work. A
residual block keeps x in one plane, its middle in the other, and adds its result to x in place. A
3x3x3 convolution is a 3x3 convolution over three frames stacked along the channels, so that one
accumulator sums all 27 taps. Weights come a block at a time. The tiling depends on the clip's size
alone (upscaler_cost), so the result does not depend on free memory. `upscaler` is the oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ..errors import Cancelled
from ..vae.config import PUBLISHED_VIDEO_MEAN, PUBLISHED_VIDEO_STD
from .canvas import lift_scale
from .two_pass import Lift
from .upscaler import NORM_EPS, embed_scale, modulation
from .upscaler_cost import tile_frames
from .upscaler_file import NORM_GROUPS, UpscalerConfig, UpscalerFile

Weights = Mapping[str, Tensor]
WeightsOf = Callable[[str], Weights]
"""Tensors whose bare name starts with the argument, on the device, in the computing dtype."""


def streamed_weights(
    file: UpscalerFile, device: torch.device | str, dtype: torch.dtype
) -> WeightsOf:
    """Weights read from the file when a layer needs them; nothing is kept."""
    return lambda part: file.read(part, device=device, dtype=dtype)


def tiled_lift(
    file: UpscalerFile,
    device: torch.device | str,
    dtype: torch.dtype | None = None,
    *,
    is_cancelled: Callable[[], bool] | None = None,
    on_layer: Callable[[int, int], None] | None = None,
) -> Lift:
    """The upscaler of a file as the `lift` of two_pass.lift_and_crop.

    dtype: of the computation; by default float16, and float32 on a CPU, which has no fast halves.
    """
    if dtype is None:
        dtype = torch.float32 if torch.device(device).type == "cpu" else torch.float16
    weights_of = streamed_weights(file, device, dtype)

    def lift(latents: Tensor, size: tuple[int, int]) -> Tensor:
        """`upscale_tiled` by the weights of this file."""
        return upscale_tiled(
            latents,
            size,
            weights_of,
            file.config,
            is_cancelled=is_cancelled,
            on_layer=on_layer,
        )

    return lift


@torch.no_grad()
def upscale_tiled(
    latents: Tensor,
    size: tuple[int, int],
    weights_of: WeightsOf,
    config: UpscalerConfig,
    *,
    scale: float | None = None,
    mean: Sequence[float] = PUBLISHED_VIDEO_MEAN,
    std: Sequence[float] = PUBLISHED_VIDEO_STD,
    is_cancelled: Callable[[], bool] | None = None,
    on_layer: Callable[[int, int], None] | None = None,
) -> Tensor:
    """As `upscaler.upscale`: latents [1, 24, F, h, w] -> [1, 24, F, *size] float32.

    Device and dtype are those of the weights; the result is on the device of `latents`.
    is_cancelled: asked before every layer; raises Cancelled.  on_layer(done, of): progress.
    """
    if tuple(latents.shape[-2:]) == tuple(size):
        return latents
    source = int(latents.shape[-2]), int(latents.shape[-1])
    embed = weights_of("embed.")
    embedding = embed_scale(lift_scale(source, size) if scale is None else scale, embed)
    vectors = [torch.tensor(v, device=embedding.device, dtype=embedding.dtype) for v in (mean, std)]
    z = latents[0].permute(1, 2, 3, 0).to(embedding)
    plane = (z - vectors[0]) / vectors[1]
    layers = [*config.entries("in_blocks"), *config.entries("out_blocks")]
    last_of_the_small = config.entries("in_blocks")[-1][0]
    plane = _convolve_whole(plane, weights_of("conv_in."), "conv_in")
    spare = torch.empty_like(plane)
    for done, (name, temporal) in enumerate(layers):
        if is_cancelled is not None and is_cancelled():
            raise Cancelled(f"the latent upscaler, before layer {done + 1} of {len(layers)}")
        weights = weights_of(f"{name}.")
        if temporal:
            _temporal_conv(plane, spare, name, weights)
            plane, spare = spare, plane
        else:
            _residual_block(plane, spare, name, weights, embedding)
        del weights
        if name == last_of_the_small:
            del spare
            plane = _resize(plane, size)
            spare = torch.empty_like(plane)
        if on_layer is not None:
            on_layer(done + 1, len(layers))
    del spare
    norm = _normaliser(plane, weights_of("norm_out."), "norm_out")
    out = _convolve_whole(plane, weights_of("conv_out."), "conv_out", norm)
    out = out * vectors[1] + vectors[0]
    return out.permute(3, 0, 1, 2)[None].float().to(latents.device).contiguous()


@dataclass(frozen=True)
class _Affine:
    """SiLU(x * gain + offset) with GroupNorm folded in: per-channel [C] float32."""

    gain: Tensor
    offset: Tensor

    def modulated(self, both: Tensor) -> _Affine:
        """Followed by * (1 + scale) + shift; both: [1, 2C], scale then shift."""
        scale, shift = both[0].float().chunk(2)
        return _Affine(self.gain * (1 + scale), self.offset * (1 + scale) + shift)

    def apply(self, x: Tensor) -> Tensor:
        """[n, H, W, C] in any dtype -> activation in float32."""
        wide = x.to(torch.float32, copy=True)
        return functional.silu(wide.mul_(self.gain).add_(self.offset), inplace=True)


def _normaliser(plane: Tensor, weights: Weights, name: str) -> _Affine:
    """GroupNorm's statistics over the whole plane, gathered tile by tile.

    Tiles are merged with the pairwise update of mean and squared deviation (Chan et al.) in
    float64, so a clip of any length loses nothing against one pass.
    """
    count, mean, deviation = 0, None, None
    for frames in _tiles(plane):
        tile = plane[frames].float().unflatten(-1, (NORM_GROUPS, -1))
        variance, average = torch.var_mean(tile, dim=(0, 1, 2, 4), correction=0)
        size = tile.numel() // NORM_GROUPS
        average, squares = average.double(), variance.double() * size
        if mean is None or deviation is None:
            count, mean, deviation = size, average, squares
            continue
        step, total = average - mean, count + size
        mean = mean + step * (size / total)
        deviation = deviation + squares + step.square() * (count * size / total)
        count = total
    assert mean is not None and deviation is not None
    width = plane.shape[-1] // NORM_GROUPS
    rate = (deviation / count + NORM_EPS).rsqrt().repeat_interleave(width)
    gain = weights[f"{name}.weight"].double() * rate
    offset = weights[f"{name}.bias"].double() - mean.repeat_interleave(width) * gain
    return _Affine(gain.float(), offset.float())


def _residual_block(
    x: Tensor, middle: Tensor, name: str, weights: Weights, embedding: Tensor
) -> None:
    """x += block(x) in place; `middle` is overwritten."""
    norm = _normaliser(x, weights, f"{name}.in_layers.0")
    kernel = _stacked_kernel(weights[f"{name}.in_layers.2.weight"])
    bias = weights[f"{name}.in_layers.2.bias"]
    for frames in _tiles(x):
        middle[frames] = _convolve(x, frames, kernel, bias, norm)
    norm = _normaliser(middle, weights, f"{name}.out_norm")
    norm = norm.modulated(modulation(name, weights, embedding))
    kernel = _stacked_kernel(weights[f"{name}.out_layers.2.weight"])
    bias = weights[f"{name}.out_layers.2.bias"]
    for frames in _tiles(x):
        x[frames] += _convolve(middle, frames, kernel, bias, norm)


def _temporal_conv(x: Tensor, out: Tensor, name: str, weights: Weights) -> None:
    """out = x + pointwise(depthwise in time(SiLU(GN x))). The halo reads x, so x stays whole."""
    norm = _normaliser(x, weights, f"{name}.norm")
    taps = weights[f"{name}.dwconv.weight"].flatten(1).T.float()  # [taps, C]
    bias = weights[f"{name}.dwconv.bias"].float()
    point = weights[f"{name}.pwconv.weight"].flatten(1)
    reach = len(taps) // 2
    for frames in _tiles(x):
        first, last = max(frames.start - reach, 0), min(frames.stop + reach, len(x))
        active = norm.apply(x[first:last]).to(x.dtype).float()
        total = bias.expand(frames.stop - frames.start, *x.shape[1:]).contiguous()
        for tap in range(len(taps)):
            # Output frame f reads frame f + tap - reach; frames outside the clip are zero.
            begin = max(frames.start, first - tap + reach)
            end = min(frames.stop, last - tap + reach)
            if begin < end:
                shift = tap - reach - first
                total[begin - frames.start : end - frames.start].addcmul_(
                    active[begin + shift : end + shift], taps[tap]
                )
        del active
        mixed = functional.linear(total.to(x.dtype), point, weights[f"{name}.pwconv.bias"])
        torch.add(x[frames], mixed, out=out[frames])


def _resize(plane: Tensor, size: tuple[int, int]) -> Tensor:
    """[F, h, w, C] -> [F, *size, C], bilinear in space, align_corners false."""
    out = plane.new_empty(len(plane), *size, plane.shape[-1])
    for frames in _tiles(out):
        small = plane[frames].permute(0, 3, 1, 2)
        big = functional.interpolate(small, size=size, mode="bilinear", align_corners=False)
        out[frames] = big.permute(0, 2, 3, 1)
    return out


def _convolve_whole(x: Tensor, weights: Weights, name: str, norm: _Affine | None = None) -> Tensor:
    """A 3x3x3 convolution into a new plane."""
    kernel, bias = _stacked_kernel(weights[f"{name}.weight"]), weights[f"{name}.bias"]
    out = x.new_empty(*x.shape[:3], len(bias))
    for frames in _tiles(x):
        out[frames] = _convolve(x, frames, kernel, bias, norm)
    return out


def _convolve(
    x: Tensor, frames: slice, kernel: Tensor, bias: Tensor, norm: _Affine | None
) -> Tensor:
    """Frames of a 3x3x3 convolution of SiLU(norm x), zeros outside the clip: [n, H, W, C_out].

    kernel: [C_out, 3 C_in, 3, 3] from `_stacked_kernel`.
    """
    first, last = max(frames.start - 1, 0), min(frames.stop + 1, len(x))
    active = x[first:last] if norm is None else norm.apply(x[first:last]).to(x.dtype)
    count, channels = frames.stop - frames.start, x.shape[-1]
    stacked = x.new_empty(count, *x.shape[1:3], 3 * channels)
    for tap in range(3):
        part = stacked[..., tap * channels : (tap + 1) * channels]
        begin = frames.start + tap - 1 - first  # index in `active` of the first frame's neighbour
        low, high = max(begin, 0), min(begin + count, last - first)
        part[: low - begin] = 0
        part[low - begin : high - begin] = active[low:high]
        part[high - begin :] = 0
    del active
    out = functional.conv2d(stacked.permute(0, 3, 1, 2), kernel, bias, padding=1)
    return out.permute(0, 2, 3, 1)


def _stacked_kernel(weight: Tensor) -> Tensor:
    """[C_out, C_in, 3, 3, 3] -> [C_out, 3 C_in, 3, 3], taps in time slowest, channels last."""
    kernel = weight.transpose(1, 2).flatten(1, 2)
    return kernel.contiguous(memory_format=torch.channels_last)


def _tiles(plane: Tensor) -> Iterator[slice]:
    """Slices of frames, in order."""
    step = tile_frames(plane.shape[1], plane.shape[2])
    for start in range(0, len(plane), step):
        yield slice(start, min(start + step, len(plane)))
