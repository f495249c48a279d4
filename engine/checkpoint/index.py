"""Open a checkpoint: find out by content which layout it has, and check it before it is used.

    edge        blocks/NN.safetensors, root, AdaLN tables; FP8 per tensor, FP8 rowwise, int8 ConvRot
    openvdn     h3-base (diffusers) + a stage folder: linear branch and adapters, merged when read
    comfy       a single file with ComfyUI's names, alone (dense) or beside a stage folder
    diffusers   the dense base model

Only headers are read here. Every expected tensor, shape and dtype is compared first, so a wrong
file is refused in a fraction of a second. File names prove nothing; tensors do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ...kernels.weights import Weight
from ..errors import CheckpointError
from ..model.config import ModelConfig
from .assemble import assemble, assemble_root
from .header import FileIdentity, TensorFile, TensorSpan, read_header
from .tables import ComputedTables, Tables, TableSet, choose_tables, time_features

if TYPE_CHECKING:
    from torch import Tensor

    from ..blocks.sources import BlockSource

FORMATS = ("fp8-rowwise", "int8-convrot", "fp8-tensor")  # preferred first when a folder has several
BlockFile = TensorFile


class Reader(Protocol):
    """Reads a layout's tensors under local names."""

    def root_tensors(self) -> dict[str, Tensor]:
        """The root's raw tensors, diffusers names."""
        ...

    def block_tensors(self, block: int) -> dict[str, Tensor]:
        """A block's raw tensors, merged and split, local names."""
        ...

    def projection(self, block: int) -> tuple[Tensor, Tensor]:
        """Weight and bias of a block's AdaLN projection."""
        ...


@dataclass(frozen=True)
class Checkpoint:
    """A model on disk whose headers were read and found right.

    weight_format: 'plain' | 'fp8-rowwise' | 'fp8-tensor' | 'int8-convrot' of the blocks' linears.
    block_files: one file a block with local names (edge layout), which a store may read directly by
        spans; empty for layouts whose blocks must be merged or split by `load_block`.
    sources: one a block where something reads block files in its own way (adapters); else empty.
    root_file: the edge layout's root, None otherwise.
    files: every weight file of the model. notes: what a user should know, one sentence each.
    """

    path: Path
    layout: str
    weight_format: str
    config: ModelConfig
    files: tuple[TensorFile, ...]
    reader: Reader = field(repr=False)
    block_files: tuple[BlockFile, ...] = ()
    sources: tuple[BlockSource, ...] = ()
    root_file: TensorFile | None = None
    table_sets: tuple[TableSet, ...] = ()
    has_projections: bool = False
    pruned: bool = False
    metadata: Mapping[str, object] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()

    @property
    def header_sha256(self) -> dict[str, str]:
        """File name (relative to the checkpoint) -> SHA-256 of its header."""
        return {_relative(file.path, self.path): file.header_sha256 for file in self.files}

    def load_root(self) -> dict[str, Weight | Tensor]:
        """The root on the CPU; keys as `assemble_root` says."""
        return assemble_root(self.reader.root_tensors(), self.weight_format, self.config)

    def root_tensors(self) -> dict[str, Tensor]:
        """The root's raw tensors on the CPU, diffusers names, quantised ones with their suffix."""
        return self.reader.root_tensors()

    def load_block(self, block: int) -> dict[str, Weight | Tensor]:
        """One block on the CPU; keys as `assemble` says, adapters merged, names unified.

        Includes `adaln_proj.linear.weight` and `.bias` where the layout keeps them in the block.
        """
        return assemble(self.block_tensors(block), self.weight_format, self.config)

    def block_tensors(self, block: int) -> dict[str, Tensor]:
        """One block's raw tensors on the CPU under local names, for `assemble`."""
        if not 0 <= block < self.config.layers:
            raise IndexError(f"block {block} of {self.config.layers}")
        return self.reader.block_tensors(block)

    def tables_for(self, times: Sequence[Sequence[float]]) -> Tables | None:
        """AdaLN tables that hold every time of `times` (distinct times of each evaluation).

        Prepared tables come first; without them the checkpoint's own projections are evaluated
        block by block, and the result is kept on disk (table_cache). None when neither has them.
        Raises CheckpointError for damaged tables.
        """
        prepared = choose_tables(self.table_sets, times)
        if prepared is not None or not self.has_projections:
            return prepared
        root = self.reader.root_tensors()
        exact = tuple(tuple(float(t) for t in step) for step in times)
        features = tuple(time_features(root, self.config, step) for step in exact)
        computed = ComputedTables("computed", exact, features, self.reader, self.pruned)
        from ..learning import home
        from .table_cache import FOLDER, KeptTables, tables_identity

        folder = home() / FOLDER / tables_identity(self.files, exact, self.metadata)
        return KeptTables(computed, folder, self.config.hidden, self.config.layers)

    def has_times(self, times: Sequence[Sequence[float]]) -> bool:
        """Whether `tables_for` would give tables. Reads no tensor, raises as that does."""
        return choose_tables(self.table_sets, times) is not None or self.has_projections

    def check_identity(self) -> None:
        """Raise CheckpointError if any file was changed or replaced since it was opened."""
        for file in self.files:
            file.check_identity()


def open_checkpoint(
    path: str | Path,
    *,
    stage: str | Path | None = None,
    prefer: Sequence[str] = FORMATS,
) -> Checkpoint:
    """Read and check the headers of a checkpoint of any known layout.

    path: a folder (the checkpoint, or one that holds it at most three levels down) or a file.
    stage: OpenVDN stage folder to add to a base model that lies elsewhere.
    prefer: which edge cache to take when a folder holds several.
    Raises CheckpointError naming file, tensor, expected and found, or listing what is missing.
    """
    from . import comfy, edge, openvdn

    path = Path(path)
    if not path.exists():
        raise CheckpointError("checkpoint is not there", file=path)
    chosen_stage = None if stage is None else openvdn.stage_folder(Path(stage))
    if path.is_file():
        if not comfy.is_comfy(read_header(path)):
            raise CheckpointError(
                "not a transformer of this model",
                file=path,
                expected="ComfyUI names (video_patch_proj, blocks.N...)",
                found=", ".join(list(read_header(path).tensors)[:3]) or "no tensors",
            )
        return comfy.open_comfy(path, chosen_stage)
    caches = edge.find_caches(path)
    if caches and stage is None:
        return edge.open_edge(edge.choose_cache(caches, prefer), path)
    if stage is None:
        chosen_stage = openvdn.stage_folder(path)
    base = openvdn.base_folder(path)
    if base is not None:
        return openvdn.open_openvdn(base, chosen_stage)
    single = comfy.find_comfy(path)
    if single is not None:
        return comfy.open_comfy(single, chosen_stage)
    if chosen_stage is not None:
        raise CheckpointError(
            "a VDN stage without its base model",
            file=path,
            expected="h3-base/transformer or a ComfyUI single file",
            found=chosen_stage.name,
            remedy="Name the base model's folder and give this one as the stage.",
        )
    raise CheckpointError(
        "no checkpoint of a known layout",
        file=path,
        expected="blocks/ with root.safetensors (edge), h3-base (OpenVDN), a ComfyUI single file, "
        "or a diffusers transformer folder",
        found=", ".join(sorted(item.name for item in path.iterdir())[:8]) or "an empty folder",
    )


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


__all__ = [
    "BlockFile",
    "Checkpoint",
    "FileIdentity",
    "TensorFile",
    "TensorSpan",
    "open_checkpoint",
]
