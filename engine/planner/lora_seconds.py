"""Seconds that LoRAs add to one block: branches in every step, or a merge once. Pure.

Both are shapes over calibrated rates; how far those are off was measured
(docs/benchmarks/lora-h200.json): branches took 1.49 times as long, 10.0 ms a block at rank 64, and
merging came out as shaped, 61 ms a block for 54.
"""

from __future__ import annotations

from .calibration import Calibration

MERGE_PASSES = 60  # bytes of device traffic for a stored byte: tiles in float32, several kernels
TILE_SECONDS = 200e-6  # launches of one merged tile
TILE_ELEMENTS = 2 << 20
BRANCH_SHARE = 1.49  # measured over shaped seconds of a branch


def branch_seconds(
    row_flops: float, row_bytes: float, rows: float, calibration: Calibration
) -> float:
    """Branches of `rows` rows through one block, beside its weights."""
    row = row_flops / calibration["rates.gemm_bf16"] + row_bytes / calibration["rates.copy"]
    return BRANCH_SHARE * rows * row


def merge_block_seconds(merge_bytes: float, calibration: Calibration) -> float:
    """Merging the weights of one block, of which `merge_bytes` stored bytes change."""
    moved = MERGE_PASSES * merge_bytes / calibration["rates.copy"]
    link = 2 * merge_bytes / calibration["rates.link"]
    return moved + link + merge_bytes / TILE_ELEMENTS * TILE_SECONDS
