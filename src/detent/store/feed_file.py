"""The feed of a session on this machine: a file with one line an event, written by a run and read by its followers.

Each run starts a new file; a reader of the old file reads it to its end. A file that has grown too long is replaced by
a new one, which begins with the lines that a later reader needs.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from detent.store import disk

if TYPE_CHECKING:
    from detent.store.port import Store

MAX_BYTES = 4 * 1024 * 1024
_CHUNK = 256 * 1024


def feed_path(store: "Store", session: str) -> str:
    """The path of the session's feed on this machine."""
    return os.path.join(store.directory(f"{session}/.process"), "run.jsonl")


class FeedFile:
    """See `FeedWriter` for the contract. A file that cannot be written does not stop the run."""

    def __init__(self, path: str, *, max_bytes: int = MAX_BYTES) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._fd: int | None = None
        self._size = 0
        #: Whether the last line is incomplete.
        self._is_torn = False

    def write(self, line: bytes, *, starts: bool, head: Sequence[bytes]) -> None:
        with suppress(OSError):
            if starts:
                self._start_file(b"")
            elif self._fd is None or self._size + len(line) > self._max_bytes:
                self._start_file(b"".join(each for each in head if each != line))
            self._write(line)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None

    def _start_file(self, head: bytes) -> None:
        """Replace the file by one that begins with `head`, in one step."""
        disk.make_directory(os.path.dirname(self._path))
        temporary = f"{self._path}.{os.getpid()}.tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, disk.PRIVATE_FILE)
        try:
            os.write(fd, head)
            os.replace(temporary, self._path)
        except OSError:
            os.close(fd)
            raise
        self.close()
        self._fd, self._size, self._is_torn = fd, len(head), False

    def _write(self, line: bytes) -> None:
        assert self._fd is not None
        data = b"\n" + line if self._is_torn else line
        self._is_torn = True
        written = os.write(self._fd, data)
        self._is_torn = written < len(data)
        self._size += written


class FeedFileReader:
    """See `FeedReader` for the contract. The file may not exist yet, and another file may replace it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd: int | None = None
        self._rest = b""

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None

    def read(self) -> Iterator[bytes]:
        """New lines: the rest of the open file, then the file that replaced it."""
        yield from self._lines()
        while self._opened_next():
            yield from self._lines()

    def _opened_next(self) -> bool:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return False
        if self._fd is not None:
            if os.path.sameopenfile(fd, self._fd):
                os.close(fd)
                return False
            os.close(self._fd)
        self._fd, self._rest = fd, b""
        return True

    def _lines(self) -> Iterator[bytes]:
        while self._fd is not None and (data := os.read(self._fd, _CHUNK)):
            *lines, self._rest = (self._rest + data).split(b"\n")
            yield from lines
