"""Keyframes on the target canvas: the first is stretched, the last is covered and cropped.

That is how the model's own pipeline fits them (facts: model sheet g); a picture of another aspect
is fitted all the same, and the user is told how.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from PIL import Image
from torch import Tensor

from .errors import RequestError
from .geometry import Geometry
from .media import read_image
from .request import Request

ASPECT_TOLERANCE = 0.01


def load_pictures(request: Request, notice: Callable[[str], None]) -> list[Tensor]:
    """The request's keyframes as uint8 [H, W, 3], first before last. Raises RequestError."""
    if request.references:
        raise RequestError(
            "references need the reference transformer, which this version does not run: use "
            "--first-frame and --last-frame, or leave the references out",
            field="references",
        )
    found = []
    if request.first_frame is not None:
        found.append(fit_picture(request.first_frame, request.geometry, "first", notice))
    if request.last_frame is not None:
        found.append(fit_picture(request.last_frame, request.geometry, "last", notice))
    return found


def fit_picture(file: str, geometry: Geometry, name: str, notice: Callable[[str], None]) -> Tensor:
    """One picture file on the canvas; says so when its aspect is another one."""
    return fit_image(Image.fromarray(read_image(file).numpy()), geometry, name, notice)


def fit_image(
    picture: Image.Image, geometry: Geometry, name: str, notice: Callable[[str], None]
) -> Tensor:
    """One RGB picture on the canvas, uint8 [H, W, 3]; says so when its aspect is another one."""
    width, height = geometry.width_px, geometry.height_px
    ratio = (picture.width / picture.height) / (width / height)
    if abs(ratio - 1) > ASPECT_TOLERANCE:
        how = "stretched to it" if name == "first" else "covered and cropped at the centre"
        notice(
            f"{name} frame is {picture.width}x{picture.height}, the canvas {width}x{height}: {how}"
        )
    box = None
    if name == "last":
        keep_width = min(picture.width, round(picture.height * width / height))
        keep_height = min(picture.height, round(picture.width * height / width))
        left, top = (picture.width - keep_width) // 2, (picture.height - keep_height) // 2
        box = (left, top, left + keep_width, top + keep_height)
    fitted = picture.resize((width, height), Image.Resampling.LANCZOS, box=box)
    return torch.frombuffer(bytearray(fitted.tobytes()), dtype=torch.uint8).view(height, width, 3)
