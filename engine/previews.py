"""Preview pictures of a run: factors from the decoder itself, and one small picture now and then.

The published files carry no factors from latents to colours. They are fitted once for a decoder:
smooth random latents are decoded, and a linear map is fitted to what came out. The result is kept
under the decoder's identity, so later runs read a few hundred bytes. A picture is the middle frame
of what the solver takes for the clean clip, one latent a pixel, enlarged four times.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from .errors import LowpeakError, SaveFailed
from .events import Event, Host
from .files import write_json
from .learning import home
from .parts import VIDEO_VAE, find_part
from .planner.types import Placement
from .sampling.preview import PreviewFactors, PreviewPace, fit_preview_factors, preview_rgb
from .vae.files import VideoVaeFile, open_video_vae

if TYPE_CHECKING:
    from .models import ModelSet

log = logging.getLogger(__name__)
FOLDER = "previews"
SIDE = 16  # latents: one tile of the decoder
FRAMES = 7  # the shortest clip
ENLARGED = 4
JPEG_QUALITY = 80


class Previewer:
    """Gives a host at most two pictures a second. Call it with a function that makes latents."""

    def __init__(
        self, factors: PreviewFactors, host: Host, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._factors, self._host = factors, host
        self._pace = PreviewPace(clock)

    def __call__(self, phase: str, make_latents: Callable[[], Tensor]) -> None:
        """make_latents: gives normalised latents [24, F, h, w] on any device."""
        if self._pace.is_due():
            picture = picture_of(make_latents(), self._factors)
            self._host.emit(Event("preview", phase, picture=picture))


def picture_of(latents: Tensor, factors: PreviewFactors) -> str:
    """The middle frame of latents [24, F, h, w] as a JPEG, in base64."""
    middle = latents.shape[1] // 2
    pixels = preview_rgb(latents[None, :, middle : middle + 1], factors)[0].cpu().numpy()
    size = ENLARGED * pixels.shape[1], ENLARGED * pixels.shape[0]
    picture = Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR)
    memory = io.BytesIO()
    picture.save(memory, format="JPEG", quality=JPEG_QUALITY)
    return base64.b64encode(memory.getvalue()).decode("ascii")


def find_factors(models: ModelSet, folder: Path | None = None) -> PreviewFactors | None:
    """The factors of this checkpoint's decoder, fitted at the first call. None, and a line in the
    log, when they cannot be had: a run goes on without previews."""
    try:
        file = open_video_vae(find_part(models.folder, VIDEO_VAE))
        kept = (folder or home() / FOLDER) / f"{decoder_identity(file)}.json"
        found = _read(kept)
        if found is None:
            found = fit_to_decoder(models, file.config.blocks)
            _keep(kept, found)
    except LowpeakError as refused:
        log.warning("no previews: %s", refused)
        return None
    return found


def fit_to_decoder(models: ModelSet, blocks: int) -> PreviewFactors:
    """Factors from what the decoder of `blocks` blocks makes of smooth random latents."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.randn(FRAMES, 24, SIDE // 4, SIDE // 4, generator=generator)
    smooth = functional.interpolate(coarse, scale_factor=4, mode="bilinear", align_corners=False)
    latents = smooth.transpose(0, 1)[None] * 1.5  # the blur took a third of the deviation
    frames: list[Tensor] = []
    once = Placement(disk_blocks=blocks, transfer_slots=2, tiles_per_group=1)
    models.decode_video(latents, lambda part: frames.append(part.cpu()), lambda: False, once)
    return fit_preview_factors(latents, torch.cat(frames))


def decoder_identity(file: VideoVaeFile) -> str:
    """Equal for equal files: headers, sizes and times of change."""
    digest = hashlib.sha256()
    files = {source.file.path: source.file for source in file.sources.values()}
    for path in sorted(files):
        status = path.stat()
        words = f"{files[path].header_sha256} {status.st_size} {status.st_mtime_ns}"
        digest.update(words.encode())
    return digest.hexdigest()[:32]


def _keep(file: Path, found: PreviewFactors) -> None:
    numbers = {"weights": found.weights.tolist(), "offset": found.offset.tolist()}
    try:
        write_json(file, numbers)
    except SaveFailed as refused:  # the next run fits them again
        log.warning("factors of previews are not kept: %s", refused)


def _read(file: Path) -> PreviewFactors | None:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        weights, offset = (torch.tensor(data[name]) for name in ("weights", "offset"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    right = weights.shape == (24, 3) and offset.shape == (3,)
    return PreviewFactors(weights, offset) if right else None
