"""`lowpeak demo`: one request to the miniature, every stage of a real one.

A prompt passes encoder, two sampling passes with the latent lift between them, both decoders and
the muxer, within the memory that was forecast. The shipped miniature is trained and draws what the
prompt says, if it speaks of its small world; without those files the weights are random and the
picture is noise.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from .errors import CheckpointError
from .events import Event, Host
from .files import RunFiles, write_text
from .geometry import Geometry
from .memory_svg import memory_svg
from .miniature import PROMPT, convert_miniature, digest_of, shipped
from .models import open_models
from .report import RunReport
from .request import Request
from .run import RunOptions, run_request
from .toy import write_toy
from .units import format_seconds

REQUEST = Request(Geometry(512, 512, 39), prompt=PROMPT, quality="light", seed=7)
FORMAT = "edge-fp8-rowwise"
FOLDER, TOY_SEED = "demo-checkpoint", 7
MADE_FROM, TRAINED, RANDOM = "made-from.txt", "miniature ", "random weights"  # a mark in the folder


def run_demo(folder: Path, device: str, host: Host, prompt: str = "") -> tuple[dict[str, Any], str]:
    """Run the demo into `folder`; gives the document of `demo --json` and the same in words.

    prompt: instead of the demo's own.
    """
    request = replace(REQUEST, prompt=prompt) if prompt else REQUEST
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    checkpoint = find_toy(folder / FOLDER, host)
    ready = time.perf_counter()
    files = RunFiles(folder / "demo.mp4")
    options = RunOptions(
        checkpoint=checkpoint, out=files.video, device=device, metadata={"lowpeak": "demo"}
    )
    report = run_request(request, options, host)
    write_text(files.picture, memory_svg(report.as_json()))
    seconds = {"checkpoint": ready - began, "generation": time.perf_counter() - ready}
    document = {
        "video": str(files.video),
        "report": str(files.report),
        "memory": str(files.picture),
        "checkpoint": str(checkpoint),
        "seconds": seconds,
        "latents_sha256": report.latents_sha256,
    }
    trained = made_from(checkpoint).startswith(TRAINED)
    return document, _text(document, report, request.prompt if trained else None)


def find_toy(folder: Path, host: Host) -> Path:
    """The miniature checkpoint at `folder`: the one that is there, or a new one.

    It is made under another name and renamed when whole; one that is damaged, or was not made from
    the miniature that is shipped now, is replaced.
    """
    source = shipped()
    mark = RANDOM if source is None else TRAINED + digest_of(source)
    if folder.is_dir():
        reason = _why_again(folder, mark)
        if reason is None:
            return folder
        host.emit(Event("notice", "", f"making the miniature checkpoint again: {reason}"))
        shutil.rmtree(folder)
    partial = folder.with_name(f".{folder.name}.partial")
    if partial.exists():
        shutil.rmtree(partial)
    try:
        if source is not None:
            convert_miniature(source, partial, FORMAT)
        else:
            write_toy(partial, size="tiny", weight_format=FORMAT, seed=TOY_SEED, host=host)
        write_text(partial / MADE_FROM, f"{mark}\n")
        partial.rename(folder)
    finally:
        if partial.exists():
            shutil.rmtree(partial)
    return folder


def made_from(checkpoint: Path) -> str:
    """What a demo checkpoint was made from: TRAINED with the miniature's digest, RANDOM, or
    nothing where nobody said so."""
    try:
        return (checkpoint / MADE_FROM).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _why_again(folder: Path, mark: str) -> str | None:
    """Why the checkpoint at `folder` cannot be the demo's; None when it can. Where no miniature is
    shipped, whatever is there is as good as what would be made."""
    if mark != RANDOM and made_from(folder) != mark:
        return "the one that is there was not made from the miniature that is shipped"
    try:
        open_models(folder, "cpu").check()
    except CheckpointError as damage:
        return str(damage)
    return None


def _text(document: dict[str, Any], report: RunReport, drawn: str | None) -> str:
    """drawn: the prompt; None when the weights are not known to be trained."""
    size = report.geometry
    about = "random weights, so it shows noise" if drawn is None else f'"{drawn}"'
    return "\n".join(
        [
            f"video   {document['video']} ({size['width']}x{size['height']}, "
            f"{size['frames']} frames, sound; {about})",
            f"report  {document['report']}",
            f"memory  {document['memory']}",
            f"made in {format_seconds(document['seconds']['generation'])}",
        ]
    )
