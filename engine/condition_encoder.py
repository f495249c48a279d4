"""Pictures, videos and sounds of a request as latents, and the transformer that reads references.

Both autoencoders' encoders are opened when the first condition needs them and kept until `close`.
Visual conditions are samples of the posterior under the pipeline's own seed, so that a picture has
one encoding; sound is the posterior's mean (facts: model sheet g). References need a transformer of
their own: `<checkpoint>/transformer_ref`, in any layout, or the same folder beside the base model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .checkpoint.index import open_checkpoint
from .checkpoint.walk import REFERENCE_FOLDER
from .errors import Cancelled, CheckpointError, RequestError
from .parts import AUDIO_VAE, VIDEO_VAE, find_part
from .references import ReferenceMedia
from .sampling.condition_latents import POSTERIOR_SEED, EncodedReference
from .sampling.noise import audio_to_rows
from .vae.audio import encode_audio
from .vae.config import AudioVaeConfig, VideoVaeConfig
from .vae.encoder import encode_frames
from .vae.files import open_audio_vae, open_video_vae
from .vae.space import exact_convolutions

if TYPE_CHECKING:
    from .models import ModelSet

Tensors = Mapping[str, Tensor]


class ConditionEncoder:
    """Encodes conditions with the autoencoders of `folder`. Raises CheckpointError when used
    without them, Cancelled between tiles."""

    def __init__(
        self, folder: Path, device: torch.device, is_cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self._folder, self._device, self._is_cancelled = folder, device, is_cancelled
        self._video: tuple[Tensors, VideoVaeConfig] | None = None
        self._audio: tuple[Tensors, AudioVaeConfig] | None = None

    def picture(self, picture: Tensor) -> Tensor:
        """Normalised latents [1, 24, 1, H/16, W/16] of a keyframe, uint8 [H, W, 3]."""
        return self.frames(picture[None])

    def frames(self, frames: Tensor) -> Tensor:
        """Normalised latents [1, 24, F, H/16, W/16] float32 on the CPU; uint8 [n, H, W, 3]."""
        if self._video is None:
            file = open_video_vae(find_part(self._folder, VIDEO_VAE))
            self._video = file.encoder(self._device), file.config
        tensors, config = self._video
        generator = torch.Generator().manual_seed(POSTERIOR_SEED)
        with torch.inference_mode(), exact_convolutions():
            found = encode_frames(
                frames, tensors, config, generator=generator, is_cancelled=self._is_cancelled
            )
        return found.cpu().clone()

    def sound(self, sound: Tensor) -> Tensor:
        """Clean rows [2A, 32] float32 on the CPU of stereo sound [2, m] at 32 kHz."""
        if self._audio is None:
            file = open_audio_vae(find_part(self._folder, AUDIO_VAE))
            self._audio = file.tensors(self._device), file.config
        tensors, config = self._audio
        if self._is_cancelled():
            raise Cancelled("encode")
        with torch.inference_mode(), exact_convolutions():
            return audio_to_rows(encode_audio(sound, tensors, config)).cpu().clone()

    def reference(self, media: ReferenceMedia) -> EncodedReference:
        """A reference as latents and rows of sound."""
        latents = None if media.frames is None else self.frames(media.frames)
        rows = None if media.sound is None else self.sound(media.sound)
        return EncodedReference(media.kind, latents, rows)

    def close(self) -> None:
        """Give the weights back. Safe to call twice."""
        self._video = self._audio = None


def reference_folder(folder: Path) -> Path | None:
    """Where the reference transformer of a checkpoint lies, None without one."""
    home = folder if folder.is_dir() else folder.parent
    for place in (home, home / "h3-base", home.parent):
        found = place / REFERENCE_FOLDER
        if found.exists() and place != home.parent:
            return found
        # A diffusers pipeline has it beside `transformer`; other neighbours are other models.
        if found.exists() and home.name == "transformer":
            return found
    return None


def with_reference_transformer(models: ModelSet) -> ModelSet:
    """The same models, the transformer being that for references. Raises RequestError without one,
    CheckpointError for one that is damaged or of other sizes."""
    found = reference_folder(models.folder)
    if found is None:
        home = models.folder if models.folder.is_dir() else models.folder.parent
        raise RequestError(
            "references need the reference transformer, and this checkpoint has none: put it (or "
            f"a link to it) at {home / REFERENCE_FOLDER}, or use --first-frame and --last-frame",
            field="references",
        )
    checkpoint = open_checkpoint(found)
    wanted, width = models.checkpoint.config.text_dim, checkpoint.config.text_dim
    if wanted != width:
        raise CheckpointError(
            "the reference transformer does not fit the other models",
            file=found,
            expected=f"text rows of width {wanted}",
            found=f"width {width}",
        )
    return replace(models, checkpoint=checkpoint)
