"""A checkpoint as it looks with adapters: the same interface, so that nothing downstream changes.

    merged   every block is merged while it is read; AdaLN projections and the root likewise
    online   the quantised linears stay as they are, and low-rank factors travel with the block as
             further tensors `X.lora_down`, `X.lora_up`, `X.lora_scale`; all else is merged

When an adapter changes AdaLN, prepared tables are set aside and tables are computed from the
changed projections. Where a file is a block, the store gets sources that change its bytes in the
buffer (lora/sources.py); blocks that are re-read in every pass can be kept merged there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from ..blocks.memory import named_stream
from ..checkpoint.index import Checkpoint, Reader
from .apply import Branch, Difference, merge_into
from .loraset import LoraSet
from .merging import merge_raw
from .sources import AdaptedSource, kept_files, kept_identity

Mode = Literal["merged", "online"]
_PARTS = ("lora_down", "lora_up", "lora_scale")


def with_loras(
    checkpoint: Checkpoint,
    loras: LoraSet,
    *,
    mode: Mode,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.bfloat16,
    reread: Collection[int] = (),
    keep_in: Path | None = None,
) -> Checkpoint:
    """`checkpoint` with `loras` applied; the very same object when they do no work.

    device: where merges are computed; results lie on the CPU. dtype: of online factors. reread:
    blocks that are read in every pass; keep_in: a folder where those are kept merged.
    """
    if not loras:
        return checkpoint
    reader = LoraReader(checkpoint, loras, mode, torch.device(device), dtype)
    files = checkpoint.block_files
    kept = {}
    if keep_in is not None and reread and files:
        kept = kept_files(keep_in, merged_identity(checkpoint, reader), files, reread)
    sources = tuple(
        AdaptedSource(file, block, reader, kept.get(block)) for block, file in enumerate(files)
    )
    return replace(
        checkpoint,
        reader=reader,
        sources=sources,
        block_files=(),
        root_file=None,
        table_sets=() if loras.adaln_parameters else checkpoint.table_sets,
        metadata={**checkpoint.metadata, "lora": {"identity": loras.identity, "mode": mode}},
        notes=(*checkpoint.notes, f"{len(loras.reports)} LoRA files, {mode}"),
    )


def is_online(checkpoint: Checkpoint) -> bool:
    """Whether low-rank factors travel with the blocks of `checkpoint`."""
    held = checkpoint.metadata.get("lora")
    return isinstance(held, dict) and held.get("mode") == "online"


class LoraReader:
    """Reads a checkpoint's tensors with adapters in them (checkpoint.index.Reader)."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        loras: LoraSet,
        mode: Mode,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.base: Reader = checkpoint.reader
        self.weight_format = checkpoint.weight_format
        self.loras, self.online = loras, mode == "online"
        self.device, self.dtype = device, dtype

    def root_tensors(self) -> dict[str, Tensor]:
        """The root's raw tensors. Its linears run once a prompt: they are merged in both modes."""
        merges = self.loras.merges(None, online=False)
        return merge_raw(self.base.root_tensors(), merges, self.weight_format, self.device)

    def beside(self) -> AbstractContextManager[object]:
        """Device work of the body goes on one stream of its own, not behind the compute queue."""
        if self.device.type != "cuda":
            return nullcontext()
        return torch.cuda.stream(named_stream(self.device, "merge"))

    def merges(self, block: int) -> dict[str, tuple[Difference, ...]]:
        """What is merged into a block's stored tensors, whatever its AdaLN."""
        return self.loras.merges(block, online=self.online)

    def branch_tensors(self, block: int) -> dict[str, Tensor]:
        """Factors that travel with a block; {} when merged."""
        return pack_branches(self._uniform_branches(block)) if self.online else {}

    def branch_shapes(self) -> dict[str, tuple[torch.dtype, tuple[int, ...]]]:
        """Dtype and shape of every tensor of `branch_tensors`, the same for all blocks."""
        if not self.online:
            return {}
        found: dict[str, tuple[torch.dtype, tuple[int, ...]]] = {}
        for module, (rows, columns, rank) in sorted(self.loras.online_sizes().items()):
            shapes = ((rank, columns), (rows, rank), (rank,))
            dtypes = (self.dtype, self.dtype, torch.float32)
            for part, dtype, shape in zip(_PARTS, dtypes, shapes, strict=True):
                found[f"{module}.{part}"] = (dtype, shape)
        return found

    def block_tensors(self, block: int) -> dict[str, Tensor]:
        """A block's raw tensors; with factors beside them in online mode."""
        merges = self.merges(block)
        raw = self.base.block_tensors(block)
        # Layouts that keep the projection in the block show the changed one there too.
        adaln = {f"adaln_proj.linear.{part}": d for part, d in self.loras.adaln(block).items()}
        merges |= {name: d for name, d in adaln.items() if name in raw}
        merged = merge_raw(raw, merges, self.weight_format, self.device)
        return merged | self.branch_tensors(block)

    def _uniform_branches(self, block: int) -> dict[str, Branch]:
        """The branches of a block, filled up with zero ranks to the widest of any block.

        Slots and sources are made once for all blocks, so every block must carry equal shapes.
        """
        found = self.loras.branches(block, self.dtype)
        for module, (rows, columns, rank) in self.loras.online_sizes().items():
            branch = found.get(module)
            found[module] = pad_branch(branch, rows, columns, rank, self.dtype)
        return {module: found[module] for module in sorted(found)}

    def projection(self, block: int) -> tuple[Tensor, Tensor]:
        """Weight and bias of a block's AdaLN projection, changed."""
        weight, bias = self.base.projection(block)
        changes = self.loras.adaln(block)
        return merge_into(weight, changes.get("weight", ())), merge_into(
            bias, changes.get("bias", ())
        )


def pack_branches(branches: Mapping[str, Branch]) -> dict[str, Tensor]:
    """Branches as tensors that travel in a block's slot."""
    packed: dict[str, Tensor] = {}
    for module, branch in branches.items():
        parts = (branch.down.contiguous(), branch.up.contiguous(), branch.scale)
        packed |= {f"{module}.{p}": t for p, t in zip(_PARTS, parts, strict=True)}
    return packed


def pad_branch(
    branch: Branch | None, rows: int, columns: int, rank: int, dtype: torch.dtype
) -> Branch:
    """A branch of exactly `rank`, with zeros where it has less: they add exact zeros."""
    down, up = torch.zeros(rank, columns, dtype=dtype), torch.zeros(rows, rank, dtype=dtype)
    scale = torch.zeros(rank)
    if branch is not None:
        held = len(branch.scale)
        down[:held], up[:, :held], scale[:held] = branch.down, branch.up, branch.scale
    return Branch(down, up, scale)


def unpack_branches(tensors: Mapping[str, object]) -> dict[str, Branch]:
    """The branches of a slot by module name, as views. {} when the block carries none."""
    found: dict[str, Branch] = {}
    for name in tensors:
        module, _, part = name.rpartition(".")
        if part == _PARTS[0]:
            down, up, scale = (tensors[f"{module}.{p}"] for p in _PARTS)
            assert isinstance(down, Tensor) and isinstance(up, Tensor)
            assert isinstance(scale, Tensor)
            found[module] = Branch(down, up, scale)
    return found


def merged_identity(checkpoint: Checkpoint, reader: LoraReader) -> str:
    """A name for the bytes of a checkpoint's blocks as `reader` merges them."""
    parts = [checkpoint.weight_format, reader.loras.identity, reader.online, reader.device.type]
    files = [f"{f.path.resolve()} {f.header_sha256} {f.identity}" for f in checkpoint.files]
    return kept_identity([*parts, *files])
