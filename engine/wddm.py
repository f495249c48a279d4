"""What Windows lets a process take of a card and of the memory behind it: DXGI's budgets.

The driver's own figure of free memory may promise what the display system will not give, and an
overrun then pages in silence. The budgets are read in a child process through COM, so that a
failure costs a note. Local is the card, non-local is host memory a device may use, pinned blocks
included; about half of the RAM.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

TIMEOUT_SECONDS = 10.0
NVIDIA = 0x10DE

# Slots of the interfaces' tables: IDXGIFactory1::EnumAdapters1 12, IDXGIAdapter1::GetDesc1 10,
# IUnknown::QueryInterface 0, IDXGIAdapter3::QueryVideoMemoryInfo 14. Groups: 0 local, 1 non-local.
_CHILD = r"""
import ctypes as c, json, sys, uuid
try:
    dxgi = c.WinDLL("dxgi")
except (AttributeError, OSError) as why:
    print(json.dumps({"error": f"{type(why).__name__}: {why}"})); sys.exit(0)
def guid(text): return (c.c_ubyte * 16)(*uuid.UUID(text).bytes_le)
class Desc(c.Structure):
    _fields_ = [("name", c.c_wchar * 128), ("vendor", c.c_uint), ("device", c.c_uint),
        ("subsystem", c.c_uint), ("revision", c.c_uint), ("dedicated", c.c_size_t),
        ("system", c.c_size_t), ("shared", c.c_size_t), ("luid", c.c_longlong), ("flags", c.c_uint)]
class Info(c.Structure):
    _fields_ = [(n, c.c_ulonglong) for n in ("budget", "used", "available", "reserved")]
def method(this, slot, *types):
    table = c.cast(this, c.POINTER(c.POINTER(c.c_void_p))).contents
    return c.WINFUNCTYPE(c.c_long, c.c_void_p, *types)(table[slot])
factory = c.c_void_p()
if dxgi.CreateDXGIFactory1(guid("770aae78-f26f-4dba-a829-253c83d1b387"), c.byref(factory)):
    print(json.dumps({"error": "no DXGI factory"})); sys.exit(0)
found = []
for index in range(16):
    adapter, desc = c.c_void_p(), Desc()
    if method(factory, 12, c.c_uint, c.c_void_p)(factory, index, c.byref(adapter)): break
    method(adapter, 10, c.c_void_p)(adapter, c.byref(desc))
    third = c.c_void_p()
    if method(adapter, 0, c.c_void_p, c.c_void_p)(adapter,
        guid("645967a4-1392-4310-a798-8053ce3e93fd"), c.byref(third)): continue
    entry = {"name": desc.name, "vendor": desc.vendor, "dedicated": desc.dedicated}
    for group, name in ((0, "local"), (1, "nonlocal")):
        info = Info()
        if method(third, 14, c.c_uint, c.c_int, c.c_void_p)(third, 0, group, c.byref(info)) == 0:
            entry[name] = {"budget": info.budget, "used": info.used}
    found.append(entry)
print(json.dumps({"adapters": found}))
"""


@dataclass(frozen=True)
class WddmBudget:
    """Bytes that a process may have now, less what the asking one had."""

    local_bytes: int | None
    nonlocal_bytes: int | None


def read_wddm(*, timeout_seconds: float = TIMEOUT_SECONDS) -> WddmBudget | str:
    """The budgets of the first NVIDIA adapter, or why there are none."""
    if sys.platform != "win32":
        return "display budgets are Windows' alone"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD],
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as why:
        return f"the display budgets could not be asked: {why}"
    return parse_wddm(done.stdout)


def parse_wddm(output: str) -> WddmBudget | str:
    """What the child printed, as budgets or a reason."""
    try:
        data = json.loads(output)
    except json.JSONDecodeError:
        return f"the display budgets were not told: {output[:80]!r}"
    if "error" in data:
        return f"no display budgets: {data['error']}"
    for adapter in data.get("adapters", ()):
        if adapter.get("vendor") == NVIDIA:
            return WddmBudget(_left(adapter.get("local")), _left(adapter.get("nonlocal")))
    return "no display budgets: no NVIDIA adapter"


def _left(group: dict[str, int] | None) -> int | None:
    return None if not group else max(0, group["budget"] - group["used"])
