"""Seconds of one step: a walk over the blocks with compute, link and disk side by side.

Streamed blocks pass through one to three slots. With one, a copy and its compute follow each other
unless a resident block stands between. With two, the copy into a slot starts when the slot's last
user has finished and the link is free, so it runs beside the compute of what stands between.
Resident blocks stand evenly between streamed ones, and so do disk blocks, which a reader brings
into a pinned ring ahead of time, across the border of a step as well: in a steady state the disk
costs only what its total exceeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from .calibration import Calibration
from .cost import block_bytes
from .types import Limit, Placement
from .workload import BlockSeconds, Workload

WRITE_SHARE = 2 / 5  # of the attention half: keys and values, two of its five products


@dataclass(frozen=True)
class StepSeconds:
    """One steady step. `link` and `disk` are busy seconds, stalls are what compute waits."""

    total: float
    compute: float
    link: float
    disk: float
    link_stall: float
    disk_stall: float

    @property
    def limited_by(self) -> Limit:
        """The resource that compute waits for most; compute when it hardly waits."""
        if max(self.link_stall, self.disk_stall) < 0.02 * self.total:
            return "compute"
        return "link" if self.link_stall > self.disk_stall else "disk"


def spread(count: int, places: int) -> list[bool]:
    """`count` marks spread evenly over `places`: mark i where floor((i+1)c/p) > floor(i c/p)."""
    return [(i + 1) * count // places > i * count // places for i in range(places)]


def chunk_link_seconds(work: Workload, keys: str, residual: str, calibration: Calibration) -> float:
    """Link seconds a block spends on keys, values and x that wait on the host.

    Keys go out once and come back once. x comes in for both sweeps, once more where keys are
    recomputed ahead, and goes out after the second.
    """
    moved = 0.0
    if keys == "host":
        moved += 2 * work.store_bytes
    if residual == "host":
        moved += (4 if keys == "recompute" else 3) * work.residual_bytes
    return moved / calibration["rates.link"]


class StepClock:
    """Prices steps of one pass for one key source and one place of x."""

    def __init__(
        self,
        work: Workload,
        compute: BlockSeconds,
        calibration: Calibration,
        keys: str,
        residual: str,
    ) -> None:
        again = compute.recompute if keys == "recompute" else 0.0
        # Streams run side by side only where keys are stored; one after another takes longer.
        beside = keys == "store" or work.full_cover
        slower = 1.0 if beside else 1.0 + calibration["rates.alone"]
        self.blocks = work.facts.blocks
        self.attention = slower * (compute.attention + again)
        self.ffn = slower * compute.ffn
        self.block = self.attention + self.ffn
        rate = calibration["rates.link"]
        whole = block_bytes(work)
        self.upload = whole / rate
        self.chunk_link = chunk_link_seconds(work, keys, residual, calibration)
        # Chunks are copied in the order of the compute stream: what is exposed adds to it.
        exposed = calibration["rates.chunk_exposed"] * self.chunk_link
        self.busy_attention = max(self.attention + exposed, self.chunk_link)
        half = min(work.facts.attention_half_bytes, whole)
        self.upload_attention, self.upload_ffn = half / rate, (whole - half) / rate
        # LoRA factors come from memory.
        self.read = work.facts.block_bytes / calibration["rates.disk"]
        self.around = calibration["rates.step"]  # head, input rows, results to the host

    @property
    def floor(self) -> float:
        """No placement of this key source and place of x can be faster."""
        return self.around + self.blocks * max(self.block, self.busy_attention + self.ffn)

    def step(self, placement: Placement) -> StepSeconds:
        """Seconds of one steady step of a placement."""
        resident, disk = placement.resident_blocks, placement.disk_blocks
        compute = self.around + self.blocks * self.block
        walked = self.walk(resident, placement.transfer_slots, placement.half_slots)
        read = disk * self.read
        return StepSeconds(
            total=max(walked, read),
            compute=compute,
            link=self.blocks * self.chunk_link + (self.blocks - resident) * self.upload,
            disk=read,
            link_stall=walked - compute,
            disk_stall=max(0.0, read - walked),
        )

    def walk(self, resident: int, slots: int, half: bool) -> float:
        """Compute and link of one steady step, disk apart.

        A block by chunks needs both its halves until its last chunk. With two half slots the next
        attention half can only come in between two blocks, exposed, or beside resident ones; its
        feed-forward half comes in beside the write sweep. With three, the attention half is ahead.
        """
        streamed = self.blocks - resident
        if not streamed:
            return self.around + self.blocks * (self.busy_attention + self.ffn)
        if slots < 2:
            window = self._single_window
        elif half:
            window = partial(self._half_window, ahead=slots > 2)
        else:
            window = self._whole_window
        short, extra = divmod(self.blocks, streamed)
        # `extra` streamed blocks are followed by one resident block more than the others.
        total = (streamed - extra) * window(short)
        if extra:
            total += extra * window(short + 1)
        return max(self.around + total, self.blocks * self.chunk_link + streamed * self.upload)

    def _single_window(self, blocks: int) -> float:
        """One slot: the upload of the next runs beside resident blocks alone."""
        busy = self.busy_attention + self.ffn
        exposed = max(0.0, self.upload - (blocks - 1) * busy)
        return max(blocks * busy + exposed, self.upload + blocks * self.chunk_link)

    def _whole_window(self, blocks: int) -> float:
        """A streamed block and the residents after it, beside the upload of the next."""
        busy = blocks * (self.busy_attention + self.ffn)
        return max(busy, self.upload + blocks * self.chunk_link)

    def _half_window(self, blocks: int, *, ahead: bool) -> float:
        """The same with halves. ahead: a third slot takes the next attention half in time."""
        busy = self.busy_attention + self.ffn
        resident = (blocks - 1) * busy
        exposed = 0.0 if ahead else max(0.0, self.upload_attention - resident)
        before = max(0.0, resident - self.upload_attention) + WRITE_SHARE * self.busy_attention
        late = max(0.0, self.upload_ffn - before)
        return max(blocks * busy + exposed + late, self.upload + blocks * self.chunk_link)


def first_step_seconds(
    clock: StepClock, step: StepSeconds, fresh_blocks: int, other_seconds: float = 0.0
) -> float:
    """The first step of a pass reads blocks that are not in memory yet beside its compute, and with
    them, from the same disk, what else the pass needs first: other_seconds.
    """
    return max(step.total, fresh_blocks * clock.read + other_seconds)
