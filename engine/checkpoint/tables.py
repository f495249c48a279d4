"""Prepared AdaLN tables: which times a set holds, and a block's rows of it.

A slim checkpoint leaves the AdaLN projections out (26 GB) and keeps their values at the times of
certain schedules: one folder a schedule, one file a block, one tensor `step_{i}` [3 n_i, 6C] an
evaluation. A folder's name is a digest of what it holds, so a set whose times are written nowhere
can still be proved to belong to a known schedule. Sets are found by times, never by row counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import CheckpointError
from ..model.config import ModelConfig
from ..model.times import position_of
from ..sampling.schedules import (
    COMMUNITY_SIGMAS,
    TABLE_PREFIX,
    TASK_CONDITIONS,
    community_schedule,
    schedule,
    table_directory,
)
from .header import read_header
from .names import COMPONENTS, MODALITIES
from .sources import Source, check_sources, find_objects, read_json
from .walk import subfolders

if TYPE_CHECKING:
    from torch import Tensor

Times = tuple[tuple[float, ...], ...]
_HEX = re.compile(r"[0-9a-f]{64}")
_SEARCH_DEPTH = 3


class Tables(Protocol):
    """AdaLN rows of a checkpoint for known times."""

    name: str
    times: Times

    def load_block(self, block: int) -> dict[str, Tensor]:
        """{"step_0": [3 n_0, 6C], ...} of one block, BF16 on the CPU, as ScheduleCursor reads."""
        ...


@dataclass(frozen=True)
class TableSet:
    """One folder of prepared tables. `times` is empty while its schedule is unknown."""

    name: str
    folder: Path
    times: Times
    layers: int
    channels: int

    def block_path(self, block: int) -> Path:
        """The file of one block."""
        return self.folder / f"{block:02d}.safetensors"

    @property
    def rows(self) -> int:
        """Time groups of all steps."""
        return sum(len(step) for step in self.times)

    @property
    def block_bytes(self) -> int:
        """Bytes of one block's tables."""
        return self.rows * MODALITIES * COMPONENTS * self.channels * 2

    def check(self) -> None:
        """Read every header. Raises CheckpointError for a missing file or a wrong shape."""
        missing = [str(i) for i in range(self.layers) if not self.block_path(i).is_file()]
        if missing:
            raise CheckpointError(
                f"AdaLN tables are incomplete: no file for block {', '.join(missing)}",
                file=self.folder,
                expected=f"{self.layers} files",
                found=f"{self.layers - len(missing)} files",
            )
        width = COMPONENTS * self.channels
        expected = {
            f"step_{i}": (("BF16", "F32"), (MODALITIES * len(step), width))
            for i, step in enumerate(self.times)
        }
        for block in range(self.layers):
            header = read_header(self.block_path(block))
            sources = {name: Source(header, name) for name in header.tensors}
            check_sources(sources, expected, where=header.path)

    def load_block(self, block: int) -> dict[str, Tensor]:
        """See Tables."""
        return read_header(self.block_path(block)).read_many()


@dataclass(frozen=True)
class JoinedTables:
    """Several sets as one, for a request whose passes follow different schedules."""

    parts: tuple[Tables, ...]

    @property
    def name(self) -> str:
        """Names of the parts."""
        return "+".join(part.name for part in self.parts)

    @property
    def times(self) -> Times:
        """The steps of the parts, one after another."""
        return tuple(step for part in self.parts for step in part.times)

    def load_block(self, block: int) -> dict[str, Tensor]:
        """See Tables; steps are numbered through the parts."""
        found: dict[str, Tensor] = {}
        for part in self.parts:
            tensors, start = part.load_block(block), len(found)
            found |= {f"step_{start + i}": tensors[f"step_{i}"] for i in range(len(part.times))}
        return found


class BlockProjections(Protocol):
    """What ComputedTables needs of a checkpoint."""

    def root_tensors(self) -> dict[str, Tensor]:
        """The root's raw tensors."""
        ...

    def projection(self, block: int) -> tuple[Tensor, Tensor]:
        """Weight and bias of a block's AdaLN projection."""
        ...


@dataclass(frozen=True)
class ComputedTables:
    """Tables evaluated from a checkpoint's own projections when they are asked for."""

    name: str
    times: Times
    features: tuple[Tensor, ...]  # per step [n_i, width]
    reader: BlockProjections
    pruned: bool

    def load_block(self, block: int) -> dict[str, Tensor]:
        """See Tables."""
        weight, bias = self.reader.projection(block)
        return {
            f"step_{i}": block_table(weight, bias, step, pruned=self.pruned)
            for i, step in enumerate(self.features)
        }


def time_features(
    root: Mapping[str, Tensor], config: ModelConfig, times: Sequence[float]
) -> Tensor:
    """What AdaLN projections read at `times`: temb [n, time_dim], or the pruned table's rows."""
    import torch

    from ..model.modulation import time_embedding

    anchor = next(iter(root.values()))
    moments = torch.tensor(times, dtype=torch.float32, device=anchor.device)
    return time_embedding(root, moments, config.freq_dim)


def block_table(weight: Tensor, bias: Tensor, features: Tensor, *, pruned: bool) -> Tensor:
    """features [n, width] -> a block's table [3n, 6C] BF16. The pruned form has no SiLU."""
    import torch
    from torch.nn import functional

    from ..model.modulation import adaln_table

    features = features.to(weight.device)
    if pruned:
        table = functional.linear(features.to(weight.dtype), weight, bias)
        return table.reshape(MODALITIES * features.shape[0], -1).to(torch.bfloat16)
    return adaln_table(weight, bias, features).to(torch.bfloat16)


def choose_tables(sets: Iterable[TableSet], times: Sequence[Sequence[float]]) -> Tables | None:
    """The smallest set that holds all `times`, else a few sets joined, else None. Reads no tensor.

    A row depends on its time alone, so rows may come from any set that holds their time.
    """
    known = sorted((item for item in sets if item.times), key=lambda item: (item.rows, item.name))
    wanted = {float(t) for step in times for t in step}
    covers = {item.name: {t for t in wanted if _holds(item, t)} for item in known}
    single = next((item for item in known if covers[item.name] == wanted), None)
    if single is not None:
        single.check()
        return single
    parts: list[TableSet] = []
    left = set(wanted)
    while left:
        best = max(known, key=lambda item: len(covers[item.name] & left), default=None)
        if best is None or not covers[best.name] & left:
            return None
        best.check()
        parts.append(best)
        left -= covers[best.name]
    return JoinedTables(tuple(parts))


def hold_times(sets: Iterable[TableSet], times: Sequence[Sequence[float]]) -> bool:
    """Whether `sets` together hold all `times`. Opens no file."""
    known = tuple(sets)
    return all(any(_holds(item, t) for item in known) for step in times for t in step)


def find_table_sets(
    folders: Iterable[Path], manifest: Mapping[str, Any], config: ModelConfig
) -> tuple[TableSet, ...]:
    """Every folder of prepared tables in or below `folders`, each once."""
    found: dict[str, TableSet] = {}
    for folder in folders:
        for path in sorted(_table_folders(folder, _SEARCH_DEPTH)):
            if path.name not in found:
                times = _times_of(path, manifest, config)
                found[path.name] = TableSet(path.name, path, times, config.layers, config.hidden)
    return tuple(found.values())


def known_times() -> Iterator[tuple[str, Times]]:
    """The schedules that tables are published for, with a readable name each."""
    for task, conditions in TASK_CONDITIONS.items():
        for steps in (8, 12, 16, 20):
            yield f"{steps}-step {task}", schedule(steps).table_times(conditions)
        for name in COMMUNITY_SIGMAS:
            yield f"{name} {task}", community_schedule(name).table_times(conditions)


def _holds(tables: TableSet, time: float) -> bool:
    return any(position_of(step, time) is not None for step in tables.times)


def _table_folders(folder: Path, depth: int) -> Iterator[Path]:
    for path in subfolders(folder):
        if path.name == "blocks":
            continue
        if path.name.startswith(TABLE_PREFIX):
            yield path
        elif depth > 1:
            yield from _table_folders(path, depth - 1)


def _times_of(folder: Path, manifest: Mapping[str, Any], config: ModelConfig) -> Times:
    """Times of a table folder: written in the manifest or beside the files, else proved by name."""
    texts: list[Any] = [manifest]
    texts += [read_json(path) for path in sorted(folder.glob("*.json"))]
    digests: set[str] = set()
    for text in texts:
        for item in find_objects(text, {"timesteps"}):
            times = _as_times(item["timesteps"])
            digest = str(item.get("weights", ""))
            if times and table_directory(times, digest, channels=config.hidden) == folder.name:
                return times
        digests |= set(_HEX.findall(str(text)))
    for _, times in known_times():
        for digest in digests:
            if table_directory(times, digest, channels=config.hidden) == folder.name:
                return times
    return _named_times(folder.name, texts)


def _named_times(name: str, texts: Sequence[Any]) -> Times:
    """Times from an object that names the folder, when the digest is made in another way."""
    for text in texts:
        for item in find_objects(text, set()):
            holder = item.get(name)
            texts_in = [value.rstrip("/") for value in item.values() if isinstance(value, str)]
            if holder is None and any(value.endswith(name) for value in texts_in):
                holder = item
            for found in find_objects(holder, {"timesteps"}):
                return _as_times(found["timesteps"])
    return ()


def _as_times(value: Any) -> Times:
    try:
        return tuple(tuple(float(t) for t in step) for step in value)
    except (TypeError, ValueError):
        return ()
