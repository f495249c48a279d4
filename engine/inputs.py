"""Option values of the command line turned into values of a Request, with typed refusals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import RequestError
from .files import RunFiles
from .options import SUFFIXES
from .request import LoraChoice

ENDINGS = {".mp4": "h264", ".webm": "webm"}
MAX_PROMPT_BYTES = 1 << 20


def read_prompt(prompt: str | None, file: Path | None, *, required: bool) -> str | None:
    """The prompt of --prompt or --prompt-file. One line break at a file's end is not part of it.

    None when there is none and none is required. Raises RequestError for both, for neither when one
    is required, and for a file that is no text.
    """
    if prompt is not None and file is not None:
        raise RequestError("give --prompt or --prompt-file, not both", field="prompt")
    if file is None:
        if prompt is None and required:
            raise RequestError("give a prompt: --prompt TEXT or --prompt-file FILE", field="prompt")
        return prompt
    try:
        with file.open("rb") as stream:  # bounded: a device has no size and no end
            data = stream.read(MAX_PROMPT_BYTES + 1)
        if len(data) > MAX_PROMPT_BYTES:
            raise RequestError(f"{file} is larger than 1 MiB: no prompt", field="prompt")
        text = data.decode("utf-8")
    except OSError as missing:
        raise RequestError(f"{file} cannot be read: {missing}", field="prompt") from missing
    except UnicodeDecodeError as damage:
        raise RequestError(f"{file} is not UTF-8 text: {damage}", field="prompt") from damage
    return text.removesuffix("\n").removesuffix("\r")


def parse_loras(given: Sequence[str]) -> tuple[LoraChoice, ...]:
    """FILE[:STRENGTH] each. A colon that no number follows belongs to the file's name."""
    found = []
    for text in given:
        file, colon, tail = text.rpartition(":")
        try:
            strength = float(tail) if colon and file else None
        except ValueError:
            strength = None
        found.append(LoraChoice(text) if strength is None else LoraChoice(file, strength))
    return tuple(found)


def named_files(
    first_frame: Path | None,
    last_frame: Path | None,
    references: Sequence[Path] | None,
    loras: Sequence[str] | None,
) -> dict[str, Any]:
    """The fields of a Request that name files. Raises RequestError for a LoRA that is none."""
    return {
        "first_frame": first_frame and str(first_frame),
        "last_frame": last_frame and str(last_frame),
        "references": tuple(map(str, references or ())),
        "loras": parse_loras(loras or ()),
    }


def choose_codec(codec: str | None, out: Path | None, resume: Path | None) -> str:
    """--codec, or what the ending of --out says, or what the resumed run was asked for."""
    if codec is not None:
        return codec
    if out is None and resume is not None and resume.suffix.lower() not in ENDINGS:
        return _asked_codec(RunFiles.of(resume).report)
    named = out if out is not None else resume
    return ENDINGS.get("" if named is None else named.suffix.lower(), "h264")


def _asked_codec(report: Path) -> str:
    """The codec of a run by its report; of an older one by the name of its video."""
    try:
        found = json.loads(report.read_text(encoding="utf-8"))
        if found.get("codec") in SUFFIXES:
            return str(found["codec"])
        return ENDINGS.get(Path(str(found["files"]["video"])).suffix.lower(), "h264")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "h264"  # it made none, or is no report: that is said where it is read


def resumed_out(out: Path | None, resume: Path | None, suffix: str = ".mp4") -> Path:
    """Where the video goes: --out, or beside the run that is resumed, ending in `suffix`."""
    if out is not None:
        return out
    if resume is None:
        raise RequestError("give --out V.mp4", field="out")
    return RunFiles.of(resume).video.with_suffix(suffix)
