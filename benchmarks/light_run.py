"""A whole request at full size on synthetic weights: the report, the timeline, peaks against plan.

    python benchmarks/light_run.py --models DIR --out OUT --vram-gib 8 --ram-gib 32

DIR gets what is missing: the transformer of `toy-checkpoint --size full` (22.5 GB; an existing one
may be linked as DIR/transformer), and autoencoders of the published sizes (4.9 and 0.5 GB). OUT
gets light-timeline.json and .svg, also after a failure. --warm runs a one-block transformer first,
so that kernels are compiled. --size tiny tries the script itself on a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lowpeak.engine.checkpoint.header import write_tensors
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.console import ConsoleHost
from lowpeak.engine.files import RunFiles
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.launch import generate
from lowpeak.engine.parts import AUDIO_VAE, OWN_NAMES, TEXT, UPSCALER, VIDEO_VAE
from lowpeak.engine.request import Request
from lowpeak.engine.run import RunOptions
from lowpeak.engine.sampling.upscaler_file import write_toy_upscaler
from lowpeak.engine.text.toy import write_toy_text_encoder
from lowpeak.engine.timeline import timeline, timeline_svg
from lowpeak.engine.toy import RELEASED_UPSCALER, UPSCALER_SIZES, write_toy
from lowpeak.engine.vae.config import (
    PUBLISHED_VIDEO_MEAN,
    PUBLISHED_VIDEO_STD,
    AudioVaeConfig,
    VideoVaeConfig,
)
from lowpeak.engine.vae.keys import BLOCK_PREFIX
from lowpeak.engine.vae.shapes import block_shapes, root_shapes
from lowpeak.engine.vae.toy import FILE, audio_settings, toy_audio_state, video_settings

PROMPT = "A red fox trots through fresh snow at dawn, breath steaming. Soft wind, a distant bell."
STARTED = time.perf_counter()
AUDIO = AudioVaeConfig((0.0,) * 32, (1.0,) * 32)


def write_full_video_vae(folder: Path, config: VideoVaeConfig, device: str) -> None:
    """The video decoder at `config`, float16; all blocks hold one set of numbers."""
    generator = torch.Generator(device).manual_seed(0)

    def draw(name: str, shape: tuple[int, ...]) -> Tensor:
        noise = torch.randn(shape, generator=generator, device=device)
        gain = shape[1] ** -0.5 if len(shape) > 1 else 0.1
        centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        return (centre + gain * noise).half().cpu()

    state = {
        name if name.startswith("post_quant_conv.") else f"decoder.{name}": draw(name, shape)
        for name, shape in root_shapes(config).items()
    }
    block = {name: draw(name, shape) for name, shape in block_shapes(config).items()}
    for index in range(config.blocks):
        state |= {f"{BLOCK_PREFIX}{index}.{name}": value for name, value in block.items()}
    write_tensors(folder / FILE, state, {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(video_settings(config)), encoding="utf-8")


def prepare(models: Path, size: str, device: str, blocks: int | None = None) -> Path:
    """The folder of the request's models; parts that are there already stay."""
    kind = "" if blocks is None else f"-{blocks}"
    checkpoint, folder = models / f"transformer{kind}", models / f"request{kind}"
    if not checkpoint.is_dir():
        write_toy(
            checkpoint, size=size, weight_format="edge-fp8-rowwise", seed=0, device=device,
            blocks=blocks,
        )  # fmt: skip
        say(f"{checkpoint.name} is written")
    if blocks is not None:
        return checkpoint
    if folder.is_dir():
        return folder
    folder.mkdir()
    own = {OWN_NAMES[VIDEO_VAE], OWN_NAMES[AUDIO_VAE]}
    for entry in checkpoint.iterdir():
        if size != "full" or entry.name not in own:
            (folder / entry.name).symlink_to(entry.resolve())
    extras(folder, size)
    if size == "full":
        config = VideoVaeConfig(PUBLISHED_VIDEO_MEAN, PUBLISHED_VIDEO_STD)
        write_full_video_vae(folder / OWN_NAMES[VIDEO_VAE], config, device)
        audio = folder / OWN_NAMES[AUDIO_VAE]
        write_tensors(audio / FILE, toy_audio_state(0, AUDIO), {"format": "pt"})
        (audio / "config.json").write_text(json.dumps(audio_settings(AUDIO)), encoding="utf-8")
        say("autoencoders are written")
    return folder


def extras(folder: Path, size: str) -> None:
    """Text encoder and upscaler, where the transformer came without them."""
    if not (folder / OWN_NAMES[TEXT]).exists():
        width = open_checkpoint(folder).config.text_dim
        write_toy_text_encoder(folder / OWN_NAMES[TEXT], text_dim=width, seed=0)
    if not (folder / OWN_NAMES[UPSCALER]).exists():
        width, depth = UPSCALER_SIZES.get(size, RELEASED_UPSCALER)
        write_toy_upscaler(folder / OWN_NAMES[UPSCALER], 0, width=width, depth=depth)
        say("upscaler is written")


def say(what: str) -> None:
    """Progress with the seconds since the start."""
    print(f"{time.perf_counter() - STARTED:7.1f} s  {what}", flush=True)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--size", default="full")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--width", type=int, default=1344)
    parser.add_argument("--height", type=int, default=768)
    parser.add_argument("--frames", type=int, default=243)
    parser.add_argument("--quality", default="light")
    parser.add_argument("--vram-gib", type=float)
    parser.add_argument("--ram-gib", type=float)
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--name", default="light-timeline")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    given.models.mkdir(parents=True, exist_ok=True)
    folder = prepare(given.models, given.size, given.device)
    geometry = Geometry(given.width, given.height, given.frames)
    request = Request(geometry, prompt=PROMPT, quality=given.quality, seed=7)
    video = given.models / f"{given.name}.mp4"
    options = RunOptions(
        checkpoint=folder,
        out=video,
        vram_gib=given.vram_gib,
        ram_gib=given.ram_gib,
        device=given.device,
    )
    failure = ""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a time limit ends it in good order
    try:
        if given.warm:
            few = replace(
                options,
                checkpoint=prepare(given.models, given.size, given.device, blocks=1),
                out=given.models / "warm.mp4",
                stop_after="sample",
            )
            home = os.environ.get("LOWPEAK_HOME", "")
            os.environ["LOWPEAK_HOME"] = str(given.models / "home")  # it teaches the plan nothing
            generate(request, few, ConsoleHost(), workers=not given.in_process)
            os.environ["LOWPEAK_HOME"] = home or str(given.models / "home-2")
            say("warm")
        generate(request, options, ConsoleHost(), workers=not given.in_process)
    except BaseException as failed:  # the border of the script: what was measured is kept
        failure = f"{type(failed).__name__}: {failed}"
        traceback.print_exc()
        print(getattr(failed, "trace", ""), file=sys.stderr)
    say("done")
    keep(given.out, given.name, video, failure)
    return 1 if failure else 0


def keep(out: Path, name: str, video: Path, failure: str) -> None:
    """The report and its timeline as JSON, the picture beside it."""
    file = RunFiles(video).report
    document: dict[str, Any] = {"command": " ".join(sys.argv), "failure": failure}
    if file.is_file():
        report = json.loads(file.read_text(encoding="utf-8"))
        document |= {"timeline": timeline(report), "report": report}
        (out / f"{name}.svg").write_text(timeline_svg(report), encoding="utf-8")
        words = {key: document["timeline"][key] for key in ("gaps", "sampling_seconds", "peaks")}
        print(json.dumps(words, indent=1), flush=True)
        print("seconds a step:", [p["measured"]["step_seconds"] for p in report["phases"]])
    (out / f"{name}.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
