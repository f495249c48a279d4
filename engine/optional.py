"""Optional packages: absent, importable, or broken and why. Each is imported in a child process.

A broken package may raise anything, end its process or hang; here that is a line of the doctor's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from ..kernels.machine import is_present, package_version

OPTIONAL = {
    "triton": "fast kernels of the linear branch and the glue",
    "comfy_kitchen": "int8 linears with rotation",
    "flash_attn": "another attention kernel",
    "flash_attn.cute": "another attention kernel",
    "sageattention": "another attention kernel",
    "sageattn3": "another attention kernel",
    "av": "video files",
}
LIMIT_SECONDS = 120.0  # comfy_kitchen alone takes 32 s on two busy cores

# Argument: {"path": sys.path, "names": [...]}. One line [name, why] after each import; what
# packages print goes to standard error. No exit handlers: they are a broken package's, too.
_CHILD = """
import importlib, json, os, sys
channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
task = json.loads(sys.argv[1])
sys.path[:] = task["path"]
for name in task["names"]:
    why = ""
    try:
        importlib.import_module(name)
    except BaseException as failed:
        why = f"{type(failed).__name__}: {failed}".splitlines()[0]
    print(json.dumps([name, why]), file=channel, flush=True)
os._exit(0)
"""


def read_optional() -> dict[str, dict[str, Any]]:
    """{import name: {"found", "for", "version", "broken"}}; version: "0" where nothing says,
    broken: "" or why it cannot be imported."""
    present = [name for name in OPTIONAL if is_present(name)]
    broken = import_errors(present)
    return {
        name: {
            "found": name in present,
            "for": what,
            "version": package_version(name) if name in present else "",
            "broken": broken.get(name, ""),
        }
        for name, what in OPTIONAL.items()
    }


def optional_lines(packages: dict[str, dict[str, Any]]) -> list[str]:
    """What `read_optional` found, for a terminal."""
    lines = []
    for name, state in packages.items():
        word = "broken" if state["broken"] else "has" if state["found"] else "lacks"
        version = "" if state["version"] in ("", "0") else f" {state['version']}"
        why = f" - {state['broken']}" if state["broken"] else ""
        lines.append(f"{word:<8} {name}{version}: {state['for']}{why}")
    return lines


def import_errors(names: Sequence[str], *, limit_seconds: float = LIMIT_SECONDS) -> dict[str, str]:
    """{name: why it cannot be imported, "" where it can}.

    One child imports all; after one that ends it, another goes on with the rest. limit_seconds:
    of all together.
    """
    found: dict[str, str] = {}
    until = time.monotonic() + limit_seconds
    while left := [name for name in names if name not in found]:
        answers, ended = _import(left, max(until - time.monotonic(), 0.0))
        found |= answers
        late = ended is None
        for index, name in enumerate(n for n in left if n not in answers):
            if index == 0:
                found[name] = (
                    f"its import takes longer than {limit_seconds:g} s"
                    if late
                    else f"its import ends the process with exit code {ended}"
                )
            elif late:
                found[name] = f"not tried: the {limit_seconds:g} s of all imports are used up"
    return found


def _import(names: Sequence[str], limit_seconds: float) -> tuple[dict[str, str], int | None]:
    """Answers of one child as far as it came, and its exit code, None past the limit."""
    task = json.dumps({"path": sys.path, "names": list(names)})
    code: int | None = None
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, task],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limit_seconds,
            check=False,
        )
        said, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
    return dict(json.loads(line) for line in said.decode().splitlines()), code
