"""Sizes of the two passes: the small canvas, what it is lifted to, and the crop to the target.

At 512 px and above the first pass has half the target per axis, rounded up to the 32-px grid; the
lift doubles it and the centre is cropped. Below, a reduction of the same aspect, or the same size
(facts: model sheet d.6, l.8, l.12). Integers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import RequestError
from ..geometry import CANVAS_STEP_PX, SPATIAL_STRIDE_PX

HALVING_FLOOR_PX = 512
SHORTEST_FIRST_STEPS = 8  # 8 * 32 = 256 px: the smallest side a reduced first pass may have


@dataclass(frozen=True)
class TwoPassCanvas:
    """First pass, lift and crop of one target canvas, in pixels. The crop is centred."""

    width_px: int
    height_px: int
    first_width_px: int
    first_height_px: int
    lift_width_px: int
    lift_height_px: int

    @property
    def upscaling(self) -> bool:
        """False when the first pass has the target's size: then nothing is lifted."""
        first = (self.first_width_px, self.first_height_px)
        return first != (self.lift_width_px, self.lift_height_px)

    @property
    def crop_left_px(self) -> int:
        """Pixels cut from the left of the lifted canvas."""
        return (self.lift_width_px - self.width_px) // 2

    @property
    def crop_top_px(self) -> int:
        """Pixels cut from the top of the lifted canvas."""
        return (self.lift_height_px - self.height_px) // 2

    @property
    def crop_left(self) -> int:
        """Latent columns cut from the left."""
        return self.crop_left_px // SPATIAL_STRIDE_PX

    @property
    def crop_top(self) -> int:
        """Latent rows cut from the top. Can be one, which is half a patch."""
        return self.crop_top_px // SPATIAL_STRIDE_PX

    @property
    def lift_latent(self) -> tuple[int, int]:
        """(height, width) in latents after the lift."""
        return self.lift_height_px // SPATIAL_STRIDE_PX, self.lift_width_px // SPATIAL_STRIDE_PX

    @property
    def target_latent(self) -> tuple[int, int]:
        """(height, width) in latents of the second pass."""
        return self.height_px // SPATIAL_STRIDE_PX, self.width_px // SPATIAL_STRIDE_PX

    @property
    def scale(self) -> float:
        """The number whose excess over 1 the upscaler embeds."""
        first = self.first_height_px, self.first_width_px
        return lift_scale(first, (self.lift_height_px, self.lift_width_px))


def lift_scale(source: tuple[int, int], target: tuple[int, int]) -> float:
    """Width ratio when both axes share it, else the mean of the two. Arguments are (height, width).

    Source: golden README, latent upscaler.
    """
    if target[0] * source[1] == target[1] * source[0]:
        return target[1] / source[1]
    return (target[0] / source[0] + target[1] / source[1]) / 2


def plan_two_pass_canvas(
    width_px: int, height_px: int, *, halving_floor_px: int = HALVING_FLOOR_PX
) -> TwoPassCanvas:
    """The canvases of a two-pass run. Raises RequestError for sides off the 32-px grid.

    halving_floor_px: shortest target side that is halved; lower it only for miniature canvases.
    """
    for name, side in (("width", width_px), ("height", height_px)):
        if side <= 0 or side % CANVAS_STEP_PX:
            raise RequestError(
                f"{name} {side} px is not a positive multiple of {CANVAS_STEP_PX}", field=name
            )
    if min(width_px, height_px) >= halving_floor_px:
        first = [
            CANVAS_STEP_PX * -(-side // (2 * CANVAS_STEP_PX)) for side in (width_px, height_px)
        ]
        lift = [2 * side for side in first]
    else:
        first = _same_aspect_reduction(width_px, height_px)
        lift = [width_px, height_px]
    return TwoPassCanvas(width_px, height_px, *first, *lift)


def _same_aspect_reduction(width_px: int, height_px: int) -> list[int]:
    columns, rows = width_px // CANVAS_STEP_PX, height_px // CANVAS_STEP_PX
    divisor = math.gcd(columns, rows)
    units = columns // divisor, rows // divisor
    multiple = max(-(-divisor // 2), *(-(-SHORTEST_FIRST_STEPS // unit) for unit in units))
    multiple = min(multiple, divisor)  # a canvas below 256 px stays as it is
    return [CANVAS_STEP_PX * unit * multiple for unit in units]
