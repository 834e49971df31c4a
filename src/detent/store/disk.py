"""The file operations that durability rests on. Failures become a `StoreFailed` with a reason in words."""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from detent.errors import StoreFailed

#: Suffix of files that a crash may leave of an unfinished write; never part of a document's name.
TEMPORARY = ".tmp"

#: Behind the name of what was in the place of a file that Detent writes.
SET_ASIDE = ".set-aside-"
#: Detent's files hold texts and contents of files that only their owner may read.
PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700

NOTHING_COMMITTED = "nothing was committed; fix the problem and retry"
REBUILDABLE = "fix the problem and retry; earlier commits are safe, and documents are rebuilt from them"

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


def make_directory(path: str, *, durable: bool = False) -> None:
    """Make a directory and its missing parents, for their owner alone."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(os.path.abspath(path))
    make_directory(parent, durable=durable)
    try:
        os.mkdir(path, PRIVATE_DIRECTORY)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    if durable:
        sync_directory(parent)


def read_file(path: str) -> bytes:
    """The content of a regular file. Anything else raises an `OSError`; a pipe is not waited for."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        return file.read()


def read_if_there(path: str) -> bytes | None:
    """The content of a file; None if there is none."""
    with failing_as("read", path):
        try:
            with open(path, "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None


def set_aside(path: str) -> str:
    """Rename what is in the place of a file, so that the file can be written; returns the new path."""
    kept = next(free for number in count(1) if not os.path.lexists(free := f"{path}{SET_ASIDE}{number}"))
    os.rename(path, kept)
    return kept


def open_lock(path: str) -> int:
    """Open the file of a lock. It holds nothing, so whatever is in its place makes way or is made usable."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(path, flags, PRIVATE_FILE)
    except FileNotFoundError:
        raise
    except PermissionError:
        if not os.path.isfile(path) or os.stat(path).st_mode & stat.S_IRUSR:
            # A project that was made read-only stays so.
            raise
        # The same file: another process may hold it.
        os.chmod(path, PRIVATE_FILE)
    except OSError:
        if os.path.isfile(path) or not os.path.lexists(path):
            # Another process may hold the file.
            raise
        set_aside(path)
    return os.open(path, flags, PRIVATE_FILE)


def replace(
    path: str, data: bytes, *, durable: bool = False, suffix: str = TEMPORARY, mode: int = PRIVATE_FILE
) -> None:
    """Replace a file, atomically for readers. With `durable` it is on the medium when this returns.

    Callers that hold a lock can share one temporary name; others pass a `suffix` of their own.
    """
    temporary = path + suffix
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        write_all(fd, data)
        if durable:
            sync(fd)
    finally:
        os.close(fd)
    try:
        os.replace(temporary, path)
    except IsADirectoryError:
        set_aside(path)
        os.replace(temporary, path)
    if durable:
        sync_directory(os.path.dirname(path))
