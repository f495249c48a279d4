"""Files read and written past the page cache, for gigabytes that nobody reads twice.

What the cache already holds is taken from there, the rest comes straight from the disk; what is
written goes straight to it. So a conversion fills no cache, waits for no page to be written back,
and touches the same few pages of its own again and again. File systems that cannot do this are
read and written in the ordinary way, with the same result.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from pathlib import Path

from ..units import round_up
from .header import FileIdentity, TensorFile, raise_changed

PAGE_BYTES = 4096
_SEEKING = threading.Lock()  # Windows reads and writes at the descriptor's position
_REFUSED = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)


class InputFile:
    """A file whose header was read. Raises CheckpointError when it is no longer that one."""

    def __init__(self, file: TensorFile) -> None:
        self.path = file.path
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
        self._ordinary = os.open(file.path, flags)
        self._direct, self._past_cache = -1, False
        try:
            current = FileIdentity.of(os.fstat(self._ordinary))
            if current != file.identity:
                raise_changed(file.path, file.identity, current)
            if hasattr(os, "RWF_NOWAIT") and hasattr(os, "O_DIRECT"):
                with contextlib.suppress(OSError):
                    self._direct = os.open(file.path, flags | os.O_DIRECT)
                    self._past_cache = True
        except BaseException:
            self.close()
            raise

    def is_cached(self, start: int, stop: int) -> bool:
        """Whether the page cache holds both ends of a range; true where nothing goes past it.

        One byte each: asking for more would make the system fetch what it has not.
        """
        try:
            return all(
                not self._past_cache
                or os.preadv(self._ordinary, [bytearray(1)], place, os.RWF_NOWAIT)
                for place in (start, stop - 1)
            )
        except BlockingIOError:
            return False
        except OSError as refused:
            if refused.errno not in _REFUSED:
                raise
            self._past_cache = False
            return True

    def ordinary(self, view: memoryview, start: int) -> int:
        """Read into `view` from byte `start`; returns the bytes."""
        done = 0
        while done < len(view):
            got = self._read(view[done:], start + done)
            if not got:
                break
            done += got
        return done

    def direct(self, view: memoryview, start: int, stop: int) -> int:
        """Read from the disk; view and start at whole pages. Returns the bytes up to `stop`, none
        where the file system refuses."""
        done, whole = start, round_up(stop, PAGE_BYTES)
        while done < stop and self._past_cache:
            try:
                got = os.preadv(self._direct, [view[done - start : whole - start]], done)
            except OSError as refused:
                if refused.errno not in _REFUSED:
                    raise
                self._past_cache = False
                return 0
            done += got
            if not got or done % PAGE_BYTES:  # the end of the file
                break
        return min(done, stop) - start

    def close(self) -> None:
        """Safe to call twice."""
        for descriptor in {self._ordinary, self._direct} - {-1}:
            os.close(descriptor)
        self._ordinary = self._direct = -1

    def _read(self, view: memoryview, start: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._ordinary, [view], start)
        with open(self.path, "rb", buffering=0) as file:
            file.seek(start)
            return file.readinto(view) or 0


class OutputFile:
    """A new file that is written in pieces, in any order, by any thread."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
        self.is_direct = False
        if hasattr(os, "O_DIRECT"):
            with contextlib.suppress(OSError):
                self._descriptor = os.open(path, flags | os.O_DIRECT, 0o666)
                self.is_direct = True
        if not self.is_direct:
            self._descriptor = os.open(path, flags, 0o666)

    def write(self, view: memoryview, start: int, count: int) -> None:
        """Write `count` bytes of `view`, which lies at a whole page as `start` does and is long
        enough for a last page; what lies behind the count in it may reach the disk for a while."""
        done = 0
        while done < count:
            direct = self.is_direct  # another thread may be refused while this one writes
            stop = round_up(count, PAGE_BYTES) if direct else count
            try:
                put = self._put(view[done:stop], start + done)
            except OSError as refused:
                if not direct or refused.errno not in _REFUSED:
                    raise
                self._be_ordinary()
                continue
            if direct and done + put < count:
                put -= (done + put) % PAGE_BYTES
            if put <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            done += put

    def finish(self, size_bytes: int) -> None:
        """Cut to its size and wait until the disk has it."""
        os.ftruncate(self._descriptor, size_bytes)
        os.fsync(self._descriptor)
        if not self.is_direct and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """Once."""
        os.close(self._descriptor)

    def _put(self, view: memoryview, start: int) -> int:
        if hasattr(os, "pwrite"):
            return os.pwrite(self._descriptor, view, start)
        with _SEEKING:
            os.lseek(self._descriptor, start, os.SEEK_SET)
            return os.write(self._descriptor, view)

    def _be_ordinary(self) -> None:
        import fcntl

        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags & ~os.O_DIRECT)
        self.is_direct = False
