"""The last stage: latents to frames and sound, streamed into the video file.

Frames leave the decoder clip by clip and are encoded on a thread while the next clip decodes; the
sound is decoded first, because it is small and the video must not wait for it at the end. Nothing
of the whole clip is held but the sound.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.nn import functional

from .files import SampledLatents
from .geometry import AUDIO_SAMPLE_RATE_HZ, FRAMES_PER_SECOND, Geometry
from .media import BackgroundFrames, VideoWriter, kept_frames, repeat_save
from .models import ModelSet
from .session import Session
from .vae.audio import check_audio


def decode(
    session: Session,
    geometry: Geometry,
    latents: SampledLatents,
    models: ModelSet,
    out: Path,
    metadata: Mapping[str, Any] | None = None,
    *,
    with_sound: bool = True,
    codec: str = "h264",
) -> Tensor:
    """Phase `decode`: write `out` and return its sound, [2, samples] float32 at 32 kHz.

    metadata: stored in the file. with_sound: mux the sound; it is returned in any case. codec: see
    VideoWriter; one that cannot run here is refused before any frame. Raises
    SaveFailed with what was kept, Cancelled at block borders; then nothing half-written is left.
    """
    with session.phase("decode") as measured:
        raw = models.decode_audio(latents.audio)
        health = check_audio(raw, AUDIO_SAMPLE_RATE_HZ, geometry.seconds)
        session.report.audio_health = health.as_json()
        for warning in health.warnings:
            session.notice(f"sound: {warning}")
        sound = match_length(raw, geometry)
        session.check_cancelled("decode")
        identity = f"{latents.sha256} sound={with_sound} codec={codec}"
        kept = kept_frames(out, identity)
        if kept is not None:
            session.notice("the frames of an earlier start were kept: only saving is repeated")
            repeat_save(kept, out)
            return sound
        with VideoWriter(
            out,
            geometry.width_px,
            geometry.height_px,
            codec=codec,
            audio_sample_rate_hz=AUDIO_SAMPLE_RATE_HZ,
            metadata=metadata,
            identity=identity,
        ) as writer:
            done_frames = 0
            with BackgroundFrames(writer) as encode:

                def take(frames: Tensor) -> None:
                    nonlocal done_frames
                    encode(frames)
                    done_frames += len(frames)
                    session.progress(done_frames, geometry.frames)

                moved = models.decode_video(
                    latents.video, take, session.host.is_cancelled, session.placement("decode")
                )
                measured.add(moved)
            if with_sound:
                writer.write_audio(sound)
        measured.steps = 1
    return sound


def match_length(sound: Tensor, geometry: Geometry) -> Tensor:
    """Sound [2, n] cut, or filled with silence, to the length of the frames."""
    wanted = round(geometry.frames / FRAMES_PER_SECOND * AUDIO_SAMPLE_RATE_HZ)
    return functional.pad(sound[:, :wanted], (0, max(0, wanted - sound.shape[1])))
