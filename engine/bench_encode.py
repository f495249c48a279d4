"""`lowpeak bench encode`: the text encoder with every layer read from disk, beside the disk's rate.

Each measured prompt opens the encoder anew, because an open one has read the first layers of the
next prompt ahead; nothing comes from the cache of prompts. Memory is that of the whole process, so
the row also says what it held before the encoder was opened.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from .bench_weights import encoder_weights
from .blocks import Traffic
from .blocks.reading import read_alone
from .device import choose_device
from .errors import CheckpointError
from .meter import Meter, resident_bytes
from .parts import TEXT, find_part
from .text.encoder import TextEncoder, open_text_encoder
from .text.qwen import QwenTextEncoder
from .text.qwen_source import SpanSource
from .versions import read_versions

WORD = "river "


def encode_row(folder: Path, device_name: str, text_rows: int, repeats: int) -> dict[str, Any]:
    """A prompt of about `text_rows` rows; the first run warms up and is not counted.

    folder: a checkpoint, or the text encoder alone. Raises CheckpointError.
    """
    device = choose_device(device_name)
    path = _text_part(folder)
    meter = Meter(device)
    if device.type == "cuda":  # libraries that every run loads are not the encoder's memory
        torch.mm(*(torch.ones(64, 64, device=device, dtype=torch.bfloat16) for _ in range(2)))
        torch.cuda.synchronize(device)
    disk = _disk_rate(path, device)
    gc.collect()
    before_bytes = resident_bytes()
    seconds: list[float] = []
    rows = 0
    moved: Traffic | None = None
    with meter.phase("bench") as measured:
        for index in range(repeats + 1):
            began = time.perf_counter()
            encoder = open_text_encoder(path, device.type)
            try:
                rows = encoder.encode(_prompt(encoder, text_rows)).rows
                took = time.perf_counter() - began
                if isinstance(encoder, QwenTextEncoder):
                    moved = encoder.traffic()
            finally:
                encoder.close()
            if index:
                seconds.append(took)
    seconds.sort()
    median = statistics.median(seconds)
    floor = None if disk is None else disk["bytes"] / disk["bytes_per_second"]
    return {
        "bench": "encode",
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "versions": read_versions(),
        "command": " ".join(sys.argv),
        "text_rows": rows,
        "seconds": median,
        "spread": [seconds[0], seconds[-1]],
        "repeats": repeats,
        "vram_peak_bytes": measured.vram_peak_bytes,
        "ram_peak_bytes": measured.ram_peak_bytes,
        "ram_before_bytes": before_bytes,
        "context_bytes": meter.context_bytes,
        "link_bytes": None if moved is None else moved.link_bytes,
        "disk_bytes": None if disk is None else disk["bytes"],
        "disk_bytes_per_second": None if disk is None else disk["bytes_per_second"],
        "stall_seconds": {} if moved is None else dict(moved.stall_seconds),
        "seconds_over_disk_floor": None if floor is None else median / floor,
        "checkpoint": encoder_weights(path),
    }


def _text_part(folder: Path) -> Path:
    try:
        return find_part(folder, TEXT)
    except CheckpointError:
        open_text_encoder(folder).close()  # the folder is the encoder, or this says what it is
        return folder


def _prompt(encoder: TextEncoder, text_rows: int) -> str:
    """Words that become about `text_rows` rows."""
    if not isinstance(encoder, QwenTextEncoder):
        return WORD * text_rows
    per_word = encoder.count_rows(WORD * 16) / 16
    return WORD * max(1, round(text_rows / per_word))


def _layers(path: Path) -> list[SpanSource] | None:
    """The sources of the decoder layers; None for the miniature, which has none."""
    encoder = open_text_encoder(path)
    try:
        if not isinstance(encoder, QwenTextEncoder):
            return None
        file = encoder.file
        return [SpanSource(file.layer_spans(i)) for i in range(file.config.text.layers)]
    finally:
        encoder.close()


def _disk_rate(path: Path, device: torch.device) -> dict[str, float] | None:
    """Bytes of all layers, and the rate at which the encoder's own reader reads all of them, two at
    a time and into page-locked memory, with nothing else to do.

    A few layers would flatter it: a virtual disk may be faster for a second than for ten.
    """
    layers = _layers(path)
    if layers is None:
        return None
    done, seconds = read_alone(layers, pin=device.type == "cuda")
    return {"bytes": done, "bytes_per_second": done / seconds}
