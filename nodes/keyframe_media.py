"""Keyframes and conditioning between ComfyUI's tensors and the engine's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.errors import RequestError
from ..engine.geometry import Geometry
from ..engine.request import Request
from .engine_seam import Conditions, Pictures
from .reference_media import references_in


def engine_conditioning(request: Request, conditions: Conditions) -> Any:
    """The engine's Conditioning. RequestError for what it cannot carry."""
    from ..engine.stages import Conditioning, Keyframe
    from ..engine.text.encoder import TextConditioning

    names = {0: "first", request.geometry.frames - 1: "last"}
    shape = (1, 24, 1, request.geometry.latent_height, request.geometry.latent_width)
    keyframes = []
    for item in sorted(conditions.keyframes, key=lambda item: int(item["frame"])):
        name, latent = names.get(int(item["frame"])), item["latent"].float().cpu().clone()
        if name is None:
            raise RequestError(
                f"a keyframe at frame {item['frame']}: only the first and the last frame of "
                f"{request.geometry.frames} can be given. Use the same length in both nodes",
                field="conditioning",
            )
        if tuple(latent.shape) != shape:
            raise RequestError(
                f"the {name} frame was encoded for another canvas: its latent is "
                f"{tuple(latent.shape)}, expected {shape}. Use the same size in both nodes",
                field="conditioning",
            )
        keyframes.append(Keyframe(name, latent))
    text = TextConditioning(conditions.hidden.clone(), conditions.tags.long().clone())
    return Conditioning(text, tuple(keyframes), references_in(conditions.references))


def keyframes_in(
    geometry: Geometry, pictures: Pictures, notice: Callable[[str], None]
) -> list[Any]:
    """Keyframes as uint8 [H, W, 3] on the canvas, first before last."""
    from PIL import Image

    from ..engine.pictures import fit_pictures

    given = {"first": pictures.first_frame, "last": pictures.last_frame}
    images = {
        name: Image.fromarray((frames[0] * 255).round().byte().numpy())
        for name, frames in given.items()
        if frames is not None
    }
    return fit_pictures(images, geometry, notice)
