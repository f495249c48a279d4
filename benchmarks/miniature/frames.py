"""Frames of a few captions as one picture, for the pages:

    python -m lowpeak.benchmarks.miniature.frames --out docs/images/miniature.png [--device cpu]

One row a caption: five moments of the clip; the captions are text chunks of the file.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from PIL import Image, PngImagePlugin

from lowpeak.engine.geometry import Geometry
from lowpeak.engine.miniature import HOME
from lowpeak.engine.request import LoraChoice, Request

from .table import draw

ROWS: tuple[tuple[str, str | None], ...] = (
    ("A red circle moves right on a white background.", None),
    ("A blue ring slides down over a black background.", None),
    ("On a grey background, a yellow diamond drifts left.", None),
    ("A green square moves up on a white background.", "night"),
    ("A magenta circle moves left on a black background.", "outline"),
)
MOMENTS = 5
SIDE_PX = 128  # of a frame on the sheet


def main() -> None:
    """Draw and write the sheet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, default=HOME)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--canvas", type=int, default=256)
    parser.add_argument("--frames", type=int, default=22)
    options = parser.parse_args()
    sheet = Image.new("RGB", (MOMENTS * SIDE_PX, len(ROWS) * SIDE_PX))
    about = PngImagePlugin.PngInfo()
    geometry = Geometry(options.canvas, options.canvas, options.frames)
    with tempfile.TemporaryDirectory() as folder:
        for number, (caption, style) in enumerate(ROWS):
            loras: tuple[LoraChoice, ...] = ()
            if style is not None:
                loras = (LoraChoice(str(options.checkpoint / "loras" / f"{style}.safetensors")),)
            request = Request(geometry, prompt=caption, quality="light", seed=7, loras=loras)
            clip, _ = draw(
                request, options.checkpoint, Path(folder) / "v.mp4", device=options.device
            )
            about.add_text(f"row {number + 1}", f"{caption} {style or ''}".strip())
            for place in range(MOMENTS):
                frame = clip[place * (len(clip) - 1) // (MOMENTS - 1)].to(torch.uint8).numpy()
                small = Image.fromarray(frame).resize((SIDE_PX, SIDE_PX), Image.Resampling.LANCZOS)
                sheet.paste(small, (place * SIDE_PX, number * SIDE_PX))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(options.out, pnginfo=about, optimize=True)


if __name__ == "__main__":
    main()
