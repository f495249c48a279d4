"""The models of one checkpoint folder, opened when a stage asks for them and closed after it.

    <folder>/                       the transformer, in any layout that engine/checkpoint knows
    <folder>/text_encoder/          <folder>/vae/          <folder>/audio_vae/
    <folder>/upscaler.safetensors

This is the one place that says which implementation runs a stage; stages and the story of a run
only see the interfaces. Headers are read at once, so that a damaged folder fails before anything
is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..kernels.compose import compute_dtype
from ..kernels.machine import read_machine
from .blocks import BlockStore, Traffic
from .checkpoint.edge_needs import saving_of
from .checkpoint.index import Checkpoint, open_checkpoint
from .checkpoint.schedule_tables import Times, find_tables
from .errors import CheckpointError
from .facts import facts_of, text_sizes
from .kernels_here import choose_kernels
from .learning import home
from .lora.adapted import with_loras
from .lora.loading import load_loras
from .lora.loraset import LoraSet
from .lora.shapes import ModelShapes
from .parts import AUDIO_VAE, TEXT, UPSCALER, VIDEO_VAE, find_part
from .planner.types import ModelFacts, Placement
from .request import LoraChoice
from .sampling.two_pass import Lift
from .sampling.upscaler_file import open_upscaler
from .sampling.upscaler_tiled import tiled_lift
from .streamed import choose_places
from .streaming import StreamedDenoisers
from .text.encoder import TextEncoder, open_text_encoder
from .vae.audio import decode_audio
from .vae.decoder import decode_video
from .vae.files import open_audio_vae, open_video_vae
from .vae.space import exact_convolutions
from .vae.streamed import StreamedBlocks
from .vae.tiles import split_axis

STRIDE_PX = 16
PROMPTS_FOLDER = "prompts"  # of what outlives a run
MERGED_FOLDER = "merged"


@dataclass(frozen=True)
class ModelSet:
    """The models of `folder`, run on `device`."""

    folder: Path
    device: torch.device
    checkpoint: Checkpoint

    def facts(self) -> ModelFacts:
        """Sizes for the planner."""
        return facts_of(self.checkpoint, self._stack_sizes())

    def headers(self) -> dict[str, Any]:
        """What a report says of the checkpoint."""
        return {
            "layout": self.checkpoint.layout,
            "weight_format": self.checkpoint.weight_format,
            "layers": self.checkpoint.config.layers,
            "header_sha256": self.checkpoint.header_sha256,
        }

    def notices(self) -> tuple[str, ...]:
        """What a user should know about these files, and what converting them would save."""
        saving = saving_of(self.checkpoint)
        return self.checkpoint.notes if saving is None else (*self.checkpoint.notes, saving)

    def check(self) -> None:
        """Read every part's header. Raises CheckpointError for one that is missing or damaged."""
        open_text_encoder(find_part(self.folder, TEXT)).close()
        open_upscaler(find_part(self.folder, UPSCALER))
        open_video_vae(find_part(self.folder, VIDEO_VAE))
        open_audio_vae(find_part(self.folder, AUDIO_VAE))

    def kernels(self) -> dict[str, Any]:
        """Which implementation of the transformer's operations runs here, and why not another."""
        found = choose_kernels(
            self.device,
            head_dim=self.checkpoint.config.head_dim,
            kind=self.checkpoint.weight_format,
        )
        return {
            "transformer": {
                "implementation": found.name,
                "chosen": dict(found.chosen),
                "because": dict(found.because),
                "against": dict(found.against),
                "changes_arithmetic": list(found.changes),
            }
        }

    @contextmanager
    def text_encoder(self, placement: Placement | None = None) -> Iterator[TextEncoder]:
        """The text encoder, for the body. placement: where its layers wait; None: on disk."""
        path = find_part(self.folder, TEXT)
        encoder = open_text_encoder(
            path, self.device.type, placement, cache=home() / PROMPTS_FOLDER
        )
        wanted, found = self.checkpoint.config.text_dim, encoder.text_dim
        try:
            if wanted != found:
                raise CheckpointError(
                    "text encoder and transformer do not fit together",
                    file=path,
                    expected=f"rows of width {wanted}",
                    found=f"rows of width {found}",
                )
            yield encoder
        finally:
            encoder.close()

    @contextmanager
    def denoiser(
        self,
        times: Times,
        placements: Mapping[str, Placement],
        loras: LoraSet | None = None,
        lora_mode: str = "merged",
        store: BlockStore | None = None,
        whole: bool = False,
    ) -> Iterator[StreamedDenoisers]:
        """The transformer for passes at `times` (distinct times of every evaluation).

        placements: {phase: where its bytes wait}. lora_mode: merged, where blocks that are read in
        every pass are kept merged on the disk, or online. store, whole: see StreamedDenoisers.
        """
        checkpoint = self.checkpoint
        if loras:
            checkpoint = with_loras(
                checkpoint,
                loras,
                mode="online" if lora_mode == "online" else "merged",
                device=self.device,
                dtype=compute_dtype(read_machine(self.device)),
                reread=reread_blocks(placements, checkpoint.config.layers),
                keep_in=home() / MERGED_FOLDER,
            )
        find_tables(checkpoint, times)
        found = StreamedDenoisers(checkpoint, times, placements, self.device, store, whole=whole)
        try:
            yield found
        finally:
            found.close()

    def lift(self, is_cancelled: Callable[[], bool] | None = None) -> Lift:
        """The latent upscaler. Raises CheckpointError when its file is missing or damaged.

        is_cancelled: asked before every layer of it.
        """
        file = open_upscaler(find_part(self.folder, UPSCALER))
        return tiled_lift(file, self.device, is_cancelled=is_cancelled)

    def decode_audio(self, latents: Tensor) -> Tensor:
        """Sound of latents [1, 32, 2, A]: float32 [2, 800 A] at 32 kHz on the CPU."""
        file = open_audio_vae(find_part(self.folder, AUDIO_VAE))
        with torch.inference_mode(), exact_convolutions():
            channels = latents[0].transpose(0, 1)
            return decode_audio(channels, file.tensors(self.device), file.config).cpu()

    def decode_video(
        self,
        latents: Tensor,
        on_frames: Callable[[Tensor], None],
        is_cancelled: Callable[[], bool],
        placement: Placement | None = None,
    ) -> Traffic:
        """Hand over the frames of latents [1, 24, F, H/16, W/16], uint8 [n, H, W, 3] a clip.

        placement: where the decoder's blocks wait, and how many tiles share a pass through them;
        None keeps all of them in host memory. Returns what the blocks moved and were waited for.
        Raises Cancelled at block borders.
        """
        file = open_video_vae(find_part(self.folder, VIDEO_VAE))
        dtype = torch.float16 if self.device.type == "cuda" else torch.float32
        if placement is None:
            placement = Placement(pinned_blocks=file.config.blocks)
        resident, pinned = choose_places(placement, file.config.blocks)
        tiles = count_tiles(latents.shape[-2] * STRIDE_PX, latents.shape[-1] * STRIDE_PX)
        with (
            torch.inference_mode(),
            StreamedBlocks(
                file,
                self.device,
                dtype,
                resident=resident,
                pinned=pinned,
                slots=max(1, placement.transfer_slots),
            ) as blocks,
        ):
            decode_video(
                latents,
                file.root(self.device),
                blocks,
                file.config,
                clips_per_group=max(1, placement.tiles_per_group // tiles),
                compute_dtype=dtype,
                on_frames=on_frames,
                is_cancelled=is_cancelled,
            )
            return blocks.stream.traffic()

    def bind_loras(self, choices: Sequence[LoraChoice], *, allow_partial: bool = False) -> LoraSet:
        """Adapters bound to this transformer. Raises what engine/lora raises, before any work."""
        if not choices:
            return LoraSet()
        return load_loras(choices, lora_shapes_of(self.checkpoint), allow_partial=allow_partial)

    def _stack_sizes(self) -> dict[str, int]:
        """Sizes of the other stacks, as far as their files are here; else the published ones."""
        sizes: dict[str, int] = {}
        text, upscaler_path, vae = (self._find(kind) for kind in (TEXT, UPSCALER, VIDEO_VAE))
        if text is not None:
            sizes |= text_sizes(text)
        if upscaler_path is not None:
            upscaler = open_upscaler(upscaler_path)
            sizes["upscaler_bytes"] = upscaler.tensor_bytes
            sizes["upscaler_channels"] = upscaler.config.width
            sizes["upscaler_layers"] = upscaler.config.in_blocks
        if vae is not None:
            video = open_video_vae(vae)
            sizes["vae_decoder_blocks"] = video.config.blocks
            sizes["vae_block_bytes"] = video.block_bytes
            sizes["vae_hidden"] = video.config.width
            sizes["vae_ffn"] = video.config.ffn_width
        return sizes

    def _find(self, kind: str) -> Path | None:
        """Where a part lies, None when it is not here."""
        try:
            return find_part(self.folder, kind)
        except CheckpointError:
            return None


def reread_blocks(placements: Mapping[str, Placement], blocks: int) -> frozenset[int]:
    """Blocks that some sampling phase reads from the disk at every step."""
    found: set[int] = set()
    for placement in placements.values():
        if placement.resident_blocks + placement.pinned_blocks + placement.disk_blocks == blocks:
            found |= set(range(blocks)) - set().union(*choose_places(placement, blocks))
    return frozenset(found)


def count_tiles(height_px: int, width_px: int) -> int:
    """Decoder tiles of one clip."""
    return split_axis(height_px).tiles * split_axis(width_px).tiles


def open_models(folder: Path, device: torch.device | str) -> ModelSet:
    """Open the models of a checkpoint folder. Raises CheckpointError; reads headers alone."""
    return ModelSet(folder, _with_index(torch.device(device)), open_checkpoint(folder))


def lora_shapes(folder: Path) -> ModelShapes:
    """The transformer of a checkpoint as an adapter sees it. Raises CheckpointError."""
    return lora_shapes_of(open_checkpoint(folder))


def lora_shapes_of(checkpoint: Checkpoint) -> ModelShapes:
    """Names and sizes of an opened checkpoint's parameters."""
    width = checkpoint.config.time_dim if checkpoint.pruned else None
    return ModelShapes.from_config(
        checkpoint.config, adaln_projections=checkpoint.has_projections, pruned_width=width
    )


def _with_index(device: torch.device) -> torch.device:
    """A CUDA device with its number: some of PyTorch's memory calls refuse one without."""
    if device.type != "cuda" or device.index is not None:
        return device
    return torch.device("cuda", torch.cuda.current_device())
