"""Every tensor of the two autoencoders with its shape, from a configuration (diffusers' names)."""

from __future__ import annotations

from .config import AudioVaeConfig, Shape, VideoVaeConfig

RESAMPLING_TAPS = 12


def block_shapes(config: VideoVaeConfig) -> dict[str, Shape]:
    """One block of the video decoder, names inside the block (facts e.2)."""
    width, ffn = config.width, config.ffn_width
    shapes: dict[str, Shape] = {}
    for name in ("norm1.weight", "norm2.weight", "scale1", "scale2"):
        shapes[name] = (width,)
    for name in ("attn.to_q", "attn.to_k", "attn.to_v", "attn.to_out.0"):
        shapes |= _biased(name, (width, width))
    shapes |= _biased("ff.net.0.proj", (2 * ffn, width))
    shapes |= _biased("ff.net.2", (width, ffn))
    return shapes


def root_shapes(config: VideoVaeConfig) -> dict[str, Shape]:
    """The video decoder outside its blocks, names as in `decode_video`'s root."""
    width, latent = config.width, config.latent_channels
    return {
        **_biased("post_quant_conv", (latent, latent, 1, 1, 1)),
        **_biased("proj_in", (width, latent)),
        "register_tokens": (1, config.register_tokens, width),
        "norm_out.weight": (width,),
        "norm_out.bias": (width,),
        **_biased("proj_out", (config.patch_values, width)),
    }


def encoder_shapes(config: VideoVaeConfig) -> dict[str, Shape]:
    """The video encoder, names as in `encode_video`'s tensors (facts e.1)."""
    widths = config.encoder_widths
    moments = 2 * config.latent_channels
    shapes = _biased("conv_in", (widths[0], config.pixel_channels, 3, 3, 3))
    before = widths[0]
    for level, width in enumerate(widths):
        for layer in range(config.encoder_layers):
            at = f"down_blocks.{level}.resnets.{layer}"
            shapes |= _norm(f"{at}.norm1", before) | _norm(f"{at}.norm2", width)
            shapes |= _biased(f"{at}.conv1", (width, before, 3, 3, 3))
            shapes |= _biased(f"{at}.conv2", (width, width, 3, 3, 3))
            if before != width:
                shapes |= _biased(f"{at}.conv_shortcut", (width, before, 1, 1, 1))
            before = width
        if config.space_strides[level] * config.time_strides[level] > 1:
            conv = f"down_blocks.{level}.downsamplers.0.conv"
            shapes |= _biased(conv, (width, width, 3, 3, 3))
    shapes |= _norm("norm_out", before) | _biased("conv_out", (moments, before, 3, 3, 3))
    return shapes | _biased("quant_conv", (moments, moments, 1, 1, 1))


def audio_shapes(config: AudioVaeConfig) -> dict[str, Shape]:
    """The audio autoencoder with folded convolutions: one `.weight` each (facts e.7)."""
    return {**_audio_encoder(config), **_audio_projection(config), **_audio_decoder(config)}


def _audio_encoder(config: AudioVaeConfig) -> dict[str, Shape]:
    width = config.encoder_width
    shapes = _biased("encoder.block.0", (width, 1, 7))
    for stage, stride in enumerate(config.encoder_strides):
        at = f"encoder.block.{stage + 1}.block"
        for unit in range(len(config.residual_dilations)):
            inner = f"{at}.{unit}.block"
            shapes[f"{inner}.0.alpha"] = shapes[f"{inner}.2.alpha"] = (1, width, 1)
            shapes |= _biased(f"{inner}.1", (width, width, 7))
            shapes |= _biased(f"{inner}.3", (width, width, 1))
        last = len(config.residual_dilations)
        shapes[f"{at}.{last}.alpha"] = (1, width, 1)
        shapes |= _biased(f"{at}.{last + 1}", (2 * width, width, 2 * stride))
        width *= 2
    end = len(config.encoder_strides) + 1
    shapes[f"encoder.block.{end}.alpha"] = (1, width, 1)
    return shapes | _biased(f"encoder.block.{end + 1}", (config.latent_width, width, 3))


def _audio_projection(config: AudioVaeConfig) -> dict[str, Shape]:
    wide, narrow = config.latent_width, config.latent_channels
    shapes: dict[str, Shape] = {}
    shapes |= _norm("pre_block.norm1", wide) | _norm("pre_block.norm3", wide)
    shapes |= _norm("pre_block.norm2", narrow) | _norm("pre_block.mlp.norm", narrow)
    shapes["pre_block.attn.qkv.weight"] = (3 * wide, wide)
    for name in ("q_bias", "v_bias", "zero_k_bias"):
        shapes[f"pre_block.attn.{name}"] = (wide,)
    shapes |= _biased("pre_block.attn.proj", (narrow, narrow))
    shapes |= _biased("pre_block.proj", (narrow, wide))
    for name in ("w0", "w1"):
        shapes |= _biased(f"pre_block.mlp.{name}", (2 * narrow, narrow))
    shapes |= _biased("pre_block.mlp.w2", (narrow, 2 * narrow))
    for name in ("mean_proj", "logs_proj"):
        shapes |= _biased(name, (narrow, narrow, 1))
    return shapes


def _audio_decoder(config: AudioVaeConfig) -> dict[str, Shape]:
    width = config.decoder_width
    shapes = _biased("dec_in_proj", (config.latent_width, config.latent_channels, 1))
    shapes |= _biased("decoder.conv_pre", (width, config.latent_width, 7))
    kernels = config.block_kernels
    for stage, kernel in enumerate(config.decoder_kernels):
        shapes[f"decoder.ups.{stage}.0.weight"] = (width, width // 2, kernel)
        shapes[f"decoder.ups.{stage}.0.bias"] = (width // 2,)
        width //= 2
        for branch, size in enumerate(kernels):
            at = f"decoder.resblocks.{stage * len(kernels) + branch}"
            for pair in range(len(config.block_dilations[branch])):
                shapes |= _biased(f"{at}.convs1.{pair}", (width, width, size))
                shapes |= _biased(f"{at}.convs2.{pair}", (width, width, size))
                for which in (2 * pair, 2 * pair + 1):
                    shapes |= _activation(f"{at}.activations.{which}", width)
    shapes |= _activation("decoder.activation_post", width)
    shapes["decoder.conv_post.weight"] = (1, width, 7)
    return shapes


def _activation(name: str, width: int) -> dict[str, Shape]:
    return {
        f"{name}.act.alpha": (width,),
        f"{name}.act.beta": (width,),
        f"{name}.upsample.filter": (1, 1, RESAMPLING_TAPS),
        f"{name}.downsample.lowpass.filter": (1, 1, RESAMPLING_TAPS),
    }


def _biased(name: str, shape: Shape) -> dict[str, Shape]:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def _norm(name: str, width: int) -> dict[str, Shape]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}
