"""From a request to its passes: steps, canvases, and what the other two stacks have to do.

Quality levels and the first pass's canvas follow the model sheet (d.2, d.6): `light` takes 8
evaluations at half size, lifts the latents, and refines with 3; the others take 12, 16 or 20 at
full size. Either can be overridden.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..geometry import CANVAS_STEP_PX, Geometry
from ..request import Request, no_second_pass, too_many_refine_steps

STEPS = {"light": 8, "medium": 12, "high": 16, "max": 20}
REFINE_STEPS = 3
_HALVED_FROM_PX = 512
_LEAST_GRID = 8  # tokens a side of a small first pass
_UPSCALER_TILE_VOXELS = 16_384


@dataclass(frozen=True)
class Pass:
    """One sampling pass."""

    phase: str  # "sample_low" | "sample_high"
    geometry: Geometry
    steps: int


def first_pass_geometry(target: Geometry) -> Geometry:
    """The canvas of the first of two passes.

    From 512 px on: half of each side, rounded up to the grid (the lift is cropped). Below, the
    largest reduction that keeps the aspect exactly and 8 tokens a side, which may be none.
    """
    width, height = target.width_px, target.height_px
    if min(width, height) >= _HALVED_FROM_PX:
        half = [-(-side // (2 * CANVAS_STEP_PX)) * CANVAS_STEP_PX for side in (width, height)]
        return Geometry(half[0], half[1], target.frames)
    columns, rows = width // CANVAS_STEP_PX, height // CANVAS_STEP_PX
    common = math.gcd(columns, rows)
    unit = columns // common, rows // common
    times = max(-(-common // 2), *(-(-_LEAST_GRID // side) for side in unit))
    times = min(times, common)
    return Geometry(
        unit[0] * times * CANVAS_STEP_PX, unit[1] * times * CANVAS_STEP_PX, target.frames
    )


def lifted_geometry(target: Geometry) -> Geometry:
    """What the first pass is lifted to before the crop: twice its size, or the target's."""
    first = first_pass_geometry(target)
    if min(target.width_px, target.height_px) >= _HALVED_FROM_PX:
        return Geometry(2 * first.width_px, 2 * first.height_px, target.frames)
    return target


def upscaler_workspace_bytes(lifted: Geometry, channels: int) -> int:
    """Device bytes of the tiled latent upscaler (engine/sampling/upscaler_cost.py), fp16.

    Two activation planes of the whole clip; of one tile of frames its float32 form and halo, the
    stacked frames of a convolution and its result; one block's weights as read and as laid out.
    """
    voxels, frames = lifted.latent_height * lifted.latent_width, lifted.latent_frames
    frame = voxels * channels * 2
    tile = min(max(1, _UPSCALER_TILE_VOXELS // voxels), frames)
    widened = 2 * (tile + 4) * voxels * channels * 4
    weights = 2 * (2 * 27 * channels**2 * 2)
    return 2 * frames * frame + widened + (5 * tile + 2) * frame + weights


def sampling_passes(request: Request) -> tuple[Pass, ...]:
    """The passes of a request, in order. Raises RequestError for steps that contradict them, as the
    sampler does (sampling/quality.py)."""
    steps = request.base_steps or STEPS[request.quality]
    two = request.quality == "light" if request.two_pass is None else request.two_pass
    if not two:
        if request.refine_steps is not None:
            raise no_second_pass(request.quality)
        return (Pass("sample_high", request.geometry, steps),)
    refine = request.refine_steps or REFINE_STEPS
    if refine >= steps and refine != REFINE_STEPS:  # those three have a schedule of their own
        raise too_many_refine_steps(refine, steps)
    low = Pass("sample_low", first_pass_geometry(request.geometry), steps)
    return low, Pass("sample_high", request.geometry, refine)


@dataclass(frozen=True)
class DecodeWork:
    """Tiles and clips of the video decoder (model sheet e.4, e.5).

    Clips of 7 latent frames with stride 5; tiles of 256 px with at least 64 px of overlap.
    """

    geometry: Geometry

    @property
    def clips(self) -> int:
        """Clips of 7 latent frames."""
        return (self.geometry.latent_frames - 2) // 5

    @property
    def tiles(self) -> int:
        """Tiles of one clip."""
        return math.prod(
            max(1, -(-(side - 64) // 192))
            for side in (self.geometry.width_px, self.geometry.height_px)
        )

    @property
    def tile_tokens(self) -> int:
        """Tokens of one tile: 7 frames of 16 x 16 latents, 4 registers and a zero token."""
        sides = [min(256, s) // 16 for s in (self.geometry.width_px, self.geometry.height_px)]
        return 7 * sides[0] * sides[1] + 5

    @property
    def clip_frame_bytes(self) -> int:
        """28 decoded frames of three float32 channels."""
        return 28 * self.geometry.width_px * self.geometry.height_px * 3 * 4
