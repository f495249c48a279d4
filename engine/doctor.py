"""`lowpeak doctor`: what this machine is, what runs on it and why, and what is missing.

Everything is looked at, nothing is changed. The card and optional packages are asked in short-lived
children, so that no CUDA context is made unless measurements are asked for, and no package's import
can end the doctor.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .optional import optional_lines, read_optional
from .snapshot import read_snapshot
from .units import format_gib
from .versions import read_versions

FORMATS = ("fp8-rowwise", "fp8-tensor", "int8-convrot", "plain")
HEAD_DIM = 128


def examine(
    *,
    probe: bool = False,
    rates: bool = False,
    folder: Path | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """The document of `doctor --json`.

    probe: judge and time every kernel that could run on this card, which takes a minute or two, and
    keep the verdicts. probe, rates: also measure link and disk and keep the figures for later
    plans. The disk is that of `checkpoint`, over its block files, else of `folder`, else of the
    system's temporary folder. progress: takes a line for each kernel that was judged.
    """
    from .rates import known_rates

    with ThreadPoolExecutor(1) as pool:
        optional = pool.submit(read_optional)  # imports in a child, beside those of this process
        snapshot = read_snapshot()
        versions = read_versions()
        if probe:
            optional.result()  # nothing runs beside a kernel that is timed
        probed = _probe(progress) if probe else None  # before the kernels are chosen by it
        kernels = _kernels()
    return {
        "machine": snapshot.as_json(),
        "versions": versions,
        "optional": optional.result(),
        "kernels": kernels,
        "probe": probed,
        "comfyui": _comfyui(),
        "rates": measured_rates(checkpoint, folder) if probe or rates else None,
        "known_rates": known_rates(),
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
    lines += optional_lines(document["optional"])
    lines += _kernel_lines(document["kernels"])
    if document["probe"]:
        from ..kernels.probe.table import probe_text

        lines.append(probe_text(document["probe"]))
    comfyui = document["comfyui"]
    lines.append(f"ComfyUI  {comfyui['path'] or 'not seen'} {comfyui['version'] or ''}".rstrip())
    for name, rate in (document["rates"] or {}).items():
        text = "not measured" if rate is None else f"{rate / 1e9:.2f} GB/s"
        lines.append(f"rate     {name}: {text}")
    for kind, entries in document["known_rates"].items():
        for key, entry in entries.items():
            rate = f"{entry['bytes_per_second'] / 1e9:.2f} GB/s"
            lines.append(f"known    {kind} {key}: {rate}, measured {entry['date']}")
    return "\n".join(lines)


def _kernel_lines(kernels: Mapping[str, Any]) -> list[str]:
    """By weight format what runs; reasons that are the same for every format are said once."""
    lines: list[str] = []
    said: set[str] = set()
    for kind, state in kernels.items():
        lines.append(f"kernels  {kind}: {state['chosen'] or 'none'}")
        for other, why in state["refused"].items():
            if "(linear)" in other or other not in said:
                lines.append(f"           not {other}: {why}")
            said.add(other)
    return lines


def _kernels() -> dict[str, Any]:
    """Per weight format: what would run here and why the others would not."""
    from .errors import KernelUnavailable
    from .kernels_here import choose_kernels

    found = {}
    for kind in FORMATS:
        try:
            choice = choose_kernels(_device(), head_dim=HEAD_DIM, kind=kind)
        except KernelUnavailable as none:
            found[kind] = {"chosen": "", "by_op": {}, "refused": none.reasons}
            continue
        found[kind] = {
            "chosen": choice.name,
            "by_op": dict(choice.chosen),
            "because": dict(choice.because),
            "changes_arithmetic": list(choice.changes),
            "refused": dict(choice.against),
        }
    return found


def _probe(progress: Callable[[str], None]) -> dict[str, Any] | None:
    """The kernel probe's document, None without a card."""
    from .kernels_here import probe_kernels

    device = _device()
    return None if device.type == "cpu" else probe_kernels(device, progress=progress)


def _device() -> Any:
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


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


def measured_rates(
    checkpoint: Path | None = None, folder: Path | None = None
) -> dict[str, float | None]:
    """Bytes a second of link and disk, measured now and kept; None where there is none."""
    import torch

    from .rates import block_files, measure_rates

    here = torch.cuda.is_available()
    device = torch.device("cuda" if here else "cpu")
    name = torch.cuda.get_device_name(device) if here else ""
    files = block_files(checkpoint) if checkpoint is not None else []
    found = measure_rates(device, name, folder or Path(tempfile.gettempdir()), files)
    return {
        kind: next((entry["bytes_per_second"] for entry in found[kind].values()), None)
        for kind in ("link", "disk")
    }


def link_rate() -> float | None:
    """Bytes a second from page-locked host memory to the device, None without one."""
    import torch

    from .rates import measure_link

    return measure_link(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
