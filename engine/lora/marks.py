"""Which model family an adapter seems made for, from well-known names and sizes. Pure.

Used for one sentence of an error message: nothing is decided by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

OWN = "MiniMax H3"

# First match wins: a family stands above the ones whose names it contains.
_NAME_MARKS: tuple[tuple[str, str], ...] = tuple(
    (family, pattern)
    for family, pattern in (
        ("LTX-2 (audio and video)", r"audio_attn1|audio_to_video_attn|video_to_audio_attn"),
        ("Qwen-Image", r"transformer_blocks[._]\d+[._](?:img_mod|txt_mod|img_mlp|txt_mlp)"),
        ("Stable Diffusion 3", r"joint_blocks[._]\d+"),
        ("Flux", r"single_transformer_blocks[._]\d+"),
        ("HiDream", r"double_stream_blocks[._]\d+"),
        ("HunyuanVideo", r"double_blocks\.\d+\.(?:img|txt)_attn_(?:qkv|proj|q|k|v)\b"),
        ("Flux", r"double_blocks\.\d+\.(?:img|txt)_attn\.(?:qkv|proj)"),
        ("Wan", r"blocks[._]\d+[._](?:self_attn|cross_attn)[._](?:q|k|v|o|k_img|v_img)(?:\.|$|_)"),
        ("Z-Image or Lumina", r"(?:noise_refiner|context_refiner)[._]\d+"),
        ("Z-Image or Lumina", r"^(?:diffusion_model\.|transformer\.)?layers[._]\d+[._]attention"),
        ("Mochi", r"blocks[._]\d+[._]attn[._]qkv_[xy]"),
        ("Cosmos", r"blocks[._](?:block)?\d+[._]blocks[._]\d+|blocks\.\d+\.adaln_modulation_"),
        ("Stable Diffusion (UNet)", r"(?:down|up)_blocks[._]\d+|mid_block|input_blocks[._]\d+"
                                    r"|output_blocks[._]\d+|middle_block"),
        ("a text encoder", r"(?:^lora_te\d?_|text_model[._]encoder|(?:self_attn|mlp)[._]"
                           r"(?:q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj))"),
    )
)  # fmt: skip


def looks_like(shapes: Mapping[str, tuple[int, ...]]) -> str:
    """The family that names and shapes of an adapter's tensors point to; '' when none does."""
    names = list(shapes)
    for family, pattern in _NAME_MARKS:
        if any(re.search(pattern, name) for name in names):
            if family.startswith("Stable Diffusion (UNet)"):
                return _unet(shapes)
            return family
    if any(re.search(r"double_blocks_\d+_", name) for name in names):
        # Flattened names are equal: the double stack has 19 blocks in Flux, 20 in HunyuanVideo.
        most = _highest(names, r"double_blocks_(\d+)_")
        single = _highest(names, r"single_blocks_(\d+)_")
        return "HunyuanVideo" if most >= 19 or single >= 38 else "Flux"
    if any(re.search(r"transformer_blocks[._]\d+[._]attn1[._]", name) for name in names):
        return _attn1_family(shapes)
    if any(re.search(r"transformer_blocks[._]\d+[._]attn[._]add_[qkv]_proj", n) for n in names):
        # Three families share these names: 60 blocks, 24 blocks, 19 blocks.
        most = _highest(names, r"transformer_blocks[._](\d+)[._]")
        return "Qwen-Image" if most >= 24 else "Stable Diffusion 3" if most >= 19 else "Flux"
    return _own(names)


def _own(names: Iterable[str]) -> str:
    own = r"(?:^|[._])(?:token_refiner|final_layer|qkv_proj|adaln_proj|transformer_blocks)(?:[._])"
    return OWN if any(re.search(own, name) for name in names) else ""


def _highest(names: Iterable[str], pattern: str) -> int:
    found = [int(match[1][:6]) for name in names if (match := re.search(pattern, name))]
    return max(found, default=-1)


def _input_width(shapes: Mapping[str, tuple[int, ...]], pattern: str) -> int:
    """Input width of the first low-rank `down` factor whose name matches."""
    for name, shape in shapes.items():
        if re.search(pattern, name) and re.search(r"lora_(?:A|down)|lora\.down", name):
            return shape[1] if len(shape) >= 2 else 0
    return 0


def _unet(shapes: Mapping[str, tuple[int, ...]]) -> str:
    width = _input_width(shapes, r"attn2[._]to_(?:k|v)")
    if width == 2048 or any(name.startswith("lora_te2_") for name in shapes):
        return "Stable Diffusion XL"
    return {768: "Stable Diffusion 1", 1024: "Stable Diffusion 2"}.get(width, "Stable Diffusion")


def _attn1_family(shapes: Mapping[str, tuple[int, ...]]) -> str:
    width = _input_width(shapes, r"attn1[._]to_q")
    known = {2048: "LTX-Video", 4096: "LTX-Video", 1152: "PixArt or Sora-like"}
    if width in known:
        return known[width]
    return "CogVideoX" if width in (1920, 3072) else "LTX-Video"
