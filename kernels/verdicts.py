"""What the probe found on this machine, in one JSON file under a key that changes when it must.

The key: the card's name, the driver's major version, the versions of the packages that bring
kernels, and a hash of our own kernel sources. Nothing else: a new path, a Python patch release or
another card in the machine keeps the verdicts. Entries of other machines stay in the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from .machine import Machine
from .registry import Verdict, verdict_json

SCHEMA = 1
KEPT_KEYS = 8


class VerdictCache:
    """The file. A damaged or foreign file reads as empty and is replaced at the next write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, machine: Machine) -> dict[str, dict[str, Verdict]]:
        """Verdicts by op and name, empty when this machine was not probed."""
        ops = self._entries().get(machine_key(machine), {}).get("ops", {})
        return {
            op: {name: Verdict(**found) for name, found in verdicts.items()}
            for op, verdicts in ops.items()
        }

    def write(
        self,
        machine: Machine,
        verdicts: Mapping[str, Mapping[str, Verdict]],
        about: Mapping[str, Any],
    ) -> None:
        """Add verdicts to the machine's entry, atomically. about: when and with what."""
        entries = self._entries()
        key = machine_key(machine)
        ops = dict(entries.pop(key, {}).get("ops", {}))
        for op, found in verdicts.items():
            mine = {name: verdict_json(v) for name, v in found.items()}
            ops[op] = {**ops.get(op, {}), **mine}
        entries[key] = {"machine": machine.as_json(), "about": dict(about), "ops": ops}
        kept = dict(list(entries.items())[-KEPT_KEYS:])
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"schema": SCHEMA, "entries": kept}, indent=1)
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, self.path)

    def _entries(self) -> dict[str, Any]:
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            return {}
        entries = document.get("entries")
        return dict(entries) if isinstance(entries, dict) else {}


def machine_key(machine: Machine, sources: str | None = None) -> str:
    """The key of a machine's verdicts."""
    parts = {
        "name": machine.name,
        "capability": machine.capability,
        "system": machine.system,
        "driver": machine.driver.split(".")[0],
        "packages": dict(sorted(machine.packages.items())),
        "sources": sources if sources is not None else source_hash(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


@cache
def source_hash() -> str:
    """A hash of the sources that can change a kernel's numbers or speed."""
    folder = Path(__file__).parent
    files = [
        folder / "linears.py",
        folder / "vendor.py",
        folder / "tuning.toml",
        *sorted((folder / "triton").glob("*.py")),
        *sorted((folder / "reference").glob("*.py")),
    ]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]
