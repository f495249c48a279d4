"""Run as a script in a child process that exits at once: what the driver says of the cards here.

Prints one JSON object. NVML counts every process on a card and makes no context, but lists cards by
their place on the bus and knows nothing of CUDA_VISIBLE_DEVICES; CUDA orders them by speed or by
that variable. So CUDA is asked for the identities in its own order where there can be a difference.
Neither question makes a context. Imports the standard library and pynvml only.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import uuid
from typing import Any

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
MASK = "CUDA_VISIBLE_DEVICES"


def cuda_uuids(driver: Any) -> list[str] | int:
    """Identities "GPU-..." of the cards that CUDA shows, in its order; or its error's number.

    driver: CUDA's driver library as ctypes loads it.
    """
    count, found = ctypes.c_int(), []
    if (error := driver.cuInit(0)) or (error := driver.cuDeviceGetCount(ctypes.byref(count))):
        return int(error)
    for ordinal in range(count.value):
        device, name = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        error = driver.cuDeviceGet(ctypes.byref(device), ordinal)
        if error or (error := driver.cuDeviceGetUuid(ctypes.byref(name), device)):
            return int(error)
        found.append(f"GPU-{uuid.UUID(bytes=bytes(name))}")
    return found


def ask_cuda() -> list[str] | int | None:
    """`cuda_uuids` of this machine; None where there is no driver library."""
    try:
        windows = sys.platform == "win32"
        return cuda_uuids(ctypes.CDLL("nvcuda.dll" if windows else "libcuda.so.1"))
    except (OSError, AttributeError):
        return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def ask_nvml(n: Any) -> dict[str, Any]:
    """Every card in NVML's order. n: pynvml, initialised."""

    def ask(call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except n.NVMLError:
            return None

    cards = []
    for index in range(n.nvmlDeviceGetCount()):
        card = n.nvmlDeviceGetHandleByIndex(index)
        memory = n.nvmlDeviceGetMemoryInfo(card)
        capability = ask(n.nvmlDeviceGetCudaComputeCapability, card)
        processes = ask(n.nvmlDeviceGetComputeRunningProcesses, card)
        cards.append(
            {
                "name": _text(n.nvmlDeviceGetName(card)),
                "uuid": _text(n.nvmlDeviceGetUUID(card)),
                "capability": list(capability) if capability else None,
                "total": memory.total,
                "free": memory.free,
                "processes": None if processes is None else len(processes),
                "temperature": ask(n.nvmlDeviceGetTemperature, card, 0),
                "throttle": ask(n.nvmlDeviceGetCurrentClocksThrottleReasons, card),
                "clock": ask(n.nvmlDeviceGetClockInfo, card, 1),
                "clock_most": ask(n.nvmlDeviceGetMaxClockInfo, card, 1),
                "busy": getattr(ask(n.nvmlDeviceGetUtilizationRates, card), "gpu", None),
            }
        )
    return {"driver": _text(n.nvmlSystemGetDriverVersion()), "cards": cards}


def main() -> None:
    """Print what was found, or why nothing was."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception as why:  # any failure of an optional library is an answer
        print(json.dumps({"error": f"{type(why).__name__}: {why}"}))
        return
    found = ask_nvml(pynvml)
    if len(found["cards"]) > 1 or os.environ.get(MASK) is not None:
        found["cuda"] = ask_cuda()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
