"""The values the planner takes and gives: machine, model, placement, plan. Standard library only.

The engine obeys a Placement and decides nothing. A placement says where bytes wait and when they
move; it never changes a result (docs/how-it-works.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

KeySource = Literal["store", "recompute", "host"]
Residual = Literal["device", "host"]
Limit = Literal["compute", "link", "disk"]
KEY_SOURCES: tuple[KeySource, ...] = ("store", "recompute", "host")


@dataclass(frozen=True)
class Placement:
    """Where a pass keeps its bytes.

    keys: where the read sweep gets the keys and values of the next chunk from.
    residual: where the residual stream x waits.
    resident_blocks: blocks that stay on the device.
    pinned_blocks: further blocks that wait in page-locked host memory.
    disk_blocks: further blocks that are read from disk at every pass. The three sum to all blocks.
    transfer_slots: device slots that streamed blocks pass through (0 only if all are resident).
    half_slots: a slot holds half a block (attention half, then feed-forward half).
    tiles_per_group: decode only: tiles that go through a block together (0 in other phases).
    """

    keys: KeySource = "store"
    residual: Residual = "device"
    resident_blocks: int = 0
    pinned_blocks: int = 0
    disk_blocks: int = 0
    transfer_slots: int = 2
    half_slots: bool = False
    tiles_per_group: int = 0

    def as_json(self) -> dict[str, Any]:
        """The placement object of `plan --json`."""
        return dict(vars(self))


@dataclass(frozen=True)
class HardwareSnapshot:
    """One machine, read once. Bytes; rates in bytes a second; None means unknown.

    vram_free_bytes and ram_available_bytes are what may be used now, before any margin.
    """

    system: str  # "linux" | "windows" | "macos"
    device_name: str
    capability: tuple[int, int] | None
    vram_total_bytes: int
    vram_free_bytes: int
    ram_total_bytes: int
    ram_available_bytes: int
    pin_limit_bytes: int | None = None
    link_bytes_per_second: float | None = None
    disk_bytes_per_second: float | None = None
    card: str | None = None  # key of a calibration row, when known
    notes: tuple[str, ...] = ()
    commit_available_bytes: int | None = None  # Windows alone, as are the display budgets
    wddm_local_bytes: int | None = None
    wddm_nonlocal_bytes: int | None = None
    gpu_busy_percent: int | None = None  # before a run: others keep it busy
    gpu_hot: bool = False

    def as_json(self) -> dict[str, Any]:
        """The snapshot object of `plan --json`."""
        data = dict(vars(self))
        data["capability"] = self.capability and ".".join(map(str, self.capability))
        data["notes"] = list(self.notes)
        return data


@dataclass(frozen=True)
class ModelFacts:
    """Sizes of a transformer, from headers alone. Bytes unless a name says otherwise."""

    blocks: int = 50
    block_bytes: int = 432_700_000
    attention_half_bytes: int = 201_500_000
    root_bytes: int = 925_027_500
    hidden: int = 5376
    heads: int = 56
    head_dim: int = 128
    ffn: int = 14336
    text_dim: int = 5120
    adaln_row_bytes: int = 3 * 6 * 5376 * 2  # one distinct time, all modalities, one block
    weight_format: str = "fp8-rowwise"
    text_encoder_bytes: int = 15_687_142_551
    text_encoder_layers: int = 50
    vae_decoder_blocks: int = 36
    vae_block_bytes: int = 134_287_360
    upscaler_bytes: int = 690_592_672
    source: str = "published sizes"
    refiner_bytes: int = 770_703_360  # part of root_bytes; leaves the device before the first step
    root_device_bytes: int = 9_800_000  # of the root, what stays on the device: in and out layers
    text_layer_bytes: int = 274_300_000
    text_ffn: int = 25600
    vae_hidden: int = 2048
    vae_ffn: int = 8192
    upscaler_channels: int = 512
    upscaler_layers: int = 12  # residual blocks before and after the resize, each
    lora_block_bytes: int = 0  # online factors that travel with a block
    lora_root_bytes: int = 0
    lora_host_bytes: int = 0  # factors as read, held while the model runs
    lora_merge_bytes: int = 0  # device memory of a merge that runs beside the blocks
    lora_row_flops: float = 0.0  # of one row through a block's online branches
    lora_row_bytes: float = 0.0
    lora_merged_bytes: int = 0  # stored bytes of a block's weights that a merge changes
    dense: bool = False  # no Video DeltaNet: every row attends to every row


@dataclass(frozen=True)
class Term:
    """One line of an explanation. Terms of a peak sum to the peak."""

    name: str
    value: float
    unit: str
    source: str

    def as_json(self) -> dict[str, Any]:
        """The term object of `plan --json`."""
        return dict(vars(self))


@dataclass(frozen=True)
class PhasePlan:
    """Forecast of one phase. Bytes and seconds."""

    phase: str
    vram_peak_bytes: int
    ram_peak_bytes: int
    seconds: float
    steps: int
    seconds_per_step: float
    limited_by: Limit
    placement: Placement | None = None
    terms: tuple[Term, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The phase object of `plan --json`."""
        data = dict(vars(self))
        data["placement"] = None if self.placement is None else self.placement.as_json()
        data["terms"] = [term.as_json() for term in self.terms]
        return data


@dataclass(frozen=True)
class Plan:
    """What will happen, phase by phase, and why."""

    phases: tuple[PhasePlan, ...]
    reasons: tuple[str, ...] = ()
    changes_arithmetic: bool = False
    seconds_range: tuple[float, float] | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def total_seconds(self) -> float:
        """Sum over the phases."""
        return sum(phase.seconds for phase in self.phases)

    def phase(self, name: str) -> PhasePlan | None:
        """The phase of that name, or None when the request has none."""
        return next((item for item in self.phases if item.phase == name), None)
