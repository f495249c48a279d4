"""Core's values in and out: CONDITIONING, LATENT, IMAGE, AUDIO, VIDEO.

The only place that knows how ComfyUI writes them. Keys are read defensively: a value of another
model is a RequestError that says what is missing and which node makes the right one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ..engine.errors import CheckpointError, RequestError
from ..engine.geometry import AUDIO_SAMPLE_RATE_HZ, SPATIAL_STRIDE_PX, Geometry
from .engine_seam import Conditions, Latents

VIDEO_CHANNELS, AUDIO_CHANNELS = 24, 32
FRAMES_PER_SECOND = 24


def conditioning_out(conditions: Conditions) -> list[list[Any]]:
    """Core's CONDITIONING: [[hidden [1, L, C], {minimax_token_tags, ...}]]."""
    extra: dict[str, Any] = {"minimax_token_tags": conditions.tags}
    if conditions.keyframes:
        extra["minimax_keyframes"] = [
            {"resolved_frame_index": item["frame"], "latent": item["latent"]}
            for item in conditions.keyframes
        ]
    if conditions.references:
        extra["minimax_refs"] = [dict(item) for item in conditions.references]
    return [[conditions.hidden[None], extra]]


def conditioning_in(conditioning: Any) -> Conditions:
    """Conditions from core's CONDITIONING, ours or that of core's MiniMax H3 nodes."""
    if not conditioning:
        raise RequestError("the conditioning is empty", field="conditioning")
    if len(conditioning) > 1:
        raise RequestError(
            f"{len(conditioning)} conditionings were combined; this model takes one",
            field="conditioning",
        )
    hidden, extra = conditioning[0][0], conditioning[0][1]
    if hidden.ndim != 3 or hidden.shape[0] != 1:
        raise RequestError(
            f"conditioning of shape {tuple(hidden.shape)}: expected [1, rows, width]",
            field="conditioning",
        )
    tags = extra.get("minimax_token_tags")
    if tags is None:
        raise RequestError(
            "the conditioning has no minimax_token_tags: it was made for another model. Use "
            "Lowpeak Encode Prompt, or core's MiniMax H3 nodes with a CLIP of type minimax",
            field="conditioning",
        )
    keyframes = [
        {"frame": int(item["resolved_frame_index"]), "latent": item["latent"]}
        for item in extra.get("minimax_keyframes", ())
        if item.get("latent") is not None
    ]
    references = tuple(dict(item) for item in extra.get("minimax_refs", ()))
    return Conditions(hidden[0].float().cpu(), tags.flatten().cpu(), tuple(keyframes), references)


def latent_out(latents: Latents) -> dict[str, Any]:
    """Core's LATENT: {"samples": NestedTensor((video, audio))}."""
    from comfy.nested_tensor import NestedTensor

    return {"samples": NestedTensor((latents.video, latents.audio))}


def latent_in(latent: Any) -> Latents:
    """Video and sound latents of a MiniMax H3 LATENT, as float32 on the CPU."""
    samples = latent.get("samples") if isinstance(latent, dict) else None
    parts = samples.unbind() if getattr(samples, "is_nested", False) else ()
    if len(parts) != 2:
        raise RequestError(
            "the latent is not a MiniMax H3 pair of video and audio. Use Lowpeak Sample, or core's "
            "Empty MiniMax H3 AV Latent",
            field="latent",
        )
    video, audio = (part.float().cpu() for part in parts)
    if video.ndim != 5 or video.shape[0] != 1 or video.shape[1] != VIDEO_CHANNELS:
        raise RequestError(
            f"video latent of shape {tuple(video.shape)}: expected [1, {VIDEO_CHANNELS}, F, h, w]",
            field="latent",
        )
    if audio.ndim != 4 or tuple(audio.shape[:3]) != (1, AUDIO_CHANNELS, 2):
        raise RequestError(
            f"audio latent of shape {tuple(audio.shape)}: expected [1, {AUDIO_CHANNELS}, 2, A]",
            field="latent",
        )
    return Latents(video, audio)


def latent_geometry(latents: Latents) -> Geometry:
    """The pixel size and length that latents stand for."""
    frames, height, width = latents.video.shape[2:]
    if frames < 2 or (frames - 2) % 5:
        raise RequestError(f"{frames} latent frames is not 5n+2", field="latent")
    return Geometry(
        width * SPATIAL_STRIDE_PX, height * SPATIAL_STRIDE_PX, (frames - 2) // 5 * 17 + 5
    )


def save_latents(latents: Latents, path: Path, note: dict[str, Any]) -> None:
    """Write both streams to a safetensors file, under a temporary name first."""
    part = path.with_suffix(".part")
    tensors = {"video": latents.video.contiguous(), "audio": latents.audio.contiguous()}
    try:
        save_file(tensors, part, metadata={"lowpeak": json.dumps(note)})
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load_latents(path: Path) -> Latents:
    """Latents written by `save_latents`. CheckpointError for a damaged file."""
    try:
        tensors = load_file(path)
        return Latents(tensors["video"], tensors["audio"])
    except (SafetensorError, OSError) as problem:
        raise CheckpointError(f"saved latents cannot be read: {problem}", file=path) from problem
    except KeyError as missing:
        raise CheckpointError(
            "not a file of saved latents", file=path, tensor=str(missing), expected="video, audio"
        ) from missing


def frames_in(image: Any) -> Any:
    """[n, H, W, 3] float32 on the CPU from IMAGE [n, H, W, C]; None stays None."""
    if image is None:
        return None
    if image.ndim != 4 or image.shape[-1] < 3 or image.shape[0] < 1:
        raise RequestError(f"image of shape {tuple(image.shape)}: expected [n, H, W, 3]")
    return image[..., :3].float().cpu().clamp(0, 1)


def image_out(pixels: Any) -> Any:
    """IMAGE [1, H, W, 3] in 0..1 from uint8 pixels [H, W, 3] (anything numpy can view)."""
    return torch.tensor(pixels, dtype=torch.float32)[None] / 255


def audio_out(waveform: Any, sample_rate_hz: int) -> dict[str, Any]:
    """AUDIO from [2, samples]; no sound becomes one silent sample, which core's nodes take."""
    if waveform is None:
        waveform, sample_rate_hz = torch.zeros(2, 1), AUDIO_SAMPLE_RATE_HZ
    return {"waveform": waveform[None].float().cpu(), "sample_rate": sample_rate_hz}


def audio_in(audio: Any) -> tuple[Any, int]:
    """([2, samples] float32, sample rate) from AUDIO; mono is doubled."""
    waveform = audio["waveform"][0].float().cpu()
    if waveform.ndim != 2 or waveform.shape[-1] < 1:
        raise RequestError(f"sound of shape {tuple(waveform.shape)}: expected [channels, samples]")
    return waveform[:2] if waveform.shape[0] > 1 else waveform.expand(2, -1), audio["sample_rate"]


def video_out(file: Path) -> Any:
    """VIDEO over a file; core's Save Video copies its streams without encoding again."""
    from comfy_api.latest import InputImpl

    return InputImpl.VideoFromFile(str(file))


def video_in(video: Any) -> tuple[Any, Any]:
    """(frames [n, H, W, 3] at 24 a second, sound or None) of a VIDEO."""
    parts = video.get_components()
    frames, rate = frames_in(parts.images), float(parts.frame_rate)
    count = max(1, round(frames.shape[0] / rate * FRAMES_PER_SECOND))
    picks = (torch.arange(count) * (rate / FRAMES_PER_SECOND)).long().clamp(max=len(frames) - 1)
    sound = None if not parts.audio else audio_in(parts.audio)
    return frames[picks], sound
