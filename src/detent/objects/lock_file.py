"""The lock of everybody who writes objects: `.lock` beside the segments, never deleted."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from detent.store import disk
from detent.store.lock import exclusive

#: Rewriting all segments takes this long at most, on a slow disk.
WAIT_S = 60.0


class LockFile:
    def __init__(self, root: str) -> None:
        self._root = root
        self._fd = -1
        self._pid = os.getpid()
        self._opening = threading.Lock()
        self._threads = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        self.forget_if_forked()
        with self._opening, disk.failing_as("lock", self._root):
            self._open()
        with exclusive(self._fd, self._threads, wait_s=WAIT_S, what=self._root):
            yield

    def forget_if_forked(self) -> bool:
        """A forked child shares the parent's descriptor and with it the lock: it opens its own."""
        if self._pid == os.getpid():
            return False
        self._fd, self._pid = -1, os.getpid()
        self._opening, self._threads = threading.Lock(), threading.Lock()
        return True

    def close(self) -> None:
        if self._fd >= 0 and self._pid == os.getpid():
            os.close(self._fd)
        self._fd = -1

    def _open(self) -> None:
        if self._fd >= 0 and os.fstat(self._fd).st_nlink == 0:
            # The file of a directory that was removed would keep nobody out.
            self.close()
        if self._fd < 0:
            make_directory(self._root)
            self._fd = os.open(os.path.join(self._root, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def make_directory(path: str) -> None:
    """With those above it, and durable."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(os.path.abspath(path))
    make_directory(parent)
    with suppress(FileExistsError):
        os.mkdir(path)
    disk.sync_directory(parent)
