"""Encoded prompts on disk: the same prompt, pictures and weights are encoded once.

The name of an entry is a hash over all that decides its content, so it holds no prompt. An entry is
a safetensors file with the hash of its own bytes; what is damaged, of another version, or cannot be
read counts as absent and is encoded again. Entries are written under a temporary name and renamed.
A hit renews the modification time, and the entry unused for longest goes first when the folder
outgrows its limit. Losing the folder loses time and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ..blocks import Traffic
from ..errors import RequestError
from ..units import GIB, MIB
from .encoder import Shown, TextConditioning

VERSION = b"lowpeak-prompt-1"  # changes when the same input would give another encoding
SUFFIX = ".prompt"
LIMIT_BYTES = 1 * GIB
ENTRY_LIMIT_BYTES = 512 * MIB  # 16,384 rows of 5120 in float32 are 320 MiB
STALE_SECONDS = 3600.0

logger = logging.getLogger(__name__)


class PromptCache:
    """A folder of encoded prompts. limit_bytes: of all entries together."""

    def __init__(self, folder: Path, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self.folder, self.limit_bytes = folder, limit_bytes

    def get(self, key: str) -> TextConditioning | None:
        """The entry, or None when there is none that is whole."""
        file = self._file(key)
        try:
            content = file.read_bytes()
            if content[:32] != hashlib.sha256(memoryview(content)[32:]).digest():
                raise ValueError("checksum")
            tensors = load(content[32:])
            found = TextConditioning(tensors["embeds"].float(), tensors["tags"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, SafetensorError, RequestError) as damage:
            logger.warning("prompt cache: entry %s is ignored (%s)", file.name, damage)
            with contextlib.suppress(OSError):
                file.unlink()
            return None
        with contextlib.suppress(OSError):  # a read-only folder still answers
            os.utime(file)
        return found

    def put(self, key: str, conditioning: TextConditioning) -> None:
        """Keep an entry; drop the oldest ones. A folder that cannot be written is no error."""
        embeds = conditioning.embeds.contiguous()
        half = embeds.bfloat16()  # what a GPU computed, so nothing is lost there
        if torch.equal(half.float(), embeds):
            embeds = half
        body = save({"embeds": embeds, "tags": conditioning.tags})
        if len(body) + 32 > min(ENTRY_LIMIT_BYTES, self.limit_bytes):
            return
        file = self._file(key)
        temporary = file.with_name(f".{file.name}.{os.getpid()}.part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                temporary.write_bytes(hashlib.sha256(body).digest() + body)
                os.replace(temporary, file)
            finally:
                temporary.unlink(missing_ok=True)
            self._shrink(keep=file)
        except OSError as failed:
            logger.warning("prompt cache: %s cannot be written (%s)", self.folder, failed.strerror)

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def _shrink(self, *, keep: Path) -> None:
        """Drop entries by age of last use until the rest fits; also parts that a crash left."""
        entries: list[tuple[float, int, Path]] = []
        for file in self.folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process shrinks too
                status = file.stat()
                if file.suffix == SUFFIX:
                    entries.append((status.st_mtime, status.st_size, file))
                elif file.name.endswith(".part"):
                    newest = keep.stat().st_mtime
                    if newest - status.st_mtime > STALE_SECONDS:
                        file.unlink(missing_ok=True)
        total = sum(size for _, size, _ in entries)
        for _, size, file in sorted(entries):
            if total <= self.limit_bytes:
                return
            if file != keep:
                file.unlink(missing_ok=True)
                total -= size


class IdentifiedEncoder(Protocol):
    """A TextEncoder that can say which weights it has."""

    @property
    def identity(self) -> str:
        """Equal for equal weights, tokenizer and arithmetic."""

    @property
    def text_dim(self) -> int:
        """Width of a row."""

    def encode(
        self, prompt: str, *, images: Sequence[Tensor] = (), shown: Sequence[Shown] = ()
    ) -> TextConditioning:
        """See TextEncoder.encode."""

    def traffic(self) -> Traffic:
        """See TextEncoder.traffic."""

    def close(self) -> None:
        """See TextEncoder.close."""


class CachedEncoder:
    """See TextEncoder: asks the cache first, the encoder only for what is new."""

    def __init__(self, encoder: IdentifiedEncoder, cache: PromptCache) -> None:
        self.encoder, self.cache = encoder, cache

    @property
    def text_dim(self) -> int:
        """Width of a row."""
        return self.encoder.text_dim

    def encode(
        self, prompt: str, *, images: Sequence[Tensor] = (), shown: Sequence[Shown] = ()
    ) -> TextConditioning:
        """See TextEncoder.encode."""
        key = prompt_key(prompt, images, self.encoder.identity, shown)
        found = self.cache.get(key)
        if found is not None and found.embeds.shape[1] == self.text_dim:
            return found
        made = self.encoder.encode(prompt, images=images, shown=shown)
        self.cache.put(key, made)
        return made

    def traffic(self) -> Traffic:
        """See TextEncoder.traffic: nothing for a prompt that was known."""
        return self.encoder.traffic()

    def close(self) -> None:
        """See TextEncoder.close."""
        self.encoder.close()


def prompt_key(
    prompt: str, images: Sequence[Tensor], identity: str, shown: Sequence[Shown] = ()
) -> str:
    """Hash over prompt, pictures in order with their sizes, and identity, each with its length."""
    digest = hashlib.sha256(VERSION)
    parts = [identity.encode(), prompt.encode("utf-8", "surrogatepass")]
    for image in images:
        parts += _parts_of(image)
    for item in shown:
        parts.append(repr((item.label, item.of_frames, item.frames is None)).encode())
        parts += [] if item.frames is None else _parts_of(item.frames)
    for part in parts:
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)
    return digest.hexdigest()


def _parts_of(image: Tensor) -> list[bytes]:
    """Shape and bytes of pictures."""
    flat = image.detach().cpu().contiguous()
    shape = repr((tuple(flat.shape), str(flat.dtype))).encode()
    return [shape, flat.view(-1).view(torch.uint8).numpy().tobytes()]
