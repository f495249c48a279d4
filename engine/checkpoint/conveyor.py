"""The three stages of a conversion, beside one another.

Parts are read (`lanes`), a unit's linears are quantised and its tables evaluated, finished units
are written. One part waits between the first two stages, a unit or two before the last; that bounds
the memory.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .ahead import read_ahead
from .arena import Arena
from .edge_recipe import STATE_FILE, EdgeRecipe, SourceModel, block_path, table_folder, write_json
from .lanes import Lanes
from .names import ADALN, COMPONENTS, MODALITIES, block_linears, root_linears
from .parts import Part
from .quantise import quantise_tensors
from .tables import block_table, time_features

DIGEST_STRIDE = 61


@dataclass
class _Made:
    """A unit ready to be written.

    digest: a name for the AdaLN projection, or the tensors to take it from (the time embedder's
    for the root). ready: when the device has computed it all; kernels: begin and end of its work.
    """

    stored: dict[str, Tensor] = field(default_factory=dict)
    tables: list[dict[str, Tensor]] = field(default_factory=list)
    projection: dict[str, Tensor] = field(default_factory=dict)
    digest: str | dict[str, Tensor] | None = None
    ready: Any = None
    kernels: list[tuple[Any, Any]] = field(default_factory=list)


class Conveyor:
    """The three stages of one conversion. A unit is a block, or the root as None."""

    def __init__(
        self,
        folder: Path,
        model: SourceModel,
        recipe: EdgeRecipe,
        lanes: Lanes,
        state: dict[str, Any],
    ) -> None:
        self.folder, self.model, self.recipe, self.lanes = folder, model, recipe, lanes
        self.state, self.keeping = state, threading.Lock()
        self.meter = lanes.meter
        self.moments = sorted({t for times in recipe.tables for step in times for t in step})
        self.features = torch.empty(0)

    def run(self, units: Sequence[int | None], report: Callable[[int | None], None]) -> None:
        """Write `units`, the root first. Left early, units that were made are still written."""
        begin = time.perf_counter()
        behind: deque[Future[None]] = deque()
        # A device makes units faster than a disk takes them: one is flushed while another is sent.
        writers = 1 if self.lanes.device is None else 2
        with (
            ThreadPoolExecutor(writers, "lowpeak-keep") as keepers,
            read_ahead(self._read(units)) as ahead,
        ):
            try:
                for unit, group in groupby(self._awaited(ahead), key=itemgetter(0)):
                    report(unit)
                    made = self._made(unit, ((part, arena) for _, part, arena in group))
                    with self.meter.timed("compute.waiting_for_write_seconds"):
                        while len(behind) >= writers or (behind and behind[0].done()):
                            behind.popleft().result()
                    behind.append(keepers.submit(self._keep, unit, made))
                    del made
                with self.meter.timed("compute.waiting_for_write_seconds"):
                    while behind:
                        behind.popleft().result()
            except BaseException:
                self.lanes.stop_reading()
                raise
        values, seconds = self.meter.values, time.perf_counter() - begin
        waits = ("compute.waiting_for_read_seconds", "compute.waiting_for_write_seconds")
        self.meter.add("compute.busy_seconds", seconds - sum(values.get(name, 0) for name in waits))
        self.meter.add("write.waiting_seconds", writers * seconds - values["write.busy_seconds"])
        self.meter.add("write.threads", writers)
        self.meter.add("seconds", seconds)

    def _read(
        self, units: Sequence[int | None]
    ) -> Iterator[tuple[int | None, tuple[Part, dict[str, Tensor]], Arena]]:
        """Parts of all units, read; on the thread that reads ahead."""
        arenas = itertools.cycle((Arena(self.recipe.device), Arena(self.recipe.device)))
        for unit in units:
            for part in self.model.parts(unit):
                begin, waited = time.perf_counter(), self._waited()
                arena = next(arenas)
                tensors = self.lanes.load(part.sources, arena) | dict(part.made)
                waited = self._waited() - waited
                self.meter.add("read.busy_seconds", time.perf_counter() - begin - waited)
                given = (unit, (part, tensors), arena)
                del tensors, part
                begin = time.perf_counter()
                yield given
                del given
                self.meter.add("read.waiting_seconds", time.perf_counter() - begin)

    def _waited(self) -> float:
        return self.meter.values.get("read.waiting_seconds", 0.0)

    def _awaited(self, items: Iterator[Any]) -> Iterator[Any]:
        """The same items; counts the wait for each."""
        while True:
            with self.meter.timed("compute.waiting_for_read_seconds"):
                item = next(items, None)
            if item is None:
                return
            yield item
            del item

    def _made(self, unit: int | None, parts: Iterable[tuple[Any, Arena]]) -> _Made:
        """Merge, quantise, evaluate: what is written of a unit. All work is queued when it ends."""
        made = _Made()
        if unit is not None:
            made.digest = self.model.projection_digest(unit)
        linears = root_linears(self.model.config) if unit is None else block_linears(
            self.model.config)  # fmt: skip
        for (part, read), arena in parts:
            before = _event(self.lanes.device)
            tensors = {name: _to(t, self.recipe.device) for name, t in part.finish(read).items()}
            if unit is None:
                self._note_times(tensors, made)
            if f"{ADALN}.weight" in tensors:
                self._take_projection(tensors, made)
            here = [name for name in linears if f"{name}.weight" in tensors]
            new = quantise_tensors(tensors, here, self.recipe.weight_format)
            # What was not made new lies in memory that the part after next is read into.
            made.stored |= {
                k: t.clone() if t is tensors.get(k) else t.contiguous() for k, t in new.items()
            }
            arena.release()
            made.kernels.append((before, _event(self.lanes.device)))
            del read, part, tensors, new
        made.ready = made.kernels[-1][1]
        assert made.digest is not None
        assert unit is None or len(made.tables) == len(self.recipe.tables)
        return made

    def _note_times(self, tensors: Mapping[str, Tensor], made: _Made) -> None:
        """What the AdaLN projections read at the moments of all tables, from the root."""
        embedding = {k: v for k, v in tensors.items() if k.startswith("time_embedder.")}
        if embedding:
            self.features = time_features(embedding, self.model.config, self.moments)
            made.digest = {name: tensor.clone() for name, tensor in embedding.items()}

    def _take_projection(self, tensors: dict[str, Tensor], made: _Made) -> None:
        """Tables and digest of a block's projection, which leaves `tensors`."""
        weight, bias = tensors.pop(f"{ADALN}.weight"), tensors.pop(f"{ADALN}.bias")
        # All times in one product: a time then has the same row in every schedule's table.
        table = block_table(weight, bias, self.features, pruned=False)
        table = table.reshape(len(self.moments), MODALITIES, COMPONENTS * self.model.config.hidden)
        for times in self.recipe.tables:
            places = [[self.moments.index(t) for t in step] for step in times]
            rows = {f"step_{k}": table[place].flatten(0, 1) for k, place in enumerate(places)}
            made.tables.append(rows)
        if made.digest is None:
            # Adapters change all rows, so a few of them tell projections apart (26 GB otherwise).
            made.digest = {"weight": weight[::DIGEST_STRIDE].clone(), "bias": bias.clone()}
        if self.recipe.projections:
            made.projection = {f"{ADALN}.weight": weight.clone(), f"{ADALN}.bias": bias.clone()}

    def _keep(self, unit: int | None, made: _Made) -> None:
        """Write a unit, then note that it is done; on a keeper's thread."""
        with self.meter.timed("write.busy_seconds"):
            if made.ready is not None:
                made.ready.synchronize()
                for before, after in made.kernels:
                    self.meter.add("compute.device_seconds", before.elapsed_time(after) / 1e3)
            with self.lanes.beside():
                digest = digest_of(made.digest) if isinstance(made.digest, dict) else made.digest
            if unit is None:
                self.lanes.store(self.folder / "root.safetensors", made.stored)
            else:
                self._keep_block(unit, made)
            with self.keeping:
                if unit is None:
                    self.state["embedding"] = digest
                else:
                    self.state["projections"][str(unit)] = digest
                write_json(self.folder / STATE_FILE, self.state)

    def _keep_block(self, block: int, made: _Made) -> None:
        prefix = f"transformer_blocks.{block}."
        for i, rows in enumerate(made.tables):
            self.lanes.store(table_folder(self.folder, i) / f"{block:02d}.safetensors", rows)
        if self.recipe.projections:
            self.lanes.store(
                self.folder / "adaln" / f"{block:02d}.safetensors",
                {f"{prefix}{name}": tensor for name, tensor in made.projection.items()},
            )
        self.lanes.store(
            block_path(self.folder, block),
            {f"{prefix}{name}": tensor for name, tensor in made.stored.items()},
        )


def _event(device: torch.device | None) -> Any:
    """A mark behind the work queued so far; None on a CPU, where all of it is done."""
    if device is None:
        return None
    event = torch.cuda.Event(enable_timing=True, blocking=True)
    event.record(torch.cuda.current_stream(device))
    return event


def digest_of(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, dtypes, shapes and bytes, in order of names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        data = tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8)
        digest.update(memoryview(data.numpy()))
    return digest.hexdigest()


def _to(tensor: Tensor, device: str | None) -> Tensor:
    return tensor if device is None else tensor.to(device)
