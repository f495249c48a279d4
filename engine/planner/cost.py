"""Bytes of a sampling pass under a placement, as named terms.

    vram = context + root + resident blocks + slots + working set(key source, residual, geometry)
    ram  = interpreter + tables + pinned blocks + staging ring + what waits on the host

Everything is a shape times a dtype; calibration rows supply only what shapes cannot: the context,
and what the allocator holds beside the shaped terms, a constant and a multiple of a group's rows.
The formulas are those of the chunk-major design. Terms of a peak sum to the peak. Nothing here
decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..geometry import CHUNK_FRAMES
from .calibration import Calibration
from .types import Placement, Term
from .workload import BF16, Workload

VRAM, RAM, SECONDS = "vram_bytes", "ram_bytes", "seconds"
UNSEEN_ROW = "memory.unseen"
KEPT_ROW = "memory.allocator_kept"  # only where it was measured
OUTSIDE_TERMS = ("context and libraries", "captured graphs")  # not the allocator's
WORKSPACE_BYTES = 32 << 20
MOST_GRAPHS = 64  # engine.model.replays
OUTSIDE_STATES = 4  # two chunks before the clip and two behind it
SOLVE_TENSORS = 5
LATENT_CHANNELS = 24
LATENT_BUFFERS = 4  # latents, velocity, next latents, head output; float32
ROPE_WIDTH = 64
LORA_SLACK = 2  # branch rows in the allocator: 1.83 measured (docs/benchmarks/lora-h200.json)
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


def slack_rows(keys: str, full_cover: bool) -> tuple[str, str]:
    """Names of the rows for the allocator's fixed part and for its multiple of a group."""
    end = "" if keys == "store" or full_cover else "_alone"
    return f"memory.allocator{end}", f"memory.chunk_temporaries{end}"


def captured_graphs(resident: int, slots: int, half: bool) -> int:
    """Graphs of a pass: a write and a read sweep for every set of addresses a block can have.

    Two half slots are one such set; of three, each pair of neighbours is one.
    """
    places = (1 if slots == 2 else slots) if half else slots
    return min(MOST_GRAPHS, 2 * (places + resident))


@dataclass(frozen=True)
class SampleMemory:
    """The terms of one pass that do not depend on how many blocks are resident or pinned."""

    work: Workload
    calibration: Calibration
    system: str
    steps: int
    kept_store: bool = False  # every block still waits in memory from the pass before

    def fixed_vram(self) -> list[Term]:
        """What every placement of this geometry holds on the device."""
        work, rows, facts = self.work, self.calibration, self.work.facts
        tile = int(rows["memory.ffn_tile_rows"])
        times = rows["memory.distinct_times"] + (work.condition_rows > 0)
        latents = work.geometry.video_tokens * 4 * LATENT_CHANNELS * FP32 * LATENT_BUFFERS
        root = facts.root_device_bytes + facts.lora_root_bytes
        return [
            self._measured("context and libraries", "memory.context", 1),
            term("root", root, VRAM),
            *(self._covered_vram() if work.full_cover else self._window_vram()),
            term(
                "feed-forward tile",
                tile * (2 * facts.ffn * BF16 + facts.ffn + facts.hidden * BF16),
                VRAM,
            ),
            term("LoRA workspace", self._lora_bytes(), VRAM),
            term("AdaLN rows of a step", times * facts.adaln_row_bytes * facts.blocks, VRAM),
            term("text rows", work.text_rows * (facts.text_dim + facts.hidden) * BF16, VRAM),
            term("latents and positions", latents + work.rows * ROPE_WIDTH * FP32 * 2, VRAM),
        ]

    def _lora_bytes(self) -> int:
        """Rows kept unquantised for online branches, or tiles of a merge."""
        work, facts = self.work, self.work.facts
        if not facts.lora_block_bytes:
            return facts.lora_merge_bytes
        tile = int(self.calibration["memory.ffn_tile_rows"])
        rows = max(work.group_rows * facts.hidden, tile * (facts.hidden + facts.ffn))
        return LORA_SLACK * BF16 * rows

    def kept_bytes(self, keys: str, room_bytes: int) -> int:
        """What the allocator keeps beyond need, of at most `room_bytes`, where that was measured:
        it is in a peak, and given back where there is no room for it.
        """
        row = self.calibration.rows.get(KEPT_ROW)
        if row is None or keys == "store" or self.work.full_cover:
            return 0
        return max(0, min(int(row.value), room_bytes))

    def _measured(self, name: str, row: str, unit_bytes: float) -> Term:
        rows = self.calibration
        return term(name, rows[row] * unit_bytes, VRAM, rows.source(row))

    @property
    def grouped(self) -> float:
        """Chunks of a row group that its tensors hold at once, as measured."""
        return 1 + self.calibration["memory.grouped"] * (self.work.geometry.grouped - 1)

    @property
    def group_unit_bytes(self) -> float:
        """One unit of the chunk temporaries: a group's rows at model width, bf16."""
        work = self.work
        rows = min(self.grouped * work.chunk_rows, work.geometry.video_tokens)
        return rows * work.width * BF16

    def slack_vram(self, keys: str) -> list[Term]:
        """What the allocator holds beside the shaped terms. Streams side by side hold more of it
        than one after another, so stored keys have rows of their own.
        """
        group = slack_rows(keys, self.work.full_cover)
        terms = [
            self._measured("allocator, fixed part", group[0], 1),
            self._measured("chunk temporaries", group[1], self.group_unit_bytes),
        ]
        if UNSEEN_ROW in self.calibration.rows:
            terms.append(self._measured("sizes that were not measured", UNSEEN_ROW, 1))
        return terms

    def _window_vram(self) -> list[Term]:
        """Ring, dense rows and scans of a clip that is longer than its windows."""
        work, rows, facts = self.work, self.calibration, self.work.facts
        wide, square = work.width, facts.heads * facts.head_dim**2 * FP32
        ring = (work.dense_rows + work.ring_chunks * work.chunk_rows) * wide * 2 * BF16
        states = work.geometry.chunks * rows["memory.state_tensors"] + OUTSIDE_STATES
        # Of a group's further chunks also the matrices they pass through on the way: A, B, M, T, J.
        more = CHUNK_FRAMES * (self.grouped - 1)
        frames = rows["memory.frame_ring"] * 2 + more * (2 + SOLVE_TENSORS)
        return [
            term("key/value ring", ring, VRAM),
            term("dense-row accumulators", work.dense_rows * wide * (FP32 + 2 * BF16), VRAM),
            term("scan states", states * square, VRAM),
            term("frame ring of T and J", frames * square, VRAM),
        ]

    def _covered_vram(self) -> list[Term]:
        """Keys, values and attention outputs of all rows of a clip that every window covers."""
        rows = 3 * self.work.rows * self.work.width * BF16
        return [term("keys, values and outputs of all rows", rows, VRAM)]

    def choice_vram(self, keys: str, residual: str) -> list[Term]:
        """What the key source and the place of x add on the device."""
        work, terms = self.work, self.slack_vram(keys)
        if residual == "device":
            terms.append(term("residual stream", work.residual_bytes, VRAM))
        else:
            moving = max(work.ring_chunks * work.chunk_rows, 2 * work.group_rows)
            held = min(work.rows, work.dense_rows + moving)
            terms.append(
                term("residual stream, chunks", held * work.facts.hidden * BF16, VRAM, _SHAPE)
            )
        if work.full_cover:
            return terms
        if keys == "store":
            stored = work.store_bytes - work.in_ring_bytes
            terms.append(term("key/value store", stored, VRAM))
            terms.append(term("side streams", self.side_bytes(), VRAM))
        else:
            buffers = int(self.calibration["memory.link_buffers"]) if keys == "host" else 0
            staged = work.geometry.grouped if work.geometry.grouped > 1 else 0
            held = min((buffers + staged) * work.chunk_rows, work.geometry.video_tokens)
            terms.append(term("key/value chunks in flight", held * work.width * 2 * BF16, VRAM))
        return terms

    def side_bytes(self) -> int:
        """Temporaries of the streams that run beside the main one where keys are stored: features
        of keys and values, a group's attention, statistics of three groups, a library's workspace.
        Where a group has several windows, its attention in pieces and whole, and the queries,
        attention and projected linear branch of the group that is read ahead.
        """
        work, facts = self.work, self.work.facts
        grouped = self.grouped
        statistics = 3 * CHUNK_FRAMES * grouped * facts.heads * facts.head_dim**2 * FP32
        rows = (7 if work.geometry.grouped > 1 else 3) * grouped * work.chunk_rows
        return int(rows * work.width * BF16 + statistics) + WORKSPACE_BYTES

    def weight_vram(self, placement: Placement) -> list[Term]:
        """Resident blocks and transfer slots, and a graph of each sweep for every place of them."""
        size = slot_bytes(self.work, placement.half_slots)
        graphs = self.graph_bytes(
            placement.resident_blocks, placement.transfer_slots, placement.half_slots
        )
        return [
            term("captured graphs", graphs, VRAM, self.calibration.source("memory.graph_launch")),
            term("resident blocks", placement.resident_blocks * block_bytes(self.work), VRAM),
            term("transfer slots", placement.transfer_slots * size, VRAM),
        ]

    def graph_bytes(self, resident: int, slots: int, half: bool) -> int:
        """What captured graphs take beside the allocator."""
        unit = self.calibration["memory.graph_launch"] * self.work.launches
        return int(unit * captured_graphs(resident, slots, half))

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
            term("AdaLN tables", self.steps * times * facts.adaln_row_bytes * facts.blocks, RAM),
            term("LoRA factors, as read", facts.lora_host_bytes, RAM),
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
        """Pinned blocks, the ring that disk blocks and resident ones, once, pass through, and the
        root as far as the blocks have not taken its place yet.
        """
        pinned = placement.pinned_blocks * block_bytes(self.work)
        staged = placement.disk_blocks or placement.resident_blocks
        ring = self.staging_bytes() if staged else 0
        root = self.with_root(pinned + ring) - pinned - ring
        return [
            term("pinned blocks", pinned, RAM),
            term("staging ring", ring, RAM),
            term("root, while a pass is bound", root, RAM),
        ]

    def with_root(self, weights_bytes: int) -> int:
        """Host peak of blocks and root together.

        The root is on the host only while a pass is bound, which is when the store begins to read:
        all of it stands beside no more than what is read by then. A store kept from the pass before
        is whole at that moment.
        """
        root = self.work.facts.root_bytes
        if self.kept_store and weights_bytes >= self.work.facts.blocks * block_bytes(self.work):
            return root + weights_bytes
        read = int(self.calibration["memory.bind_reads"])
        return max(weights_bytes, root + min(weights_bytes, read))

    def weights_room(self, room_bytes: int) -> int:
        """The most bytes of blocks whose peak with the root stays within `room_bytes`."""
        root, read = self.work.facts.root_bytes, int(self.calibration["memory.bind_reads"])
        whole = self.work.facts.blocks * block_bytes(self.work)
        if self.kept_store and room_bytes < root + whole:
            room_bytes = min(room_bytes, whole - 1)
        return room_bytes if room_bytes >= root + read else room_bytes - root

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
