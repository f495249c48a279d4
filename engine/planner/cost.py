"""Bytes of a sampling pass under a placement, as named terms.

    vram = context + root + resident blocks + slots + working set(key source, residual, geometry)
    ram  = interpreter + tables + pinned blocks + staging ring + what waits on the host

Everything is a shape times a dtype; calibration rows supply only what shapes cannot (context,
allocator slack as a multiple of the chunk temporaries). The formulas are those of the chunk-major
design. Terms of a peak sum to the peak. Nothing here decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .calibration import Calibration
from .types import Placement, Term
from .workload import BF16, Workload

VRAM, RAM, SECONDS = "vram_bytes", "ram_bytes", "seconds"
LATENT_CHANNELS = 24
LATENT_BUFFERS = 4  # latents, velocity, next latents, head output; float32
ROPE_WIDTH = 64
FP32 = 4
_SHAPE = "from shapes"


def term(name: str, value: float, unit: str, source: str = _SHAPE) -> Term:
    """A term with whole bytes."""
    return Term(name, value if unit == SECONDS else int(value), unit, source)


def total(terms: Sequence[Term], unit: str) -> int:
    """Sum of the byte terms of one axis."""
    return int(sum(item.value for item in terms if item.unit == unit))


def block_bytes(work: Workload) -> int:
    """One block with the LoRA factors that travel with it."""
    return work.facts.block_bytes + work.facts.lora_block_bytes


def slot_bytes(work: Workload, half_slots: bool) -> int:
    """One transfer slot: a block, or the larger of its halves."""
    whole = block_bytes(work)
    if not half_slots:
        return whole
    attention = min(work.facts.attention_half_bytes, work.facts.block_bytes)
    return max(attention, work.facts.block_bytes - attention) + work.facts.lora_block_bytes


@dataclass(frozen=True)
class SampleMemory:
    """The terms of one pass that do not depend on how many blocks are resident or pinned."""

    work: Workload
    calibration: Calibration
    system: str
    steps: int

    def fixed_vram(self) -> list[Term]:
        """What every placement of this geometry holds on the device."""
        work, rows, facts = self.work, self.calibration, self.work.facts
        wide, head = work.width, facts.head_dim
        tile = int(rows["memory.ffn_tile_rows"])
        states = work.geometry.chunks * facts.heads * head * head * FP32
        times = rows["memory.distinct_times"] + (work.condition_rows > 0)
        ring = (work.dense_rows + work.ring_chunks * work.chunk_rows) * wide * 2 * BF16
        slack = rows["memory.chunk_temporaries"]
        latents = work.geometry.video_tokens * 4 * LATENT_CHANNELS * FP32 * LATENT_BUFFERS
        return [
            term(
                "context and libraries",
                rows["memory.context"],
                VRAM,
                rows.source("memory.context"),
            ),
            term("root", facts.root_bytes - facts.refiner_bytes + facts.lora_root_bytes, VRAM),
            term("key/value ring", ring, VRAM),
            term("dense-row accumulators", work.dense_rows * wide * (FP32 + 2 * BF16), VRAM),
            term(
                "chunk temporaries",
                slack * work.chunk_rows * wide * BF16,
                VRAM,
                rows.source("memory.chunk_temporaries"),
            ),
            term(
                "feed-forward tile",
                tile * (2 * facts.ffn * BF16 + facts.ffn + facts.hidden * BF16),
                VRAM,
            ),
            term("scan states", states * rows["memory.state_tensors"], VRAM),
            term(
                "frame ring of T and J",
                rows["memory.frame_ring"] * facts.heads * head * head * FP32 * 2,
                VRAM,
            ),
            term("AdaLN rows of a step", times * facts.adaln_row_bytes * facts.blocks, VRAM),
            term("text rows", work.text_rows * (facts.text_dim + facts.hidden) * BF16, VRAM),
            term("latents and positions", latents + work.rows * ROPE_WIDTH * FP32 * 2, VRAM),
        ]

    def choice_vram(self, keys: str, residual: str) -> list[Term]:
        """What the key source and the place of x add on the device."""
        work = self.work
        terms = []
        if residual == "device":
            terms.append(term("residual stream", work.residual_bytes, VRAM))
        else:
            held = min(work.rows, work.dense_rows + work.ring_chunks * work.chunk_rows)
            terms.append(
                term("residual stream, chunks", held * work.facts.hidden * BF16, VRAM, _SHAPE)
            )
        if keys == "store":
            terms.append(term("key/value store", work.store_bytes, VRAM))
        elif keys == "host":
            buffers = int(self.calibration["memory.link_buffers"]) * work.chunk_rows
            held = min(buffers, work.geometry.video_tokens)
            terms.append(term("key/value chunks in flight", held * work.width * 2 * BF16, VRAM))
        return terms

    def weight_vram(self, placement: Placement) -> list[Term]:
        """Resident blocks and transfer slots."""
        size = slot_bytes(self.work, placement.half_slots)
        return [
            term("resident blocks", placement.resident_blocks * block_bytes(self.work), VRAM),
            term("transfer slots", placement.transfer_slots * size, VRAM),
        ]

    def fixed_ram(self) -> list[Term]:
        """What the worker holds on the host whatever the placement."""
        rows, facts = self.calibration, self.work.facts
        times = rows["memory.distinct_times"] + (self.work.condition_rows > 0)
        return [
            term(
                "interpreter and libraries",
                rows["memory.interpreter"],
                RAM,
                rows.source("memory.interpreter"),
            ),
            term("root, host copy", facts.root_bytes, RAM),
            term("AdaLN tables", self.steps * times * facts.adaln_row_bytes * facts.blocks, RAM),
        ]

    def choice_ram(self, keys: str, residual: str) -> list[Term]:
        """What waits in pinned host memory besides weights."""
        terms = []
        if keys == "host":
            terms.append(term("key/value store on the host", self.work.store_bytes, RAM))
        if residual == "host":
            terms.append(term("residual stream on the host", self.work.residual_bytes, RAM))
        return terms

    def weight_ram(self, placement: Placement) -> list[Term]:
        """Pinned blocks, and the ring that disk blocks and resident ones, once, pass through."""
        size = block_bytes(self.work)
        terms = [term("pinned blocks", placement.pinned_blocks * size, RAM)]
        if placement.disk_blocks or placement.resident_blocks:
            terms.append(term("staging ring", self.staging_bytes(), RAM))
        return terms

    def staging_bytes(self) -> int:
        """The pinned ring of disk blocks."""
        return int(self.calibration["memory.staging_blocks"]) * block_bytes(self.work)

    def terms(self, placement: Placement) -> list[Term]:
        """All byte terms of a placement; those of one unit sum to that peak."""
        keys, residual = placement.keys, placement.residual
        found = [
            *self.fixed_vram(),
            *self.choice_vram(keys, residual),
            *self.weight_vram(placement),
            *self.fixed_ram(),
            *self.choice_ram(keys, residual),
            *self.weight_ram(placement),
        ]
        return [item for item in found if item.value]
