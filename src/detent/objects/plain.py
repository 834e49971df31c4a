"""Objects that are plain files: `<owner>/<sha256>/<name>`, for people to find, and for what is large."""

import errno
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from detent.errors import Invalid
from detent.objects.content import damaged
from detent.objects.record import Header, plain_path
from detent.store import disk

CHUNK = 1 << 20
#: Nobody changes an object, not even by accident.
_MODE = 0o444
_FICLONE = 0x40049409
#: What a file system says that cannot share blocks, or not between these two files.
_CANNOT = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EBADF, errno.EPERM}


def checked_owner(text: str) -> str:
    """Names that begin with a dot are ours."""
    if text.startswith("."):
        raise Invalid(f"{text[:80]!r} cannot be the owner of an object: it begins with a dot")
    return _component(text, "owner")


def checked_name(text: str) -> str:
    return _component(text, "name")


def copy_in(source: str, target: str) -> tuple[str, int]:
    """A durable copy; digest and size are those of what was stored, whatever happens to the source meanwhile."""
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
    """A descriptor of the object's plain file, its content verified; Corrupt if it is missing or damaged."""
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
    """The whole of one open file to where another stands."""
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
    import fcntl  # noqa: PLC0415 - there is none everywhere

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
    """How much was; the rest has to be copied by hand."""
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
    """A new file, durable when all went well."""
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
