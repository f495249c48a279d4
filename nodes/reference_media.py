"""References between ComfyUI's values and the engine's: tensors to media, latents to core's keys.

Core's form of a reference is a mapping with `kind` (image, video, video_audio, audio), `latent`
[1, 24, F, h, w] and `audio_latent` [1, 32, 2, A], both normalised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..engine.errors import RequestError
from .engine_seam import Pictures

SOUND_KINDS = ("audio", "video_audio")


def media_of(
    pictures: Pictures, target_frames: int, notice: Callable[[str], None]
) -> tuple[Any, ...]:
    """Pictures, then videos, then sounds, fitted. notice: is told what is left out. Raises
    RequestError for too many or bad ones."""
    from ..engine.references import media_reference
    from ..engine.sampling.conditions import check_references

    given = [("image", frames, None) for frames in pictures.images]
    given += [("video", frames, sound) for frames, sound in pictures.videos]
    given += [("audio", None, sound) for sound in pictures.sounds]
    keyframes = sum(item is not None for item in (pictures.first_frame, pictures.last_frame))
    check_references([kind for kind, _, _ in given], keyframes=keyframes)
    return tuple(
        media_reference(*item, target_frames, notice, name=f"reference {number}")
        for number, item in enumerate(given, 1)
    )


def references_out(encoded: Sequence[Any]) -> tuple[Mapping[str, Any], ...]:
    """Encoded references as core writes them."""
    from ..engine.sampling.noise import rows_to_audio

    found = []
    for item in encoded:
        kind, entry = item.kind, {}
        if item.latents is not None:
            frames, height, width = item.latents.shape[-3:]
            entry = {"latent": item.latents, "latent_t": frames, "latent_h": height,
                     "latent_w": width}  # fmt: skip
        if item.sound_rows is not None:
            sound = rows_to_audio(item.sound_rows).transpose(0, 1).unsqueeze(0).contiguous()
            entry |= {"audio_latent": sound, "ref_audio_t": sound.shape[-1]}
            kind = "video_audio" if kind == "video" else kind
        found.append({"kind": kind, **entry})
    return tuple(found)


def references_in(given: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    """Encoded references from core's form. Raises RequestError for what is none."""
    from ..engine.sampling.condition_latents import EncodedReference
    from ..engine.sampling.noise import audio_to_rows

    found = []
    for item in given:
        kind, rows = str(item.get("kind")), None
        latent, sound = item.get("latent"), item.get("audio_latent")
        if sound is not None and kind in SOUND_KINDS:
            if sound.ndim != 4 or tuple(sound.shape[:3]) != (1, 32, 2):
                raise RequestError(
                    f"a reference's sound latent is {tuple(sound.shape)}, expected [1, 32, 2, A]",
                    field="conditioning",
                )
            rows = audio_to_rows(sound[0].transpose(0, 1).float().cpu()).clone()
        if latent is not None:
            latent = latent.float().cpu().clone()
        encoded = EncodedReference(kind.removesuffix("_audio"), latent, rows)
        encoded.block  # noqa: B018  raises for sizes that cannot be
        found.append(encoded)
    return tuple(found)


def rows_of(given: Sequence[Mapping[str, Any]]) -> int | None:
    """Rows that references take in the packed sequence; None without any."""
    return sum(item.rows for item in references_in(given)) if given else None
