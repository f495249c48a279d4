"""Safetensors headers, read and written without touching the tensors.

A file is 8 bytes (little-endian header length), a JSON header, and the data. The header is parsed
generically and distrusted: its length, every dtype, shape and offset are checked against the file
before anybody relies on them. Damage is a CheckpointError that names file, tensor, expected, found.
PyTorch is imported where tensors are read or written; looking at headers does without it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

HEADER_LIMIT_BYTES = 100 << 20  # the library's own limit; a checkpoint's header is some KiB
COPY_BYTES = 16 << 20
READERS = 4  # threads on a tensor of more than one such piece

DTYPES = {  # name in a header -> (PyTorch's name, bytes an element)
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1),
    "I64": ("int64", 8),
    "I32": ("int32", 4),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
}
DTYPE_NAMES = {f"torch.{torch_name}": name for name, (torch_name, _) in DTYPES.items()}
FLOAT_NAMES = ("F32", "BF16", "F16")


@dataclass(frozen=True)
class FileIdentity:
    """What tells that a file is still the one whose header was read."""

    device: int
    inode: int
    size_bytes: int
    mtime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileIdentity:
        """From os.stat or os.fstat."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True)
class TensorSpan:
    """Where a tensor lies: absolute byte offsets in its file, end exclusive."""

    dtype: str  # a key of DTYPES
    shape: tuple[int, ...]
    start_byte: int
    end_byte: int

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return self.end_byte - self.start_byte

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype as PyTorch knows it."""
        import torch

        dtype: torch.dtype = getattr(torch, DTYPES[self.dtype][0])
        return dtype

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


@dataclass(frozen=True)
class TensorFile:
    """One safetensors file by its header. `tensors` keeps the names that its reader uses."""

    path: Path
    tensors: Mapping[str, TensorSpan]
    identity: FileIdentity
    header_sha256: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    data_start_byte: int = 0

    @property
    def data_bytes(self) -> int:
        """Bytes of all tensors that `tensors` names."""
        return sum(span.nbytes for span in self.tensors.values())

    def renamed(self, rename: Callable[[str], str | None]) -> TensorFile:
        """The same file under other names; a tensor whose new name is None is left out."""
        pairs = ((rename(name), span) for name, span in self.tensors.items())
        tensors = {name: span for name, span in pairs if name is not None}
        return TensorFile(
            self.path,
            tensors,
            self.identity,
            self.header_sha256,
            self.metadata,
            self.data_start_byte,
        )

    def check_identity(self) -> None:
        """Raise CheckpointError if the file was changed or replaced since its header was read."""
        check_identity(self.path, self.identity)

    def read(self, name: str) -> Tensor:
        """One tensor on the CPU. Raises CheckpointError for a changed or shortened file."""
        return self.read_many([name])[name]

    def read_bytes(self, name: str) -> bytes:
        """A small tensor's bytes as they are stored. Raises CheckpointError as `read` does."""
        self.check_identity()
        span = self.tensors[name]
        with open(self.path, "rb") as file:
            file.seek(span.start_byte)
            found = file.read(span.nbytes)
        if len(found) < span.nbytes:
            raise _cut(self.path, name, span, len(found))
        return found

    def read_many(self, names: Iterable[str] | None = None) -> dict[str, Tensor]:
        """Tensors on the CPU by name (all of them by default), read in file order."""
        chosen = list(self.tensors) if names is None else list(names)
        found: dict[str, Tensor] = {}
        with open(self.path, "rb", buffering=0) as file:
            current = FileIdentity.of(os.fstat(file.fileno()))
            if current != self.identity:
                raise_changed(self.path, self.identity, current)
            for name in sorted(chosen, key=lambda item: self.tensors[item].start_byte):
                found[name] = _read_span(file, self.path, name, self.tensors[name])
        return {name: found[name] for name in chosen}


def check_identity(path: Path, identity: FileIdentity) -> None:
    """Raise CheckpointError if `path` is no longer the file of `identity`."""
    try:
        current = FileIdentity.of(os.stat(path))
    except FileNotFoundError:
        raise CheckpointError(
            "file is gone", file=path, remedy="Open the checkpoint again."
        ) from None
    if current != identity:
        raise_changed(path, identity, current)


def read_header(path: Path) -> TensorFile:
    """Read and check one header. Raises CheckpointError; reads no tensor."""
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below; a missing file has its own message)
    except FileNotFoundError:
        raise CheckpointError("file is missing", file=path) from None
    with file:
        identity = FileIdentity.of(os.fstat(file.fileno()))
        prefix = file.read(8)
        if len(prefix) < 8:
            raise CheckpointError(
                "truncated file", file=path, expected="at least 8 bytes", found=len(prefix)
            )
        (length,) = struct.unpack("<Q", prefix)
        if not 2 <= length <= HEADER_LIMIT_BYTES:
            raise CheckpointError(
                "not a safetensors file: absurd header length",
                file=path,
                expected=f"2..{HEADER_LIMIT_BYTES} bytes",
                found=length,
            )
        text = file.read(length)
    if len(text) < length:
        raise CheckpointError(
            "truncated file: the header is cut",
            file=path,
            expected=f"{8 + length} bytes or more",
            found=f"{identity.size_bytes} bytes",
            remedy="Fetch this file again.",
        )
    entries = _parse(path, text)
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise CheckpointError("header metadata is no object", file=path)
    start = 8 + length
    tensors = {name: _span(path, name, entry, start) for name, entry in entries.items()}
    _check_extent(path, tensors, start, identity.size_bytes)
    digest = hashlib.sha256(text).hexdigest()
    plain = {str(key): str(value) for key, value in metadata.items()}
    return TensorFile(path, tensors, identity, digest, plain, start)


def _parse(path: Path, text: bytes) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise CheckpointError("header names a tensor twice", file=path, tensor=twice)
        return dict(pairs)

    try:
        entries = json.loads(text, object_pairs_hook=unique)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as broken:
        raise CheckpointError(
            f"header is no JSON ({broken})", file=path, remedy="Fetch this file again."
        ) from None
    if not isinstance(entries, dict):
        raise CheckpointError("header is no JSON object", file=path)
    return entries


def _span(path: Path, name: str, entry: Any, data_start: int) -> TensorSpan:
    def refuse(message: str, expected: object, found: object) -> CheckpointError:
        return CheckpointError(message, file=path, tensor=name, expected=expected, found=found)

    if not isinstance(entry, dict):
        raise refuse("header entry is no object", "dtype, shape, data_offsets", entry)
    dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if dtype not in DTYPES:
        raise refuse("unknown dtype", " | ".join(DTYPES), repr(dtype))
    if not isinstance(shape, list) or not all(type(d) is int and d >= 0 for d in shape):
        raise refuse("impossible shape", "a list of sizes", shape)
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(type(o) is int for o in offsets)
        or not 0 <= offsets[0] <= offsets[1]
    ):
        raise refuse("impossible offsets", "[begin, end]", offsets)
    need = math.prod(shape) * DTYPES[dtype][1]
    if offsets[1] - offsets[0] != need:
        raise refuse("offsets do not fit the shape", f"{need} bytes", f"{offsets[1] - offsets[0]}")
    return TensorSpan(dtype, tuple(shape), data_start + offsets[0], data_start + offsets[1])


def _check_extent(
    path: Path, tensors: Mapping[str, TensorSpan], start: int, size_bytes: int
) -> None:
    ordered = sorted(tensors.items(), key=lambda item: (item[1].start_byte, item[1].end_byte))
    position = start
    for name, span in ordered:
        if span.start_byte < position:
            raise CheckpointError(
                "tensors overlap",
                file=path,
                tensor=name,
                expected=f"start at byte {position} or later",
                found=span.start_byte,
            )
        position = span.end_byte
        if position > size_bytes:
            raise CheckpointError(
                "truncated file",
                file=path,
                tensor=name,
                expected=f"{max(s.end_byte for s in tensors.values())} bytes",
                found=f"{size_bytes} bytes",
                remedy="Fetch this file again.",
            )
    if position != size_bytes:
        raise CheckpointError(
            "file is longer than its header says",
            file=path,
            expected=f"{position} bytes",
            found=f"{size_bytes} bytes",
            remedy="Fetch this file again.",
        )


def raise_changed(path: Path, expected: FileIdentity, found: FileIdentity) -> None:
    """The error for a file that was replaced or written to since its header was read."""
    raise CheckpointError(
        "file changed since the checkpoint was opened",
        file=path,
        expected=expected,
        found=found,
        remedy="Open the checkpoint again.",
    )


def _read_span(file: Any, path: Path, name: str, span: TensorSpan) -> Tensor:
    """One tensor; a large one by several threads, where the system reads at a position."""
    import torch

    buffer = torch.empty(span.nbytes, dtype=torch.uint8)
    view = memoryview(buffer.numpy())
    starts = range(0, span.nbytes, COPY_BYTES)
    if len(starts) > 1 and hasattr(os, "preadv"):
        descriptor = file.fileno()

        def fill(start: int) -> int:
            """Read one piece to its place; returns the bytes, fewer where the file ends."""
            stop, done = min(start + COPY_BYTES, span.nbytes), start
            while done < stop:
                count = os.preadv(descriptor, [view[done:stop]], span.start_byte + done)
                if not count:
                    break
                done += count
            return done - start

        with ThreadPoolExecutor(min(READERS, len(starts)), "lowpeak-tensor") as readers:
            done = sum(readers.map(fill, starts))
    else:
        file.seek(span.start_byte)
        done = 0
        while done < span.nbytes:
            count = file.readinto(view[done : done + COPY_BYTES])
            if not count:
                break
            done += count
    if done < span.nbytes:
        raise _cut(path, name, span, done)
    return buffer.view(span.torch_dtype).reshape(span.shape)


def _cut(path: Path, name: str, span: TensorSpan, found_bytes: int) -> CheckpointError:
    return CheckpointError(
        "file ended while a tensor was read",
        file=path,
        tensor=name,
        expected=f"{span.nbytes} bytes",
        found=f"{found_bytes} bytes",
    )


def layout_of(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> tuple[bytes, dict[str, int], int]:
    """How a file of these tensors begins, where each lies in it (in file order), and its size.

    Order and padding are those of the safetensors library (wide dtypes first, then by name), so
    the same tensors give the same bytes. Bytes from the start of the file.
    """
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    places: dict[str, int] = {}
    position = 0
    for name in order:
        tensor = tensors[name]
        places[name] = position
        end = position + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": DTYPE_NAMES[str(tensor.dtype)],
            "shape": list(tensor.shape),
            "data_offsets": [position, end],
        }
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    begin = struct.pack("<Q", len(text)) + text
    return begin, {n: len(begin) + place for n, place in places.items()}, len(begin) + position


def part_path(path: Path) -> Path:
    """Where a file is written before it is whole."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str] | None = None,
    *,
    load: Callable[[str], Tensor] | None = None,
) -> int:
    """Write one safetensors file under a temporary name, then rename it. Returns its bytes.

    Laid out as `layout_of` says. Tensors may lie on any device; one is copied at a time.
    load: makes a tensor when its turn comes; `tensors` then only gives dtype and shape (meta).
    """
    import torch

    begin, places, size = layout_of(tensors, metadata)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = part_path(path)
    try:
        with open(temporary, "wb") as file:
            file.write(begin)
            for name in places:
                tensor = tensors[name] if load is None else load(name)
                if (tensor.dtype, tensor.shape) != (tensors[name].dtype, tensors[name].shape):
                    raise ValueError(f"{name}: {tensor.dtype} {tensor.shape} is not as announced")
                data = tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8)
                file.write(memoryview(data.numpy()))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return size
