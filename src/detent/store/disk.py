"""The few operations on files that durability rests on, each with its failure told in words."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from detent.errors import StoreFailed

#: What a crash may leave of a write that did not finish; never part of a document's name.
TEMPORARY = ".tmp"

NOTHING_COMMITTED = "nothing was committed; mend that and try again"
REBUILDABLE = "mend that and try again; what was committed before stands, and documents are rebuilt from it"

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EBADF: "it may only be read",
    errno.EIO: "the disk reported an error",
    errno.ENAMETOOLONG: "the name is too long for the file system",
}


@contextmanager
def failing_as(action: str, path: str, *, way_out: str = NOTHING_COMMITTED) -> Iterator[None]:
    """Turn an `OSError` into a `StoreFailed` that names the action, the path and the reason."""
    try:
        yield
    except OSError as error:
        raise failure(action, path, error, way_out=way_out) from error


def failure(action: str, path: str, error: OSError, *, way_out: str = NOTHING_COMMITTED) -> StoreFailed:
    reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
    return StoreFailed(f"could not {action} {path}: {reason}", way_out=way_out)


def write_all(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])


def sync(fd: int) -> None:
    """On return the data is on the medium."""
    if sys.platform == "darwin":
        # fsync on macOS leaves the data in the drive's cache.
        import fcntl  # noqa: PLC0415

        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)


def sync_directory(path: str) -> None:
    """Make a rename or a new entry in `path` durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace(path: str, data: bytes) -> None:
    """Atomic for readers, not synced: for what can be rebuilt. Callers hold a lock, so one temporary name serves."""
    temporary = path + TEMPORARY
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)
    os.replace(temporary, path)


def replace_durably(path: str, data: bytes) -> None:
    """Atomic for readers, and on the medium when this returns."""
    temporary = path + TEMPORARY
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        write_all(fd, data)
        sync(fd)
    finally:
        os.close(fd)
    os.replace(temporary, path)
    sync_directory(os.path.dirname(path))
