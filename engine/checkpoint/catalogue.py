"""What the model consists of, where each part is published, how large it is, under which licence.

Data only. Sizes in bytes are those of the published files (facts: model sheet c, d.7); None means
that only the server knows. A revision of None is resolved once, when the part is first fetched, and
kept in the record beside the files, so that a later call fetches the same commit.
"""

from __future__ import annotations

from dataclasses import dataclass

WEIGHT_FORMATS = ("fp8-rowwise", "fp8-tensor", "int8-convrot")


@dataclass(frozen=True)
class Licence:
    """Terms that a user must have seen before anything is fetched."""

    key: str
    title: str
    url: str
    note: str


@dataclass(frozen=True)
class Part:
    """One thing that a request needs.

    kind: transformer | tables | text_encoder | video_vae | audio_vae | upscaler.
    files: paths or globs in the repository; folders end in `/*`.
    target: folder below the models folder; strip: what is cut from the front of a file's path.
    by_size: the repository holds several files; the right one has exactly size_bytes.
    weight_format, quality: which choice this part serves, where it is one of several.
    """

    key: str
    title: str
    kind: str
    repo: str
    files: tuple[str, ...]
    licence: str
    target: str
    size_bytes: int | None
    revision: str | None = None
    strip: str = ""
    by_size: bool = False
    weight_format: str | None = None
    quality: tuple[str, ...] = ()


LICENCES = {
    "minimax-h3": Licence(
        "minimax-h3",
        "MiniMax H3 Community License",
        "https://huggingface.co/OpenVDN/vdn-minimax-h3-edge/blob/main/LICENSE",
        "Limits territories and uses; read it before you accept.",
    ),
    "mit": Licence(
        "mit",
        "MIT",
        "https://huggingface.co/LBH-123-AI/Minimax_h3_latent_Upscaler",
        "",
    ),
}

EDGE = "OpenVDN/vdn-minimax-h3-edge"
EDGE_REVISION = "b3a8dd8d4cf215b3a90bcc20b4362318f5f4f158"
COMFY = "Comfy-Org/MiniMax-H3"
CHECKPOINT = "lowpeak/vdn-minimax-h3-edge"
_LAYERS = 50
_TABLES_8_STEPS = _LAYERS * (4_456_040 + 2_907_752)


def _cache(weight_format: str, title: str, folder: str, size_bytes: int) -> Part:
    return Part(
        f"transformer-{weight_format}",
        f"VDN-H3 transformer, {title}",
        "transformer",
        EDGE,
        (f"{folder}/*",),
        "minimax-h3",
        CHECKPOINT,
        size_bytes,
        EDGE_REVISION,
        weight_format=weight_format,
    )


PARTS: tuple[Part, ...] = (
    _cache(
        "fp8-rowwise",
        "FP8 with a scale a row",
        "rowwise/cache",
        _LAYERS * (432_433_052 + 265_188) + 925_027_500 + _TABLES_8_STEPS,
    ),
    _cache(
        "fp8-tensor",
        "FP8 with a scale a tensor",
        "cache",
        10 * 432_433_020 + 40 * 432_433_052 + 925_027_500 + _TABLES_8_STEPS,
    ),
    _cache(
        "int8-convrot",
        "int8 ConvRot",
        "int8-convrot/cache",
        10 * 432_694_768 + 40 * 432_694_800 + 925_532_864 + _TABLES_8_STEPS,
    ),
    Part(
        "tables-refine",
        "AdaLN tables of the three refine steps",
        "tables",
        EDGE,
        ("community-sigma3-v1-audio-20261007/*",),
        "minimax-h3",
        CHECKPOINT,
        None,
        EDGE_REVISION,
        quality=("light",),
    ),
    Part(
        "tables-quality",
        "AdaLN tables of 12, 16 and 20 steps",
        "tables",
        EDGE,
        ("sampling-presets-v1-audio-20261007/*",),
        "minimax-h3",
        CHECKPOINT,
        None,
        EDGE_REVISION,
        quality=("medium", "high", "max"),
    ),
    Part(
        "text-encoder",
        "Qwen3-VL 32B text encoder, 50 layers, NVFP4",
        "text_encoder",
        COMFY,
        ("text_encoders/qwen3vl_32b_minimax_h3_nvfp4_awq.safetensors",),
        "minimax-h3",
        "text_encoders",
        15_687_142_551,
        strip="text_encoders/",
    ),
    Part(
        "video-vae",
        "Video autoencoder, fp16",
        "video_vae",
        COMFY,
        ("vae/minimax_h3_video_vae_fp16.safetensors",),
        "minimax-h3",
        "vae",
        5_207_808_496,
        strip="vae/",
    ),
    Part(
        "audio-vae",
        "Audio autoencoder, fp32",
        "audio_vae",
        COMFY,
        ("vae/minimax_h3_audio_vae_fp32.safetensors",),
        "minimax-h3",
        "vae",
        605_254_808,
        strip="vae/",
    ),
    Part(
        "upscaler",
        "Latent upscaler, 3D convolutions, fp16",
        "upscaler",
        "LBH-123-AI/Minimax_h3_latent_Upscaler",
        ("*.safetensors",),
        "mit",
        "latent_upscale_models",
        690_592_672,
        by_size=True,
        quality=("light",),
    ),
)


def choose_weight_format(capability: tuple[int, int] | None, system: str = "linux") -> str:
    """The transformer format that runs best on a card; FP8 rowwise when nothing is known.

    FP8 needs 8.9 or newer, its rowwise product CUDA 9.0's kernels, which Windows wheels lack;
    everything else has int8 matrix units.
    """
    if capability is None:
        return "fp8-rowwise"
    if capability < (8, 9):
        return "int8-convrot"
    if capability >= (10, 0) or system == "windows":
        return "fp8-tensor"
    return "fp8-rowwise"


def parts_for(quality: str, weight_format: str) -> tuple[Part, ...]:
    """The parts that a request of this quality needs, one transformer among them."""
    return tuple(
        part
        for part in PARTS
        if (part.weight_format is None or part.weight_format == weight_format)
        and (not part.quality or quality in part.quality)
    )
