"""Lowpeak Decode: latents to a video with sound."""

from __future__ import annotations

from typing import Any

from . import tables
from .handles import ModelHandle, RunHandle


class Decode:
    """Streams frames into a file in ComfyUI's temporary folder; Save Video keeps it."""

    table = tables.DECODE
    pack: Any

    @classmethod
    def execute(cls, model: ModelHandle, latent: Any, with_sound: bool = True) -> tuple[Any, ...]:
        """(video, audio, run)."""
        to = cls.pack.convert
        latents = to.latent_in(latent)
        to.latent_geometry(latents)  # says a wrong length before a worker starts
        with cls.pack.host(cls.pack, cls.hidden.unique_id) as host:
            out = cls.pack.folders.new_video(host.run_id)
            decoded = cls.pack.engine.decode(model, latents, out, host, with_sound=with_sound)
            host.keep(decoded.report)
        audio = to.audio_out(decoded.waveform, decoded.sample_rate_hz)
        return to.video_out(decoded.file), audio, RunHandle(host.run_id)
