"""Compile kernels for a card that need not be here: prints {kernel: bytes of shared memory}.

    python kernel_compile.py 8.6

A process of its own: tests set Triton to interpret, which it decides at import.
"""

from __future__ import annotations

import json
import sys

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from lowpeak.kernels import triton as fast

HEADS, WIDTH, TOKENS, FRAMES, CHUNKS = 56, 128, 1008, 5, 15


class Absent:
    """As much of a driver as compiling asks for."""

    def __init__(self, capability: int) -> None:
        self._target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def compile_kernels(capability: int) -> dict[str, int]:
    """Kernels that keep tiles in shared memory, as the engine launches them at the real width."""
    shared: dict[str, int] = {}
    launch = JITFunction.run

    def compiled(self, *args, grid, warmup, **options):
        made = launch(self, *args, grid=grid, warmup=True, **options)
        shared[self.__name__] = made.metadata.shared
        return made

    JITFunction.run = compiled
    driver.set_active(Absent(capability))
    of = torch.bfloat16

    def rows(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.empty(*shape, dtype=dtype, device="meta")

    square = (HEADS, WIDTH, WIDTH)
    keys = rows(FRAMES, HEADS, TOKENS, WIDTH, dtype=of)
    fast.frame_statistics(keys, keys)
    fast.scan_back(rows(*square), rows(CHUNKS, *square), rows(CHUNKS, *square))
    raw = rows(FRAMES * TOKENS, HEADS * WIDTH, dtype=of)
    fast.linear_readout(
        raw, rows(FRAMES, *square, dtype=of), rows(WIDTH, dtype=of), raw[:, :WIDTH],
        rows(HEADS * WIDTH, WIDTH, dtype=of), rows(HEADS * WIDTH, dtype=of), eps=1e-6,
    )  # fmt: skip
    partial = rows(TOKENS, HEADS)
    total = rows(TOKENS, HEADS, WIDTH)
    fast.merge_partial(total, partial, rows(TOKENS, HEADS, WIDTH, dtype=of), partial)
    return shared


if __name__ == "__main__":
    print(json.dumps(compile_kernels(int(sys.argv[1].replace(".", "")))))
