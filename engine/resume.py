"""Going on from what an earlier start left: conditioning, first-pass latents, sampled latents.

What is saved carries the settings that made it. A file is used only for a request with the same
settings, so `--resume` with another refine starts from the first pass, and never from latents of
another prompt's size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from .errors import RequestError
from .files import RunFiles, SampledLatents, load_latents, load_tensors, save_tensors
from .geometry import Geometry
from .request import Request
from .stages import KEYFRAME_NAMES, Conditioning, Keyframe
from .text.encoder import TextConditioning


@dataclass
class Saved:
    """What can be gone on from. The latest stage wins."""

    conditioning: Conditioning | None = None
    first_pass: SampledLatents | None = None
    latents: SampledLatents | None = None


def settings_of(request: Request, *, first: bool = False) -> dict[str, Any]:
    """The settings that decide a stage's latents, JSON-ready. first: of the first pass alone."""
    data = request.as_json()
    names = ["width", "height", "frames", "quality", "seed", "base_steps", "two_pass"]
    return {name: data[name] for name in names + ([] if first else ["refine_steps"])}


def read_request(named: Path, *, prompt: str = "", refine_steps: int | None = None) -> Request:
    """The request of an earlier run, from its report. The prompt is not in it unless it was kept.

    refine_steps: another second pass from the same first one. Raises RequestError.
    """
    file = RunFiles.of(named).report
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
        data: Mapping[str, Any] = report["request"]
        request = Request(
            Geometry(int(data["width"]), int(data["height"]), int(data["frames"])),
            prompt=str(data.get("prompt", prompt)) or prompt,
            quality=str(data["quality"]),
            seed=int(data["seed"]),
            base_steps=data["base_steps"],
            refine_steps=data["refine_steps"],
            two_pass=data["two_pass"],
        )
    except FileNotFoundError as missing:
        raise RequestError(
            f"{file} is not there: give the report or the video of an earlier run", field="resume"
        ) from missing
    except (OSError, ValueError, KeyError, TypeError) as damage:
        raise RequestError(f"{file} is no report of a run: {damage}", field="resume") from damage
    return request if refine_steps is None else replace(request, refine_steps=refine_steps)


def load_saved(request: Request, named: Path | None) -> Saved:
    """What the run `named` left for `request`. Raises RequestError when it left nothing."""
    if named is None:
        return Saved()
    files, saved = RunFiles.of(named), Saved()
    if files.latents.is_file():
        saved.latents = _latents(files.latents, settings_of(request))
    if saved.latents is None and files.first_pass.is_file():
        saved.first_pass = _latents(files.first_pass, settings_of(request, first=True))
    if saved.latents is None and files.conditioning.is_file():
        saved.conditioning = load_conditioning(files.conditioning)
    if saved.latents is None and saved.first_pass is None and saved.conditioning is None:
        raise RequestError(f"{files.report.parent}: nothing of this run was kept", field="resume")
    return saved


def save_conditioning(target: Path, conditioning: Conditioning) -> None:
    """Keep an encoded prompt and its keyframes."""
    tensors = {"embeds": conditioning.text.embeds, "tags": conditioning.text.tags}
    tensors |= {f"keyframe.{item.name}": item.latents for item in conditioning.keyframes}
    save_tensors(target, tensors)


def load_conditioning(file: Path) -> Conditioning:
    """What `save_conditioning` kept. Raises RequestError for another file."""
    tensors, _ = load_tensors(file)
    if not {"embeds", "tags"} <= tensors.keys():
        raise RequestError(f"{file} holds no conditioning", field="resume")
    keyframes = tuple(
        Keyframe(name, tensors[f"keyframe.{name}"])
        for name in KEYFRAME_NAMES
        if f"keyframe.{name}" in tensors
    )
    text = TextConditioning(tensors["embeds"].float(), tensors["tags"].to(torch.int64))
    return Conditioning(text, keyframes)


def _latents(file: Path, settings: Mapping[str, Any]) -> SampledLatents | None:
    """Saved latents, None when other settings made them."""
    latents, about = load_latents(file)
    return latents if about.get("settings") == dict(settings) else None
