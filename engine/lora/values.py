"""Values of adapter tensors, read by the offsets of a checked header, one tensor at a time."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from .errors import LoraFileError
from .header import FLOATING, Header

_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
    "BOOL": torch.bool,
}  # fmt: skip


def file_identity(file: str | Path) -> str:
    """SHA-256 of a file's bytes."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_tensor(
    stream: BinaryIO, header: Header, name: str, *, check: bool = True
) -> Tensor | None:
    """One tensor of an open file. Without `check`, a format torch cannot hold gives None.

    Raises LoraFileError for NaN and Inf (also after rounding to fp32), unless `check` is off.
    """
    entry = header.tensors[name]
    dtype = _DTYPES.get(entry.dtype)
    if dtype is None:
        if check:
            raise LoraFileError(
                "a number format that is not read", file=header.file, tensor=name, found=entry.dtype
            )
        return None
    if entry.size_bytes == 0:
        return torch.zeros(entry.shape, dtype=dtype)
    buffer = bytearray(entry.size_bytes)
    stream.seek(entry.start_byte)
    got = stream.readinto(buffer)
    if got != entry.size_bytes:
        raise LoraFileError(
            "the file ended while it was read", file=header.file, tensor=name,
            expected=f"{entry.size_bytes} bytes", found=f"{got} bytes",
        )  # fmt: skip
    tensor = torch.frombuffer(buffer, dtype=dtype).reshape(entry.shape)
    if check and entry.dtype in FLOATING:
        finite = torch.isfinite(tensor.to(torch.float32))
        if not bool(finite.all()):
            bad = math.prod(entry.shape) - int(finite.sum())
            raise LoraFileError(
                "an adapter tensor holds NaN or Inf", file=header.file, tensor=name,
                expected="finite numbers", found=f"{bad} of {tensor.numel()} not finite",
            )  # fmt: skip
    return tensor


def is_zero(tensors: Mapping[str, Tensor], scale: float) -> bool:
    """Whether a layer changes nothing. All its matrices multiply, so one zero matrix is enough."""
    if "magnitude" in tensors:
        return False
    if scale == 0:
        return True
    return any(
        not bool(tensor.to(torch.float32).any())
        for role, tensor in tensors.items()
        if role != "alpha"
    )
