"""Whose memory a card's is: the panel's split (ours, others, evictable) against the driver's sums.

Three processes share one card, as they do beside ComfyUI:

    this one   stands for ComfyUI: a context, a model of 1 GiB that its manager would give up, and
               half a GiB of allocator cache; it reads the gauges (nodes/gauges.py)
    other      another program: 2 GiB
    worker     ours: the meter of a run (engine/meter.py), 3 GiB, and a captured graph

Truth is the growth of the card's used bytes as one process after the other comes, so it holds in a
container too, where the driver does not tell processes apart. Each figure must agree within 64 MiB.
Nobody else may use the card meanwhile. About 15 s and 7 GiB of VRAM.

    python benchmarks/pack_on_card.py --out pack-on-card.json [--budget-seconds 30]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

MIB, GIB = 1 << 20, 1 << 30
TOLERANCE_BYTES = 64 * MIB
MODEL_BYTES, CACHE_BYTES, OTHER_BYTES, WORKER_BYTES = GIB, GIB // 2, 2 * GIB, 3 * GIB
PACKAGE = "lowpeak"

OTHER = f"""
import sys, torch
print("ready", flush=True); sys.stdin.readline()
held = torch.zeros({OTHER_BYTES}, dtype=torch.uint8, device="cuda"); torch.cuda.synchronize()
print("holds", flush=True); sys.stdin.readline()
"""
WORKER = f"""
import json, sys, torch
from {PACKAGE}.engine.meter import Meter, process_card_bytes
print("ready", flush=True); sys.stdin.readline()
meter = Meter(torch.device("cuda", 0))
held = torch.zeros({WORKER_BYTES}, dtype=torch.uint8, device="cuda")
x = torch.ones(4096, 4096, device="cuda", dtype=torch.bfloat16)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    y = x @ x
side.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    for _ in range(50):
        y = x @ x
graph.replay(); torch.cuda.synchronize()
print("holds", flush=True)
for line in sys.stdin:
    print(json.dumps({{"ours": meter.device_bytes(), "driver": process_card_bytes(meter.device),
                      "context": meter.context_bytes}}), flush=True)
"""


def differences(
    read: Mapping[str, int], truth: Mapping[str, int], tolerance: int = TOLERANCE_BYTES
) -> dict[str, dict[str, Any]]:
    """Each figure beside its truth; `agrees` within the tolerance. A missing one does not."""
    found = {}
    for name, expected in truth.items():
        value = read.get(name)
        off = None if value is None else value - expected
        agrees = off is not None and abs(off) <= tolerance
        found[name] = {"read": value, "truth": expected, "off_bytes": off, "agrees": agrees}
    return found


class Process:
    """A child that waits for a line before each thing it does."""

    def __init__(self, code: str) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def expect(self, word: str) -> None:
        """Wait for a line; RuntimeError when another one comes."""
        line = self.line()
        if line != word:
            raise RuntimeError(f"a child said {line!r} in place of {word!r}")

    def line(self) -> str:
        """The next line of the child."""
        assert self.child.stdout is not None
        return self.child.stdout.readline().strip()

    def go(self) -> None:
        """Let the child do the next thing."""
        assert self.child.stdin is not None
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def end(self) -> None:
        """End the child."""
        self.child.kill()
        self.child.wait()


def stand_in_for_comfyui(device: Any, model_bytes: int) -> None:
    """`comfy.model_management` with one loaded model, as nodes/gauges.py asks for it."""
    loaded = types.SimpleNamespace(
        model=object(), device=device, model_loaded_memory=lambda: model_bytes
    )
    manager = types.SimpleNamespace(get_torch_device=lambda: device, current_loaded_models=[loaded])
    sys.modules["comfy"] = types.SimpleNamespace(model_management=manager)  # type: ignore[assignment]
    sys.modules["comfy.model_management"] = manager  # type: ignore[assignment]


def measure(row: dict[str, Any], keep: Callable[[], None], say: Callable[[str], None]) -> None:
    """Bring the processes up one after the other and compare; fills `row` as it goes."""
    import torch

    from lowpeak.engine.events import Event
    from lowpeak.nodes.gauges import Gauges, read_device

    device = torch.device("cuda", 0)
    row["device"] = torch.cuda.get_device_name(device)

    def used_bytes() -> int:
        torch.cuda.synchronize(device)
        free, total = torch.cuda.mem_get_info(device)
        return total - free

    other, worker = Process(OTHER), Process(WORKER)
    try:
        context = torch.zeros(16, device=device)
        alone = used_bytes()  # this context, and whoever was on the card before
        model = torch.zeros(MODEL_BYTES, dtype=torch.uint8, device=device)
        cache = torch.zeros(CACHE_BYTES, dtype=torch.uint8, device=device)
        del cache  # stays in the allocator
        stand_in_for_comfyui(device, model.numel())
        before, grown = used_bytes(), {}
        for name, child in (("other", other), ("worker", worker)):
            child.expect("ready")
            before = used_bytes()
            child.go()
            child.expect("holds")
            grown[name] = used_bytes() - before
            say(f"{name} took {grown[name] / GIB:.2f} GiB")
        worker.go()
        told = json.loads(worker.line())
        row.update(worker=told, grown=grown, alone_bytes=alone)
        keep()
        event = Event("progress", "sample_high", vram_bytes=told["ours"])
        split = Gauges(lambda: read_device(None), lambda: None).others(event)
        names = {"others": "vram_other_bytes", "evictable": "vram_evictable_bytes"}
        read = {name: split[key] for name, key in names.items() if key in split}
        truth = {"ours": grown["worker"], "others": alone + grown["other"],
                 "evictable": MODEL_BYTES + CACHE_BYTES}  # fmt: skip
        row["split"] = differences({"ours": told["ours"], **read}, truth)
        row["agrees"] = all(item["agrees"] for item in row["split"].values())
        del context, model
    finally:
        other.end()
        worker.end()


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget-seconds", type=float, default=30)
    options = parser.parse_args()
    began = time.monotonic()
    row: dict[str, Any] = {"bench": "pack", "agrees": None}

    def keep() -> None:
        row["seconds"] = time.monotonic() - began
        options.out.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:5.1f} s  {line}", flush=True)
        if time.monotonic() - began > options.budget_seconds:
            raise RuntimeError(f"the budget of {options.budget_seconds:g} s is spent")

    try:
        import torch

        if not torch.cuda.is_available():
            row["skipped"] = "no CUDA device"
        else:
            measure(row, keep, say)
    except Exception as failed:  # the row says so; a lost measurement is not to be run twice
        row["error"] = f"{type(failed).__name__}: {failed}"
    keep()
    for name, item in row.get("split", {}).items():
        say(f"{name:<9} {item}")
    print(row.get("error") or row.get("skipped") or f"agrees: {row['agrees']}")


if __name__ == "__main__":
    main()
