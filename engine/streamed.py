"""A checkpoint opened for streaming: sources, store, stream, root; bound to a sequence by pass.

This is the Denoiser the engine runs; engine.denoiser.PlainDenoiser is its oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial

import torch
from torch import Tensor

from ..kernels.compose import Choice
from .blocks import BlockSource, BlockStore, BlockStream, FileSource, TensorSource
from .blocks.layout import Piece
from .blocks.memory import device_for, named_stream
from .checkpoint.assemble import assemble_present
from .checkpoint.header import TensorFile
from .checkpoint.index import Checkpoint
from .denoiser import row_times
from .device import free_workspaces
from .errors import CheckpointError
from .kernels_here import KernelOptions, choose_kernels, default_dtype
from .lora.adapted import is_online
from .lora.online import attach_branches, online_choice
from .model.config import ModelConfig
from .model.layout import PackedLayout
from .model.root import RootLayers
from .model.streamed import BoundPass
from .model.weights import part_of
from .planner.types import Placement
from .prelude import Prelude
from .sampling.schedules import StepTimes
from .sampling.solver import ModelFunction

STAGING_BUFFERS = 3


def no_rows(rows: Tensor | None, config: ModelConfig) -> Tensor:
    """Sound rows [J, audio_channels], J = 0 without any."""
    return torch.empty(0, config.audio_channels) if rows is None else rows


def spread(count: int, total: int) -> list[int]:
    """`count` of `total` positions, as evenly spread as integers allow."""
    return [(2 * index + 1) * total // (2 * count) for index in range(count)]


def choose_places(placement: Placement, blocks: int) -> tuple[list[int], list[int]]:
    """Which blocks are resident and which pinned; the rest is read from disk in every pass.

    Both kinds are spread evenly, so that between two disk reads there is work to hide them behind.
    """
    disk = set(spread(placement.disk_blocks, blocks)) if placement.disk_blocks else set()
    host = [index for index in range(blocks) if index not in disk]
    resident = (
        {host[i] for i in spread(placement.resident_blocks, len(host))}
        if (placement.resident_blocks)
        else set()
    )
    return sorted(resident), [index for index in host if index not in resident]


def file_source(file: TensorFile) -> FileSource:
    """A block file as the store reads it."""
    pieces = {
        name: Piece(span.torch_dtype, tuple(span.shape), span.start_byte, span.nbytes)
        for name, span in file.tensors.items()
    }
    identity = (file.identity.size_bytes, file.identity.mtime_ns, file.identity.inode)
    return FileSource(file.path, pieces, identity)


def block_sources(checkpoint: Checkpoint) -> list[BlockSource]:
    """Sources of every block: files where a file is a block, else tensors made on demand."""
    if checkpoint.sources:
        return list(checkpoint.sources)
    if checkpoint.block_files:
        return [file_source(file) for file in checkpoint.block_files]

    def make(index: int) -> Mapping[str, Tensor]:
        tensors = checkpoint.block_tensors(index)
        return {k: v for k, v in tensors.items() if not k.startswith("adaln_proj")}

    template = make(0)
    return [
        TensorSource(template, partial(make, index)) for index in range(checkpoint.config.layers)
    ]


def choose_for(
    checkpoint: Checkpoint,
    device: torch.device,
    dtype: torch.dtype,
    kernels: KernelOptions | None = None,
) -> Choice:
    """What runs the operations of a checkpoint. Raises KernelUnavailable."""
    choice = choose_kernels(
        device,
        head_dim=checkpoint.config.head_dim,
        kind=checkpoint.weight_format,
        dtype=dtype,
        options=kernels,
    )
    return online_choice(choice) if is_online(checkpoint) else choice


def open_store(
    checkpoint: Checkpoint, placement: Placement, device: torch.device, *, whole: bool = False
) -> BlockStore:
    """The host side of a placement, which starts to read; whoever asks for it closes it. whole:
    every block waits in it, also those that the placement has on the device."""
    layers = checkpoint.config.layers
    resident, pinned = choose_places(placement, layers)
    return BlockStore(
        block_sources(checkpoint),
        pinned=range(layers) if whole else pinned,
        first=() if whole else resident,
        staging=STAGING_BUFFERS,
        pin=device.type == "cuda",
        device=device_for(device, compute_stream(device)),
    )


def compute_stream(device: torch.device) -> torch.cuda.Stream | None:
    """The stream that passes run on, None on a CPU."""
    return named_stream(device, "compute") if device.type == "cuda" else None


class StreamedDenoiser:
    """See engine.denoiser.Denoiser. One placement; a pass with another opens another."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        times: tuple[tuple[float, ...], ...],
        placement: Placement,
        device: torch.device,
        *,
        dtype: torch.dtype | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
        open_stream: bool = True,
        capture: bool = True,
        kernels: KernelOptions | None = None,
        prelude: Prelude | None = None,
    ) -> None:
        """times: the distinct times of every step of the pass. open_stream: start reading blocks
        now; a benchmark puts a stream over a shared store instead. capture: replay a block's
        kernels as graphs on a CUDA device. kernels: None takes the options of the process. prelude:
        of another pass over the same checkpoint, times and device, which its owner closes. Raises
        CheckpointError when the checkpoint has neither tables nor projections for the times,
        KernelUnavailable when nothing can run an operation."""
        config = checkpoint.config
        total = placement.resident_blocks + placement.pinned_blocks + placement.disk_blocks
        if total != config.layers:
            raise CheckpointError(
                "the placement is for another model",
                expected=f"{config.layers} blocks",
                found=total,
            )
        self.checkpoint, self.config, self.placement = checkpoint, config, placement
        self.device, self.is_cancelled = device, is_cancelled
        self.dtype = dtype or default_dtype(device)
        self.choice = choose_for(checkpoint, device, self.dtype, kernels)
        self.capture = capture
        self._passes: list[BoundPass] = []
        self._resources = ExitStack()
        if prelude is None:
            prelude = Prelude(checkpoint, times, device, self.choice, self.dtype)
            self._resources.callback(prelude.close)
        self.prelude = prelude
        self._compute = compute_stream(device)
        self._calls = device_for(device, self._compute)
        self._resident, _ = choose_places(placement, config.layers)
        self.stream: BlockStream | None = None
        if open_stream:
            self.open_stream()

    def open_store(self, *, whole: bool = False) -> BlockStore:
        """See the function of this name."""
        return open_store(self.checkpoint, self.placement, self.device, whole=whole)

    def open_stream(self, store: BlockStore | None = None) -> None:
        """Start reading and uploading blocks. store: one that its owner keeps for other passes;
        it must pin every block. Closes itself when it fails."""
        own = store is None
        try:
            if store is None:
                store = self._resources.enter_context(self.open_store())
            self.stream = self._resources.enter_context(
                BlockStream(
                    store,
                    self._calls,
                    resident=self._resident,
                    slots=self.placement.transfer_slots,
                    part_of=part_of if self.placement.half_slots else None,
                    owns_store=own,
                )
            )
        except BaseException:  # no memory for resident blocks, say: nobody has this to close it
            with suppress(RuntimeError):
                self._calls.finish(self._calls.mark_copied())
            self.close()
            raise

    def bind(
        self,
        layout: PackedLayout,
        text: Tensor,
        condition_rows: Tensor,
        condition_sounds: Tensor | None = None,
    ) -> ModelFunction:
        """See Denoiser.bind. Binding again frees the buffers of the pass before."""
        for bound in self._passes:
            bound.close()
        with torch.inference_mode():
            embeds = self.prelude.refined(text)
            if self.device.type == "cuda":  # the refiner's weights leave before the pass allocates;
                torch.cuda.empty_cache()  # not workspaces: a reader may be merging with one
            bound = BoundPass(
                config=self.config,
                choice=self.choice,
                stream=self.stream,
                assemble=partial(_assemble, self.checkpoint.weight_format, self.config),
                layers=RootLayers(self.prelude.head, self.choice, self.dtype),
                outputs=self.prelude.outputs,
                tables=self.prelude.tables,
                layout=layout,
                text_embeds=embeds,
                conditions=condition_rows.to(self.device),
                sound_conditions=no_rows(condition_sounds, self.config).to(self.device),
                placement=self.placement,
                device=self.device,
                dtype=self.dtype,
                is_cancelled=self.is_cancelled,
                compute=self._compute,
                capture=self.capture,
            )
        self._passes = [bound]

        def velocity(video: Tensor, audio: Tensor, times: StepTimes) -> tuple[Tensor, Tensor]:
            with torch.inference_mode():
                return bound.velocity(video, audio, row_times(layout, times))

        return velocity

    @property
    def telemetry(self) -> list:
        """Step by step figures of the pass bound last."""
        return self._passes[-1].telemetry if self._passes else []

    @property
    def notices(self) -> list[str]:
        """What the user should know about the way blocks are held."""
        bound = self._passes[-1] if self._passes else None
        own = [*bound.notices, *bound.replays.notices] if bound else []
        return [*self.stream.store.notices, *own]

    def close(self) -> None:
        """Give back weights and buffers. Safe to call twice."""
        for bound in self._passes:
            bound.close()
        self._resources.close()
        free_workspaces(self.device)


def _assemble(weight_format: str, config: ModelConfig, tensors: Mapping[str, Tensor]):
    """Weights of a block or a half. Not a method: a pass that knew its denoiser would keep both,
    and what they have on the device, until the garbage collector comes by."""
    return attach_branches(assemble_present(tensors, weight_format, config))
