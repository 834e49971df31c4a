"""The index `objects.idx`: the place of each object, so that opening a store does not read its segments.

It is a cache of the segments. A row is written after the sync of its record, so indexed records are durable.
"""

import os
import stat
import struct
from collections.abc import Iterable, Iterator

from detent.store import disk

NAME = "objects.idx"
_ROW = struct.Struct("<32sIQI")
_FIRST = _ROW.pack(b"detent objects.idx 1", 0, 0, 0)

#: Digest, number of the segment, offset and length of the record.
Row = tuple[bytes, int, int, int]


class Odd(Exception):
    """The index contradicts the segments."""


class Replaced(Exception):
    """Another file took the place of the one that was read before."""


class Index:
    """It stays open, so that no other file can get its inode."""

    def __init__(self, root: str) -> None:
        self.path = os.path.join(root, NAME)
        self._fd = -1
        self._read = 0

    def news(self) -> Iterator[Row]:
        """The rows that were added since the last call."""
        self._open()
        if self._fd < 0:
            return iter(())
        size = os.fstat(self._fd).st_size
        if size < self._read:
            raise Replaced
        if size == self._read:
            return iter(())
        data = os.pread(self._fd, size - self._read, self._read)
        if self._read == 0:
            if not data.startswith(_FIRST):
                raise Odd
            self._read, data = len(_FIRST), data[len(_FIRST) :]
        data = data[: len(data) - len(data) % _ROW.size]
        self._read += len(data)
        return _ROW.iter_unpack(data)

    def append(self, rows: Iterable[Row]) -> None:
        """Under the lock. Not synced: lost rows are read from the segments again."""
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, disk.PRIVATE_FILE)
        try:
            if os.fstat(fd).st_size > self._read:
                # An unfinished row of another process.
                os.ftruncate(fd, self._read)
            data = b"".join([_ROW.pack(*row) for row in rows])
            data = data if self._read else _FIRST + data
            disk.write_all(fd, data)
        finally:
            os.close(fd)
        self._open()
        self._read += len(data)

    def replace(self, rows: Iterable[Row]) -> None:
        """Under the lock."""
        data = b"".join([_FIRST, *(_ROW.pack(*row) for row in rows)])
        disk.replace(self.path, data)
        self.close()
        self._open()
        self._read = len(data)

    def remove(self) -> None:
        """Remove the index, before a segment that it describes is replaced."""
        self.close()
        try:
            if os.path.isdir(self.path):
                disk.set_aside(self.path)
            else:
                os.unlink(self.path)
        except FileNotFoundError:
            return
        disk.sync_directory(os.path.dirname(self.path))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._read = -1, 0

    def _open(self) -> None:
        try:
            status = os.stat(self.path)
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) if self._fd < 0 else self._fd
        except FileNotFoundError:
            if self._fd >= 0:
                raise Replaced from None
            return
        except OSError:
            # It cannot be read, and is only a cache.
            raise Odd from None
        if self._fd < 0:
            if not stat.S_ISREG(status.st_mode):
                os.close(fd)
                raise Odd
            self._fd = fd
        elif status.st_ino != os.fstat(self._fd).st_ino:
            raise Replaced
