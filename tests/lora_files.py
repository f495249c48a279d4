"""Adapter files byte by byte, for tests that damage them."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.model.config import ModelConfig

CONFIG = ModelConfig(
    layers=2, refiner_layers=1, heads=2, head_dim=8, hidden=12, ffn=10, text_dim=6,
    freq_dim=6, time_hidden=8, time_dim=9,
)  # fmt: skip
SHAPES = ModelShapes.from_config(CONFIG)
Q = "transformer_blocks.0.attn.to_q"


def floats(*shape: int, value: float = 0.5) -> tuple[list[int], list[float]]:
    count = 1
    for size in shape:
        count *= size
    return list(shape), [value * (1 + index % 7) for index in range(count)]


def pair(module: str, rows: int = 16, columns: int = 12, rank: int = 2) -> dict:
    return {f"{module}.lora_A.weight": floats(rank, columns),
            f"{module}.lora_B.weight": floats(rows, rank)}  # fmt: skip


def encoded(tensors: dict, metadata: dict | None = None) -> bytes:
    """A safetensors file in fp32, written by hand: independent of any library."""
    header: dict = {"__metadata__": metadata} if metadata else {}
    body = b""
    for name, (shape, values) in tensors.items():
        data = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(body), len(body) + len(data)]}  # fmt: skip
        body += data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def with_header(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def write(folder: Path, content: bytes | dict, name: str = "bad.safetensors") -> Path:
    file = folder / name
    file.write_bytes(encoded(content) if isinstance(content, dict) else content)
    return file


GOOD = encoded(pair(Q))
ENTRY = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
