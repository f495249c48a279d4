"""The trained miniature that is shipped in `miniature/`, and copies of it in other weight formats.

It has the published structure at a thousandth of the size and knows one small world (one coloured
shape that moves over a plain ground and hums). It is kept once, in bfloat16, in OpenVDN's layout;
whatever form a run wants is made from that by the converter that real checkpoints go through.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from .checkpoint.convert import convert
from .checkpoint.edge_needs import schedules_for
from .parts import OWN_NAMES

HOME = Path(__file__).resolve().parents[1] / "miniature"
PROMPT = "A red circle moves right on a white background."
QUALITIES = ("light", "medium")
LORAS = "loras"  # folder of its adapters


def shipped() -> Path | None:
    """The folder of the miniature, None where only the code was installed."""
    return HOME if (HOME / "h3-base").is_dir() else None


def digest_of(folder: Path) -> str:
    """SHA-256 over the names, sizes and contents of all files below `folder`."""
    whole = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            content = file.read_bytes()
            name = file.relative_to(folder).as_posix()
            whole.update(f"{name} {len(content)} {hashlib.sha256(content).hexdigest()}\n".encode())
    return whole.hexdigest()


def convert_miniature(source: Path, target: Path, weight_format: str = "edge-fp8-rowwise") -> Path:
    """The miniature with its transformer in `weight_format`, beside its other models.

    target: must not be there. Raises what `convert` raises.
    """
    tables = schedules_for(QUALITIES)
    convert(source, target, format=weight_format, tables=tables, projections=True)
    for name in (*OWN_NAMES.values(), LORAS):
        part = source / name
        copy = shutil.copytree if part.is_dir() else shutil.copy
        copy(part, target / name)
    return target
