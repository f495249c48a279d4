"""The check table: held-out captions through the engine, in every form of weights and passes.

    python -m lowpeak.benchmarks.miniature.table --out docs/benchmarks/miniature.json [--clips 40]
        [--checkpoint miniature] [--device cpu] [--jobs 1] [--variants a,b] [--seconds 600]

Each variant is a row: shares of clips, in percent, whose colour, shape, motion and pitch are what
the caption says. Rows are written as they come; a variant that fails is a row with its error.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from lowpeak.engine.events import QuietHost
from lowpeak.engine.files import RunFiles, load_latents
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.miniature import HOME, convert_miniature
from lowpeak.engine.models import open_models
from lowpeak.engine.request import LoraChoice, Request
from lowpeak.engine.run import RunOptions, run_request

from . import checks, data

FIRST_INDEX = 40_000_000  # of the held-out clips whose captions are asked for
SMALL = Geometry(256, 256, 22)
LONG = Geometry(256, 256, 39)  # 12 latent frames: windows and the linear branch take part
WIDE = Geometry(512, 512, 22)


@dataclass(frozen=True)
class Variant:
    """One row: how weights are stored, and what is asked for besides the caption."""

    weights: str = "bf16"
    geometry: Geometry = SMALL
    request: dict[str, Any] = field(default_factory=dict)
    lora: str | None = None
    lora_mode: str = "auto"
    keyframes: bool = False


SINGLE = {"base_steps": 8, "two_pass": False}
VARIANTS: dict[str, Variant] = {
    "bf16": Variant(request=SINGLE),
    "fp8-rowwise": Variant("edge-fp8-rowwise", request=SINGLE),
    "fp8-tensor": Variant("edge-fp8", request=SINGLE),
    "int8": Variant("edge-int8", request=SINGLE),
    "medium-12-steps": Variant(request={"quality": "medium"}),
    "39-frames": Variant(geometry=LONG, request=SINGLE),
    "39-frames-fp8-rowwise": Variant("edge-fp8-rowwise", LONG, SINGLE),
    "39-frames-fp8-tensor": Variant("edge-fp8", LONG, SINGLE),
    "39-frames-int8": Variant("edge-int8", LONG, SINGLE),
    "73-frames": Variant(geometry=Geometry(256, 256, 73), request=SINGLE),
    "384x256": Variant(geometry=Geometry(384, 256, 22), request=SINGLE),
    "two-pass-light-512": Variant(geometry=WIDE, request={"quality": "light"}),
    "two-pass-light-512-fp8-rowwise": Variant("edge-fp8-rowwise", WIDE, {"quality": "light"}),
    "single-pass-512": Variant(geometry=WIDE, request=SINGLE),
    "first-and-last": Variant(request=SINGLE, keyframes=True),
    "first-and-last-two-pass": Variant(geometry=WIDE, request={"quality": "light"}, keyframes=True),
    "night-merged": Variant(request=SINGLE, lora="night", lora_mode="merged"),
    "night-online": Variant(request=SINGLE, lora="night", lora_mode="online"),
    "outline-merged": Variant(request=SINGLE, lora="outline", lora_mode="merged"),
    "outline-online": Variant(request=SINGLE, lora="outline", lora_mode="online"),
    "night-online-fp8-rowwise": Variant(
        "edge-fp8-rowwise", request=SINGLE, lora="night", lora_mode="online"
    ),
}


def prepare(checkpoint: Path, weights: str, folder: Path) -> Path:
    """The checkpoint whose transformer is stored as `weights`: itself, or a conversion."""
    if weights == "bf16":
        return checkpoint
    target = folder / weights
    if not target.is_dir():
        partial = folder / f".{weights}"
        convert_miniature(checkpoint, partial, weights)
        partial.rename(target)
    return target


def draw(
    request: Request, checkpoint: Path, out: Path, *, device: str = "cpu", lora_mode: str = "auto"
) -> tuple[Tensor, Tensor]:
    """Frames uint8 [n, H, W, 3] and sound [2, samples] of a request, before any video codec."""
    options = RunOptions(
        checkpoint=checkpoint, out=out, device=device, stop_after="sample", lora_mode=lora_mode
    )
    run_request(request, options, QuietHost())
    latents, _ = load_latents(RunFiles(out).latents)
    models = open_models(checkpoint, device)
    frames: list[Tensor] = []
    models.decode_video(latents.video, lambda part: frames.append(part.cpu()), lambda: False)
    return torch.cat(frames), models.decode_audio(latents.audio)


def scene(number: int) -> data.Scenes:
    """Held-out clip `number` of the table."""
    return data.Scenes.of(torch.tensor([FIRST_INDEX + number]), held_out=True)


def keyframe_files(scenes: data.Scenes, geometry: Geometry, folder: Path) -> list[Path]:
    """First and last frame of a clip as pictures on the geometry's canvas."""
    moments = torch.tensor([0.0, 1.0])
    frames = data.render(scenes, moments, geometry.height_px, geometry.width_px)[0]
    paths = []
    for name, frame in zip(("first", "last"), frames.unbind(1), strict=True):
        paths.append(folder / f"{name}.png")
        pixels = (frame.permute(1, 2, 0) * 255).round().to(torch.uint8)
        Image.fromarray(pixels.numpy()).save(paths[-1])
    return paths


def ask(
    variant: Variant, checkpoint: Path, number: int, folder: Path, device: str
) -> dict[str, Any]:
    """One clip of a variant: what agrees with its caption."""
    scenes = scene(number)
    more: dict[str, Any] = dict(variant.request)
    pictures: list[Path] = []
    if variant.keyframes:
        pictures = keyframe_files(scenes, variant.geometry, folder)
        more |= {"first_frame": str(pictures[0]), "last_frame": str(pictures[1])}
    if variant.lora is not None:
        more["loras"] = (LoraChoice(str(checkpoint / "loras" / f"{variant.lora}.safetensors")),)
    caption = scenes.caption(0, number % len(data.TEMPLATES))
    request = Request(variant.geometry, prompt=caption, seed=1000 + number, **more)
    frames, wave = draw(
        request, checkpoint, folder / "v.mp4", device=device, lora_mode=variant.lora_mode
    )
    row: dict[str, Any] = checks.look(frames, wave).against(scenes.words(0))
    for name, path, frame in zip(
        ("first", "last"), pictures, (frames[0], frames[-1]), strict=False
    ):
        with Image.open(path) as picture:
            wanted = torch.tensor(list(picture.tobytes()), dtype=torch.uint8).view(frame.shape)
        row[f"{name}_psnr_db"] = checks.psnr(frame, wanted)
    if variant.lora is not None:
        row["style"] = checks.has_style(frames, variant.lora)
    return row


def run_variant(
    name: str, clips: int, checkpoint: Path, folder: Path, device: str, limit_s: float, threads: int
) -> dict[str, Any]:
    """The row of a variant, from as many clips as the time allows."""
    torch.set_num_threads(threads)
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    try:
        variant = VARIANTS[name]
        source = prepare(checkpoint, variant.weights, folder)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            for number in range(clips):
                rows.append(ask(variant, source, number, Path(place), device))
                if time.monotonic() - began > limit_s:
                    break
    except Exception:
        failure: dict[str, Any] = {"variant": name, "error": traceback.format_exc()[-1200:]}
        return failure | (checks.summary(rows) if rows else {})
    seconds = (time.monotonic() - began) / max(1, len(rows))
    return {"variant": name, **checks.summary(rows), "seconds_a_clip": round(seconds, 2)}


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, default=HOME)
    parser.add_argument("--clips", type=int, default=40)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0, help="for one variant")
    parser.add_argument("--variants", default="")
    options = parser.parse_args(arguments)
    names = options.variants.split(",") if options.variants else list(VARIANTS)
    rows: dict[str, dict[str, Any]] = {}
    if options.out.is_file():
        rows = {r["variant"]: r for r in json.loads(options.out.read_text())["rows"]}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for weights in sorted({VARIANTS[n].weights for n in names}):
            prepare(options.checkpoint, weights, folder)
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as workers:
            waiting = [
                workers.submit(
                    run_variant, name, options.clips, options.checkpoint, folder, options.device,
                    options.seconds, options.threads,
                )
                for name in names
            ]  # fmt: skip
            for ended in as_completed(waiting):
                row = ended.result()
                rows[row["variant"]] = row
                print(json.dumps(row), flush=True)
                write(options.out, rows, options.device)


def write(out: Path, rows: dict[str, dict[str, Any]], device: str) -> None:
    """The document, rows in the order of VARIANTS."""
    document = {
        "bench": "miniature",
        "device": device,
        "torch": torch.__version__,
        "rows": [rows[name] for name in VARIANTS if name in rows],
    }
    text = json.dumps(document, indent=None, separators=(",", ":")).replace(
        '{"variant"', '\n{"variant"'
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text + "\n")


if __name__ == "__main__":
    main()
