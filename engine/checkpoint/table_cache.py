"""Computed AdaLN tables on disk: 26 GB of projections are read once a schedule, not once a run.

A folder is named by what its tables were made from: the times, the files with their headers, sizes
and times of change, and the adapters in them. One file a block, under a temporary name first. What
cannot be read, or has other shapes, is computed again; a folder that cannot be written costs time
and nothing else. The folders unused for longest go first when all together outgrow the limit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..units import GIB
from .header import TensorFile, write_tensors
from .names import COMPONENTS, MODALITIES
from .tables import ComputedTables, Times

FOLDER = "adaln"  # of what outlives a run
VERSION = "lowpeak-adaln-1"
LIMIT_BYTES = 4 * GIB

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeptTables:
    """Computed tables that are looked for in `folder` first. See tables.Tables."""

    computed: ComputedTables
    folder: Path
    channels: int
    layers: int

    @property
    def name(self) -> str:
        """Of the tables."""
        return self.computed.name

    @property
    def times(self) -> Times:
        """Distinct times of every step."""
        return self.computed.times

    def load_block(self, block: int) -> dict[str, Tensor]:
        """See tables.Tables."""
        file = self.folder / f"{block:02d}.safetensors"
        found = self._read(file)
        if found is None:
            found = self.computed.load_block(block)
            try:
                write_tensors(file, found)
            except OSError as refused:
                log.warning("computed AdaLN tables are not kept: %s", refused)
        if block == self.layers - 1:
            with contextlib.suppress(OSError):
                os.utime(self.folder)
            drop_oldest(self.folder.parent, keep=self.folder)
        return found

    def _read(self, file: Path) -> dict[str, Tensor] | None:
        try:
            found = load_file(file)
        except (OSError, SafetensorError, ValueError):
            return None
        wanted = {
            f"step_{index}": (MODALITIES * len(step), COMPONENTS * self.channels)
            for index, step in enumerate(self.times)
        }
        right = {name: tuple(value.shape) for name, value in found.items()} == wanted
        return found if right and {v.dtype for v in found.values()} == {torch.bfloat16} else None


def tables_identity(
    files: tuple[TensorFile, ...], times: Times, metadata: Mapping[str, object]
) -> str:
    """Equal for equal weights, adapters and times."""
    parts = [
        (str(file.path), file.header_sha256, repr(file.identity))
        for file in sorted(files, key=lambda item: str(item.path))
    ]
    words = [VERSION, parts, times, metadata.get("lora")]
    text = json.dumps(words, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def drop_oldest(root: Path, *, keep: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Remove the folders in `root` that were unused for longest until the rest fits."""
    sizes: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for folder in root.iterdir():
            size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
            sizes.append((folder.stat().st_mtime, size, folder))
    left = sum(size for _, size, _ in sizes)
    for _, size, folder in sorted(sizes):
        if left <= limit_bytes:
            return
        if folder != keep:
            shutil.rmtree(folder, ignore_errors=True)
            left -= size
