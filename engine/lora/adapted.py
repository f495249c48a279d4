"""A checkpoint as it looks with adapters: the same interface, so that nothing downstream changes.

    merged   every block is merged while it is read; AdaLN projections and the root likewise
    online   the quantised linears stay as they are, and low-rank factors travel with the block as
             further tensors `X.lora_down`, `X.lora_up`, `X.lora_scale`; all else is merged

When an adapter changes AdaLN, prepared tables are set aside and tables are computed from the
changed projections. A stack that is re-read in every pass can keep its merged blocks in files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from ..checkpoint.header import TensorFile, read_header, write_tensors
from ..checkpoint.index import Checkpoint, Reader
from ..errors import CheckpointError
from .apply import Branch, Difference, merge_into, merge_quantised
from .errors import LoraBindingError
from .loraset import LoraSet
from .modules import other_spelling

Mode = Literal["merged", "online"]
_CACHE_FORMAT = "lowpeak-merged-blocks-1"
_PARTS = ("lora_down", "lora_up", "lora_scale")


def with_loras(
    checkpoint: Checkpoint,
    loras: LoraSet,
    *,
    mode: Mode,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.bfloat16,
) -> Checkpoint:
    """`checkpoint` with `loras` applied; the very same object when they do no work.

    device: where merges are computed; results lie on the CPU. dtype: of online factors.
    """
    if not loras:
        return checkpoint
    reader = LoraReader(checkpoint, loras, mode, torch.device(device), dtype)
    return replace(
        checkpoint,
        reader=reader,
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

    def block_tensors(self, block: int) -> dict[str, Tensor]:
        """A block's raw tensors; with factors beside them in online mode."""
        merges = self.loras.merges(block, online=self.online)
        raw = self.base.block_tensors(block)
        # Layouts that keep the projection in the block show the changed one there too.
        adaln = {f"adaln_proj.linear.{part}": d for part, d in self.loras.adaln(block).items()}
        merges |= {name: d for name, d in adaln.items() if name in raw}
        merged = merge_raw(raw, merges, self.weight_format, self.device)
        if self.online:
            merged |= pack_branches(self._uniform_branches(block))
        return merged

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


def merge_raw(
    tensors: Mapping[str, Tensor],
    merges: Mapping[str, Sequence[Difference]],
    weight_format: str,
    device: torch.device | str = "cpu",
) -> dict[str, Tensor]:
    """Raw tensors of a block or the root (`X.weight_fp8`, `X.weight_scale`, ...) with merges added.

    Names, dtypes and shapes stay; untouched tensors are the same objects. Raises LoraBindingError
    for a parameter without a tensor.
    """
    merged = dict(tensors)
    for parameter, differences in merges.items():
        name = next((n for n in _stored_names(parameter) if n in merged), None)
        if name is None:
            raise LoraBindingError("the checkpoint stores no such tensor", names=(parameter,))
        old = merged[name]
        if not name.endswith((".weight_fp8", ".weight_int8")):
            merged[name] = merge_into(old.to(device), differences).to(old.device)
            continue
        scale_name = name.rpartition(".")[0] + ".weight_scale"
        scale = merged.get(scale_name)
        if scale is None:
            raise CheckpointError("missing scale", tensor=scale_name, expected="fp32")
        kind = _kind(name, old, scale, weight_format)
        codes, new_scale = merge_quantised(old.to(device), scale.to(device), kind, differences)
        assert new_scale is not None
        merged[name] = codes.to(old.device)
        merged[scale_name] = new_scale.reshape(scale.shape).to(scale.device)
    return merged


def _stored_names(parameter: str) -> tuple[str, ...]:
    names: list[str] = []
    for spelling in (parameter, other_spelling(parameter)):
        module, _, part = spelling.rpartition(".")
        names.append(spelling)
        if part == "bias":
            names.append(f"{module}.original.bias")
        else:
            names += [f"{module}.weight_fp8", f"{module}.weight_int8"]
    return tuple(names)


def _kind(name: str, codes: Tensor, scale: Tensor, weight_format: str) -> str:
    if name.endswith(".weight_int8"):
        return "int8-convrot"
    # One output row: both granularities look alike, and the checkpoint says which it is.
    rowwise = weight_format == "fp8-rowwise" and scale.numel() == codes.shape[0]
    return "fp8-rowwise" if rowwise else "fp8-tensor"


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


def merged_identity(checkpoint: Checkpoint) -> str:
    """A name for the bytes of a checkpoint's blocks with its adapters: base headers and files."""
    parts = [_CACHE_FORMAT, checkpoint.weight_format, str(checkpoint.metadata.get("lora", ""))]
    for file in checkpoint.files:
        parts.append(f"{file.path.resolve()} {file.header_sha256} {file.identity}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def keep_merged_blocks(checkpoint: Checkpoint, folder: Path) -> Checkpoint:
    """Write the merged blocks of `with_loras(...)` once under `folder`; later reads use the files.

    Files are named by identity and appear only when whole, so an interrupted run goes on where it
    stopped, and another checkpoint, adapter or strength never meets them.
    """
    place = folder / merged_identity(checkpoint)[:32]
    files: list[TensorFile] = []
    for block in range(checkpoint.config.layers):
        path = place / f"{block:02d}.safetensors"
        if not path.is_file():
            write_tensors(path, checkpoint.block_tensors(block), {"format": _CACHE_FORMAT})
        files.append(read_header(path))
    reader = _KeptBlocks(checkpoint.reader, tuple(files))
    return replace(checkpoint, reader=reader, block_files=tuple(files))


class _KeptBlocks:
    """Blocks from files, all else from another reader."""

    def __init__(self, base: Reader, files: tuple[TensorFile, ...]) -> None:
        self.base, self.files = base, files
        self.root_tensors, self.projection = base.root_tensors, base.projection

    def block_tensors(self, block: int) -> dict[str, Tensor]:
        """A block's raw tensors from its file."""
        return self.files[block].read_many()
