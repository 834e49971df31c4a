"""One segment: a file of records that grows at its end, and how far it is known."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from detent.objects import record
from detent.objects.record import Found
from detent.store import disk


class Segment:
    """Kept open: as long as it is, no other file can have its inode."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.inode = os.fstat(self.fd).st_ino
        #: Up to here the records are known.
        self.covered = 0
        #: Up to here they are synced.
        self.durable = 0
        #: Up to here an index said that there are records: damaged or not, this much is never cut.
        self.claimed = 0

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def end(self) -> int:
        """Where the next record goes; what is beyond was not finished, and nobody refers to it."""
        return max(self.covered, self.claimed)

    def news(self) -> Iterator[Found]:
        """The records behind those that are known, which they are from then on."""
        for found in record.scan(self.fd, self.covered, self.size()):
            self.covered = max(self.covered, found.end)
            yield found

    def vouch(self, end: int) -> None:
        """An index covers it up to `end`."""
        self.covered = max(self.covered, end)
        self.durable = max(self.durable, end)
        self.claimed = max(self.claimed, end)

    def append(self, data: bytes) -> None:
        start = self.end()
        with self._writing() as fd:
            try:
                disk.write_all(fd, data)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(fd, start)
                raise
        self.covered = start + len(data)

    def cut(self, end: int) -> None:
        with self._writing() as fd:
            os.ftruncate(fd, end)

    def sync(self) -> None:
        disk.sync(self.fd)
        self.durable = self.claimed = self.end()

    def close(self) -> None:
        os.close(self.fd)

    @contextmanager
    def _writing(self) -> Iterator[int]:
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)
