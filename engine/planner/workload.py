"""How much work a block is: rows, operations and bytes moved, from shapes alone.

A pass visits chunks of 5 latent frames, row-wise stages by groups of them. The softmax of a chunk
covers its own chunk, the two beside it, both anchor frames and the global rows; anchor and global
rows attend to everything. F latent frames, S tokens a frame, N packed rows, G global rows, C model
width, W = heads * head width.
Sources: design of the chunk-major pass, model sheet sections a, b, e and g.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..geometry import CHUNK_FRAMES, Geometry
from ..request import Request
from .calibration import Calibration
from .lora_seconds import branch_seconds
from .types import ModelFacts

USUAL_TEXT_ROWS = 256
REFERENCE_TEXT_ROWS = 600  # labels and vision tokens that a picture adds to the prompt
CONVOLUTION_PASSES = 10  # k and v: read, write, read, write twice (features, features * beta)
READOUT_PASSES = 8
ATTENTION_CHUNKS = 3
IN_RING = 3  # chunks of a stored clip that wait in the ring: engine.model.waiting
EXTRA_LAUNCHES = 2  # global rows, dense rows, start and end of the scans
BF16 = 2


@dataclass(frozen=True)
class Workload:
    """One sampling pass over one geometry: counts of rows and work, no rates."""

    geometry: Geometry
    facts: ModelFacts
    text_rows: int
    condition_rows: int = 0

    @property
    def globals(self) -> int:
        """G: text, condition and audio rows."""
        return self.text_rows + self.condition_rows + 2 * self.geometry.audio_latents

    @property
    def rows(self) -> int:
        """N: all packed rows."""
        return self.globals + self.geometry.video_tokens

    @property
    def width(self) -> int:
        """W: heads times head width."""
        return self.facts.heads * self.facts.head_dim

    @property
    def full_cover(self) -> bool:
        """Whether every window covers the clip, or the model has none: plain attention, no linear
        branch, no ring."""
        return self.facts.dense or self.geometry.latent_frames <= 2 * CHUNK_FRAMES

    @property
    def launches(self) -> int:
        """Times that a block's small kernels are started: once a group, and for the rest of it."""
        return -(-self.geometry.chunks // self.geometry.grouped) + EXTRA_LAUNCHES

    @property
    def chunk_rows(self) -> int:
        """Rows of one full chunk: 5 S."""
        return CHUNK_FRAMES * self.geometry.tokens_per_frame

    @property
    def group_rows(self) -> int:
        """Rows of one full group."""
        return self.geometry.grouped * self.chunk_rows

    @property
    def ring_chunks(self) -> int:
        """Chunk slots of the key/value ring."""
        return min(ATTENTION_CHUNKS, self.geometry.chunks)

    @property
    def dense_rows(self) -> int:
        """Rows that attend to everything: two anchor frames and the global rows."""
        anchors = 0 if self.full_cover else 2 * self.geometry.tokens_per_frame
        return anchors + self.globals

    @cached_property
    def attention_flops(self) -> float:
        """Softmax attention of one block: windows of all chunks, then the dense rows."""
        if self.full_cover:
            return 4.0 * self.rows**2 * self.width
        frames, tokens = self.geometry.latent_frames, self.geometry.tokens_per_frame
        pairs = 0
        for first in range(0, frames, CHUNK_FRAMES):
            last = min(first + CHUNK_FRAMES, frames)
            low, high = max(0, first - CHUNK_FRAMES), min(frames, last + CHUNK_FRAMES)
            keys = high - low + (low > 0) + (high < frames)  # an anchor inside is not repeated
            pairs += (last - first) * tokens * (keys * tokens + self.globals)
        pairs += self.dense_rows * self.rows
        return 4.0 * pairs * self.width

    @cached_property
    def attention_gemm_flops(self) -> float:
        """Projections q, k, v, out and the linear branch's out, of all rows of one block."""
        return 2.0 * self.rows * 5 * self.facts.hidden * self.width

    @property
    def key_value_gemm_flops(self) -> float:
        """What `recompute` adds: keys and values of the video rows once more."""
        if self.full_cover:
            return 0.0
        return 2.0 * self.geometry.video_tokens * 2 * self.facts.hidden * self.width

    @cached_property
    def ffn_gemm_flops(self) -> float:
        """SwiGLU feed-forward of all rows of one block."""
        return 2.0 * self.rows * 3 * self.facts.hidden * self.facts.ffn

    @property
    def attention_bytes(self) -> float:
        """Norm, modulation, quantise, q/k norm, RoPE, gate and residual traffic of the sweeps."""
        return self.rows * BF16 * (5.0 * self.facts.hidden + 8.0 * self.width)

    @property
    def key_value_bytes(self) -> float:
        """Norm, quantise, k norm and RoPE traffic of recomputed keys and values."""
        if self.full_cover:
            return 0.0
        return self.geometry.video_tokens * BF16 * (1.5 * self.facts.hidden + 4.0 * self.width)

    @property
    def ffn_bytes(self) -> float:
        """Norm, quantise, SwiGLU and residual traffic of the feed-forward."""
        return self.rows * BF16 * (4.5 * self.facts.hidden + 2.5 * self.facts.ffn)

    @property
    def linear_rows(self) -> int:
        """Rows of the linear branch: video without anchors; none when the window covers all."""
        if self.full_cover:
            return 0
        return (self.geometry.latent_frames - 2) * self.geometry.tokens_per_frame

    @property
    def solves(self) -> int:
        """Ridge systems of head width x head width in one block."""
        return self.linear_rows // self.geometry.tokens_per_frame * self.facts.heads

    @property
    def residual_bytes(self) -> int:
        """x of all rows, bf16."""
        return self.rows * self.facts.hidden * BF16

    @property
    def store_bytes(self) -> int:
        """Keys and values of all video rows, bf16; a covered clip has no store beside its rows."""
        if self.full_cover:
            return 0
        return self.geometry.video_tokens * self.width * 2 * BF16

    @property
    def in_ring_bytes(self) -> int:
        """What a store on the device leaves out: the first whole chunks wait in the ring, but for
        one frame. Not where groups have several chunks (engine.model.waiting)."""
        geometry = self.geometry
        if self.full_cover or geometry.grouped > 1 or geometry.chunks <= IN_RING:
            return 0
        frames = IN_RING * CHUNK_FRAMES - 1
        return frames * geometry.tokens_per_frame * self.width * 2 * BF16


@dataclass(frozen=True)
class BlockSeconds:
    """Compute of one block, split where a half slot splits it. Seconds."""

    attention: float
    ffn: float
    recompute: float  # added to `attention` when keys are recomputed


def gemm_row(facts: ModelFacts, calibration: Calibration) -> str:
    """The rate row of the weights' format; without such units the products run in bf16."""
    wanted = "rates.gemm_int8" if "int8" in facts.weight_format else "rates.gemm_fp8"
    if "bf16" in facts.weight_format or wanted not in calibration.rows:
        return "rates.gemm_bf16"
    return wanted


@dataclass(frozen=True)
class BlockParts:
    """Compute of one block by what limits it: softmax attention, products, and everything between
    them. Seconds at the calibrated rates, each for the attention half, the feed-forward, and what
    `recompute` adds.
    """

    softmax: float
    products: tuple[float, float, float]
    glue: tuple[float, float, float]

    def totals(self, *, recompute: bool) -> tuple[float, float, float]:
        """(softmax, products, glue) of a whole block."""
        last = 3 if recompute else 2
        return self.softmax, sum(self.products[:last]), sum(self.glue[:last])


def block_parts(work: Workload, calibration: Calibration) -> BlockParts:
    """Each kind of work over its calibrated rate."""
    gemm = calibration[gemm_row(work.facts, calibration)]
    copy = calibration["rates.copy"]
    pass_bytes = work.linear_rows * work.width * BF16
    between = (
        work.attention_bytes / copy
        + CONVOLUTION_PASSES * pass_bytes / calibration["rates.convolution"]
        + READOUT_PASSES * pass_bytes / calibration["rates.readout"]
        + work.solves / calibration["rates.solve"]
    )
    return BlockParts(
        work.attention_flops / calibration["rates.attention"],
        (
            work.attention_gemm_flops / gemm,
            work.ffn_gemm_flops / gemm,
            work.key_value_gemm_flops / gemm,
        ),
        (between, work.ffn_bytes / copy, work.key_value_bytes / copy),
    )


def block_seconds(work: Workload, calibration: Calibration) -> BlockSeconds:
    """Compute seconds of one block, with the start of its kernels and what LoRAs add."""
    parts, sustained = block_parts(work, calibration), calibration["rates.sustained"]
    products, glue = parts.products, parts.glue
    started = work.launches * calibration["rates.launch"]
    facts = work.facts
    branches = branch_seconds(facts.lora_row_flops, facts.lora_row_bytes, work.rows, calibration)
    attention = (parts.softmax + products[0] + glue[0]) / sustained + started
    return BlockSeconds(
        attention + branches / 2,  # the linears of both halves are about as wide
        (products[1] + glue[1]) / sustained + branches / 2,
        (products[2] + glue[2]) / sustained,
    )


def workload(request: Request, geometry: Geometry, facts: ModelFacts) -> Workload:
    """The work of a pass of `request` at `geometry`; sizes unknown before encoding are assumed.

    A keyframe adds one frame of condition rows, and so does each reference until its file is read.
    """
    pictures = request.keyframes + len(request.references)
    text = request.text_rows
    if text is None:
        text = USUAL_TEXT_ROWS + REFERENCE_TEXT_ROWS * pictures
    if request.reference_rows is None:
        return Workload(geometry, facts, text, pictures * geometry.tokens_per_frame)
    rows = request.keyframes * geometry.tokens_per_frame + request.reference_rows
    return Workload(geometry, facts, text, rows)
