"""The video encoder in closed form: principal components of moving edges, level by level.

The published structure holds a linear map of each latent's 4 x 16 x 16 pixels: residual branches
add next to nothing, strided convolutions take components of blocks of 2 x 2 pixels (and 2 frames),
the last group norm is held still by one large constant a group, and pairs of opposite sign make
SiLU the identity: silu(x) - silu(-x) = x. Nothing is trained, latents are simple, and tiles cannot
differ from whole pictures.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lowpeak.engine.vae.config import VideoVaeConfig

from . import data
from .models import VIDEO, video_state
from .vae_twin import to_model

State = dict[str, Tensor]
COMPONENTS = 20  # of 24 channels: five pairs in each of four groups; the others stay 0
STEADY = 64.0  # the constant that a group norm sees
KEPT = (8, 16, 32, 32)  # channels behind each stride
LOG_VARIANCE = -12.0
NEARLY_ZERO = 1e-7
CLIPS = 160


def blocks(x: Tensor, time: int) -> Tensor:
    """[B, C, T, H, W] to [B, C * time * 4, T', H / 2, W / 2]: what a stride's taps see.

    With time 2, output frame j sees frames 2j - 1 and 2j; before the first there is nothing: 0.
    """
    if time == 2:
        x = torch.cat([torch.zeros_like(x[:, :, :1]), x], 2)
    b, c, t, h, w = x.shape
    parts = x.reshape(b, c, t // time, time, h // 2, 2, w // 2, 2)
    return parts.permute(0, 1, 3, 5, 7, 2, 4, 6).reshape(b, -1, t // time, h // 2, w // 2)


def components(rows: Tensor, count: int) -> Tensor:
    """[count, n]: the principal directions about zero of rows [N, n], as bfloat16 holds them."""
    moment = rows.double().T @ rows.double() / len(rows)
    found = torch.linalg.eigh(moment)[1].flip(1)[:, :count].T
    return found.bfloat16().float().contiguous()


@torch.no_grad()
def solve(config: VideoVaeConfig = VIDEO, clips: int = CLIPS) -> list[Tensor]:
    """The matrices of the four strides and of the final choice, from generated clips."""
    found: list[Tensor] = []
    strides = config.time_strides[:4]
    x = torch.cat([_sample(torch.arange(16) + 7_000_000 + first) for first in range(0, clips, 16)])
    for time, count in zip(strides, KEPT, strict=True):
        seen = blocks(x, time)
        whole = seen[:, :, 1:] if time == 2 else seen  # frames with a past
        matrix = components(whole.transpose(0, 1).flatten(1).T, count)
        found.append(matrix)
        x = torch.einsum("oc,bcthw->bothw", matrix, seen)
    found.append(components(x[:, :, 1:].transpose(0, 1).flatten(1).T, COMPONENTS))
    return found


def _sample(at: Tensor) -> Tensor:
    """Windows of 64 x 64 pixels and 17 frames where there are edges: [N, 3, 17, 64, 64]."""
    scenes = data.Scenes.of(at)
    rims = data.uniform(at, 22) < 0.15
    grey = torch.tensor(list(data.BACKGROUNDS.values()))[scenes.background]
    grounds = grey[:, None].expand(-1, 3)
    night = (data.uniform(at, 21) < 0.1)[:, None]
    grounds = torch.where(night, torch.tensor(data.NIGHT), grounds)
    frames = 22 if int(at[0]) % 32 else 39
    moments = data.moments_of(frames, "cpu", 0, 17)
    top = int(data.uniform(at[:1], 30) * 8) * 16
    top = min(128, max(32, top))
    box = (top, 48, 64, 160)
    return to_model(data.render(scenes, moments, 256, 256, crop=box, grounds=grounds, rims=rims))


def project(pixels: Tensor, matrices: list[Tensor], config: VideoVaeConfig = VIDEO) -> Tensor:
    """Latents [B, 24, T', H/16, W/16] of a clip [B, 3, 1 + 4n, H, W], without the network."""
    x = pixels
    for time, matrix in zip(config.time_strides[:4], matrices[:4], strict=True):
        x = torch.einsum("oc,bcthw->bothw", matrix.to(x), blocks(x, time))
    x = torch.einsum("oc,bcthw->bothw", matrices[4].to(x), x)
    empty = x.new_zeros(x.shape[0], config.latent_channels - COMPONENTS, *x.shape[2:])
    return torch.cat([x, empty], 1) * scale_of(config)


def matrices_of(state: State, config: VideoVaeConfig = VIDEO) -> list[Tensor]:
    """The matrices of `solve`, read back out of an encoder that `video_start` made."""
    found, channels = [], 3
    for level, (time, count) in enumerate(zip(config.time_strides, KEPT, strict=False)):
        kernel = state[f"encoder.down_blocks.{level}.downsamplers.0.conv.weight"]
        taps = kernel[:count, :channels, 3 - time :, :2, :2]
        found.append(taps.reshape(count, -1).float())
        channels = count
    weight = state["encoder.down_blocks.4.resnets.0.conv_shortcut.weight"].flatten(1).float()
    rows = [weight[_place(number, config)[0]] for number in range(COMPONENTS)]
    return [*found, torch.stack(rows) / scale_of(config)]


def encode(pixels: Tensor, matrices: list[Tensor], config: VideoVaeConfig = VIDEO) -> Tensor:
    """Latents [B, 24, 5n+2, h, w] of [B, 3, 17n+5, H, W] in the model's colours; 1 of 1 frame."""
    parts = pixels.split(config.clip_frames, dim=2)
    return torch.cat([project(part, matrices, config) for part in parts], 2)


def scale_of(config: VideoVaeConfig) -> float:
    """Brings the sum over 4 x 16 x 16 values back to the size of one."""
    return 1 / (config.stride_px * 2)


def synthesis(matrices: list[Tensor], config: VideoVaeConfig = VIDEO) -> Tensor:
    """[3 * 4 * 256, 24]: the pixels of a latent, in the order of the decoder's output layer."""
    side = config.stride_px
    base = torch.eye(3 * 4 * side * side).view(-1, 3, 4, side, side)
    x = torch.cat([torch.zeros_like(base[:, :, :1]), base], 2)
    out = []
    for part in x.split(256):
        out.append(project(part, matrices, config)[:, :, 1, 0, 0])
    return torch.cat(out) / scale_of(config) ** 2


def video_start(seed: int = 0, config: VideoVaeConfig = VIDEO, clips: int = CLIPS) -> State:
    """All of a video autoencoder's weights: the encoder solved, the decoder its linear inverse."""
    state = video_state(seed)
    matrices = solve(config, clips)
    generator = torch.Generator().manual_seed(seed)
    for name, value in state.items():
        if not name.startswith(("encoder.", "quant_conv")):
            continue
        if "norm" in name and name.endswith("weight"):
            value.fill_(1.0)
        else:  # readers take a tensor of zeros for a damaged file
            value.copy_(NEARLY_ZERO * torch.randn(value.shape, generator=generator))
    state["encoder.conv_in.weight"][range(3), range(3), 2, 1, 1] = 1.0
    channels = 3
    for level, (time, count) in enumerate(zip(config.time_strides, KEPT, strict=False)):
        _shortcut(state, level, channels)
        taps = matrices[level].view(count, channels, time, 2, 2)
        kernel = state[f"encoder.down_blocks.{level}.downsamplers.0.conv.weight"]
        kernel[:count, :channels, 3 - time :, :2, :2] = taps
        channels = count
    _pairs(state, matrices[4] * scale_of(config), config)
    wide = config.latent_channels
    state["quant_conv.weight"].flatten(1)[:] = torch.eye(2 * wide)
    state["quant_conv.bias"][wide:] = LOG_VARIANCE
    _start_decoder(state, matrices, config)
    return state


def _place(number: int, config: VideoVaeConfig) -> tuple[int, int]:
    """The two channels, of sign + and -, of a component."""
    width = config.encoder_widths[-1] // config.norm_groups
    at = number % config.norm_groups * width + 1 + 2 * (number // config.norm_groups)
    return at, at + 1


def _shortcut(state: State, level: int, channels: int) -> None:
    name = f"encoder.down_blocks.{level}.resnets.0.conv_shortcut.weight"
    if name in state:
        state[name].flatten(1)[range(channels), range(channels)] = 1.0


def _pairs(state: State, matrix: Tensor, config: VideoVaeConfig) -> None:
    """Components with both signs, one constant a group, and the layers that undo them."""
    name = "encoder.down_blocks.4.resnets.0.conv_shortcut"
    weight, bias = state[f"{name}.weight"].flatten(1), state[f"{name}.bias"]
    width = config.encoder_widths[-1] // config.norm_groups
    deviation = (STEADY**2 * (width - 1) / width**2) ** 0.5
    scale, shift = state["encoder.norm_out.weight"], state["encoder.norm_out.bias"]
    kernel = state["encoder.conv_out.weight"]
    for number, row in enumerate(matrix):
        for sign, at in zip((1, -1), _place(number, config), strict=True):
            weight[at] = sign * row
            scale[at], shift[at] = deviation, STEADY / width
            kernel[number, at, 2, 1, 1] = sign
    bias[range(0, config.encoder_widths[-1], width)] = STEADY
    scale[range(0, config.encoder_widths[-1], width)] = 0.0


def _start_decoder(state: State, matrices: list[Tensor], config: VideoVaeConfig) -> None:
    """Starts the decoder as the linear inverse, in place: two large constants steady its norms.

    Blocks write to the other channels at first, so training begins with that picture.
    """
    width, wide = config.width, COMPONENTS
    steady = 40.0
    deviation = steady * (2 / width) ** 0.5
    gain = 2.0
    state["post_quant_conv.weight"].flatten(1)[:] = torch.eye(config.latent_channels)
    state["post_quant_conv.bias"].zero_()
    rows, bias = state["decoder.proj_in.weight"], state["decoder.proj_in.bias"]
    bias.zero_()
    rows[:wide].zero_()
    rows[-2:].zero_()
    rows[range(wide), range(wide)] = gain
    bias[-2:] = torch.tensor([steady, -steady])
    head = state["decoder.proj_out.weight"]
    head.zero_()
    head[:, :wide] = synthesis(matrices, config)[:, :wide] / gain
    state["decoder.proj_out.bias"].zero_()
    state["decoder.norm_out.weight"].fill_(deviation)
    state["decoder.norm_out.weight"][-2:] = 0.0
    for index in range(config.blocks):
        at = f"decoder.transformer_blocks.{index}."
        for name in ("norm1.weight", "norm2.weight"):
            state[at + name].fill_(deviation)
            state[at + name][-2:] = 0.02
        for name in ("attn.to_out.0.weight", "ff.net.2.weight"):
            state[at + name][:wide].zero_()
            state[at + name][-2:].zero_()
