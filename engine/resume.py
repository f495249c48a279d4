"""Going on from what an earlier start left: conditioning, first-pass latents, sampled latents.

What is saved carries the settings that made it. A file is used only for a request with the same
settings, so `--resume` with another refine starts from the first pass, and never from latents of
another prompt's size.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import RequestError
from .files import REPORT_TAIL, RunFiles, SampledLatents, load_latents, load_tensors, save_tensors
from .geometry import Geometry
from .request import Request
from .resumed import acting_loras, check_loras, check_media, require_loras

if TYPE_CHECKING:
    from .report import RunReport
    from .stages import Conditioning


@dataclass
class Saved:
    """What can be gone on from. The latest stage wins."""

    conditioning: Conditioning | None = None
    first_pass: SampledLatents | None = None
    latents: SampledLatents | None = None
    run_id: str = ""
    files: dict[str, str] = field(default_factory=dict)  # kind -> name, as in the report
    asked: Mapping[str, Any] = field(default_factory=dict)  # the report's request
    lora: list[dict[str, Any]] = field(default_factory=list)  # the report's binding reports

    def keep_record(self, report: RunReport) -> None:
        """What went into what is gone on from stays on record, given again or not."""
        for name in ("first_frame", "last_frame", "references", "loras"):
            if not report.request[name] and name in self.asked:
                report.request[name] = self.asked[name]
        report.lora = report.lora or self.lora


def settings_of(
    request: Request, loras: Iterable[Mapping[str, Any]] = (), *, first: bool = False
) -> dict[str, Any]:
    """The settings that decide a stage's latents, JSON-ready. first: of the first pass alone.

    loras: binding reports; a LoRA counts by its content and strength, its path and name do not.
    """
    data = request.as_json()
    names = ["width", "height", "frames", "quality", "seed", "base_steps", "two_pass"]
    settings = {name: data[name] for name in names + ([] if first else ["refine_steps"])}
    acting = acting_loras(loras)
    return {**settings, "loras": acting} if acting else settings


def read_request(
    named: Path, *, prompt: str | None = None, refine_steps: int | None = None
) -> Request:
    """The request of an earlier run, from its report. The prompt is not in it unless it was kept;
    keyframes, references and LoRAs are files, and never are.

    refine_steps: another second pass from the same first one. Raises RequestError.
    """
    file, data = _read_report(named)
    try:
        asked: Mapping[str, Any] = data["request"]
        kept = asked.get("prompt")
        request = Request(
            Geometry(int(asked["width"]), int(asked["height"]), int(asked["frames"])),
            prompt=str(kept or "") if prompt is None else prompt,
            quality=str(asked["quality"]),
            seed=int(asked["seed"]),
            base_steps=asked["base_steps"],
            refine_steps=asked["refine_steps"],
            two_pass=asked["two_pass"],
        )
    except (ValueError, KeyError, TypeError) as damage:
        raise RequestError(f"{file} is no report of a run: {damage}", field="resume") from damage
    if None not in (kept, prompt) and kept != prompt:
        raise RequestError(
            f"another prompt than the one kept in {file}: leave --prompt out, or start anew "
            "without --resume",
            field="prompt",
        )
    return request if refine_steps is None else replace(request, refine_steps=refine_steps)


def load_saved(request: Request, named: Path | None, *, prompt_given: bool = True) -> Saved:
    """What the run `named` left for `request`; only files that carry that run's own id count.

    prompt_given: the request's prompt is the real one, so it can be encoded again. Raises
    RequestError when nothing was kept, when what is left needs a prompt, a file or a LoRA again,
    and for LoRAs or pictures that are not those of the run.
    """
    if named is None:
        return Saved(run_id=uuid.uuid4().hex)
    _, report = _read_report(named)
    files = RunFiles.of(named)
    saved = Saved(
        run_id=str(report.get("run_id", "")), asked=report.get("request", {}),
        lora=report.get("lora", []),
    )  # fmt: skip
    check_media(request, saved.asked)
    check_loras(request, saved.lora)
    saved.latents = _latents(files.latents, saved.run_id, settings_of(request, saved.lora))
    if saved.latents is None:
        settings = settings_of(request, saved.lora, first=True)
        saved.first_pass = _latents(files.first_pass, saved.run_id, settings)
        saved.conditioning = load_conditioning(files.conditioning, saved.run_id)
    if saved.latents is None and saved.first_pass is None and saved.conditioning is None:
        raise RequestError(f"{files.report}: nothing of this run was kept", field="resume")
    if saved.latents is None:
        require_loras(request, saved.lora)
    if saved.latents is None and saved.conditioning is None:
        asked = saved.asked
        if not prompt_given and "prompt" not in asked:
            raise RequestError("the prompt was not kept: give --prompt again", field="prompt")
        for name in ("first", "last"):
            if asked.get(f"{name}_frame") and getattr(request, f"{name}_frame") is None:
                raise RequestError(
                    f"the {name} frame was not kept: give --{name}-frame again", field="resume"
                )
        if asked.get("references") and len(request.references) != asked["references"]:
            raise RequestError(
                f"the {asked['references']} references were not kept: give each --reference again",
                field="resume",
            )
    kept = {"latents": saved.latents, "first_pass": saved.first_pass,
            "conditioning": saved.conditioning}  # fmt: skip
    names = report.get("files", {})
    saved.files = {kind: names[kind] for kind, value in kept.items() if value and kind in names}
    return saved


def save_conditioning(target: Path, conditioning: Conditioning, run_id: str) -> None:
    """Keep an encoded prompt with its keyframes or references."""
    tensors = {"embeds": conditioning.text.embeds, "tags": conditioning.text.tags}
    tensors |= {f"keyframe.{item.name}": item.latents for item in conditioning.keyframes}
    for index, item in enumerate(conditioning.references):
        for part, value in (("latents", item.latents), ("sound", item.sound_rows)):
            if value is not None:
                tensors[f"reference.{index}.{part}"] = value
    kinds = [item.kind for item in conditioning.references]
    save_tensors(target, tensors, {"run": run_id, "references": kinds})


def load_conditioning(file: Path, run_id: str) -> Conditioning | None:
    """What `save_conditioning` kept, None without it. Raises RequestError for another file."""
    if not file.is_file():
        return None
    tensors, about = load_tensors(file)
    if about.get("run") != run_id:
        return None
    if not {"embeds", "tags"} <= tensors.keys():
        raise RequestError(f"{file} holds no conditioning", field="resume")
    import torch

    from .sampling.condition_latents import EncodedReference
    from .stages import KEYFRAME_NAMES, Conditioning, Keyframe
    from .text.encoder import TextConditioning

    keyframes = tuple(
        Keyframe(name, tensors[f"keyframe.{name}"])
        for name in KEYFRAME_NAMES
        if f"keyframe.{name}" in tensors
    )
    references = tuple(
        EncodedReference(
            str(kind),
            tensors.get(f"reference.{index}.latents"),
            tensors.get(f"reference.{index}.sound"),
        )
        for index, kind in enumerate(about.get("references", ()))
    )
    text = TextConditioning(tensors["embeds"].float(), tensors["tags"].to(torch.int64))
    return Conditioning(text, keyframes, references)


def _latents(file: Path, run_id: str, settings: Mapping[str, Any]) -> SampledLatents | None:
    """Saved latents, None when there are none or another run or other settings made them."""
    if not file.is_file():
        return None
    latents, about = load_latents(file)
    made_by = about.get("run"), about.get("settings")
    return latents if made_by == (run_id, dict(settings)) else None


def _read_report(named: Path) -> tuple[Path, dict[str, Any]]:
    file = RunFiles.of(named).report
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as missing:
        beside = "" if named == file else f", there is no {file.name} beside it"
        raise RequestError(
            f"{named} is no file of an earlier run{beside}: give its report (V{REPORT_TAIL}), its "
            "video, or what it kept",
            field="resume",
        ) from missing
    except (OSError, ValueError) as damage:
        raise RequestError(f"{file} is no report of a run: {damage}", field="resume") from damage
    if not isinstance(report, dict):
        raise RequestError(f"{file} is no report of a run", field="resume")
    return file, report
