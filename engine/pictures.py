"""Keyframes on the target canvas: the leading one is stretched, the follower covers and is cropped.

That is how the model's own pipeline fits them (facts: model sheet g; sampling.conditions); a
picture of another aspect is fitted all the same, and the user is told how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from PIL import Image
from torch import Tensor

from .geometry import Geometry
from .media import read_image
from .request import Request
from .sampling.conditions import fit_keyframes, keyframe_notices


def load_pictures(request: Request, notice: Callable[[str], None]) -> list[Tensor]:
    """The request's keyframes as uint8 [H, W, 3], first before last. Raises RequestError."""
    files = {"first": request.first_frame, "last": request.last_frame}
    pictures = {
        name: Image.fromarray(read_image(file).numpy())
        for name, file in files.items()
        if file is not None
    }
    return fit_pictures(pictures, request.geometry, notice)


def fit_pictures(
    pictures: Mapping[str, Image.Image], geometry: Geometry, notice: Callable[[str], None]
) -> list[Tensor]:
    """RGB pictures by name, first before last, on the canvas as uint8 [H, W, 3].

    Says so for each whose aspect is another one.
    """
    width, height = geometry.width_px, geometry.height_px
    images = list(pictures.values())
    sizes = [picture.size for picture in images]
    for sentence in keyframe_notices(sizes, list(pictures), width, height):
        notice(sentence)
    return [as_tensor(picture) for picture in fit_keyframes(images, width, height)]


def as_tensor(picture: Image.Image) -> Tensor:
    """An RGB picture as uint8 [H, W, 3]."""
    pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
    return pixels.view(picture.height, picture.width, 3)
