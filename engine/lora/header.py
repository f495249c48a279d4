"""The header of a safetensors file, checked before any tensor is read.

Layout: eight bytes (little-endian length), that many bytes of JSON, then the tensors back to back.
Every offset, size and shape is proved against the length of the file, so that a truncated or
altered file is refused with the tensor's name, and a later read cannot run past the end.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from .errors import LoraFileError

MAX_HEADER_BYTES = 100_000_000  # the format's own limit
DTYPE_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip
FLOATING = frozenset({"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"})


@dataclass(frozen=True)
class TensorEntry:
    """One tensor as its header tells it. `start_byte` counts from the beginning of the file."""

    dtype: str
    shape: tuple[int, ...]
    start_byte: int
    size_bytes: int


@dataclass(frozen=True)
class Header:
    """A checked header: tensors by name, and the file's own text metadata."""

    file: str
    tensors: Mapping[str, TensorEntry]
    metadata: Mapping[str, str]
    file_bytes: int


def read_header(file: str | Path) -> Header:
    """Read and check the header of `file`.

    Raises LoraFileError for a missing, truncated, foreign or inconsistent file.
    """
    path = Path(file)
    try:
        file_bytes = path.stat().st_size
        with path.open("rb") as stream:
            start = stream.read(8)
            _refuse_foreign(path, start)
            length = _header_length(path, start, file_bytes)
            raw = stream.read(length)
    except OSError as problem:
        raise LoraFileError(
            f"the file cannot be read ({problem.strerror or problem})", file=path
        ) from problem
    data = _parse(path, raw)
    metadata = data.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict):
        raise LoraFileError("the metadata of the header is not a JSON object", file=path)
    base = 8 + length
    entries = {name: _entry(path, name, item, base) for name, item in data.items()}
    _check_extents(path, entries, base, file_bytes)
    return Header(str(path), entries, {str(k): str(v) for k, v in metadata.items()}, file_bytes)


def _refuse_foreign(path: Path, start: bytes) -> None:
    kinds = {
        b"PK\x03\x04": "a PyTorch pickle (zip)",
        b"\x80\x02": "a pickle",
        b"\x80\x04": "a pickle",
        b"GGUF": "a GGUF file",
        b"version ": "a Git LFS pointer, not the file itself",
        b"<!DOCTYP": "a web page, not the file itself",
        b"<html": "a web page, not the file itself",
    }
    for mark, kind in kinds.items():
        if start.startswith(mark):
            raise LoraFileError(
                "only safetensors files are read", file=path, expected="safetensors", found=kind
            )


def _header_length(path: Path, start: bytes, file_bytes: int) -> int:
    if len(start) < 8:
        raise LoraFileError(
            "the file is truncated", file=path, expected="8 bytes or more", found=file_bytes
        )
    length = int(struct.unpack("<Q", start)[0])
    if not 2 <= length <= MAX_HEADER_BYTES:
        raise LoraFileError(
            "this is not a safetensors file",
            file=path,
            expected=f"a header of 2..{MAX_HEADER_BYTES} bytes",
            found=f"{length} bytes",
        )
    if 8 + length > file_bytes:
        raise LoraFileError(
            "the file is truncated inside its header",
            file=path,
            expected=f"{8 + length} bytes or more",
            found=f"{file_bytes} bytes",
            remedy="Fetch it again.",
        )
    return length


def _parse(path: Path, raw: bytes) -> dict[str, Any]:
    doubled: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for name, value in pairs:
            if name in seen:
                doubled.append(name)
            seen[name] = value
        return seen

    try:
        data = json.loads(raw.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError) as problem:  # bad UTF-8 is a ValueError too
        raise LoraFileError(
            f"the header is not JSON ({type(problem).__name__})", file=path
        ) from problem
    if doubled:
        raise LoraFileError("the header names tensors twice", file=path, names=sorted(set(doubled)))
    if not isinstance(data, dict):
        raise LoraFileError("the header is not a JSON object", file=path)
    return data


def _entry(path: Path, name: str, item: Any, base: int) -> TensorEntry:
    wrong = LoraFileError("the header describes a tensor wrongly", file=path, tensor=name)
    if not isinstance(item, dict) or set(item) != {"dtype", "shape", "data_offsets"}:
        raise wrong
    dtype, shape, offsets = item["dtype"], item["shape"], item["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        raise LoraFileError(
            "unknown number format", file=path, tensor=name,
            expected=", ".join(DTYPE_BYTES), found=dtype,
        )  # fmt: skip
    if not (_whole_numbers(shape) and _whole_numbers(offsets) and len(offsets) == 2):
        raise wrong
    size = prod(shape) * DTYPE_BYTES[dtype]
    if offsets[1] - offsets[0] != size:
        raise LoraFileError(
            "shape and bytes of a tensor disagree", file=path, tensor=name,
            expected=f"{size} bytes for {dtype} {shape}", found=f"{offsets[1] - offsets[0]} bytes",
        )  # fmt: skip
    return TensorEntry(dtype, tuple(shape), base + offsets[0], size)


def _whole_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 2**62 for item in value
    )


def _check_extents(
    path: Path, entries: Mapping[str, TensorEntry], base: int, file_bytes: int
) -> None:
    """The tensors must cover the rest of the file, each byte once."""
    at = base
    for name, entry in sorted(
        entries.items(), key=lambda item: (item[1].start_byte, item[1].size_bytes)
    ):
        if entry.start_byte != at:
            raise LoraFileError(
                "tensors overlap or leave a gap", file=path, tensor=name,
                expected=f"byte {at}", found=f"byte {entry.start_byte}",
            )  # fmt: skip
        at += entry.size_bytes
        if at > file_bytes:
            raise LoraFileError(
                "the file is truncated", file=path, tensor=name,
                expected=f"{at} bytes or more", found=f"{file_bytes} bytes",
                remedy="Fetch it again.",
            )  # fmt: skip
    if at != file_bytes:
        raise LoraFileError(
            "the file is longer than its header says", file=path,
            expected=f"{at} bytes", found=f"{file_bytes} bytes",
        )  # fmt: skip
