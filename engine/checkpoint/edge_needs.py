"""What an edge layout takes: formats, the schedules its tables serve, its bytes. Headers only."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..errors import RequestError
from ..model.config import ModelConfig
from ..sampling.schedules import TASK_CONDITIONS, community_schedule, schedule
from .index import Checkpoint
from .names import COMPONENTS, MODALITIES, block_shapes, linear_shapes, root_shapes
from .tables import Times

EDGE_FORMATS = {
    "edge-fp8": "fp8-tensor",
    "edge-fp8-rowwise": "fp8-rowwise",
    "edge-int8": "int8-convrot",
}
QUALITY_STEPS = {"light": 8, "medium": 12, "high": 16, "max": 20}
TASKS = ("t2va", "fl2va")


def schedules_for(
    qualities: Iterable[str] = ("light",), tasks: Iterable[str] = TASKS
) -> tuple[Times, ...]:
    """Times whose tables these quality levels need; `light` includes the three refine steps."""
    tasks, found = tuple(tasks), []
    for quality in qualities:
        if quality not in QUALITY_STEPS:
            known = ", ".join(QUALITY_STEPS)
            raise RequestError(f"quality {quality!r} is none of {known}", field="quality")
        for task in tasks:
            conditions = TASK_CONDITIONS[task]
            found.append(schedule(QUALITY_STEPS[quality]).table_times(conditions))
    found += [community_schedule().table_times(TASK_CONDITIONS[task]) for task in tasks]
    return tuple(dict.fromkeys(found))


def saving_of(checkpoint: Checkpoint) -> str | None:
    """One sentence on what converting would save, None when there is nothing to save."""
    if checkpoint.layout == "edge" or not checkpoint.has_projections or checkpoint.pruned:
        return None
    now = sum(file.identity.size_bytes for file in checkpoint.files)
    after = output_bytes(checkpoint.config, "fp8-rowwise", schedules_for(), projections=False)
    return (
        f"This layout is merged and quantised again in every run. `lowpeak models convert` would "
        f"make {after / 1e9:.1f} GB of its {now / 1e9:.1f} GB, read blocks as they are, and keep "
        "them out of host memory."
    )


def output_bytes(
    config: ModelConfig, kind: str, tables: Iterable[Times], *, projections: bool
) -> int:
    """Bytes that an edge cache takes, headers apart."""
    linears = linear_shapes(config)
    shapes = {name.removesuffix(".weight"): s for name, s in block_shapes(config).items()}
    scales = sum(4 * (1 if kind == "fp8-tensor" else shape[0]) for shape in linears.values())
    block = scales + sum(
        math.prod(shape) * (1 if name in linears else 2) for name, shape in shapes.items()
    )
    rows = sum(len(step) for times in tables for step in times)
    block += rows * MODALITIES * COMPONENTS * config.hidden * 2
    if projections:
        block += MODALITIES * COMPONENTS * config.hidden * (config.time_dim + 1) * 2
    root = sum(2 * math.prod(shape) for shape in root_shapes(config).values())
    return config.layers * block + root
