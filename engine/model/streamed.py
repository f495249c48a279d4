"""The whole transformer, chunk-major, every block streamed through device slots.

    x = packed input;  for each block as it arrives: x = block(x);  velocities = head(x)

A pass is bound to one packed sequence; a step is one call. The placement says where blocks, keys
and x wait; this file obeys it and decides nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ...kernels.compose import Choice
from ...kernels.weights import Weight
from ..blocks import BlockStream
from ..blocks.memory import HostBuffer
from ..errors import Cancelled
from ..planner.types import Placement
from ..units import format_gib
from .adaln import StepTables
from .block import ChunkMajorBlock
from .config import ModelConfig
from .head import OutputTables, normalise_rows
from .layout import PackedLayout, RowTimes
from .replays import Replays, fingerprint
from .residual import DeviceResidual, HostResidual, Residual
from .root import RootLayers
from .rope import rotary_tables
from .sweep import SweepContext
from .weights import AttentionWeights, FeedForwardWeights

BESIDE = True  # side streams where keys are stored: such a placement has the memory for them
QUEUED_BLOCKS = 2  # blocks queued behind the one that is computed
Assemble = Callable[[Mapping[str, Tensor]], dict[str, Weight | Tensor]]


def runs_beside(device: torch.device, placement: Placement) -> bool:
    """Whether side streams are used. Only with PyTorch's own allocator: what is freed on a stream
    goes to later work of that stream there, to any stream's with cudaMallocAsync."""
    if not BESIDE or device.type != "cuda" or placement.keys != "store":
        return False
    return torch.cuda.get_allocator_backend() == "native"


@dataclass
class StepTelemetry:
    """What one step took. Seconds and bytes. Bytes of blocks count from the end of the step before;
    those of the first step from when stream and store were opened."""

    seconds: float
    link_bytes: int
    disk_bytes: int
    stall_seconds: Mapping[str, float]
    prepare_seconds: float = 0.0  # until the first block is queued: the device is idle meanwhile
    vram_peak_bytes: int | None = None


@dataclass
class BoundPass:
    """One pass over one packed sequence. `velocity` is one evaluation; `close` frees its buffers.

    text_embeds: [N_t, C] refined rows. conditions: [K, video_row] float32 condition rows.
    sound_conditions: [J, audio_channels] float32 rows of reference sound.
    compute: the stream that all work runs on, None on a CPU; capture: replay blocks as graphs.
    """

    config: ModelConfig
    choice: Choice
    stream: BlockStream
    assemble: Assemble
    layers: RootLayers
    outputs: OutputTables
    tables: StepTables
    layout: PackedLayout
    text_embeds: Tensor
    conditions: Tensor
    sound_conditions: Tensor
    placement: Placement
    device: torch.device
    dtype: torch.dtype
    is_cancelled: Callable[[], bool] = lambda: False
    compute: torch.cuda.Stream | None = None
    capture: bool = True
    telemetry: list[StepTelemetry] = field(default_factory=list)

    def __post_init__(self) -> None:
        layout = self.layout = self.layout.to(self.device)
        cos, sin = rotary_tables(
            layout.position_ids, self.config.rope_freqs, self.config.rope_theta
        )
        half = self.config.rotary_dim // 2
        self.context = SweepContext(
            config=self.config,
            ops=self.choice.ops,
            device=self.device,
            dtype=self.dtype,
            global_rows=layout.global_rows,
            text=layout.text,
            frames=layout.frames,
            grid=(layout.grid_height, layout.grid_width),
            rows=torch.zeros(layout.rows, dtype=torch.int32, device=self.device),
            cos=cos[:, :half].contiguous(),
            sin=sin[:, :half].contiguous(),
            beside=runs_beside(self.device, self.placement),
        )
        self._host: list[HostBuffer] = []
        self.notices: list[str] = []
        c = self.context
        store = None
        if self.placement.keys == "host" and not c.full_cover:
            shape = (c.frames * c.tokens, c.heads, c.head_dim)
            store = (self._host_tensor("keys", shape), self._host_tensor("values", shape))
        self.residual: Residual
        if self.placement.residual == "host":
            self.residual = HostResidual(
                self._host_tensor("the residual", (c.total_rows, self.config.hidden)), self.device
            )
        else:
            self.residual = DeviceResidual(c.empty((c.total_rows, self.config.hidden)))
        self.block = ChunkMajorBlock(c, self.placement.keys, store)
        self.replays = Replays(self.compute, capture=self.capture)
        self.tables_in_use: dict[torch.Size, Tensor] = {}  # a block's rows, at a fixed address

    def velocity(self, video: Tensor, audio: Tensor, times: RowTimes) -> tuple[Tensor, Tensor]:
        """Velocities of the target rows, float32 on the CPU.

        video: [F*S, video_row], audio: [2A, audio_channels], float32 rows of the targets. Raises
        Cancelled at a block border.
        """
        begin = time.perf_counter()
        before = self._moved_beside_blocks()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        self.context.rows.copy_(times.table_rows)
        distinct = [float(t) for t in times.distinct]
        tables = self.tables.at(distinct, self.device, self.dtype)
        table = self.tables_in_use.setdefault(tables.shape[1:], torch.empty_like(tables[0]))
        video, audio = video.to(self.device), audio.to(self.device)
        try:
            if self.compute is not None:
                self.compute.wait_stream(torch.cuda.current_stream(self.device))
            with self.replays.on_stream():
                result = self._evaluate(video, audio, times, tables, table)
        except BaseException:
            if self.compute is not None:  # whoever frees the buffers uses another stream
                with suppress(RuntimeError):  # a broken device: the first error is the one to tell
                    torch.cuda.synchronize(self.device)
            raise
        self._record(begin, before)
        return result

    def _evaluate(
        self, video: Tensor, audio: Tensor, times: RowTimes, tables: Tensor, table: Tensor
    ) -> tuple[Tensor, Tensor]:
        with self.replays.memory():
            self._fill(video, audio)
        self._prepared = time.perf_counter()
        queued: deque[object] = deque()
        for index in range(self.config.layers):
            if len(queued) > QUEUED_BLOCKS:  # so that a cancel is seen while its block is computed
                self.stream.device.finish(queued.popleft())
            if self.is_cancelled():
                raise Cancelled(f"block {index} of {self.config.layers}")
            table.copy_(tables[index])
            self._run_block(index, table)
            queued.append(self.stream.device.mark_computed())
        with self.replays.memory():
            return self._head(times, self.tables.own_times([float(t) for t in times.distinct]))

    def close(self) -> None:
        """Free the pass's buffers. Safe to call twice."""
        self.replays.close()
        self.block = self.residual = None  # type: ignore[assignment]
        for buffer in self._host:
            buffer.close()
        self._host = []

    def _run_block(self, index: int, table: Tensor) -> None:
        with self.stream.block(index) as handle:
            tensors = self.assemble(handle.part(0))
            attention, at = AttentionWeights.from_tensors(tensors), fingerprint(tensors)
            if not self.context.full_cover:  # then it does nothing, and a graph of nothing warns
                self.replays.run(
                    "write",
                    (fingerprint(table), at),
                    lambda: self.block.write(self.residual, attention, table),
                    self._moved_by_block,
                )
            if len(self.stream.parts[index]) > 1:
                tensors = self.assemble(handle.part(1))
            feed_forward = FeedForwardWeights.from_tensors(tensors)
            self.replays.run(
                "read",
                (fingerprint(table), at, fingerprint(tensors)),
                lambda: self.block.read(self.residual, attention, feed_forward, table),
                self._moved_by_block,
            )

    def _moved_by_block(self) -> int:
        return self.block.link_bytes + getattr(self.residual, "link_bytes", 0)

    def _fill(self, video: Tensor, audio: Tensor) -> None:
        """The packed input (sheet a.9), text first, then conditions, audio, video by groups."""
        c, layout = self.context, self.layout
        x = self.residual.load(0, c.global_rows)
        x.zero_()
        x[layout.text] = self.text_embeds
        if self.conditions.shape[0]:
            rows = layout.video_indices[: layout.condition_video_rows]
            x[rows] = self.layers.linear("proj_in", self.conditions).to(self.dtype)
        if self.sound_conditions.shape[0]:
            rows = layout.audio_indices[: layout.condition_audio_rows]
            x[rows] = self.layers.linear("audio_proj_in", self.sound_conditions).to(self.dtype)
        x[layout.audio] = self.layers.linear("audio_proj_in", audio).to(self.dtype)
        self.residual.save(0, x)
        for index in range(c.groups):
            rows = c.group_rows(index)
            x = self.residual.load(rows.start, rows.stop)
            part = video[rows.start - c.global_rows : rows.stop - c.global_rows]
            x.copy_(self.layers.linear("proj_in", part))
            self.residual.save(rows.start, x)

    def _head(self, times: RowTimes, own_times: list[float]) -> tuple[Tensor, Tensor]:
        c, layout = self.context, self.layout
        indices = times.timestep_indices.to(self.device)
        table = self.outputs.at(own_times)

        def project(name: str, start: int, stop: int) -> Tensor:
            rows = self.residual.load(start, stop)
            y = normalise_rows(self.layers, rows, table, indices[start:stop], self.config.eps)
            return self.layers.linear(name, y).float()

        audio = project("audio_proj_out", layout.audio.start, layout.audio.stop)
        video = [
            project("proj_out", rows.start, rows.stop)
            for rows in (c.group_rows(index) for index in range(c.groups))
        ]
        return torch.cat(video).cpu(), audio.cpu()

    def _host_tensor(self, what: str, shape: tuple[int, ...]) -> Tensor:
        count = torch.Size(shape).numel() * torch.empty(0, dtype=self.dtype).element_size()
        buffer = HostBuffer(count, pin=self.device.type == "cuda")
        self._host.append(buffer)
        if buffer.refused:
            self.notices.append(
                f"host memory for {what} ({format_gib(count)}) could not be page-locked; it is "
                "moved as pageable memory, which is slower"
            )
        return buffer.tensor.view(self.dtype).view(shape)

    def _moved_beside_blocks(self) -> int:
        """Bytes of keys and x that crossed the link so far."""
        return self._moved_by_block() + self.replays.link_bytes

    def _record(self, begin: float, before_bytes: int) -> None:
        peak = None
        if self.device.type == "cuda":
            peak = torch.cuda.max_memory_reserved(self.device)
        moved = self.stream.traffic()
        self.telemetry.append(
            StepTelemetry(
                time.perf_counter() - begin,
                moved.link_bytes + self._moved_beside_blocks() - before_bytes,
                moved.disk_bytes,
                moved.stall_seconds,
                self._prepared - begin,
                peak,
            )
        )
