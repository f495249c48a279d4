"""A file of blocks, read by several threads past the page cache for as long as that is allowed.

Some file systems refuse a direct open, others open and then refuse the read: the rest of the file
is read in the ordinary way then, with the same bytes. Nothing here knows what the bytes are.
"""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Callable
from pathlib import Path

from ..units import MIB, round_up

PAGE_BYTES = 4096
READ_BYTES = 8 * MIB  # one request; several are in flight
_REFUSED = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)  # this file system cannot
_SEEKING = threading.Lock()


class BlockFile:
    """Open until `close`. check: raises when a descriptor's file is not the expected one.

    Raises OSError where the file cannot be opened, and what `check` raises.
    """

    def __init__(self, path: Path, check: Callable[[os.stat_result], None]) -> None:
        self._path, self._check = path, check
        self._descriptors: list[int] = []  # all stay open: another thread may be reading
        self._change = threading.Lock()
        self._is_direct = hasattr(os, "O_DIRECT")
        try:
            self._open()
        except OSError as refused:
            if not self._is_direct or refused.errno not in _REFUSED:
                raise
            self._be_ordinary()

    def read(self, view: memoryview, start: int, stop: int) -> int:
        """Bytes start..stop of the file to the beginning of `view`; returns how many there were.

        start: at a whole page, as `view` is in memory. view: whole pages where it can have them, as
        a direct read asks for whole pages at the file's end too. Raises OSError.
        """
        done = start
        while done < stop:
            descriptor, direct = self._now()
            target = round_up(stop, PAGE_BYTES) if direct else stop
            try:
                got = _read_at(descriptor, view[done - start : target - start], done)
            except OSError as refused:
                if not direct or refused.errno not in _REFUSED:
                    raise
                self._be_ordinary()
                continue
            if got <= 0:
                break
            done += got
            if direct and done < stop and done % PAGE_BYTES:  # a direct read cannot go on from here
                self._be_ordinary()
        done = min(done, stop)
        descriptor, direct = self._now()
        if not direct and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, start, done - start, os.POSIX_FADV_DONTNEED)
        return done - start

    def close(self) -> None:
        """Nobody may be reading. Safe to call twice."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _now(self) -> tuple[int, bool]:
        with self._change:
            return self._descriptors[-1], self._is_direct

    def _be_ordinary(self) -> None:
        """Read through the page cache from now on. Several threads may be refused at once."""
        with self._change:
            if self._is_direct:
                self._is_direct = False
                self._open()

    def _open(self) -> None:
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
        if self._is_direct:
            flags |= os.O_DIRECT
        descriptor = os.open(self._path, flags)
        try:
            self._check(os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptors.append(descriptor)


def _read_at(descriptor: int, view: memoryview, start: int) -> int:
    """Read into `view` from a byte offset. Windows has no positioned read: one reader at a time."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [view], start)
    with _SEEKING, io.FileIO(descriptor, closefd=False) as file:
        file.seek(start)
        return file.readinto(view) or 0
