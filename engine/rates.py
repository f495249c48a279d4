"""How fast this machine's link and disk are: measured once, kept with the date.

The disk is read by the store's own reader, past the page cache, from real block files or from a
file made for it; the link is a copy from page-locked memory, both as a step uses them. Figures lie
in rates.json beside the history, a link by its card, a disk by its device; plans of this machine
take them instead of the calibration's.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .learning import home
from .planner.types import HardwareSnapshot
from .units import MIB

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)
FILE = "rates.json"
VERSION = 1
LINK_BYTES = 432 * MIB  # about a block
DISK_BYTES = 768 * MIB
LEAST_FILES_BYTES = 256 * MIB
MOST_FILES = 6
REPEATS = 5
LEAST_RATE, MOST_RATE = 1e6, 1e13  # bytes a second; anything else is a broken clock


def known_rates(path: Path | None = None) -> dict[str, Any]:
    """What was measured here: {"link": {card: entry}, "disk": {device: entry}}.

    An entry is {"bytes_per_second", "date", ...}. A file that cannot be read, or of another
    version or machine, counts as none.
    """
    nothing: dict[str, Any] = {"link": {}, "disk": {}}
    try:
        data = json.loads((path or home() / FILE).read_text())
        if data["version"] != VERSION or data["machine"] != platform.node():
            return nothing
        return {
            kind: {key: entry for key, entry in data[kind].items() if _is_rate(entry)}
            for kind in nothing
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return nothing


def _is_rate(entry: Mapping[str, Any]) -> bool:
    return bool(LEAST_RATE < float(entry["bytes_per_second"]) < MOST_RATE)


def keep_rates(found: Mapping[str, Mapping[str, Any]], path: Path | None = None) -> None:
    """Add entries to what is known, atomically."""
    target = path or home() / FILE
    known = known_rates(target)
    for kind, entries in found.items():
        known[kind].update(entries)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    part.write_text(json.dumps({"version": VERSION, "machine": platform.node(), **known}, indent=1))
    part.replace(target)


def with_known_rates(
    snapshot: HardwareSnapshot, folder: Path | None = None, path: Path | None = None
) -> HardwareSnapshot:
    """The snapshot with measured rates where it has none, and a note that says when.

    folder: where the weights lie; without it the disk measured last counts.
    """
    known, notes = known_rates(path), list(snapshot.notes)
    link = known["link"].get(snapshot.device_name)
    if folder is not None:
        disk = known["disk"].get(disk_key(folder))
    else:
        disk = max(known["disk"].values(), key=lambda entry: str(entry["date"]), default=None)
    found = {}
    for name, entry in (("link", link), ("disk", disk)):
        field = f"{name}_bytes_per_second"
        if entry is not None and getattr(snapshot, field) is None:
            found[field] = float(entry["bytes_per_second"])
            notes.append(f"{name}: {found[field] / 1e9:.2f} GB/s, measured {entry['date']}")
    return replace(snapshot, **found, notes=tuple(notes)) if found else snapshot


def disk_key(folder: Path) -> str:
    """The device that a folder, or its nearest parent that exists, lies on."""
    here = folder.resolve()
    while not here.exists():
        here = here.parent
    return f"{here.stat().st_dev:x}"


def measure_rates(
    device: torch.device, device_name: str, folder: Path, files: Sequence[Path] = ()
) -> dict[str, dict[str, dict[str, Any]]]:
    """Measure and keep. files: block files to read; without any that are large enough, one is
    written beside them, or into `folder`."""
    date = datetime.date.today().isoformat()
    found: dict[str, dict[str, dict[str, Any]]] = {"link": {}, "disk": {}}
    link = measure_link(device)
    if link is not None:
        found["link"][device_name] = {"bytes_per_second": link, "date": date}
    place = files[0].parent if files else folder
    whole = sum(sorted((path.stat().st_size for path in files), reverse=True)[:MOST_FILES])
    real = whole >= LEAST_FILES_BYTES  # small ones would measure the opening of files
    disk = block_read_rate(files) if real else made_file_rate(place)
    if disk is not None:
        read = "block files" if real else "a file made for it"
        found["disk"][disk_key(place)] = {"bytes_per_second": disk, "date": date, "read": read}
    try:
        keep_rates(found)
    except OSError as refused:  # what was measured is told all the same
        log.warning("rates are not kept: %s; LOWPEAK_HOME names another folder", refused)
    return found


def block_files(checkpoint: Path) -> list[Path]:
    """The files that a checkpoint's blocks are read from; any weights where it names none."""
    return sorted(checkpoint.rglob("blocks/*.safetensors")) or sorted(
        checkpoint.rglob("*.safetensors")
    )


def measure_link(device: torch.device) -> float | None:
    """Bytes a second from page-locked host memory to the device, None without one."""
    import torch

    from .blocks.memory import HostBuffer

    if device.type != "cuda" or torch.cuda.mem_get_info(device)[0] < 2 * LINK_BYTES:
        return None
    source = HostBuffer(LINK_BYTES, pin=True)
    try:
        source.tensor.fill_(1)
        target = torch.empty(LINK_BYTES, dtype=torch.uint8, device=device)
        seconds = []
        for _ in range(REPEATS + 1):
            torch.cuda.synchronize(device)
            began = time.perf_counter()
            target.copy_(source.tensor, non_blocking=True)
            torch.cuda.synchronize(device)
            seconds.append(time.perf_counter() - began)
        return LINK_BYTES / statistics.median(seconds[1:])
    finally:
        source.close()


def block_read_rate(files: Sequence[Path], most: int = MOST_FILES) -> float | None:
    """Bytes a second that a store could read at most, over the largest `most` files, None without
    any."""
    from .blocks.reading import read_alone
    from .blocks.sources import FileSource

    status = sorted(((path.stat(), path) for path in files), key=lambda item: -item[0].st_size)
    sources = [
        FileSource(path, {}, (found.st_size, found.st_mtime_ns, found.st_ino))
        for found, path in status[:most]
        if found.st_size
    ]
    if not sources:
        return None
    done, seconds = read_alone(sources, pin=False)
    return done / seconds


def made_file_rate(folder: Path, nbytes: int = DISK_BYTES) -> float | None:
    """The same over a file of random bytes that is written into `folder` and removed again."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="lowpeak-rate-") as made:
        path = Path(made) / "block"
        chunk = os.urandom(MIB)
        with path.open("wb") as file:
            for _ in range(max(1, nbytes // MIB)):
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return block_read_rate([path])
