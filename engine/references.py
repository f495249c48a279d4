"""References of a request: read and fitted before any model loads, and how they are presented.

    files -> kinds -> limits -> frames and sound -> labels and moments for the text encoder
Order is meaning: it numbers the labels and lays the references out in time. A picture keeps its
aspect at a short edge of 2048 px; a video comes at 24 frames a second on its own canvas, with its
sound; the text encoder sees two of its frames a second, in pairs behind their time (facts: model
sheet f, g). Sounds never reach the text encoder but for their label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from .errors import RequestError, SilentSound
from .geometry import AUDIO_SAMPLE_RATE_HZ, CANVAS_STEP_PX, FRAMES_PER_SECOND
from .media_read import read_image
from .media_reference import has_sound, kind_of, read_reference_sound, read_reference_video
from .sampling.conditions import check_references, fit_reference_image
from .text.encoder import Shown

MOMENTS_PER_SECOND = 2
FRAMES_PER_MOMENT = 2  # that the vision tower merges
SAMPLES_PER_LATENT = 800


@dataclass(frozen=True)
class ReferenceMedia:
    """One reference, fitted. frames: uint8 [n, H, W, 3], one for a picture; sound: float32 [2, m]
    at 32 kHz. A video may have both."""

    kind: str
    frames: Tensor | None = None
    sound: Tensor | None = None

    @property
    def rows(self) -> int:
        """Rows that this reference takes in the packed sequence."""
        found = 0
        if self.frames is not None:
            count, height, width = self.frames.shape[:3]
            latents = 1 if count == 1 else (count - 5) // 17 * 5 + 2
            found += latents * (height // CANVAS_STEP_PX) * (width // CANVAS_STEP_PX)
        if self.sound is not None:
            found += 2 * -(-self.sound.shape[1] // SAMPLES_PER_LATENT)
        return found


def load_references(
    files: Sequence[str],
    target_frames: int,
    notice: Callable[[str], None],
    *,
    keyframes: int = 0,
) -> tuple[ReferenceMedia, ...]:
    """Reference files in their order. keyframes: how many the request has (none may be mixed in).

    Raises RequestError for a file that is missing, damaged, silent or of one frame, for more than
    nine pictures, three videos or three sounds, and for sounds alone.
    """
    kinds = [kind_of(file) for file in files]
    check_references(kinds, keyframes=keyframes)
    found = []
    for file, kind in zip(files, kinds, strict=True):
        try:
            found.append(_load(file, kind, target_frames, notice))
        except RequestError as refused:
            if str(file) in str(refused):
                raise
            raise RequestError(f"{file}: {refused}", field="references") from refused
    return tuple(found)


def _load(
    file: str, kind: str, target_frames: int, notice: Callable[[str], None]
) -> ReferenceMedia:
    if kind == "image":
        picture = Image.fromarray(read_image(file).numpy())
        return picture_reference(picture)
    if kind == "audio":
        return ReferenceMedia(kind, sound=read_reference_sound(file, target_frames))
    frames, sound = read_reference_video(file, target_frames), None
    if has_sound(file):
        sound = _heard(lambda: read_reference_sound(file, target_frames), file, notice)
    return ReferenceMedia(kind, frames, sound)


def _heard(make: Callable[[], Tensor], video: str, notice: Callable[[str], None]) -> Tensor | None:
    """The sound of a video; None, with a notice, when it is silent."""
    try:
        return make()
    except SilentSound:
        notice(f"{video}: its sound is silent and is left out")
        return None


def picture_reference(picture: Image.Image) -> ReferenceMedia:
    """A picture of any size."""
    pixels = np.array(fit_reference_image(picture.convert("RGB")))
    return ReferenceMedia("image", torch.from_numpy(pixels)[None])


def references_shown(references: Sequence[ReferenceMedia]) -> list[Shown]:
    """What the text encoder reads before the prompt. A video's sound is named before the video."""
    return list(_shown(references))


def _shown(references: Sequence[ReferenceMedia]) -> Iterator[Shown]:
    pictures = videos = sounds = 0
    for item in references:
        if item.sound is not None:
            sounds += 1
            yield Shown(f"<Audio {sounds}>: ")
        if item.kind == "image":
            pictures += 1
            yield Shown(f"<Picture {pictures}>: ", item.frames)
        elif item.kind == "video":
            videos += 1
            yield Shown(f"<Video {videos}>: ")
            assert item.frames is not None
            indices, times = sample_moments(len(item.frames))
            for number, seconds in enumerate(times):
                pair = indices[number * FRAMES_PER_MOMENT :][:FRAMES_PER_MOMENT]
                # One decimal, halves to even: a pair at 0.0 and 0.5 s is called 0.2.
                yield Shown(f"<{seconds:.1f} seconds>", item.frames[pair], len(indices))


def sample_moments(count: int) -> tuple[list[int], list[float]]:
    """Frames that the text encoder sees of a video of `count`, and the mean time of each pair."""
    stride = FRAMES_PER_SECOND / MOMENTS_PER_SECOND
    indices = [round(step * stride) for step in range(int(count / stride) + 1)]
    indices = [index for index in indices if index < count]
    seconds = [step / MOMENTS_PER_SECOND for step in range(len(indices))]
    seconds += [seconds[-1]] * (-len(seconds) % FRAMES_PER_MOMENT)
    pairs = zip(seconds[::2], seconds[1::2], strict=True)
    return indices, [(first + second) / 2 for first, second in pairs]


def media_reference(
    kind: str,
    frames: Tensor | None,
    sound: tuple[Tensor, int] | None,
    target_frames: int,
    notice: Callable[[str], None],
    *,
    name: str,
) -> ReferenceMedia:
    """A reference from tensors: frames [n, H, W, 3] float in 0..1 at 24 a second, or uint8; sound
    (samples [channels, m], rate in hertz). name: what notices call it. Raises RequestError as
    `load_references` does."""
    from .sampling.conditions import fit_reference_video, fit_sound

    if frames is not None and frames.dtype != torch.uint8:
        frames = (frames.float() * 255).round().clamp(0, 255).to(torch.uint8)

    def samples() -> Tensor:
        assert sound is not None
        return fit_sound(at_rate(*sound), target_frames)

    if kind == "image":
        assert frames is not None
        return picture_reference(Image.fromarray(frames[0].numpy()))
    if kind == "video":
        assert frames is not None
        if len(frames) < 2:
            raise RequestError("a reference video holds 1 frame: give a picture", field="videos")
        fitted = fit_reference_video(frames.numpy(), FRAMES_PER_SECOND, target_frames)
        heard = None if sound is None else _heard(samples, name, notice)
        return ReferenceMedia(kind, torch.from_numpy(np.ascontiguousarray(fitted)), heard)
    return ReferenceMedia(kind, sound=samples())


def at_rate(samples: Tensor, rate_hz: int) -> Tensor:
    """Sound [channels, m] at 32 kHz, at most two channels; resampled by the media library, which
    gives nothing for less than its filter's length."""
    import av

    samples = samples[:2].float()
    if rate_hz == AUDIO_SAMPLE_RATE_HZ or not samples.numel():
        return samples
    layout = "mono" if samples.shape[0] == 1 else "stereo"
    frame = av.AudioFrame.from_ndarray(samples.numpy(), format="fltp", layout=layout)
    frame.sample_rate = rate_hz
    resampler = av.AudioResampler(format="fltp", layout=layout, rate=AUDIO_SAMPLE_RATE_HZ)
    parts = [item.to_ndarray() for piece in (frame, None) for item in resampler.resample(piece)]
    return torch.from_numpy(np.concatenate(parts, axis=1)) if parts else samples[:, :0]
