"""Objects that are plain files: `<owner>/<sha256>/<name>`, for artifacts that people look for and for large content.

A batch writes them into a staging directory first: `.new-1`, locked as long as the batch lives. An unlocked staging
directory belongs to a batch that died.
"""

import errno
import fcntl
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

from detent.errors import Invalid
from detent.objects.record import Header, damaged, plain_path
from detent.store import disk

CHUNK = 1 << 20
_STAGING = ".new-"
#: Read-only, so that an object is not changed by accident, and for its owner alone.
_MODE = 0o400
_FICLONE = 0x40049409
#: Errors of a file system that cannot share blocks, or not between these two files.
_CANNOT = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EBADF, errno.EPERM}


class Staging:
    """The staging directory of one batch. Make it under the lock of the segments, so that it is not cleared first."""

    def __init__(self, root: str) -> None:
        clear_abandoned(root)
        for number in count(1):
            self.path = os.path.join(root, f"{_STAGING}{number}")
            with suppress(FileExistsError):
                os.mkdir(self.path, disk.PRIVATE_DIRECTORY)
                break
        self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._numbers = count(1)

    def new(self) -> str:
        """The path of a new file."""
        return os.path.join(self.path, str(next(self._numbers)))

    def close(self) -> None:
        _clear(self.path)
        os.close(self._fd)


def clear_abandoned(root: str) -> None:
    """Remove the staging directories of batches that died."""
    for name in os.listdir(root):
        if name.startswith(_STAGING):
            path = os.path.join(root, name)
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            else:
                _clear(path)
            finally:
                os.close(fd)


def _clear(path: str) -> None:
    """The next batch removes what cannot be removed now."""
    with suppress(OSError):
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)


def checked_owner(text: str) -> str:
    """Refuse a name that begins with a dot: those are reserved."""
    if text.startswith("."):
        raise Invalid(f"{text[:80]!r} cannot be the owner of an object: it begins with a dot")
    return _component(text, "owner")


def checked_name(text: str) -> str:
    return _component(text, "name")


def copy_in(source: str, target: str) -> tuple[str, int]:
    """Make a durable copy; the digest and size of the copy, even if the source changes meanwhile."""
    reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with _new(target) as writing:
            if cloned(reading, writing):
                return _sum(writing)
            return _copy_summed(reading, writing)
    finally:
        os.close(reading)


def write_in(data: bytes, target: str) -> None:
    with _new(target) as writing:
        disk.write_all(writing, data)


@contextmanager
def opened(header: Header, root: str) -> Iterator[int]:
    """A descriptor of the verified plain file; Corrupt if it is missing or damaged."""
    path = plain_path(header)
    if path is None:
        raise damaged(header.sha256, "its record names no plain file")
    try:
        fd = os.open(os.path.join(root, path), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise damaged(header.sha256, f"its plain file cannot be read: {error}") from error
    try:
        if _sum(fd) != (header.sha256, header.size):
            raise damaged(header.sha256, f"its plain file {header.path} was changed")
        yield fd
    finally:
        os.close(fd)


def copy_out(reading: int, writing: int, size: int) -> None:
    """Copy the whole of one open file to the position of another."""
    if cloned(reading, writing):
        return
    done = _copied_by_kernel(reading, writing, size)
    while done < size:
        chunk = os.pread(reading, CHUNK, done)
        if not chunk:
            raise OSError(errno.EIO, "it became shorter while it was copied")
        disk.write_all(writing, chunk)
        done += len(chunk)


def cloned(reading: int, writing: int) -> bool:
    """Share the blocks where the file system can, if nothing was written yet."""
    if sys.platform != "linux":
        return False
    try:
        if os.lseek(writing, 0, os.SEEK_CUR) or os.fstat(writing).st_size:
            return False
        fcntl.ioctl(writing, _FICLONE, reading)
    except OSError as error:
        if error.errno in {*_CANNOT, errno.ESPIPE}:
            return False
        raise
    os.lseek(writing, 0, os.SEEK_END)
    return True


def _copied_by_kernel(reading: int, writing: int, size: int) -> int:
    """The number of bytes that the kernel copied; the caller copies the rest."""
    done = 0
    if sys.platform != "linux":
        return done
    with suppress(OSError):
        while done < size:
            step = os.copy_file_range(reading, writing, size - done, done)
            if step == 0:
                break
            done += step
    return done


def _component(text: str, what: str) -> str:
    if not text or "/" in text or "\0" in text or text in (".", ".."):
        raise Invalid(f"{text[:80]!r} cannot be the {what} of an object: it has to be a single name")
    return text


@contextmanager
def _new(path: str) -> Iterator[int]:
    """A new file, durable unless the block raises."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    try:
        yield fd
        disk.sync(fd)
    finally:
        os.close(fd)


def _sum(fd: int) -> tuple[str, int]:
    total, size = hashlib.sha256(), 0
    while chunk := os.pread(fd, CHUNK, size):
        total.update(chunk)
        size += len(chunk)
    return total.hexdigest(), size


def _copy_summed(reading: int, writing: int) -> tuple[str, int]:
    total, size = hashlib.sha256(), 0
    while chunk := os.read(reading, CHUNK):
        total.update(chunk)
        disk.write_all(writing, chunk)
        size += len(chunk)
    return total.hexdigest(), size
