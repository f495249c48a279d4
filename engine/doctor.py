"""`lowpeak doctor`: what this machine is, what runs on it and why, and what is missing.

Everything is looked at, nothing is changed. Software is asked in this process, the card through a
short-lived child, so that no CUDA context is made unless `probe` asks for measurements.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .snapshot import read_snapshot
from .units import GIB, MIB, format_gib
from .versions import read_versions

OPTIONAL = {
    "triton": "fast kernels of the linear branch and the glue",
    "comfy_kitchen": "int8 linears with rotation",
    "flash_attn": "another attention kernel",
    "sageattention": "another attention kernel",
    "av": "video files",
}
PROBE_BYTES = 256 * MIB
FORMATS = ("fp8-rowwise", "fp8-tensor", "int8-convrot", "plain")
HEAD_DIM = 128


def examine(*, probe: bool = False, folder: Path | None = None) -> dict[str, Any]:
    """The document of `doctor --json`. probe: also measure link and disk, which takes seconds.

    folder: where the disk is measured; the system's temporary folder by default.
    """
    snapshot = read_snapshot()
    return {
        "machine": snapshot.as_json(),
        "versions": read_versions(),
        "optional": {name: _optional(name, what) for name, what in OPTIONAL.items()},
        "kernels": _kernels(),
        "comfyui": _comfyui(),
        "rates": _measure(folder or Path(tempfile.gettempdir())) if probe else None,
    }


def doctor_text(document: Mapping[str, Any]) -> str:
    """The document as lines for a terminal."""
    machine = document["machine"]
    vram = machine["vram_total_bytes"]
    lines = [
        f"GPU      {machine['device_name'] or 'none'}"
        + (
            f", {format_gib(machine['vram_free_bytes'])} of {format_gib(vram)} free" if vram else ""
        ),
        f"RAM      {format_gib(machine['ram_available_bytes'])} of "
        f"{format_gib(machine['ram_total_bytes'])} usable",
        *(f"note     {note}" for note in machine["notes"]),
        "software " + ", ".join(f"{name} {text}" for name, text in document["versions"].items()),
    ]
    for name, state in document["optional"].items():
        lines.append(f"{'has' if state['found'] else 'lacks':<8} {name}: {state['for']}")
    for op, state in document["kernels"].items():
        lines.append(f"kernels  {op}: {state['chosen']}")
        lines += [f"           not {other}: {why}" for other, why in state["refused"].items()]
    comfyui = document["comfyui"]
    lines.append(f"ComfyUI  {comfyui['path'] or 'not seen'} {comfyui['version'] or ''}".rstrip())
    for name, rate in (document["rates"] or {}).items():
        text = "not measured" if rate is None else f"{rate / 1e9:.2f} GB/s"
        lines.append(f"rate     {name}: {text}")
    return "\n".join(lines)


def _optional(name: str, what: str) -> dict[str, Any]:
    return {"found": importlib.util.find_spec(name) is not None, "for": what}


def _kernels() -> dict[str, Any]:
    """Per weight format: what would run here and why the others would not."""
    import torch

    from .kernels_here import choose_kernels

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found = {}
    for kind in FORMATS:
        choice = choose_kernels(device, head_dim=HEAD_DIM, kind=kind)
        found[kind] = {"chosen": choice.name, "refused": dict(choice.against)}
    return found


def _comfyui() -> dict[str, Any]:
    """The ComfyUI around this package, or the one of COMFYUI_DIR."""
    here = Path(__file__).resolve()
    named = os.environ.get("COMFYUI_DIR")
    around = [parent for parent in here.parents if (parent / "comfyui_version.py").is_file()]
    folder = Path(named) if named else (around[0] if around else None)
    if folder is None or not (folder / "comfyui_version.py").is_file():
        return {"path": None, "version": None}
    text = (folder / "comfyui_version.py").read_text(encoding="utf-8")
    version = text.partition("__version__")[2].partition("=")[2].split("\n")[0].strip(" \"'")
    return {"path": str(folder), "version": version}


def _measure(folder: Path) -> dict[str, float | None]:
    """Bytes a second, None where it cannot be measured."""
    return {
        "disk_read": _disk_rate(folder),
        "host_copy": _timed(_host_copy),
        "link_to_device": link_rate(),
    }


def link_rate() -> float | None:
    """Bytes a second from page-locked host memory to the device, None without one."""
    return _timed(_link_copy)


def _disk_rate(folder: Path) -> float | None:
    """Reads of a fresh file, bypassing the page cache where the system lets us."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        chunk = os.urandom(MIB)
        for _ in range(PROBE_BYTES // MIB):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
        if not hasattr(os, "posix_fadvise"):
            return None
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        began = time.perf_counter()
        with open(file.name, "rb", buffering=0) as again:
            while again.read(8 * MIB):
                pass
        return PROBE_BYTES / (time.perf_counter() - began)


def _timed(copy: Callable[[], float | None]) -> float | None:
    seconds = copy()
    return None if seconds is None else PROBE_BYTES / seconds


def _host_copy() -> float | None:
    import torch

    source = torch.ones(PROBE_BYTES, dtype=torch.uint8)
    target = torch.empty_like(source)
    target.copy_(source)
    began = time.perf_counter()
    target.copy_(source)
    return time.perf_counter() - began


def _link_copy() -> float | None:
    import torch

    if not torch.cuda.is_available() or torch.cuda.mem_get_info()[0] < GIB:
        return None
    source = torch.ones(PROBE_BYTES, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(PROBE_BYTES, dtype=torch.uint8, device="cuda")
    target.copy_(source)
    torch.cuda.synchronize()
    began = time.perf_counter()
    target.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    return time.perf_counter() - began
