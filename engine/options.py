"""How to run, checked before anything heavy is imported: a wrong option is said at once.

What can be known from the words of the command line and from the file system alone belongs here;
what needs a header or a card is found by the run itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from .errors import CheckpointError, DoesNotFit, RequestError, Shortage
from .files import RunFiles
from .planner.adapters import MODES
from .request import Request

DEVICES = ("auto", "cpu", "cuda")
VIDEO_CHANNELS, AUDIO_VALUES = 24, 64  # float32 values of a latent: [24, F, h, w] and [32, 2, A]
SPARE_BYTES = 1 << 20
STOPS = ("encode", "first", "sample")
SUFFIXES = {"h264": ".mp4", "h264_nvenc": ".mp4", "webm": ".webm", "png": ""}


@dataclass(frozen=True)
class RunOptions:
    """How to run, beside what to make.

    out: the video. resume: report or video of an earlier run to go on from. device: auto, cpu or
    cuda. stop_after: encode, first or sample. prompt_given: False when a resumed request came
    without its prompt. metadata: goes into the video file. lora_mode: auto, merged or online.
    previews: send small pictures while sampling. codec: of SUFFIXES, which name the file's ending;
    png makes `out` a folder of pictures with the sound beside them.
    """

    checkpoint: Path
    out: Path
    vram_gib: float | None = None
    ram_gib: float | None = None
    device: str = "auto"
    stop_after: str | None = None
    resume: Path | None = None
    keep_prompt: bool = False
    prompt_given: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)
    lora_mode: str = "auto"
    previews: bool = False
    codec: str = "h264"

    def __post_init__(self) -> None:
        if self.stop_after is not None and self.stop_after not in STOPS:
            raise RequestError(
                f"--stop-after {self.stop_after!r} is none of {', '.join(STOPS)}",
                field="stop_after",
            )
        check_device_name(self.device)
        if self.lora_mode not in MODES:
            raise RequestError(
                f"--lora-mode {self.lora_mode!r} is none of {', '.join(MODES)}", field="lora_mode"
            )
        suffix = SUFFIXES.get(self.codec)
        if suffix is None:
            raise RequestError(
                f"codec {self.codec!r} is none of {', '.join(SUFFIXES)}", field="codec"
            )
        if self.out.suffix.lower() != suffix:
            wanted = (
                f"does not end in {suffix}, which {self.codec} needs"
                if suffix
                else "has an ending; pictures go to a folder"
            )
            raise RequestError(f"{self.out} {wanted}", field="out")
        if self.out.is_dir():
            raise RequestError(f"{self.out} is a folder that exists", field="out")


def check_device_name(name: str) -> None:
    """Raise RequestError for a device of another name."""
    if name not in DEVICES:
        raise RequestError(f"device {name!r} is none of {', '.join(DEVICES)}", field="device")


def check_attention_name(name: str) -> None:
    """Raise RequestError for an attention that is in no table of kernels.catalogue."""
    from ..kernels.catalogue import CATALOGUE

    known = [item.name for item in CATALOGUE if item.op == "window attention"]
    if name not in known:
        raise RequestError(f"no attention {name!r}; known: {', '.join(known)}", field="attention")


def check_checkpoint(folder: Path) -> Path:
    """`folder`, or CheckpointError when nothing is there."""
    if not folder.exists():
        raise CheckpointError("checkpoint is not there", file=folder)
    return folder


def check_files(request: Request, options: RunOptions) -> None:
    """Raise for the first file of a request that is not there. Opens none."""
    check_checkpoint(options.checkpoint)
    named = {
        "first_frame": [request.first_frame],
        "last_frame": [request.last_frame],
        "references": request.references,
        "loras": [item.file for item in request.loras],
    }
    for name, files in named.items():
        for file in files:
            if file is not None and not Path(file).is_file():
                found = "a folder" if Path(file).is_dir() else "not there"
                raise RequestError(f"{file} is {found}", field=name)


def check_disk(request: Request, options: RunOptions) -> None:
    """Raise DoesNotFit where not even the latents could be kept, before anything is sampled."""
    size, files = request.geometry, RunFiles(options.out)
    latents = 4 * (
        VIDEO_CHANNELS * size.latent_frames * size.latent_height * size.latent_width
        + AUDIO_VALUES * size.audio_latents
    )
    passes = 2  # conditioning, report and video are smaller
    if options.resume is not None and RunFiles.of(options.resume).report == files.report:
        passes = 0 if files.latents.exists() else 1 if files.first_pass.exists() else 2
    need = passes * latents + SPARE_BYTES
    free = shutil.disk_usage(options.out.parent).free
    if free < need:
        raise DoesNotFit([Shortage("disk", "sample_high", need, free)])


def check_outputs(request: Request, options: RunOptions, preview: Path | None = None) -> None:
    """Make the folders of a run's files. Raises RequestError where the video or the preview
    picture cannot be, DoesNotFit for a full disk."""
    make_folder(options.out.parent)
    if preview is not None:
        if preview.is_dir():
            raise RequestError(f"{preview} is a folder that exists", field="preview")
        if preview.resolve() == options.out.resolve():
            raise RequestError(f"{preview} is the video itself", field="preview")
        make_folder(preview.parent, field="preview")
    check_disk(request, options)


def make_folder(folder: Path, field: str = "out") -> None:
    """The folder of the video. Raises RequestError where there can be none, or nothing in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        raise RequestError(f"{folder} cannot be made: {refused}", field=field) from refused
    try:
        TemporaryFile(dir=folder).close()  # refused now, not after the first pass
    except OSError as refused:
        raise RequestError(
            f"{folder} cannot be written to: {refused.strerror}", field=field
        ) from refused
