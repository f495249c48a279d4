"""Runs to replay: what an engine would tell while it follows a plan."""

from __future__ import annotations

from typing import Any

from browser.host import Replay

from lowpeak.engine.events import Event
from lowpeak.engine.units import GIB

OTHERS = {"vram_other_bytes": int(0.6 * GIB), "vram_evictable_bytes": int(0.5 * GIB),
          "ram_other_bytes": 3 * GIB, "ram_evictable_bytes": 2 * GIB}  # fmt: skip
REPORT: dict[str, Any] = {
    "kernels": {"transformer": {
        "implementation": "triton", "chosen": {"window_softmax": "sage", "gemm": "triton-int8"},
        "because": {"window_softmax": "fastest that passed the accuracy probe"},
        "against": {"reference": "allowed below 4,096 rows"},
        "changes_arithmetic": ["window_softmax"]}},
    "lora": [
        {"file": "film-grain.safetensors", "tensors": 700, "bound_tensors": 700, "complete": True},
        {"file": "turbo.safetensors", "tensors": 700, "bound_tensors": 648, "complete": False,
         "skipped": [{"reason": "AdaLN targets need the original projections", "matters": True,
                      "tensors": [f"t{n}" for n in range(52)]}]},
    ],
}  # fmt: skip


def replay_of(
    plan: dict[str, Any], *, hold: bool = False, fail: bool = False, slower: float = 1.1
) -> Replay:
    """Events of a plan: VRAM peaks 4 % under the forecast, times `slower` times as long.

    hold: wait in the second pass until the host's `go` is set. fail: end there with an overrun.
    """
    events: list[Event | None] = []
    for phase in plan["phases"]:
        name, steps = phase["phase"], max(phase["steps"], 2)
        vram, ram = phase["vram_peak_bytes"], phase["ram_peak_bytes"]
        events.append(Event("forecast", name, seconds=phase["seconds"], vram_peak_bytes=vram,
                            ram_peak_bytes=ram, steps=steps))  # fmt: skip
        for step in range(1, steps + 1):
            used = int(vram * (0.7 + 0.25 * (step % 2)))
            events.append(Event("progress", name, step=step, steps=steps, vram_bytes=used,
                                ram_bytes=int(ram * 0.6)))  # fmt: skip
            if name == "sample_high" and step == 2:
                events.append(Event("notice", name, "The card is hot and slows down."))
                if hold:
                    events.append(None)
                if fail:
                    error = {"error": "MeasuredOverrun", "message": "sample_high used more VRAM"}
                    return Replay(events, {}, "failed", error, OTHERS)
        events.append(Event("measured", name, seconds=phase["seconds"] * slower,
                            vram_peak_bytes=int(vram * 0.96), ram_peak_bytes=ram))  # fmt: skip
    return Replay(events, REPORT, others=OTHERS)
